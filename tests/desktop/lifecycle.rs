//! Tests the app while the screen is locked, across suspend, and after one of its processes is killed.

use crate::app::{self, App};
use crate::harness::{DIALOG, Harness, arm_by_pointer};
use crate::screen::{Screen, helper_path, until};
use crate::window_process::{family, name};
use crate::{tray, window};
use std::io::{BufRead, Write};

#[test]
fn questions_are_hidden_while_screen_is_locked_and_shown_after_unlock() {
    let mut screen = tray::with_panel();
    let mut say = login_manager(&mut screen, &["locked"]);
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    tray::menu(&screen, "Partly protected: 1 server is not sandboxed");
    harness.order("ask write q1 120000");
    tray::menu(&screen, "1 question is waiting for you");
    assert_eq!(dialogs(&screen), "", "a key at the lock screen is no answer");
    say("unlock");
    screen.activate(&screen.window(DIALOG));
    say("lock");
    until("the dialog to close", || dialogs(&screen).is_empty().then_some(()));
    assert_eq!(
        tray::menu(&screen, "1 question is waiting for you")["label"],
        "1",
        "the question is still open"
    );
    say("unlock");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}

#[test]
fn question_survives_suspend_and_wake_up_input_is_no_answer() {
    let mut screen = tray::with_panel();
    let mut say = login_manager(&mut screen, &[]);
    let file = screen.home().join("plan.txt");
    std::fs::write(&file, "ship on Tuesday").expect("the file");
    let _app = App::start(&screen, &["--background"]);
    tray::menu(&screen, "No agent connected");
    let mut agent = app::agent(&screen);
    let call = app::begin_reading(&mut agent, &file);
    screen.activate(&screen.window(DIALOG));
    let allow = arm_by_pointer(&screen, "Allow once");
    say("sleep");
    until("the dialog to close", || dialogs(&screen).is_empty().then_some(()));
    say("wake");
    for _ in 0..4 {
        screen.click(&allow);
        screen.key("alt+a");
    }
    screen.activate(&screen.window(DIALOG));
    assert_eq!(
        tray::menu(&screen, "1 question is waiting for you")["label"],
        "1",
        "the question is still open"
    );
    app::allow(&screen);
    let answer = agent.answer(call);
    assert_eq!(answer["result"]["content"][0]["text"], "ship on Tuesday", "{answer}");
    // The session and its server are still running.
    tray::menu(&screen, "Protected: 1 agent");
}

#[test]
fn crashed_page_reloads_and_questions_still_work() {
    let screen = tray::with_panel();
    let mut harness = Harness::start(&screen, &["app"]);
    window::says(&screen, "Partly protected");
    let pages: Vec<u32> =
        family(harness.id()).into_iter().filter(|one| name(*one).starts_with("WebKitWeb")).collect();
    for page in &pages {
        screen.read("kill", &["-KILL", &page.to_string()]);
    }
    assert!(!pages.is_empty(), "the page has a process");
    tray::menu(&screen, "Partly protected: 1 server is not sandboxed");
    harness.order("ask write q1 120000");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
    window::says(&screen, "2 agents");
}

#[test]
fn login_autostart_follows_its_setting() {
    let screen = Screen::start();
    let _app = App::start(&screen, &[]);
    window::skip_setup(&screen);
    window::open(&screen, "Settings");
    let entry = screen.home().join(".config/autostart/io.github.ironcurtain-desktop.desktop");
    for on in [true, false] {
        let tick = until("the checkbox", || {
            let mut all = screen.controls("^IronCurtain$").into_iter();
            all.find(|one| {
                one.name == "Start with the desktop" && one.is("focusable") && one.is("checked") != on
            })
        });
        screen.click(&tick);
        until("the entry", || {
            let text = std::fs::read_to_string(&entry).ok();
            (text.map(|text| text.contains(" --background\n")) == on.then_some(true)).then_some(())
        });
    }
}

#[test]
fn wayland_window_opens_raises_and_answers_a_question() {
    let screen = Screen::sway();
    let mut harness = Harness::start(&screen, &["app"]);
    window::says(&screen, "2 agents");
    harness.order("ask write q1 120000");
    screen.press(DIALOG, "push button", "Deny");
    assert_eq!(harness.event(), "q1 deny");
    let other = Harness::start(&screen, &["other", "window"]);
    assert_eq!(other.event(), "ready");
    screen.wait_for_sway_focus("^Another program");
    let app = ["--dest", "io.github.ironcurtain-desktop", "--object-path", "/io/github/ironcurtain_desktop"];
    let activate = ["--method", "org.freedesktop.Application.Activate", "{}"];
    screen.read("gdbus", &[&["call", "--session"], &app[..], &activate[..]].concat());
    screen.wait_for_sway_focus("^IronCurtain");
    window::says(&screen, "2 agents");
}

/// Starts a fake logind. Returns a function that makes it send events.
pub(crate) fn login_manager(screen: &mut Screen, state: &[&str]) -> impl FnMut(&str) + use<> {
    let script = helper_path("login_manager.py");
    let arguments = [&["-u", script.to_str().expect("a UTF-8 path")][..], state].concat();
    let (mut orders, mut told) = screen.spawn_with_stdin("/usr/bin/python3", &arguments);
    told.read_line(&mut String::new()).expect("its first line");
    move |word| {
        writeln!(orders, "{word}").expect("a listening manager");
        told.read_line(&mut String::new()).expect("its answer");
    }
}

fn dialogs(screen: &Screen) -> String {
    screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG])
}
