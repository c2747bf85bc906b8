//! Tests the window's process: it frees all its memory when it exits, killing it affects no other process, and only the
//! app can connect to it.

use crate::app::{App, agent, app_program, begin_reading};
use crate::harness::DIALOG;
use crate::measurements::{field, settle};
use crate::screen::{Screen, until};
use crate::{tray, window};
use std::io::Write;
use std::path::PathBuf;
use std::process::Stdio;

const WINDOW: &str = "^IronCurtain$";

/// Prefix of the process names of the window and the web engine.
const OURS: &str = "ironcurtain-win";
const ENGINE: &str = "WebKit";

/// Maximum growth of the app's private memory after its window was opened and closed, in MB.
const KEPT: f64 = 5.0;

#[test]
fn closed_window_leaves_no_process_and_no_memory() {
    let screen = tray::with_panel();
    let app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    settle(app.id());
    let before = written(app.id());
    assert_eq!(family(app.id()), [app.id()], "the app draws no page itself");
    for _ in 0..2 {
        tray::press(&screen, "Open IronCurtain");
        let shown = screen.window(WINDOW);
        window::says(&screen, "Skip setup");
        let drawn = family(app.id()).split_off(1);
        assert!(drawn.len() > 1, "the window has a process, and its engine others");
        screen.activate(&shown);
        screen.key("alt+F4");
        ended(&drawn);
    }
    settle(app.id());
    let kept = written(app.id()) - before;
    assert!(kept <= KEPT, "{kept:.1} MB more than before the window was opened");
}

#[test]
fn killed_window_process_keeps_sessions_and_reopens() {
    let screen = tray::with_panel();
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let app = App::start(&screen, &[]);
    window::skip_setup(&screen);
    window::says(&screen, "Not protected");
    let mut agent = agent(&screen);
    window::says(&screen, "1 agent");
    let drawn = family(app.id()).split_off(1);
    let killed = window_of(app.id());
    screen.read("kill", &["-KILL", &killed.to_string()]);
    ended(&drawn);
    tray::menu(&screen, "Protected: 1 agent");
    let call = begin_reading(&mut agent, &file);
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(agent.answer(call)["result"]["isError"], true, "the session still asks");
    tray::press(&screen, "Open IronCurtain");
    window::says(&screen, "1 agent");
    assert_ne!(window_of(app.id()), killed);
}

#[test]
fn app_exit_closes_its_window_process() {
    let screen = Screen::start();
    let app = App::start(&screen, &[]);
    window::says(&screen, "Skip setup");
    let all = family(app.id());
    assert!(all.len() > 2, "{all:?}");
    // Killing the app prevents it from notifying the window.
    drop(app);
    ended(&all);
}

#[test]
fn only_the_app_can_start_the_window_process_or_reach_its_socket() {
    let screen = Screen::start();
    let by_hand = |input: Stdio| {
        let mut command = screen.command(app_program());
        command.arg("--window").stdin(input).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the app");
        if let Some(mut input) = child.stdin.take() {
            // A process that does not read its input may already have exited.
            let _ = input.write_all(b"\"show\"\n");
        }
        let output = child.wait_with_output().expect("its exit status");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for input in [Stdio::null(), Stdio::piped()] {
        let (code, said) = by_hand(input);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("start `ironcurtain-desktop` without it to open the window"), "{said}");
    }
    let app = App::start(&screen, &[]);
    window::says(&screen, "Skip setup");
    // Other processes of the user could open a pipe through `/proc` and write commands to it. A socket cannot be
    // opened that way.
    let drawn = window_of(app.id());
    let handed: Vec<PathBuf> = sockets(drawn).collect();
    assert!(!handed.is_empty(), "exactly one socket leads to the app");
    for socket in handed {
        let opened = std::fs::File::options().read(true).write(true).open(&socket);
        let refused = opened.expect_err("a socket cannot be opened by path").raw_os_error();
        // A socket that has been closed in the meantime cannot be reached either.
        let is_open = socket.symlink_metadata().is_ok();
        assert!(refused == Some(6) || !is_open, "{}: {refused:?} in place of ENXIO", socket.display());
    }
    // The web engine has not inherited the socket.
    for process in family(app.id()).into_iter().filter(|one| *one != app.id()) {
        let input = std::fs::read_link(format!("/proc/{process}/fd/0")).expect("its input");
        assert_eq!(input, PathBuf::from("/dev/null"), "{}", name(process));
    }
}

/// Waits until each of these processes has exited.
pub(crate) fn ended(all: &[u32]) {
    until("the window's processes to exit", || (alive(all) == 0).then_some(()));
}

/// Returns the number of these processes that are running. Does not count zombies, which have no command line.
pub(crate) fn alive(all: &[u32]) -> usize {
    let runs = |pid: &&u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    all.iter().filter(runs).count()
}

/// Returns the open sockets of a process.
fn sockets(pid: u32) -> impl Iterator<Item = PathBuf> {
    let all = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its open files");
    all.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| {
        std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("socket:"))
    })
}

fn window_of(app: u32) -> u32 {
    let drawn = family(app).into_iter().find(|one| name(*one).starts_with(OURS));
    drawn.expect("the window's process")
}

/// Returns the process ids of the app, the window and the web engine.
pub(crate) fn family(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut at = 0;
    while let Some(parent) = all.get(at) {
        let of_window = |child: &u32| [OURS, ENGINE].iter().any(|own| name(*child).starts_with(own));
        let found: Vec<u32> = children(*parent).into_iter().filter(of_window).collect();
        all.extend(found);
        at += 1;
    }
    all
}

fn children(pid: u32) -> Vec<u32> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|all| all.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Returns a process's name, or an empty string if the process does not exist.
pub(crate) fn name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default()
}

/// Returns a process's private memory and its share of shared memory (PSS), in MB.
pub(crate) fn memory(pid: u32) -> f64 {
    figure_of(pid, "Pss:")
}

/// Returns a process's private dirty memory, in MB. This figure does not depend on other processes.
fn written(pid: u32) -> f64 {
    figure_of(pid, "Private_Dirty:")
}

fn figure_of(pid: u32, what: &str) -> f64 {
    let all = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("its memory");
    field(&all, what) / 1024.0
}
