//! The app while the screen is locked, and when its parts are killed.

use crate::app::App;
use crate::screen::{Screen, helper_path, until};
use crate::stand::{DIALOG, Stand};
use crate::{tray, window};
use std::io::{BufRead, Write};

#[test]
fn while_the_screen_is_locked_no_question_is_shown_and_afterwards_those_that_wait_are() {
    let mut screen = tray::with_panel();
    let manager = helper_path("login_manager.py");
    let manager = ["-u", manager.to_str().expect("a plain path"), "locked"];
    let (mut orders, mut told) = screen.spoken_to("/usr/bin/python3", &manager);
    told.read_line(&mut String::new()).expect("its first word");
    let mut say = |word: &str| {
        writeln!(orders, "{word}").expect("a listening manager");
        told.read_line(&mut String::new()).expect("its word");
    };
    let mut stand = Stand::start(&screen, &["app", "--background"]);
    tray::menu(&screen, "Protecting 2 sessions");
    stand.order("ask write q1 120000");
    tray::menu(&screen, "1 question waits for you");
    assert_eq!(dialogs(&screen), "", "a key at the lock screen is no answer");
    say("unlock");
    screen.activate(&screen.window(DIALOG));
    say("lock");
    until("the dialog to go", || dialogs(&screen).is_empty().then_some(()));
    assert_eq!(tray::menu(&screen, "1 question waits for you")["label"], "1", "it waits still");
    say("unlock");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
}

#[test]
fn a_page_that_crashes_comes_anew_and_questions_are_asked_all_the_while() {
    let screen = tray::with_panel();
    let mut stand = Stand::start(&screen, &["app"]);
    window::says(&screen, "Protecting");
    let pages = screen.read("pgrep", &["-P", &stand.id().to_string(), "WebKitWebProces"]);
    for page in pages.lines() {
        screen.read("kill", &["-KILL", page]);
    }
    assert!(!pages.is_empty(), "the page has a process");
    tray::menu(&screen, "Protecting 2 sessions");
    stand.order("ask write q1 120000");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
    window::says(&screen, "2 sessions connected.");
}

#[test]
fn it_starts_with_the_desktop_from_when_that_is_turned_on_until_it_is_turned_off() {
    let screen = Screen::start();
    let _app = App::start(&screen, &[]);
    window::says(&screen, "Nothing is protected yet");
    window::open(&screen, "Settings");
    let entry = screen.home().join(".config/autostart/io.github.ironcurtain-desktop.desktop");
    for on in [true, false] {
        let tick = until("its box", || {
            let all = screen.controls("^IronCurtain$").into_iter();
            let mut after = all.skip_while(|one| !one.name.contains("Start with the desktop"));
            after.find(|one| one.role == "check box" && one.is("checked") != on)
        });
        screen.click(&tick);
        until("the entry", || (entry.exists() == on).then_some(()));
        let text = std::fs::read_to_string(&entry).unwrap_or_default();
        assert_eq!(text.contains(" --background\n"), on, "{text}");
    }
}

#[test]
fn on_wayland_the_window_opens_and_a_question_is_answered() {
    let screen = Screen::sway();
    let mut stand = Stand::start(&screen, &["app"]);
    window::says(&screen, "2 sessions connected.");
    stand.order("ask write q1 120000");
    screen.press(DIALOG, "push button", "Deny");
    assert_eq!(stand.event(), "q1 deny");
}

fn dialogs(screen: &Screen) -> String {
    screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG])
}
