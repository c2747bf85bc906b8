//! Secrets in the desktop keyring, with a keyring service on a private bus.
//!
//! - No file, command line or response contains a secret's value, except for the server's own reply about it.

mod moving;

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::remote_servers::FakeServer;
use crate::scripted_user::ScriptedUser;
use crate::test_home::{Prepared, TestHome};
use crate::world::{World, eventually, programs};
use ironcurtain_export::{DeviceKeyError, KeyStore};
use ironcurtain_testkit::namespace::{is_inside, run_inside_through};
use ironcurtain_testkit::programs::output_with_input;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// The secret, a string that occurs only in these tests.
pub const SECRET: &str = "s3cr3t-of-the-keyring-9f2c";

/// Python code that prints the SHA-256 hash of the secret, which proves that the server received the secret.
pub const PROOF: &str =
    "import hashlib, os; print(hashlib.sha256(os.environ['API_KEY'].encode()).hexdigest())";

/// Shell script that starts an unlocked keyring and then runs the given command.
pub const UNLOCKED: &str = r#"
    printf pw | gnome-keyring-daemon --unlock --components=secrets --daemonize > /dev/null 2>&1
    exec "$0" "$@""#;

/// Like [`UNLOCKED`], but locks the keyring before running the command.
pub const LOCKED: &str = r#"
    printf pw | gnome-keyring-daemon --unlock --components=secrets --daemonize > /dev/null 2>&1
    IRONCURTAIN_HOME="$HOME/ic" "$IRONCURTAIN" secrets set api < "$HOME/../secret"
    dbus-send --session --print-reply --dest=org.freedesktop.secrets /org/freedesktop/secrets \
        org.freedesktop.Secret.Service.Lock array:objpath:/org/freedesktop/secrets/collection/login > /dev/null
    exec "$0" "$@""#;

/// Shell script that runs the command without a keyring.
pub const NONE: &str = r#"exec env DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent "$0" "$@""#;

/// Reruns the test on a private bus, under the shell script `script`, and runs `body` there. `test` is the calling
/// test's full name.
pub fn on_a_bus(test: &str, script: &str, body: impl FnOnce()) {
    on_a_bus_with(&[], test, script, body);
}

/// Like [`on_a_bus`], with these options of `unshare`.
pub fn on_a_bus_with(options: &[&str], test: &str, script: &str, body: impl FnOnce()) {
    if is_inside() {
        return body();
    }
    let dir = tempfile::Builder::new().prefix("ickey").tempdir_in("/var/tmp").unwrap();
    fs::write(dir.path().join("secret"), SECRET).unwrap();
    for made in ["home", "run"] {
        fs::create_dir(dir.path().join(made)).unwrap();
        fs::set_permissions(dir.path().join(made), fs::Permissions::from_mode(0o700)).unwrap();
    }
    let own = std::env::current_exe().unwrap();
    let at = |name: &str, below: &str| format!("{name}={}", dir.path().join(below).display());
    let program = format!("IRONCURTAIN={}", programs().join("ironcurtain").display());
    let (home, runtime) = (at("HOME", "home"), at("XDG_RUNTIME_DIR", "run"));
    let own = own.to_str().unwrap();
    let command = ["env", &home, &runtime, &program, "dbus-run-session", "--", "sh", "-ec", script, own];
    run_inside_through(test, options, &command);
}

/// Runs `ironcurtain secrets` with this standard input.
pub fn ironcurtain(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(programs().join("ironcurtain"));
    output_with_input(command.arg("secrets").args(arguments), input)
}

pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Configures a local server with an environment variable that refers to this secret.
pub fn install(prepared: &Prepared, secret: &str) {
    hostile::install(prepared);
    let path = prepared.home.config.join("mcp-servers.json");
    let mut servers: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    servers["hostile"]["env"] = json!({ "API_KEY": format!("keyring:{secret}") });
    fs::write(&path, servers.to_string()).unwrap();
}

fn proof(world: &World, client: &mut Client) -> String {
    let folder = world.home.sessions();
    let session = fs::read_dir(folder).unwrap().next().unwrap().unwrap().path().join("sandbox");
    client.run(&session, &format!("/usr/bin/python3 -c \"{PROOF}\"")).ok().trim().to_owned()
}

pub fn sha256(text: &str) -> String {
    let said = String::from_utf8(output_with_input(&mut Command::new("sha256sum"), text).stdout).unwrap();
    said.split(' ').next().unwrap().to_owned()
}

/// Returns the files below a folder that contain the text.
pub fn files_with(text: &str, dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_with(text, &path)),
            Ok(kind) if kind.is_file() => {
                let content = fs::read(&path).unwrap_or_default();
                if content.windows(text.len()).any(|part| part == text.as_bytes()) {
                    found.push(path.display().to_string());
                }
            }
            Ok(_) | Err(_) => {}
        }
    }
    found
}

/// Returns the command lines that contain the text, from all running processes.
pub fn command_lines_with(text: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(text)).collect()
}

#[test]
fn secret_reaches_only_the_server_that_names_it() {
    on_a_bus("secrets::secret_reaches_only_the_server_that_names_it", UNLOCKED, || {
        let set = ironcurtain(&["set", "api"], &format!("{SECRET}\n"));
        assert!(set.status.success() && text(&set).contains("Stored `api` in the keyring"), "{}", text(&set));
        assert!(!text(&set).contains(SECRET));
        assert_eq!(text(&ironcurtain(&["list"], "")).trim(), "api");

        let world = World::with(|prepared| install(prepared, "api"));
        let mut client = world.connect("hostile");
        assert_eq!(proof(&world, &mut client), sha256(SECRET));
        assert_eq!(command_lines_with(SECRET), Vec::<String>::new());

        let far = FakeServer::start();
        let headers = json!({ "Authorization": "Bearer keyring:api", "X-Key": "keyring:api" });
        let path = world.home.config.join("mcp-servers.json");
        fs::write(&path, json!({ "far": { "url": far.url(), "headers": headers } }).to_string()).unwrap();
        eventually("the remote server is initialized", TIMEOUT, || {
            let mut client = world.start("far");
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            client.request("initialize", params).get("result").is_some()
        });
        let asked = far.asked();
        assert_eq!(asked[0].header("authorization"), format!("Bearer {SECRET}"));
        assert_eq!(asked[0].header("x-key"), SECRET);
        assert_eq!(command_lines_with(SECRET), Vec::<String>::new());

        assert_eq!(files_with(SECRET, &world.ours()), Vec::<String>::new());
        assert!(world.log().contains("far") && world.audit().intact);
        let removed = ironcurtain(&["remove", "api"], "");
        assert!(removed.status.success(), "{}", text(&removed));
        assert!(text(&ironcurtain(&["list"], "")).contains("No secrets of IronCurtain"));
    });
}

#[test]
fn secret_printed_by_server_is_redacted_everywhere() {
    on_a_bus("secrets::secret_printed_by_server_is_redacted_everywhere", UNLOCKED, || {
        assert!(ironcurtain(&["set", "api"], SECRET).status.success());
        let world = World::with(|prepared| install(prepared, "api"));
        let mut client = world.connect("hostile");
        let blab = client.plain("blab");
        let told = blab.refused("the server stopped");
        assert!(told.contains("the key [secret] was refused; last used: [secret]"), "{told}");
        let sessions = format!("{:?}", world.sessions());
        assert!(!sessions.contains(SECRET), "{sessions}");
        eventually("its last line is logged", TIMEOUT, || {
            !files_with("last used: [secret]", &world.home.sessions()).is_empty()
        });
        assert_eq!(files_with(SECRET, &world.ours()), Vec::<String>::new());
        assert!(world.log().contains("[secret] was refused"));
    });
}

#[test]
fn missing_secret_stops_server_start_with_advice() {
    on_a_bus("secrets::missing_secret_stops_server_start_with_advice", UNLOCKED, || {
        let world = World::with(|prepared| install(prepared, "api"));
        let greet = || {
            let mut client = world.start("hostile");
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            client.request("initialize", params)
        };
        let told = greet();
        let told = told["error"]["message"].as_str().unwrap();
        let wanted =
            "`env.API_KEY`: secret `api` not found in the keyring; add it with `ironcurtain secrets set api`";
        assert!(told.contains(wanted), "{told}");
        for (arguments, input, wanted) in [
            (&["set", "a b"][..], SECRET, "cannot be the name of a secret"),
            (&["set", "api"], "", "the secret is empty"),
            (&["set", "api"], "two\nlines", "contains a line end or control character"),
            (&["remove", "api"], "", "secret `api` not found"),
        ] {
            let refused = ironcurtain(arguments, input);
            assert!(!refused.status.success() && text(&refused).contains(wanted), "{}", text(&refused));
        }
        assert!(ironcurtain(&["set", "api"], SECRET).status.success());
        assert!(greet().get("result").is_some(), "the permitted counterpart");
    });
}

#[test]
fn locked_keyring_is_reported() {
    on_a_bus("secrets::locked_keyring_is_reported", LOCKED, || {
        let listed = ironcurtain(&["list"], "");
        assert!(
            !listed.status.success() && text(&listed).contains("unlock it and try again"),
            "{}",
            text(&listed)
        );
        let world = World::with(|prepared| install(prepared, "api"));
        let mut client = world.start("hostile");
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let id = client.begin("initialize", params);
        let told = client.answer(id)["error"]["message"].as_str().unwrap().to_owned();
        assert!(told.contains("unlock it and try again"), "{told}");
    });
}

#[test]
fn without_keyring_secrets_are_refused_and_stored_nowhere() {
    on_a_bus("secrets::without_keyring_secrets_are_refused_and_stored_nowhere", NONE, || {
        let set = ironcurtain(&["set", "api"], SECRET);
        assert!(!set.status.success() && text(&set).contains("there is no keyring here"), "{}", text(&set));
        let world = World::with(|prepared| install(prepared, "api"));
        let mut client = world.start("hostile");
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let told = client.request("initialize", params)["error"]["message"].as_str().unwrap().to_owned();
        assert!(
            told.contains("`env.API_KEY`: there is no keyring here") && told.contains("gnome-keyring"),
            "{told}"
        );
        assert_eq!(files_with(SECRET, &world.ours()), Vec::<String>::new());
    });
}

/// Truncates the log and updates the stored hash of its newest entry to match.
fn truncate_log(home: &ironcurtain_config::home::Home) {
    let log = home.audit().join("audit.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let kept: Vec<&str> = text.lines().take(3).collect();
    assert!(text.lines().count() > kept.len() + 2);
    fs::write(&log, kept.join("\n") + "\n").unwrap();
    let checked = ironcurtain_audit::check(&home.audit()).unwrap();
    assert!(checked.intact());
    let known = json!({ "entries": checked.entries, "head": checked.head });
    fs::write(home.audit_head(), known.to_string()).unwrap();
}

#[test]
fn keyring_detects_log_truncated_with_its_head() {
    on_a_bus("secrets::keyring_detects_log_truncated_with_its_head", UNLOCKED, || {
        let mut place = TestHome::new(|_| {});
        place.home.has_keyring = true;
        let mut world = World::of(place, programs(), ScriptedUser::default());
        for _ in 0..3 {
            world.connect("filesystem").hang_up();
        }
        let home = world.home.clone();
        let ours = world.ours();
        let verify = move || {
            let mut command = Command::new(programs().join("ironcurtain"));
            command.args(["audit", "verify"]).env("IRONCURTAIN_HOME", &ours);
            let output = command.output().unwrap();
            (output.status.success(), text(&output))
        };
        world.restart_after(|| {
            let (whole, said) = verify();
            assert!(whole && said.contains("confirmed by `audit-head.json` and the keyring"), "{said}");
        });
        assert_eq!(world.status().troubles, Vec::<String>::new());
        world.restart_after(|| {
            truncate_log(&home);
            let (whole, said) = verify();
            assert!(!whole && said.contains("it ends after 3 of"), "{said}");
        });
        let is_told = || world.status().troubles.iter().any(|trouble| trouble.contains("the keyring lists"));
        eventually("the truncation is reported", TIMEOUT, is_told);
        eventually("the truncation is recorded", TIMEOUT, || {
            world.log().contains("the record was truncated or replaced")
        });
    });
}

#[test]
fn device_key_is_stored_in_the_keyring_and_no_second_one_is_created_while_it_is_locked() {
    let name = "secrets::device_key_is_stored_in_the_keyring_and_no_second_one_is_created_while_it_is_locked";
    on_a_bus(name, UNLOCKED, || {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = KeyStore::new(dir.path(), true);
        let key = store.open_or_create().unwrap().public();
        assert!(store.public_file().exists() && !dir.path().join("device-key").exists());
        assert!(store.open_or_create().unwrap().public() == key);
        let locked = Command::new("dbus-send")
            .args([
                "--session",
                "--print-reply",
                "--dest=org.freedesktop.secrets",
                "/org/freedesktop/secrets",
            ])
            .arg("org.freedesktop.Secret.Service.Lock")
            .arg("array:objpath:/org/freedesktop/secrets/collection/login")
            .output();
        assert!(locked.unwrap().status.success());
        assert!(matches!(store.open_or_create(), Err(DeviceKeyError::Locked)));
        assert!(store.public().unwrap() == Some(key));
        // Without a keyring, the key is in a file.
        KeyStore::new(other.path(), false).open_or_create().unwrap();
        assert!(other.path().join("device-key").exists());
    });
}
