//! The app or the daemon, started by a shim: the display that it finds, and the sessions that the app takes over.

use super::{App, agent, allow_and_read, app_program, begin_reading, beside, listens};
use crate::lifecycle::login_manager;
use crate::screen::{Screen, helper_path};
use crate::tray;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Returns a command that starts the daemon through a shim. The screen's runtime directory is mounted over the login
/// session's runtime directory.
///
/// The caller's display and bus variables are set to wrong values, because a repository can set them for a shim.
fn daemon_started_by_shim(screen: &Screen) -> Command {
    let mut command = screen.login_command("unshare");
    let is_root = screen.read("id", &["-u"]) == "0";
    let (unshare, afterwards): (&[&str], &[&str]) = if is_root {
        (&["--mount"], &[])
    } else {
        // Drops the ambient capabilities, as bubblewrap requires.
        let plain: &[&str] = &["setpriv", "--ambient-caps=-all", "--inh-caps=-all"];
        (&["--mount", "--map-current-user", "--keep-caps"], plain)
    };
    command.args(unshare).args(["sh", "-ec", OWN_RUN, "sh"]).args(afterwards);
    command.arg(beside("ironcurtain")).args(["daemon", "--ask", "desktop"]).stderr(Stdio::piped());
    command.args(is_root.then_some("--allow-root"));
    command.env("DISPLAY", ":77").env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus");
    command
}

/// Shell script that mounts the screen's runtime directory over the login session's.
const OWN_RUN: &str = r#"
    own=/run/user/$(id -u)
    mount -t tmpfs -o mode=755 tmpfs /run
    mkdir -p "$own"
    mount --bind "$XDG_RUNTIME_DIR" "$own"
    mkdir /run/dbus
    ln -s "$own/bus" /run/dbus/system_bus_socket
    exec "$@""#;

/// Starts a fake systemd user manager whose environment names this screen.
fn user_manager(screen: &mut Screen) {
    let environment = screen.command("env").output().expect("env").stdout;
    let environment = String::from_utf8(environment).expect("text");
    let manager = helper_path("user_manager.py");
    let mut arguments = vec!["-u", manager.to_str().expect("a UTF-8 path")];
    arguments.extend(environment.lines().filter(|line| !line.starts_with("IRONCURTAIN_HOME=")));
    assert_eq!(screen.first_line("/usr/bin/python3", &arguments), "ready");
}

#[test]
fn shim_starts_app_on_display_of_user_manager() {
    let mut screen = tray::with_panel();
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    user_manager(&mut screen);
    let started = daemon_started_by_shim(&screen).output().expect("ironcurtain");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    tray::menu(&screen, "No agent connected");
    let mut agent = agent(&screen);
    allow_and_read(&screen, &mut agent, &file);
    drop(agent);
    tray::press(&screen, "Quit");
}

#[test]
fn shim_starts_app_on_display_of_logind() {
    let mut screen = tray::with_panel();
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let display = format!("display={}", screen.display());
    let _login = login_manager(&mut screen, &[&display]);
    let started = daemon_started_by_shim(&screen).output().expect("ironcurtain");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let mut agent = agent(&screen);
    allow_and_read(&screen, &mut agent, &file);
    drop(agent);
    tray::press(&screen, "Quit");
}

#[test]
fn display_named_only_by_caller_is_ignored() {
    let screen = Screen::start();
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let mut command = daemon_started_by_shim(&screen);
    // Sets a working display. An unexpected dialog would appear on it.
    command.env("DISPLAY", screen.display());
    let mut headless = App(command.spawn().expect("ironcurtain"));
    let log = BufReader::new(headless.0.stderr.take().expect("its log"));
    let mut said = log.lines().map_while(Result::ok);
    let why = "denying every call that requires approval: found no desktop session of this user";
    assert!(said.any(|line| line.contains(why)));
    listens(&screen);
    let mut agent = agent(&screen);
    let call = begin_reading(&mut agent, &file);
    let denied = agent.answer(call);
    let words = denied["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(words.starts_with("DENIED: "), "{denied}");
}

#[test]
fn shim_starts_app_on_wayland_socket_of_runtime_directory() {
    let screen = Screen::sway();
    let mut command = daemon_started_by_shim(&screen);
    let started = command.output().expect("ironcurtain");
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    listens(&screen);
    let status = screen.command(beside("ironcurtain")).args(["status", "--json"]).output().expect("status");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let pid = status["status"]["pid"].as_u64().or(status["pid"].as_u64()).expect("a process");
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).expect("its program");
    assert_eq!(program, app_program());
    let stopped = screen.command(beside("ironcurtain")).arg("stop").status().expect("ironcurtain");
    assert!(stopped.success());
}

#[test]
fn app_takes_over_sessions_of_headless_daemon() {
    let screen = tray::with_panel();
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let mut headless =
        App(daemon_started_by_shim(&screen).stderr(Stdio::null()).spawn().expect("ironcurtain"));
    listens(&screen);
    let mut agent = agent(&screen);
    let call = begin_reading(&mut agent, &file);
    assert_eq!(agent.answer(call)["result"]["isError"], true);

    let _app = App::start(&screen, &["--background"]);
    assert_eq!(headless.exit(), Some(0));
    tray::menu(&screen, "Protected: 1 agent");
    allow_and_read(&screen, &mut agent, &file);
}
