//! State stored under a server's name belongs to the program that had the name. A different program gets the state only
//! if the user decides so.

use crate::hostile;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const NOT_THE_SAME: &str = "the server `hostile` is not the program that you allowed before: ";

/// A server with a data folder, annotations and a permanent grant. Its program can be replaced.
struct Scene {
    world: World,
    program: PathBuf,
    granted: PathBuf,
    memo: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let mut program = PathBuf::new();
        let world = World::with(|prepared| {
            hostile::install(prepared);
            let bin = prepared.home.user_home.join("bin");
            fs::create_dir_all(&bin).unwrap();
            program = bin.join("notes");
            fs::copy(hostile::program(), &program).unwrap();
            let data = prepared.home.server_data("hostile");
            ironcurtain_config::home::private_dir(&data).unwrap();
            fs::write(data.join("memo"), "kept").unwrap();
            let sandbox = json!({ "view": "roots", "filesystem": { "allowWrite": [data] } });
            let servers = json!({ "hostile": { "command": program, "sandbox": sandbox } });
            fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
        });
        let memo = world.home.server_data("hostile").join("memo");
        let granted = world.file("plans/next", "content");
        hostile::answers_before(&world);
        let mut client = world.connect("hostile");
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Always));
        client.open(&granted).ok();
        assert_eq!(client.sneak(&memo).ok(), "kept");
        client.hang_up();
        Self { world, program, granted, memo }
    }

    /// Replaces the server's program with one that has different content but the same behaviour.
    fn replace(&self) {
        let new = self.program.with_extension("new");
        fs::copy(&self.program, &new).unwrap();
        fs::OpenOptions::new().append(true).open(&new).unwrap().write_all(b"another").unwrap();
        fs::rename(new, &self.program).unwrap();
    }

    /// Starts a session. Returns the error message if the server is not started.
    fn start_session(&self) -> Result<(), String> {
        let mut client = self.world.start("hostile");
        let about = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        let answer = client.request("initialize", params);
        client.hang_up();
        answer["error"]["message"].as_str().map_or(Ok(()), |why| Err(why.to_owned()))
    }

    /// Asserts that the server is not started. Returns the error message.
    #[track_caller]
    fn assert_refused(&self) -> String {
        self.start_session().unwrap_err()
    }

    /// Asserts that a client can read both the granted and the stored data without approval.
    #[track_caller]
    fn assert_has_all_state(&self) {
        let asked = self.world.user.count();
        let mut client = self.world.connect("hostile");
        assert_eq!(client.open(&self.granted).ok(), "content");
        assert_eq!(client.sneak(&self.memo).ok(), "kept");
        client.hang_up();
        assert_eq!(self.world.user.count(), asked);
    }

    /// Runs the `ironcurtain` command as the user.
    fn decide(&self, arguments: &[&str]) -> Result<String, String> {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(["servers", "identity"]).args(arguments).stdin(Stdio::null());
        command.env("IRONCURTAIN_HOME", self.world.ours()).env("HOME", &self.world.home.user_home);
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    fn is_suspended(&self) -> bool {
        self.world
            .status()
            .troubles
            .iter()
            .any(|trouble| trouble.contains("not the program that you allowed"))
    }
}

#[test]
fn replaced_program_gets_no_state_of_its_name_and_original_gets_all() {
    let mut scene = Scene::new();
    scene.world.restart();
    scene.assert_has_all_state();
    let asked = scene.world.user.count();
    scene.replace();
    let told = scene.assert_refused();
    let suspended = "Suspended: 1 grant, its data folder, ";
    for words in [
        NOT_THE_SAME,
        "notes` was changed",
        suspended,
        "annotated tools.",
        "`ironcurtain servers identity hostile`",
    ] {
        assert!(told.contains(words), "{words} in {told}");
    }
    assert!(scene.is_suspended());
    assert_eq!(scene.world.user.count(), asked, "an agent can prompt the user about it");
    // A restart or another attempt does not count as a decision.
    scene.world.restart();
    assert!(scene.is_suspended(), "the suspension is reported from the start");
    assert!(scene.assert_refused().contains(NOT_THE_SAME));
    // The command requires a terminal and a confirmation.
    assert!(scene.decide(&["hostile", "--keep"]).unwrap_err().contains("no terminal to confirm on"));
    assert!(scene.assert_refused().contains(NOT_THE_SAME));
    scene.decide(&["hostile", "--keep", "--yes"]).unwrap();
    scene.assert_has_all_state();
    eventually("nothing is suspended", Duration::from_secs(10), || !scene.is_suspended());
    let log = scene.world.log();
    assert!(log.contains(
        "the server hostile is a different program: you kept the permissions and data under its name for the new program"
    ));
    let again = scene.decide(&["hostile", "--start-afresh", "--yes"]).unwrap_err();
    assert!(again.contains("nothing is suspended under the name `hostile`"), "{again}");
    scene.replace();
    assert!(scene.assert_refused().contains(NOT_THE_SAME), "a later change asks again");
}

#[test]
fn starting_fresh_sets_old_state_aside() {
    let scene = Scene::new();
    scene.replace();
    assert!(scene.assert_refused().contains(NOT_THE_SAME));
    let file = scene.world.home.policy().join("tool-annotations.json");
    let annotations: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let shown = scene.decide(&["hostile"]).unwrap();
    assert!(shown.contains("plans") && shown.contains("data/servers/hostile"), "{shown}");
    scene.decide(&["hostile", "--start-afresh", "--yes"]).unwrap();
    assert_eq!(scene.world.grants(), []);
    let mut client = scene.world.connect("hostile");
    eventually("the annotations are out of force", Duration::from_secs(10), || {
        client.open(&scene.granted).text.contains("has not been reviewed yet")
    });
    client.hang_up();
    assert!(!scene.memo.exists());
    let notes: Value =
        serde_json::from_str(&fs::read_to_string(scene.world.home.config.join("put-aside.json")).unwrap())
            .unwrap();
    let note = &notes[0];
    assert_eq!((&note["server"], note["grants"].as_array().unwrap().len()), (&json!("hostile"), 1));
    assert_eq!(note["annotations"], annotations["servers"]["hostile"]);
    let aside = fs::read_dir(Path::new(note["data"].as_str().unwrap())).unwrap().next().unwrap().unwrap();
    assert_eq!(fs::read_to_string(aside.path().join("memo")).unwrap(), "kept");
}

#[test]
fn changed_arguments_are_a_new_server_and_its_secret_is_not_read() {
    let scene = Scene::new();
    let file = scene.world.home.config.join("mcp-servers.json");
    let before = fs::read_to_string(&file).unwrap();
    let mut servers: Value = serde_json::from_str(&before).unwrap();
    servers["hostile"]["args"] = json!(["--other"]);
    servers["hostile"]["env"] = json!({ "API_KEY": "keyring:notes-key" });
    fs::write(&file, servers.to_string()).unwrap();
    eventually("the new entry is in force", Duration::from_secs(10), || scene.start_session().is_err());
    let told = scene.assert_refused();
    assert!(told.contains("its arguments changed") && told.contains("its secrets `notes-key`"), "{told}");
    assert!(!told.contains("keyring"), "{told}");
    fs::write(&file, before).unwrap();
    eventually("the old entry is in force", Duration::from_secs(10), || scene.start_session().is_ok());
    scene.assert_has_all_state();
}

#[test]
fn host_reading_server_cannot_see_other_servers_data_folder() {
    let world = World::with(|prepared| {
        hostile::install(prepared);
        let file = prepared.home.policy().join("tool-annotations.json");
        let mut tools: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let owner = tools["servers"]["hostile"].to_string().replace(r#""hostile""#, r#""owner""#);
        tools["servers"]["owner"] = serde_json::from_str(&owner).unwrap();
        fs::write(file, tools.to_string()).unwrap();
        let data = prepared.home.server_data("owner");
        ironcurtain_config::home::private_dir(&data).unwrap();
        fs::write(data.join("memo"), "kept").unwrap();
        let entry = |sandbox: Value| json!({ "command": hostile::program(), "sandbox": sandbox });
        let servers = json!({
            "hostile": entry(json!({ "view": "host-read" })),
            "owner": entry(json!({ "view": "host-read", "filesystem": { "allowWrite": [data] } })),
        });
        fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
    });
    let (memo, shown) = (world.home.server_data("owner").join("memo"), world.file("shown", "content"));
    let mut other = world.connect("hostile");
    assert_eq!(other.sneak(&shown).ok(), "content");
    other.sneak(&memo).refused("os error");
    // No rule allows these tools, so the user must.
    world.user.will(Next::AllowFirst(vec![Reach::Paths, Reach::Request, Reach::Tool]));
    assert_eq!(world.connect("owner").sneak(&memo).ok(), "kept");
}

#[test]
fn program_changed_during_session_is_not_restarted() {
    let scene = Scene::new();
    let mut client = scene.world.connect("hostile");
    assert_eq!(client.open(&scene.granted).ok(), "content");
    scene.replace();
    assert_eq!(client.open(&scene.granted).ok(), "content", "the running program is the approved one");
    let died = client.begin_call("die", json!({}));
    client.outcome(died);
    client.open(&scene.granted).refused(NOT_THE_SAME);
}
