//! Starting and stopping the app: a second instance, activation by the session bus, errors at startup, and SIGTERM.

use super::{App, app_program, beside, command, listens};
use crate::screen::{Screen, until};
use crate::{tray, window};
use std::process::Stdio;

#[test]
fn second_instance_raises_first_window_and_exits() {
    let screen = tray::with_panel();
    let _app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    for _ in 0..2 {
        let mut second = App::start(&screen, &["--background"]);
        assert_eq!(second.exit(), Some(0));
        let window = screen.window("^IronCurtain$");
        window::says(&screen, "Skip setup");
        screen.activate(&window);
        screen.key("alt+F4");
        until("the window to close", || {
            screen.xdotool(&["search", "--name", "^IronCurtain$"]).is_empty().then_some(())
        });
    }
    tray::menu(&screen, "No agent connected");
}

#[test]
fn session_bus_activates_app_from_packaged_service_file() {
    const SERVICE: &str = include_str!("../../../src-tauri/linux/ironcurtain.dbus");
    let screen = tray::with_panel();
    let packaged = "/usr/bin/ironcurtain-desktop --background";
    assert!(SERVICE.contains(packaged));
    let root = if screen.read("id", &["-u"]) == "0" { " --allow-root" } else { "" };
    let ours = format!("{} --background{root}", app_program().display());
    let services = screen.home().join("run/dbus-1/services");
    std::fs::create_dir_all(&services).expect("the folder");
    let service = services.join("io.github.ironcurtain-desktop.service");
    std::fs::write(service, SERVICE.replace(packaged, &ours)).expect("the service");
    // Desktop sessions do the same at login.
    screen.read("dbus-update-activation-environment", &["--all"]);
    let bus =
        ["call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/org/freedesktop/DBus"];
    screen.read("gdbus", &[&bus[..], &["--method", "org.freedesktop.DBus.ReloadConfig"]].concat());

    screen.read("gapplication", &["launch", "io.github.ironcurtain-desktop"]);
    window::says(&screen, "Skip setup");
    // The app is a child of the bus.
    let stop = screen.read(beside("ironcurtain").to_str().expect("a UTF-8 path"), &["stop"]);
    let socket = screen.home().join("ironcurtain/run/socket");
    until("the app to exit", || (!socket.exists()).then_some(()));
    assert!(!stop.is_empty());
}

#[test]
fn app_exits_with_message_when_terminal_daemon_is_running() {
    let screen = Screen::start();
    let mut terminal = screen.command(beside("ironcurtain"));
    terminal
        .args(["daemon", "--ask", "terminal"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if screen.read("id", &["-u"]) == "0" {
        terminal.arg("--allow-root");
    }
    let _first = App(terminal.spawn().expect("ironcurtain"));
    listens(&screen);
    let second = App::start(&screen, &["--background"]);
    ends_with_message(&screen, second, "IronCurtain is already running", "Run `ironcurtain status`");
}

#[test]
fn app_exits_with_message_when_its_state_cannot_be_read() {
    let screen = Screen::start();
    let database = screen.home().join("ironcurtain/state/state.db");
    let app = App::start(&screen, &["--background"]);
    // The database is complete. An app that is killed earlier leaves a journal, from which the next app restores the
    // database.
    listens(&screen);
    drop(app);
    // Removes the write-ahead log, because it contains pages from which SQLite could still read the database.
    for log in ["db-wal", "db-shm"].map(|end| database.with_extension(end)) {
        if log.exists() {
            std::fs::remove_file(log).expect("the log");
        }
    }
    std::fs::write(&database, "no database").expect("the file");
    let app = App::start(&screen, &["--background"]);
    ends_with_message(&screen, app, "IronCurtain could not start", "Agents are denied until it does.");
    std::fs::remove_file(&database).expect("the file");
    let _again = App::start(&screen, &["--background"]);
    listens(&screen);
}

/// Closes the error message of an app that cannot start. The app itself shows the message.
fn ends_with_message(screen: &Screen, mut app: App, title: &str, text: &str) {
    let window = screen.window(&format!("^{title}$"));
    until("the message", || screen.text("").contains(text).then_some(()));
    assert_eq!(screen.xdotool(&["getwindowpid", &window]), app.id().to_string());
    screen.picture("fatal");
    screen.activate(&window);
    screen.key("Escape");
    assert_eq!(app.exit(), Some(1));
}

#[test]
fn sigterm_stops_app_cleanly() {
    let screen = tray::with_panel();
    let mut app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    screen.read("kill", &["-TERM", &app.0.id().to_string()]);
    assert_eq!(app.exit(), Some(0));
}

#[test]
fn app_without_display_suggests_the_daemon_command() {
    let screen = Screen::start();
    let output = command(&screen, &["--background"]).env_remove("DISPLAY").output().expect("the app");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no display found; run `ironcurtain daemon`"), "{said}");
}
