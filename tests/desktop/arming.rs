//! Tests the arming of Allow: when a click is accepted, and the hint after an ignored click.

use crate::harness::{DIALOG, Harness, arm_by_pointer, show_focused_question, show_question, wait_for_hint};
use crate::screen::{Control, Screen, until};
use std::io::BufRead;
use std::time::Duration;

const ALLOW: &str = "Allow once";
const CLICK: &str = "Click here to allow";
const STILL: &str = "To allow: move the pointer slightly on Allow, or press Tab until you are on it";
const COVERED: &str = "To allow: move the window that covers this one";
const SOON: &str = "Allow unlocks in a moment";

/// Compositors, each combined with its usual window manager.
const COMPOSITORS: [&str; 4] = ["picom", "xfwm4", "metacity", "mutter"];

#[test]
fn early_click_is_ignored_and_small_movement_on_allow_arms_it() {
    let screen = Screen::start();
    let harness = show_question(&screen, "write", Duration::from_secs(120));
    let allow = screen.control(DIALOG, "push button", ALLOW);
    // Clicks twice, because a slow machine may process the movement only at the end of the rest period.
    screen.move_pointer_onto(&allow);
    screen.xdotool(&["click", "1", "sleep", "0.2", "click", "1"]);
    // The pointer stays on Allow from here on.
    wait_for_hint(&screen, STILL);
    screen.move_pointer_onto(&allow);
    wait_for_hint(&screen, CLICK);
    screen.xdotool(&["click", "1"]);
    assert_eq!(harness.event(), "q1 allow 0 Once");
}

#[test]
fn moving_to_allow_after_a_choice_arms_it_for_one_click() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    wait_for_hint(&screen, "To allow: point at Allow, or press Tab until you are on it");
    let session = screen.control(DIALOG, "radio button", "this session");
    let allow = screen.control(DIALOG, "push button", ALLOW);
    screen.click(&session);
    // The pointer arrives immediately and then does not move.
    screen.move_pointer_onto(&allow);
    wait_for_hint(&screen, CLICK);
    screen.xdotool(&["click", "1"]);
    assert_eq!(harness.event(), "q1 allow 0 Session");
}

#[test]
fn ignored_click_gets_visible_feedback() {
    let mut screen = Screen::start();
    let listener = crate::screen::helper_path("announced.py");
    let (_orders, said) =
        screen.spawn_with_stdin("/usr/bin/python3", &["-u", listener.to_str().expect("a UTF-8 path")]);
    let mut said = said.lines().map_while(Result::ok);
    assert_eq!(said.next().as_deref(), Some("ready"));
    let harness = show_focused_question(&screen, "write");
    arm_by_pointer(&screen, ALLOW);
    assert!(said.any(|line| line == CLICK), "Allow is armed");
    // Alt+A is accepted only after a key has moved the focus to Allow.
    screen.key("alt+a");
    assert!(said.any(|line| line == SOON), "the click is ignored");
    wait_for_hint(&screen, STILL);
    screen.xdotool(&["click", "1"]);
    assert!(said.any(|line| line == SOON));
    screen.picture("ignored");
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}

#[test]
fn covering_window_disarms_allow_and_uncovering_restarts_the_delay() {
    for compositor in COMPOSITORS {
        let screen = Screen::composited(compositor);
        let harness = show_focused_question(&screen, "write");
        // The compositor's own topmost window does not count as covering the dialog.
        let allow = arm_by_pointer(&screen, ALLOW);
        let words = subject(&screen);
        let cover = cover(&screen, words.place);
        wait_for_hint(&screen, COVERED);
        screen.picture(&format!("covered-{compositor}"));
        screen.xdotool(&["click", "1"]);
        drop(cover);
        screen.xdotool(&["click", "1"]);
        wait_for_hint(&screen, STILL);
        screen.move_pointer_onto(&allow);
        wait_for_hint(&screen, CLICK);
        screen.xdotool(&["click", "1"]);
        assert_eq!(harness.event(), "q1 allow 0 Once", "under {compositor}: of four clicks the last");
    }
}

#[test]
fn windows_beside_or_below_dialog_do_not_disarm_allow() {
    let screen = Screen::composited("picom");
    let below = Harness::start(&screen, &["other", "fullscreen"]);
    assert_eq!(below.event(), "ready");
    let beside = cover(&screen, [0, 0, 1280, 20]);
    let harness = show_focused_question(&screen, "write");
    arm_by_pointer(&screen, ALLOW);
    screen.xdotool(&["click", "1"]);
    assert_eq!(harness.event(), "q1 allow 0 Once");
    drop((below, beside));
}

#[test]
fn dialog_partly_off_screen_says_so_and_cannot_be_allowed() {
    for compositor in [None, Some("picom")] {
        let screen = compositor.map_or_else(Screen::start, Screen::composited);
        let harness = show_focused_question(&screen, "write");
        let window = screen.window(DIALOG);
        screen.xdotool(&["windowmove", &window, "1000", "100"]);
        wait_for_hint(&screen, "To allow: part of this window is off the screen, move it");
        screen.picture("off-the-screen");
        screen.xdotool(&["windowmove", &window, "300", "100"]);
        arm_by_pointer(&screen, ALLOW);
        screen.xdotool(&["click", "1"]);
        assert_eq!(harness.event(), "q1 allow 0 Once", "{compositor:?}");
    }
}

/// Returns the control that shows the dialog's subject.
fn subject(screen: &Screen) -> Control {
    until("the headline", || {
        let all = screen.controls(DIALOG);
        all.into_iter().find(|one| one.role == "label" && one.name.contains(" wants to "))
    })
}

/// Opens another program's window over this area of the screen, bypassing the window manager.
fn cover(screen: &Screen, place: [i32; 4]) -> Harness {
    let place = place.map(|number| number.to_string());
    let mut arguments = vec!["other", "over"];
    arguments.extend(place.iter().map(String::as_str));
    let cover = Harness::start(screen, &arguments);
    assert_eq!(cover.event(), "ready");
    cover
}
