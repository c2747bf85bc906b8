//! Runs the app with a real shim, sandbox and server. The tests answer in the dialog, and the agent gets the result.

mod started_by_shim;
mod starting;

use crate::harness::{DIALOG, arm_by_keyboard};
use crate::screen::{Screen, TIMEOUT, helper_path, until};
use crate::{tray, window};
use ironcurtain_testkit::JsonProcess;
use ironcurtain_testkit::client::AgentClient;
use serde_json::json;
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
