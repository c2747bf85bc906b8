//! Tests a server entry that now starts a different program. The window asks about the previous program's permissions.

use crate::app::{App, beside, command, listens};
use crate::revoke_clicks::{granted, owner};
use crate::screen::{Control, Screen, until};
use crate::window::{named, open, says, text};
use ironcurtain_config::home::Home;
use ironcurtain_testkit::JsonProcess;
use ironcurtain_testkit::client::AgentClient;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

const WINDOW: &str = "^IronCurtain$";
const HEADLINE: &str = "filesystem is no longer the program you allowed";

/// A server called `filesystem` that has a permanent grant and stored data. Its program has been replaced.
struct Scene {
    _app: App,
    screen: Screen,
    home: Home,
    old: PathBuf,
    new: PathBuf,
    plan: PathBuf,
    memo: PathBuf,
}

impl Scene {
    /// Makes an agent's attempt to start the server fail, and opens the window on the page that asks about the server.
    fn new() -> Self {
        let screen = crate::tray::with_panel();
        let home = Home::under(&screen.home().join("ironcurtain"), screen.home());
        home.prepare().expect("the folders");
        let bin = screen.home().join("bin");
        fs::create_dir_all(&bin).expect("the folder");
        let [old, new] = ["files-1.0", "files-2.0"].map(|name| bin.join(name));
        for (copy, marks) in [(&old, "1"), (&new, "2")] {
            fs::copy(beside("ironcurtain-filesystem"), copy).expect("the program");
            let mut file = fs::OpenOptions::new().append(true).open(copy).expect("the program");
            file.write_all(marks.as_bytes()).expect("its end");
        }
        let plan = screen.home().join("notes/plan.txt");
        fs::create_dir_all(plan.parent().expect("a folder")).expect("the folder");
        fs::write(&plan, "ship on Tuesday").expect("the file");
        let memo = home.server_data("filesystem").join("memo");
        ironcurtain_config::home::private_dir(memo.parent().expect("a folder")).expect("the folder");
        fs::write(&memo, "kept").expect("the file");
        configure(&home, &old);
        owner(&screen, &home, |agent| {
            agent().call("list_allowed_directories", json!({})).ok();
            assert_eq!(agent().read(&plan).ok(), "ship on Tuesday");
        });
        assert_eq!(granted(&home), BTreeSet::from([plan.clone()]));
        configure(&home, &new);
        let app = App::spawn(&mut command(&screen, &[]));
        listens(&screen);
        let this = Self { _app: app, screen, home, old, new, plan, memo };
        let refused = this.start().err().expect("another program");
        assert!(refused.contains("is not the program that you allowed before"), "{refused}");
        this
    }

    /// Starts the server for an agent, or returns the error message if the server is not started.
    fn start(&self) -> Result<AgentClient, String> {
        let shim = beside("ironcurtain-shim");
        let mut shim = self.screen.command(shim);
        let mut agent =
            AgentClient::new(JsonProcess::start(shim.args(["--server", "filesystem"]).current_dir("/")));
        let about = json!({ "name": "test-client", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        let answer = agent.request("initialize", params);
        if let Some(why) = answer["error"]["message"].as_str() {
            return Err(why.to_owned());
        }
        agent.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        Ok(agent)
    }

    /// Opens the Servers page and asserts that it shows the question's texts in this order.
    fn asked(&self) {
        says(&self.screen, HEADLINE);
        self.screen.picture("identity-home");
        open(&self.screen, "Servers");
        says(&self.screen, HEADLINE);
        let said = text(&self.screen);
        let (old, new) = (self.old.display(), self.new.display());
        let mut rest = said.as_str();
        for words in [
            HEADLINE,
            "the new program can, without asking you:",
            "read ~/notes/plan.txt",
            "read and change the data in ",
            &format!("Old program\n{old}"),
            &format!("New program\n{new}"),
            "The new program is blocked until you decide. Keep only if you changed or updated it yourself.",
        ] {
            let at = rest.find(words).unwrap_or_else(|| panic!("`{words}` next, in {said}"));
            rest = &rest[at..];
        }
        self.screen.picture("identity-asked");
    }

    /// Clicks a button with the mouse once the button has stopped moving.
    fn click(&self, button: &str) {
        let rests = || self.button(button).filter(|found| (1..780).contains(&found.place[1]));
        let button = until(button, || {
            let before = rests()?;
            rests().filter(|now| now.place == before.place)
        });
        self.screen.click(&button);
    }

    fn button(&self, name: &str) -> Option<Control> {
        self.screen.find(WINDOW, "push button", name)
    }

    /// Returns the only grant, as `ironcurtain grants list` shows it.
    fn listed(&self) -> Option<Value> {
        let words = ["grants", "--json"];
        let listed = self.screen.read(beside("ironcurtain").to_str().expect("a plain path"), &words);
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let all = listed["grants"].as_array().or(listed.as_array()).expect("a list");
        assert!(all.len() < 2, "{listed}");
        all.first().cloned()
    }

    /// Asserts that the new program reads the file without asking the user.
    fn applies(&self) {
        let mut agent = self.start().expect("a server that starts");
        assert_eq!(agent.read(&self.plan).ok(), "ship on Tuesday");
        assert!(self.memo.is_file());
        assert_eq!(self.listed().expect("the grant")["suspended"], Value::Null);
    }

    /// Asserts that the new program starts without stored data and with unannotated tools.
    fn is_afresh(&self) {
        assert_eq!(granted(&self.home), BTreeSet::new());
        assert!(!self.memo.exists());
        let aside: Vec<PathBuf> = fs::read_dir(self.home.set_aside_data())
            .expect("a folder")
            .map(|found| found.expect("an entry").path().join("memo"))
            .collect();
        assert_eq!(aside.len(), 1);
        assert_eq!(fs::read_to_string(&aside[0]).expect("what was put aside"), "kept");
        let mut agent = self.start().expect("a server that starts");
        agent.read(&self.plan).refused("has not been reviewed yet");
    }
}

#[test]
fn keeping_permissions_by_mouse_applies_them_to_the_new_program() {
    let scene = Scene::new();
    let screen = &scene.screen;
    scene.asked();
    let listed = scene.listed().expect("the grant");
    assert_eq!(
        (&listed["suspended"], &listed["server_changed"]),
        (&json!("the server changed"), &json!(true))
    );
    open(screen, "Permissions");
    says(screen, "Suspended: the server changed.");
    let details = format!("Details of {} for ", scene.plan.display());
    let chevron = until("the details", || {
        let all = screen.controls(WINDOW);
        all.into_iter().find(|one| one.role == "push button" && one.name.starts_with(&details))
    });
    screen.click(&chevron);
    says(screen, "Could\n");
    screen.picture("identity-granted");
    screen.click(&named(screen, "Decide about the server filesystem"));
    says(screen, HEADLINE);
    scene.click("Keep everything: filesystem");
    says(screen, &format!("{} gets everything listed above.", scene.new.display()));
    assert!(scene.start().is_err(), "it asks once more");
    screen.picture("identity-keep");
    scene.click("Keep everything");
    says(screen, "filesystem keeps its permissions.");
    until("the state", || text(screen).contains("No agent connected").then_some(()));
    until("the question to go", || (!text(screen).contains(HEADLINE)).then_some(()));
    screen.picture("identity-kept");
    scene.applies();
    open(screen, "Permissions");
    until("the mark to go", || {
        let said = text(screen);
        (said.contains("May\n") && !said.contains("Suspended")).then_some(())
    });
}

#[test]
fn starting_fresh_by_mouse_revokes_permissions_and_moves_data_aside() {
    let scene = Scene::new();
    let screen = &scene.screen;
    scene.asked();
    scene.click("Start afresh: filesystem");
    says(screen, "1 permission is revoked. Its data folder is moved aside, not deleted.");
    screen.picture("identity-afresh");
    assert_eq!(granted(&scene.home).len(), 1, "it asks once more");
    scene.click("Start afresh");
    says(screen, "filesystem starts without permissions or data.");
    screen.picture("identity-started-afresh");
    scene.is_afresh();
}

#[test]
fn changed_server_can_be_decided_by_keyboard_alone() {
    let scene = Scene::new();
    let screen = &scene.screen;
    says(screen, HEADLINE);
    screen.activate(&screen.window(WINDOW));
    let press = |role: &str, name: &str| {
        until(&format!("the focus on {name}"), || {
            let found = screen.find(WINDOW, role, name)?;
            if !found.is("focused") {
                screen.key("Tab");
                return None;
            }
            Some(())
        });
        screen.key("Return");
    };
    press("link", "Decide about the server filesystem");
    says(screen, "The new program is blocked until you decide.");
    press("push button", "Keep everything: filesystem");
    // Cancel has the focus, so pressing Enter twice decides nothing.
    until("the way back", || scene.button("Cancel").filter(|button| button.is("focused")));
    // Presses another key first, so that Enter does not count as a double press.
    let press_here = || {
        screen.key("Shift_L");
        screen.key("Return");
    };
    press_here();
    until("the first button again", || {
        scene.button("Keep everything: filesystem").filter(|button| button.is("focused"))
    });
    assert!(scene.start().is_err());
    press_here();
    press("push button", "Keep everything");
    says(screen, "filesystem keeps its permissions.");
    scene.applies();
}

/// Writes the servers file, with one server that runs this program.
fn configure(home: &Home, program: &Path) {
    let data = home.server_data("filesystem");
    let sandbox = json!({ "view": "roots", "filesystem": { "allowWrite": [data] } });
    let servers = json!({ "filesystem": { "command": program, "args": [], "sandbox": sandbox } });
    fs::write(home.config.join("mcp-servers.json"), servers.to_string()).expect("the servers");
}
