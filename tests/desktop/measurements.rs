//! Measures the app's speed and idle activity, for `cargo xtask bench --desktop`.
//!
//! - By default, the test is a short run that checks that each figure can be measured. It also checks that closing the
//!   window frees the page's memory. This check does not depend on the machine's speed.
//! - `IRONCURTAIN_FIGURES` selects a full measurement that prints its figures. `IRONCURTAIN_APP` selects the app.

use crate::app::{App, agent, app_program, begin_reading};
use crate::harness::DIALOG;
use crate::screen::{Screen, TIMEOUT, helper_path, until};
use crate::tray;
use crate::window_process::{alive, ended, family, memory, name};
use ironcurtain_testkit::client::AgentClient;
use serde_json::json;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Title of the window.
const WINDOW: &str = "^IronCurtain$";
/// Calls per second that a busy agent makes.
const CALLS: u32 = 10;
/// Minimum time between the last input in a dialog and the next dialog, plus a margin. The measurement excludes it.
const APART: Duration = Duration::from_millis(1200);
/// Number of consecutive seconds with at most [`QUIET_WAKEUPS`] wake-ups after which startup counts as complete.
const QUIET: usize = 5;
const QUIET_WAKEUPS: f64 = 3.0;
/// Number of kernel clock ticks per second in `/proc`.
const TICKS: f64 = 100.0;

/// A measurement, shown as one row of the table.
struct Figure {
    what: &'static str,
    value: f64,
    unit: &'static str,
    goal: f64,
}

#[test]
fn desktop_measurements_are_complete() {
    let whole = std::env::var_os("IRONCURTAIN_FIGURES").is_some();
    let look = Duration::from_secs(if whole { 10 } else { 1 });
    let mut figures = vec![measure_first_paint(if whole { 5 } else { 1 })];
    figures.extend(measure_one_process(look, if whole { 4 } else { 1 }, whole));
    assert_eq!(figures.len(), 8);
    println!("| | measured | goal |\n|---|---|---|");
    for Figure { what, value, unit, goal } in &figures {
        println!("| {what} | {value:.1} {unit} | at most {goal} {unit} |");
    }
    assert!(figures.iter().all(|figure| figure.value.is_finite() && figure.value >= 0.0));
}

/// Returns the median time from the app's start to the first text in its window.
fn measure_first_paint(starts: usize) -> Figure {
    let mut screen = Screen::start();
    let helper = helper_path("painted.py");
    let mut arguments = vec![helper.to_str().expect("a UTF-8 path").to_owned()];
    arguments.push(app_program().to_str().expect("a UTF-8 path").to_owned());
    if screen.read("id", &["-u"]) == "0" {
        arguments.push("--allow-root".to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let times = (0..starts).map(|_| {
        let (mut ends, mut out) = screen.spawn_with_stdin("/usr/bin/python3", &arguments);
        let mut line = String::new();
        out.read_line(&mut line).expect("a readable line");
        ends.write_all(b"end\n").expect("a listening helper");
        let ended = out.read_line(&mut String::new());
        ended.expect("the end of its output");
        line.trim().parse().expect("the milliseconds")
    });
    Figure {
        what: "start to the window with its text",
        value: middle(times.collect()),
        unit: "ms",
        goal: 600.0,
    }
}

/// Takes all other measurements with a single app process. If `whole` is `true`, waits until startup is complete.
fn measure_one_process(look: Duration, questions: usize, whole: bool) -> Vec<Figure> {
    let screen = tray::with_panel();
    let app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    let pid = app.id();
    settle(pid);
    let background = memory(pid);
    // An agent's session and calls need memory of their own, so they come before the window is opened.
    let mut agent = agent(&screen);
    work(&mut agent, look);
    settle(pid);
    let before = memory(pid);
    tray::press(&screen, "Open IronCurtain");
    let window = screen.window(WINDOW);
    crate::window::says(&screen, "1 agent");
    if whole {
        quiet(pid);
    }
    let idle = wakeups(&family(pid), look * 3);
    let busy = measure_busy_page(pid, &mut agent, look);
    let drawn = family(pid).split_off(1);
    screen.activate(&window);
    screen.key("alt+F4");
    ended(&drawn);
    settle(pid);
    let after = memory(pid);
    let left =
        f64::from(u32::try_from(alive(&drawn) + family(pid).len() - 1).expect("a count that fits u32"));
    let (dialog, waking) = measure_questions(&screen, pid, &mut agent, look, questions);
    vec![
        Figure {
            what: "wake-ups of the app and of its window, nothing happens",
            value: idle,
            unit: "a second",
            goal: 2.0,
        },
        Figure {
            what: "wake-ups of the app, dialog open, nothing happens",
            value: waking,
            unit: "a second",
            goal: 15.0,
        },
        Figure {
            what: "the page's process, 10 calls a second",
            value: busy,
            unit: "% of a core",
            goal: 15.0,
        },
        Figure { what: "memory of the app in the background", value: background, unit: "MB", goal: 70.0 },
        Figure {
            what: "memory more once the window was opened and closed",
            value: (after - before).max(0.0),
            unit: "MB",
            goal: 6.0,
        },
        Figure { what: "processes that stay of the window", value: left, unit: "", goal: 0.0 },
        Figure { what: "call to dialog", value: dialog, unit: "ms", goal: 60.0 },
    ]
}

/// Returns the share of one core that the page's process uses while an agent works.
fn measure_busy_page(pid: u32, agent: &mut AgentClient, look: Duration) -> f64 {
    let pages: Vec<u32> = family(pid).into_iter().filter(|one| name(*one).starts_with("WebKitWeb")).collect();
    let spent = || pages.iter().map(|page| ticks(*page)).sum::<f64>();
    let (start, before) = (Instant::now(), spent());
    work(agent, look);
    (spent() - before) / TICKS / start.elapsed().as_secs_f64() * 100.0
}

/// Makes [`CALLS`] calls a second.
fn work(agent: &mut AgentClient, look: Duration) {
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed() < look {
        let call = agent.begin_call("list_allowed_directories", json!({}));
        assert!(agent.answer(call)["result"]["content"].is_array(), "the call is allowed");
        calls += 1;
        std::thread::sleep(
            (start + Duration::from_secs(1) / CALLS * calls).saturating_duration_since(Instant::now()),
        );
    }
}

/// Returns the median time from a call to its dialog, and the app's wake-ups while a dialog is open.
fn measure_questions(
    screen: &Screen,
    pid: u32,
    agent: &mut AgentClient,
    look: Duration,
    questions: usize,
) -> (f64, f64) {
    let windows = windows(screen);
    let (mut times, mut waking) = (Vec::new(), 0.0);
    for n in 0..questions {
        let file = screen.home().join(format!("plan-{n}.txt"));
        std::fs::write(&file, "ship on Tuesday").expect("the file");
        if n > 0 {
            std::thread::sleep(APART);
        }
        while windows.try_recv().is_ok() {}
        let begin = Instant::now();
        let call = begin_reading(agent, &file);
        let shown = windows.recv_timeout(TIMEOUT).expect("a new window");
        times.push((shown - begin).as_secs_f64() * 1000.0);
        let dialog = screen.window(DIALOG);
        if n == 0 {
            settle(pid);
            // Opening the dialog, and after five seconds the notification about it, wake the app about 150 times. Both
            // happen once, so the time is as long as for the window.
            waking = wakeups(&[pid], look * 3);
        }
        screen.activate(&dialog);
        screen.key("Escape");
        assert_eq!(agent.answer(call)["result"]["isError"], true);
        until("every window to close", || {
            screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG]).is_empty().then_some(())
        });
    }
    (middle(times), waking)
}

/// Returns the times at which the window manager reports added or removed windows.
fn windows(screen: &Screen) -> Receiver<Instant> {
    let spy =
        screen.command("xprop").args(["-root", "-spy", "_NET_CLIENT_LIST"]).stdout(Stdio::piped()).spawn();
    let out = spy.expect("xprop is needed").stdout.take().expect("its output");
    let (tell, told) = channel();
    let mut lines = BufReader::new(out).lines();
    // The first line describes the current state.
    lines.next();
    std::thread::spawn(move || {
        while let Some(Ok(_)) = lines.next() {
            if tell.send(Instant::now()).is_err() {
                break;
            }
        }
    });
    told
}

/// Returns the wake-ups per second, summed over all threads of these processes.
fn wakeups(processes: &[u32], look: Duration) -> f64 {
    let woken = || processes.iter().flat_map(|one| switches(*one)).collect::<HashMap<_, _>>();
    let (start, before) = (Instant::now(), woken());
    std::thread::sleep(look);
    // Ignores threads that have exited.
    let since = |(thread, count): (String, f64)| count - before.get(&thread).copied().unwrap_or_default();
    woken().into_iter().map(since).sum::<f64>() / start.elapsed().as_secs_f64()
}

/// Waits until a process and its children are nearly idle.
pub(crate) fn settle(pid: u32) {
    until("an idle app", || (wakeups(&family(pid), Duration::from_millis(500)) < 100.0).then_some(()));
}

/// Waits until startup is complete. For about ten seconds after a window opens and a screen reader queries it, the web
/// engine collects garbage. This should not be measured.
fn quiet(pid: u32) {
    let second = Duration::from_secs(1);
    until("an idle app", || {
        let family = family(pid);
        (0..QUIET).all(|_| wakeups(&family, second) <= QUIET_WAKEUPS).then_some(())
    });
}

/// Returns the number of voluntary context switches of each of the process's threads.
fn switches(pid: u32) -> Vec<(String, f64)> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().filter_map(Result::ok);
    let count = |thread: std::fs::DirEntry| {
        let text = std::fs::read_to_string(thread.path().join("status")).ok()?;
        Some((thread.path().display().to_string(), field(&text, "voluntary_ctxt_switches:")))
    };
    threads.filter_map(count).collect()
}

fn ticks(pid: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    fields.iter().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum()
}

pub(crate) fn field(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default()
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().expect("a figure")
}
