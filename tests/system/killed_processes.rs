//! Kills processes at various points. Afterwards no process or mount remains, the log is intact and the next start
//! works.

use crate::client::{Client, TIMEOUT};
use crate::containment::refusal;
use crate::hostile;
use crate::machine::{Machine, descendants};
use crate::test_home::TestHome;
use crate::world::{eventually, is_root, programs};
use ironcurtain_protocol::{HelloRefusal, RefusalCode, Welcome, write_frame};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;

/// Point in the daemon's work at which it is killed.
#[derive(Debug, Clone, Copy)]
enum Point {
    BeforeHello,
    AfterHello,
    ServerStarting,
    QuestionOpen,
    Mounted,
    CallInFlight,
}

fn assert_survives_kill_during(point: Point) {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    let mut silent = None;
    let mut client = match point {
        Point::BeforeHello => {
            silent = Some(UnixStream::connect(&machine.home.socket).unwrap());
            None
        }
        Point::AfterHello | Point::ServerStarting => Some(machine.client()),
        Point::QuestionOpen | Point::Mounted | Point::CallInFlight => Some(machine.connect()),
    };
    let open = |client: &mut Client| client.begin_call("open", json!({ "path": secret }));
    let (mut asked, mut greeting) = (None, None);
    match (point, client.as_mut()) {
        (Point::BeforeHello, _) | (_, None) => {}
        (Point::AfterHello, Some(client)) => {
            greeting = Some(client.begin("initialize", json!({})));
            eventually("the session is listed", TIMEOUT, || {
                !machine.command(&["sessions"]).stdout.starts_with(b"No agent")
            });
        }
        (Point::ServerStarting, Some(client)) => {
            greeting = Some(client.begin("initialize", json!({})));
            eventually("the supervisor runs", TIMEOUT, || !descendants(machine.pid()).is_empty());
        }
        (Point::QuestionOpen, Some(client)) => {
            asked = Some(open(client));
            machine.wait_for_output("Your answer: ");
        }
        (Point::Mounted, Some(client)) => {
            let call = open(client);
            machine.wait_for_output("Your answer: ");
            machine.types("2");
            assert_eq!(client.outcome(call).ok(), "secret");
        }
        (Point::CallInFlight, Some(client)) => {
            client.begin_call("slow", json!({}));
            client.plain("heard").ok();
        }
    }
    let below = machine.kill();
    if let Some(mut client) = client {
        if let Some(call) = asked {
            client.outcome(call).refused("IronCurtain exited before the user answered");
        }
        match greeting {
            // A shim without a session answers requests and runs until the client disconnects.
            Some(greeting) if client.is_answered_or_ended(greeting) => client.hang_up(),
            Some(_) | None => assert!(client.wait_until_ended(), "{point:?}: the client is not told"),
        }
    }
    drop(silent);
    machine.assert_clean(&below);
    machine.start();
    machine.verify();
    let mut client = machine.connect();
    client.sneak(&secret).refused("os error 2)");
    let call = open(&mut client);
    machine.wait_for_output("Your answer: ");
    machine.types("1");
    assert_eq!(client.outcome(call).ok(), "secret");
    machine.verify();
}

#[test]
fn killed_daemon_before_handshake_leaves_no_trace() {
    assert_survives_kill_during(Point::BeforeHello);
}

#[test]
fn killed_daemon_after_handshake_leaves_no_trace() {
    assert_survives_kill_during(Point::AfterHello);
}

#[test]
fn killed_daemon_during_server_start_leaves_no_trace() {
    assert_survives_kill_during(Point::ServerStarting);
}

#[test]
fn killed_daemon_with_open_question_leaves_no_trace() {
    assert_survives_kill_during(Point::QuestionOpen);
}

#[test]
fn killed_daemon_with_active_mount_leaves_no_trace() {
    assert_survives_kill_during(Point::Mounted);
}

#[test]
fn killed_daemon_with_call_in_flight_leaves_no_trace() {
    assert_survives_kill_during(Point::CallInFlight);
}

/// Kills the process selected by `victim` and asserts that the session continues.
fn assert_session_survives_kill_of(victim: impl Fn(&Machine) -> u32) {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    let mut client = machine.connect();
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    machine.types("2");
    client.outcome(call).ok();
    let below = descendants(machine.pid());
    let slow = client.begin_call("slow", json!({}));
    client.plain("heard").ok();
    let victim = victim(&machine);
    let victim = below.iter().find(|p| p.pid == victim).unwrap();
    victim.kill();
    client.outcome(slow).refused("the server stopped before it answered");
    eventually("all processes of the sandbox have exited", TIMEOUT, || below.iter().all(|p| !p.is_alive()));
    // The server was restarted and still has the other grants.
    assert_eq!(client.sneak(&secret).ok(), "secret");
    machine.verify();
}

#[test]
fn session_survives_killed_sandbox_supervisor() {
    assert_session_survives_kill_of(|machine| {
        let sessions: Value =
            serde_json::from_slice(&machine.command(&["sessions", "--json"]).stdout).unwrap();
        let pid = find(&sessions, "server_pid").and_then(Value::as_u64).unwrap();
        u32::try_from(pid).unwrap()
    });
}

#[test]
fn session_survives_killed_server() {
    assert_session_survives_kill_of(|machine| {
        let below = descendants(machine.pid());
        let hostile = below.iter().find(|p| p.exe().ends_with("examples/hostile-server"));
        hostile.unwrap_or_else(|| panic!("no server among {below:?}")).pid
    });
}

/// Returns the first value with this key, at any depth.
fn find<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    match value {
        Value::Object(fields) => fields.get(name).or_else(|| fields.values().find_map(|v| find(v, name))),
        Value::Array(items) => items.iter().find_map(|v| find(v, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[test]
fn killed_shim_ends_its_session() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    let mut client = machine.connect();
    client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    let below = descendants(machine.pid());
    client.shim.kill().unwrap();
    eventually("all processes of the session have exited", TIMEOUT, || below.iter().all(|p| !p.is_alive()));
    eventually("no session is left", TIMEOUT, || {
        machine.command(&["sessions"]).stdout.starts_with(b"No agent")
    });
    // The question is closed, and the terminal reports that. An answer to it applies to no other question.
    machine.wait_for_output("Question closed: ");
    machine.types("1");
    let mut client = machine.connect();
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    machine.types("");
    client.outcome(call).refused("the user denied this call");
    machine.verify();
}

#[test]
fn root_shim_without_daemon_says_how_to_start_it() {
    if !is_root() {
        return assert_shim_starts_daemon();
    }
    let machine = Machine::new(hostile::install);
    let mut client = machine.client();
    let answer = client.request("initialize", json!({}));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("IronCurtain: ") && message.contains("`ironcurtain daemon --allow-root`"),
        "{message}"
    );
    assert_eq!(client.request("tools/list", json!({}))["error"]["message"], message);
    client.hang_up();
    machine.assert_clean(&[]);
}

#[test]
fn shim_of_ordinary_user_starts_the_daemon() {
    assert_shim_starts_daemon();
}

#[test]
fn unusual_home_is_shown_in_status_and_questions() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let status = machine.command(&["status"]);
    let notice =
        format!("Not your usual rules: `IRONCURTAIN_HOME` was set to `{}`", machine.ours().display());
    assert!(String::from_utf8_lossy(&status.stdout).contains(&notice));
    let mut client = machine.connect();
    client.begin_call("open", json!({ "path": machine.file("docs/a.txt", "a") }));
    machine.wait_for_output("Not your usual rules: `IRONCURTAIN_HOME` was set to");
}

#[test]
fn every_request_gets_the_daemons_start_error() {
    let machine = Machine::new(|prepared| {
        let policy = r#"{ "schemaVersion": 1, "rules": 7 }"#;
        std::fs::write(prepared.home.policy().join("compiled-policy.json"), policy).unwrap();
    });
    let (shim, _) = shim_of_ordinary_user(&machine);
    let mut client = Client::spawn(shim, &machine.ours());
    for method in ["server/discover", "initialize"] {
        let answer = client.request(method, json!({}));
        let message = answer["error"]["message"].as_str().unwrap();
        let begins = message.starts_with("IronCurtain: IronCurtain is not running and failed to start: ");
        assert!(begins && message.contains("compiled-policy.json`, line 1: "), "{method}: {message}");
    }
    client.hang_up();
    machine.assert_clean(&[]);
}

/// Returns a shim that runs as a user other than root, and the folder of its programs.
fn shim_of_ordinary_user(machine: &Machine) -> (Command, PathBuf) {
    let base = machine.ours().parent().unwrap().to_path_buf();
    let mut shim = Command::new("setpriv");
    if is_root() {
        shim.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        let given = Command::new("chown").args(["-R", "65534:65534"]).arg(&base).status().unwrap();
        assert!(given.success());
    }
    let programs = world_readable_programs(&base);
    shim.arg("--").arg(programs.join("ironcurtain-shim")).args(["--server", "filesystem"]);
    shim.env("HOME", &machine.home.user_home);
    (shim, programs)
}

/// Environment variables that a repository could set for a shim, with recognizable values.
const HOSTILE: [(&str, &str); 8] = [
    ("LD_PRELOAD", "/chosen/evil.so"),
    ("LD_LIBRARY_PATH", "/chosen/lib"),
    ("DISPLAY", ":chosen"),
    ("WAYLAND_DISPLAY", "/chosen/wayland"),
    ("DBUS_SESSION_BUS_ADDRESS", "unix:path=/chosen/bus"),
    ("XDG_CONFIG_HOME", "/chosen/config"),
    ("GTK_MODULES", "/chosen/module.so"),
    ("SSL_CERT_FILE", "/chosen/ca.pem"),
];

fn assert_shim_starts_daemon() {
    let machine = Machine::new(|_| {});
    let (mut shim, programs) = shim_of_ordinary_user(&machine);
    shim.envs(HOSTILE).env("LANG", "C.UTF-8");
    let mut client = Client::spawn(shim, &machine.ours());
    client.handshake();
    let trusted = UnixStream::connect(&machine.home.socket).unwrap();
    let trusted = rustix::net::sockopt::socket_peercred(&trusted).unwrap().pid;
    let environment = std::fs::read(format!("/proc/{}/environ", trusted.as_raw_nonzero())).unwrap();
    let environment = String::from_utf8(environment).unwrap();
    assert!(!environment.contains("chosen"), "{environment}");
    // Permitted counterpart: variables for the home directory and the language are passed on.
    let home = format!("IRONCURTAIN_HOME={}", machine.ours().display());
    for handed_on in [home.as_str(), "LANG=C.UTF-8"] {
        assert!(environment.split('\0').any(|variable| variable == handed_on), "{environment}");
    }
    client.read(&machine.file("docs/a.txt", "a")).refused("runs without a display");
    client.write("in-the-sandbox.txt".as_ref(), "mine").ok();
    assert!(machine.command(&["stop"]).status.success() || is_root());
    client.hang_up();
    if is_root() {
        let stop = Command::new("setpriv")
            .args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"])
            .arg(programs.join("ironcurtain"))
            .arg("stop")
            .env("IRONCURTAIN_HOME", machine.ours())
            .status();
        assert!(stop.unwrap().success());
    }
    machine.assert_clean(&[]);
}

/// Returns the folder of a copy of the programs that all users can read.
fn world_readable_programs(base: &std::path::Path) -> PathBuf {
    let dir = base.join("programs");
    std::fs::create_dir(&dir).unwrap();
    for name in ["ironcurtain-shim", "ironcurtain", "ironcurtain-sandbox", "ironcurtain-filesystem"] {
        std::fs::copy(programs().join(name), dir.join(name)).unwrap();
    }
    let open = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(base);
    open(&dir);
    dir
}

#[test]
fn shim_retries_daemon_that_dies_during_handshake() {
    let place = TestHome::new(|_| {});
    let listening = UnixListener::bind(&place.home.socket).unwrap();
    let mut client = Client::start(&programs(), &place.ours(), "hostile");
    let daemons = std::thread::spawn(move || {
        drop(listening.accept().unwrap());
        let (mut second, _) = listening.accept().unwrap();
        let mut hello = String::new();
        BufReader::new(&second).read_line(&mut hello).unwrap();
        let refusal = HelloRefusal { code: RefusalCode::Malformed, message: "the second one answers".into() };
        write_frame(&mut second, &Welcome::Refused(refusal)).unwrap();
        hello
    });
    let said = refusal(&mut client);
    assert_eq!(said, "IronCurtain: the second one answers");
    assert!(daemons.join().unwrap().contains("hostile"));
}
