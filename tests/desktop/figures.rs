//! The speed and the quiet of the app: the rows of `cargo xtask bench --desktop`.
//!
//! - A figure is no test: that each can be computed is, in a short form. What does not hang on the machine's speed is: nothing of
//!   the page is left once its window is closed.
//! - `IRONCURTAIN_FIGURES` has them measured for as long as it takes, and printed; `IRONCURTAIN_APP` says of which app.

use crate::app::{App, agent, app_program, begin_reading};
use crate::screen::{BOUND, Screen, helper_path, until};
use crate::stand::DIALOG;
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
/// Calls a second of an agent at work.
const CALLS: u32 = 10;
/// A dialog comes no sooner than a second after the last press in the one before: that is no time of ours.
const APART: Duration = Duration::from_millis(1200);
/// Seconds in a row, each with no more wake-ups than that, in which what is done once is over.
const QUIET: usize = 5;
const QUIET_WAKEUPS: f64 = 3.0;
/// Ticks a second in which the kernel counts the time of processes.
const TICKS: f64 = 100.0;

/// One row of the table.
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
    let mut figures = vec![painted(if whole { 5 } else { 1 })];
    figures.extend(of_one_life(look, if whole { 4 } else { 1 }));
    assert_eq!(figures.len(), 8);
    println!("| | measured | goal |\n|---|---|---|");
    for Figure { what, value, unit, goal } in &figures {
        println!("| {what} | {value:.1} {unit} | at most {goal} {unit} |");
    }
    assert!(figures.iter().all(|figure| figure.value.is_finite() && figure.value >= 0.0));
}

/// From the start of the app to the text in its window, the middle of some starts.
fn painted(starts: usize) -> Figure {
    let mut screen = Screen::start();
    let helper = helper_path("painted.py");
    let mut arguments = vec![helper.to_str().expect("a plain path").to_owned()];
    arguments.push(app_program().to_str().expect("a plain path").to_owned());
    if screen.read("id", &["-u"]) == "0" {
        arguments.push("--allow-root".to_owned());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let times = (0..starts).map(|_| {
        let (mut ends, mut out) = screen.spoken_to("/usr/bin/python3", &arguments);
        let mut line = String::new();
        out.read_line(&mut line).expect("a readable line");
        ends.write_all(b"end\n").expect("a listening helper");
        let ended = out.read_line(&mut String::new());
        ended.expect("its end");
        line.trim().parse().expect("the milliseconds")
    });
    Figure {
        what: "start to the window with its text",
        value: middle(times.collect()),
        unit: "ms",
        goal: 600.0,
    }
}

/// The others, one after the other in the life of one app.
fn of_one_life(look: Duration, questions: usize) -> Vec<Figure> {
    let screen = tray::with_panel();
    let app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    let pid = app.id();
    settle(pid);
    let before = memory(pid);
    screen.helper("tray.py", &["press", "Open IronCurtain"]);
    let window = screen.window(WINDOW);
    crate::window::says(&screen, "Nothing is protected yet");
    quiet(pid);
    let idle = wakeups(&family(pid), look * 3);
    let mut agent = agent(&screen);
    crate::window::open(&screen, "Home");
    crate::window::says(&screen, "1 session connected.");
    let work = busy(pid, &mut agent, look);
    let drawn = family(pid).split_off(1);
    screen.activate(&window);
    screen.key("alt+F4");
    ended(&drawn);
    settle(pid);
    let after = memory(pid);
    let left = f64::from(u32::try_from(alive(&drawn) + family(pid).len() - 1).expect("few"));
    let (dialog, waking) = asked(&screen, pid, &mut agent, look, questions);
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
            value: work,
            unit: "% of a core",
            goal: 15.0,
        },
        Figure { what: "memory of the app in the background", value: before, unit: "MB", goal: 70.0 },
        Figure {
            what: "memory more than that once the window was closed",
            value: (after - before).max(0.0),
            unit: "MB",
            goal: 10.0,
        },
        Figure { what: "processes that stay of the window", value: left, unit: "", goal: 0.0 },
        Figure { what: "call to dialog", value: dialog, unit: "ms", goal: 60.0 },
    ]
}

/// The share of a core that the page's process takes while an agent works.
fn busy(pid: u32, agent: &mut AgentClient, look: Duration) -> f64 {
    let pages: Vec<u32> = family(pid).into_iter().filter(|one| name(*one).starts_with("WebKitWeb")).collect();
    let spent = || pages.iter().map(|page| ticks(*page)).sum::<f64>();
    let (start, before) = (Instant::now(), spent());
    let mut calls = 0;
    while start.elapsed() < look {
        let call = agent.begin_call("list_allowed_directories", json!({}));
        assert!(agent.answer(call)["result"]["content"].is_array(), "it is allowed");
        calls += 1;
        std::thread::sleep(
            (start + Duration::from_secs(1) / CALLS * calls).saturating_duration_since(Instant::now()),
        );
    }
    (spent() - before) / TICKS / start.elapsed().as_secs_f64() * 100.0
}

/// From a call to its dialog, the middle of some; and how often the app wakes while one is open.
fn asked(screen: &Screen, pid: u32, agent: &mut AgentClient, look: Duration, questions: usize) -> (f64, f64) {
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
        let shown = windows.recv_timeout(BOUND).expect("a new window");
        times.push((shown - begin).as_secs_f64() * 1000.0);
        let dialog = screen.window(DIALOG);
        if n == 0 {
            settle(pid);
            waking = wakeups(&[pid], look);
        }
        screen.activate(&dialog);
        screen.key("Escape");
        assert_eq!(agent.answer(call)["result"]["isError"], true);
        until("an empty screen", || {
            screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG]).is_empty().then_some(())
        });
    }
    (middle(times), waking)
}

/// The moments at which the window manager shows another set of windows.
fn windows(screen: &Screen) -> Receiver<Instant> {
    let spy =
        screen.command("xprop").args(["-root", "-spy", "_NET_CLIENT_LIST"]).stdout(Stdio::piped()).spawn();
    let out = spy.expect("xprop is needed").stdout.take().expect("its output");
    let (tell, told) = channel();
    let mut lines = BufReader::new(out).lines();
    // The first is how things are.
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

/// The times that the threads of some processes woke a second.
fn wakeups(processes: &[u32], look: Duration) -> f64 {
    let woken = || processes.iter().flat_map(|one| switches(*one)).collect::<HashMap<_, _>>();
    let (start, before) = (Instant::now(), woken());
    std::thread::sleep(look);
    // A thread that ended meanwhile is not counted.
    let since = |(thread, count): (String, f64)| count - before.get(&thread).copied().unwrap_or_default();
    woken().into_iter().map(since).sum::<f64>() / start.elapsed().as_secs_f64()
}

/// Waits until a process and its children have little to do any more.
pub(crate) fn settle(pid: u32) {
    until("a quiet app", || (wakeups(&family(pid), Duration::from_millis(500)) < 100.0).then_some(()));
}

/// Waits until what is done once is over: for some ten seconds after a window has opened, and after a screen reader has looked into
/// it, the engine sweeps its memory. The seconds that it waits are not looked at for what is shown as the figure.
fn quiet(pid: u32) {
    let second = Duration::from_secs(1);
    until("an app in which nothing happens", || {
        let family = family(pid);
        (0..QUIET).all(|_| wakeups(&family, second) <= QUIET_WAKEUPS).then_some(())
    });
}

/// The times that each thread of a process had waited and went on. Those that others were let go before are not theirs.
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
