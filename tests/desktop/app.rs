//! Runs the app with a real shim, sandbox and server. The tests answer in the dialog, and the agent gets the result.

use crate::harness::{DIALOG, arm_by_keyboard};
use crate::lifecycle::login_manager;
use crate::screen::{Screen, TIMEOUT, helper_path, until};
use crate::{tray, window};
use ironcurtain_testkit::JsonProcess;
use ironcurtain_testkit::client::AgentClient;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

#[test]
fn dialog_answer_reaches_the_agent() {
    let screen = tray::with_panel();
    let file = screen.home().join("notes/plan.txt");
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let _app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");

    let mut agent = agent(&screen);
    tray::menu(&screen, "Protected: 1 agent");
    allow_and_read(&screen, &mut agent, &file);

    let call = begin_reading(&mut agent, &file);
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    let denied = agent.answer(call);
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    let words = denied["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(words.starts_with("DENIED: "), "{words}");

    until("the window", || {
        tray::press(&screen, "Open IronCurtain");
        (!screen.xdotool(&["search", "--onlyvisible", "--name", "^IronCurtain$"]).is_empty()).then_some(())
    });
    window::says(&screen, "1 agent");
    window::says(&screen, "notes/plan.txt");
    drop(agent);
    window::says(&screen, "No agent connected");
}

#[test]
fn folder_granted_in_window_is_readable_until_revoked() {
    let mut screen = tray::with_panel();
    let asked = portal(&mut screen);
    let folder = screen.home().join("notes");
    std::fs::create_dir_all(&folder).expect("the folder");
    std::fs::write(folder.join("plan.txt"), "ship on Tuesday").expect("the file");
    let app = App::spawn(command(&screen, &[]).env("GTK_USE_PORTAL", "1"));
    window::skip_setup(&screen);
    window::says(&screen, "Not protected");
    let mut agent = agent(&screen);
    window::says(&screen, "1 agent");
    window::open(&screen, "Permissions");
    screen.click(&window::named(&screen, "Add a permission"));
    screen.click(&window::named(&screen, "Pick a folder\u{2026}"));
    let picker = screen.window("^Grant a folder and everything in it$");
    assert_eq!(screen.xdotool(&["getwindowpid", &picker]), app.id().to_string(), "the picker is ours");
    screen.activate(&picker);
    screen.xdotool(&["type", "--delay", "20", folder.to_str().expect("a UTF-8 path")]);
    screen.key("Return");
    window::says(&screen, "Granted: ~/notes");
    assert_eq!(asked(), "twin\n", "only the other program asked the portal");

    let call = begin_reading(&mut agent, &folder.join("plan.txt"));
    let read = agent.answer(call);
    assert_eq!(read["result"]["content"][0]["text"], "ship on Tuesday", "{read}");

    screen.press("^IronCurtain$", "push button", &format!("Revoke {}", folder.display()));
    window::says(&screen, "Revoked, verified");
    let call = begin_reading(&mut agent, &folder.join("plan.txt"));
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(agent.answer(call)["result"]["isError"], true);
}

/// Starts a fake portal that would grant access, and a second program that calls the portal. Returns a function that
/// reads the titles of all requests to the portal.
fn portal(screen: &mut Screen) -> impl Fn() -> String + use<> {
    let (script, log) = (helper_path("portal.py"), screen.home().join("portal"));
    let (script, file) = (script.to_str().expect("a UTF-8 path"), log.to_str().expect("a UTF-8 path"));
    assert_eq!(screen.first_line("/usr/bin/python3", &[script, "serve", file]), "ready");
    let mut twin = screen.command("/usr/bin/python3");
    let mut twin = twin.args([script, "ask", "twin"]).env("GTK_USE_PORTAL", "1").spawn().expect("python3");
    until("the request of another program", || log.exists().then_some(()));
    twin.kill().expect("a running program");
    twin.wait().expect("its end");
    move || std::fs::read_to_string(&log).expect("the requests")
}

#[test]
fn killed_app_never_forwards_the_pending_call() {
    let screen = tray::with_panel();
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let mut app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    let mut agent = agent(&screen);
    begin_reading(&mut agent, &file);
    screen.window(DIALOG);
    app.0.kill().expect("a running app");
    until("the agent's connection to close", || {
        let message = agent.shim.receive(TIMEOUT);
        message.as_ref().map_or(Some(()), |message| {
            assert!(!message.to_string().contains("ship on Tuesday"), "{message}");
            None
        })
    });
}

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
    const SERVICE: &str = include_str!("../../src-tauri/linux/ironcurtain.dbus");
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

#[test]
fn app_without_display_suggests_the_daemon_command() {
    let screen = Screen::start();
    let output = command(&screen, &["--background"]).env_remove("DISPLAY").output().expect("the app");
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no display found; run `ironcurtain daemon`"), "{said}");
}

/// Makes the agent read the file with the text "ship on Tuesday", and allows the call in the dialog.
fn allow_and_read(screen: &Screen, agent: &mut AgentClient, file: &Path) {
    let call = begin_reading(agent, file);
    screen.activate(&screen.window(DIALOG));
    allow(screen);
    let allowed = agent.answer(call);
    assert_eq!(allowed["result"]["content"][0]["text"], "ship on Tuesday", "{allowed}");
}

/// Allows the call in the dialog. Tries several times, because a panel that has just started may move the focus.
pub(crate) fn allow(screen: &Screen) {
    let gone = || screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG]).is_empty();
    let allowed = (0..5).any(|_| {
        arm_by_keyboard(screen, "Allow once");
        screen.key("alt+a");
        (0..30).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            gone()
        })
    });
    assert!(allowed, "the dialog is still there");
}

pub(crate) struct App(Child);

impl App {
    pub(crate) fn start(screen: &Screen, arguments: &[&str]) -> Self {
        Self::spawn(&mut command(screen, arguments))
    }

    pub(crate) fn spawn(command: &mut Command) -> Self {
        Self(command.stdin(Stdio::null()).spawn().expect("the app"))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    pub(crate) fn exit(&mut self) -> Option<i32> {
        until("the app to exit", || self.0.try_wait().expect("its state")).code()
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the command that runs the app, with the option that root requires.
pub(crate) fn command(screen: &Screen, arguments: &[&str]) -> Command {
    let mut command = screen.command(app_program());
    command.args(arguments);
    if screen.read("id", &["-u"]) == "0" {
        command.arg("--allow-root");
    }
    command
}

/// Waits until IronCurtain answers a request. It does so once it has opened all its files, while its socket accepts
/// connections earlier.
pub(crate) fn listens(screen: &Screen) {
    let status = || screen.command(beside("ironcurtain")).arg("status").output();
    until("an answer", || status().expect("ironcurtain").status.success().then_some(()));
}

/// Returns the path of the app to measure (`IRONCURTAIN_APP`) or, if it is not set, of the app from this build.
pub(crate) fn app_program() -> PathBuf {
    std::env::var_os("IRONCURTAIN_APP")
        .map_or_else(|| env!("CARGO_BIN_EXE_ironcurtain-desktop").into(), PathBuf::from)
}

/// Connects an agent client through the shim.
pub(crate) fn agent(screen: &Screen) -> AgentClient {
    let shim = beside("ironcurtain-shim");
    beside("ironcurtain-sandbox");
    beside("ironcurtain-filesystem");
    let mut agent = AgentClient::new(JsonProcess::start(
        screen.command(shim).args(["--server", "filesystem"]).current_dir("/"),
    ));
    agent.handshake();
    agent
}

pub(crate) fn begin_reading(agent: &mut AgentClient, file: &Path) -> u64 {
    agent.begin_call("read_text_file", json!({ "path": file }))
}

/// Returns the path of one of IronCurtain's programs. All of them are in the app's folder.
pub(crate) fn beside(name: &str) -> PathBuf {
    let path = app_program().with_file_name(name);
    assert!(path.exists(), "{} is missing: build the whole workspace first", path.display());
    path
}
