//! Tests that only a deliberate press of an armed Allow allows a call. Any other input denies the call or does nothing.

use crate::harness::{
    DIALOG, Harness, arm_by_keyboard, arm_by_keyboard_in, arm_by_pointer, show_focused_question,
    show_question,
};
use crate::screen::{Screen, TIMEOUT, until};
use std::time::{Duration, Instant};

const ALLOW: &str = "Allow once";

#[test]
fn alt_a_allows_after_focus_moved_to_allow() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    arm_by_keyboard(&screen, ALLOW);
    screen.key("alt+a");
    assert_eq!(harness.event(), "q1 allow 0 Once");
}

#[test]
fn click_allows_after_pointer_moved_to_allow() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    let allow = arm_by_pointer(&screen, ALLOW);
    screen.click(&allow);
    assert_eq!(harness.event(), "q1 allow 0 Once");
}

#[test]
fn escape_enter_space_and_close_deny() {
    let screen = Screen::start();
    for key in ["Escape", "Return", "KP_Enter", "space", "alt+F4", "alt+d"] {
        let harness = show_focused_question(&screen, "write");
        screen.key(key);
        assert_eq!(harness.event(), "q1 deny", "after {key}");
        assert_no_dialog(&screen);
    }
}

#[test]
fn enter_and_space_deny_while_allow_is_armed() {
    let screen = Screen::start();
    for key in ["Return", "space"] {
        let harness = show_focused_question(&screen, "write");
        arm_by_pointer(&screen, ALLOW);
        screen.key(key);
        assert_eq!(harness.event(), "q1 deny", "after {key}");
        assert_no_dialog(&screen);
    }
}

#[test]
fn enter_and_space_do_not_activate_focused_allow() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    for key in ["Return", "space", "KP_Enter"] {
        arm_by_keyboard(&screen, ALLOW);
        screen.key(key);
        until("the focus back on Deny", || {
            screen.control(DIALOG, "push button", "Deny").is("focused").then_some(())
        });
    }
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny", "no earlier key was an answer");
}

#[test]
fn unanswered_question_times_out() {
    let screen = Screen::start();
    let (begin, deadline) = (Instant::now(), Duration::from_secs(5));
    let harness = show_question(&screen, "write", deadline);
    assert_eq!(harness.event(), "q1 dropped");
    assert!(begin.elapsed() >= deadline, "the question timed out too early");
    assert_no_dialog(&screen);
}

#[test]
fn input_in_dialog_extends_question_timeout() {
    let screen = Screen::start();
    let deadline = Duration::from_secs(3);
    let mut harness = Harness::start(&screen, &["dialog"]);
    // A program's first dialog can take seconds to open on a busy machine.
    harness.order("ask write q0 120000");
    screen.window(DIALOG);
    harness.order("withdraw q0");
    assert_eq!(harness.event(), "q0 dropped");
    harness.order(&format!("ask write q1 {}", deadline.as_millis()));
    let begin = Instant::now();
    let (mut at, mut last) = (0, begin);
    while begin.elapsed() < deadline + Duration::from_millis(500) {
        at = (at + 7) % 60;
        // Records the time before the movement, because the tool may exit slowly. The dialog is in the middle of the
        // screen.
        last = Instant::now();
        screen.xdotool(&["mousemove", &(610 + at).to_string(), "400"]);
    }
    assert_eq!(harness.any_event(), "q1 working");
    assert_eq!(harness.event(), "q1 dropped");
    // Input is reported at most once per second, so the timeout may have restarted up to a second earlier.
    assert!(last.elapsed() >= deadline - Duration::from_millis(1100), "the timeout was not restarted");
}

#[test]
fn click_on_allow_while_dialog_opens_is_ignored() {
    let screen = Screen::start();
    let harness = show_question(&screen, "write", TIMEOUT * 4);
    let allow = screen.control(DIALOG, "push button", ALLOW);
    screen.click(&allow);
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}

#[test]
fn held_alt_a_never_allows() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    // Repeats the key for three seconds. Each press restarts the rest period.
    screen.xdotool(&["key", "--delay", "60", "--repeat", "50", "alt+a"]);
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}

#[test]
fn focus_loss_disarms_allow() {
    let screen = Screen::start();
    let first = show_focused_question(&screen, "write");
    arm_by_keyboard(&screen, ALLOW);
    let mut other = Harness::start(&screen, &["dialog"]);
    other.order("ask unsandboxed other 120000");
    let window = screen.window("delete /srv/photos");
    screen.activate(&window);
    until("Allow to be disarmed", || {
        let allow = screen.control("write ~/Documents/tax/2026/summary.md", "push button", ALLOW);
        (allow.description != "Press Alt+A to allow").then_some(())
    });
    screen.activate(&screen.window("write ~/Documents/tax/2026/summary.md"));
    arm_by_keyboard_in(&screen, "write ~/Documents/tax/2026/summary.md", ALLOW);
    screen.key("alt+a");
    assert_eq!(first.event(), "q1 allow 0 Once");
}

#[test]
fn dialog_does_not_steal_keyboard_focus() {
    let screen = Screen::start();
    let _first = show_focused_question(&screen, "write");
    let before = screen.xdotool(&["getactivewindow"]);
    let mut other = Harness::start(&screen, &["dialog"]);
    other.order("ask unsandboxed other 120000");
    let window = screen.window("delete /srv/photos");
    screen.control("delete /srv/photos", "push button", "Deny");
    assert_ne!(window, before);
    assert_eq!(screen.xdotool(&["getactivewindow"]), before);
}

#[test]
fn changing_scope_rearms_allow_and_grants_the_new_scope() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    arm_by_keyboard(&screen, ALLOW);
    let folder = screen.control(DIALOG, "radio button", "everything in ~/Documents/tax/2026");
    screen.click(&folder);
    arm_by_keyboard(&screen, "Allow for this session");
    let hour = screen.control(DIALOG, "radio button", "1 hour");
    screen.click(&hour);
    // A press during the rest period is not an answer.
    screen.key("alt+a");
    arm_by_keyboard(&screen, "Allow for 1 hour");
    let sentence =
        "\u{2192} Claude Code may create and change everything in ~/Documents/tax/2026 for 1 hour.";
    screen.control(DIALOG, "label", sentence);
    screen.key("alt+a");
    assert_eq!(harness.event(), "q1 allow 1 Hour");
}

#[test]
fn denial_carries_the_users_note() {
    let screen = Screen::start();
    let harness = show_focused_question(&screen, "write");
    screen.key("alt+n");
    until("the note", || {
        let note = screen.find(DIALOG, "", "Note for the agent");
        note.filter(|note| note.is("focused"))
    });
    screen.xdotool(&["type", "use the drafts folder"]);
    screen.key("Return");
    assert_eq!(harness.event(), "q1 deny use the drafts folder");
}

#[test]
fn denial_can_cover_the_session_or_pause_the_agent_with_a_note() {
    let screen = Screen::start();
    for (words, event) in [
        ("Deny write_file in ~/notes until this session ends", "q1 deny Session no drafts"),
        ("Deny, and pause the agent until you resume it", "q1 deny Pause no drafts"),
        ("Deny this and everything else the agent is waiting for", "q1 deny Waiting no drafts"),
    ] {
        let harness = show_focused_question(&screen, "write");
        screen.key("alt+n");
        until("the note", || {
            let note = screen.find(DIALOG, "", "Note for the agent");
            note.filter(|note| note.is("focused"))
        });
        screen.xdotool(&["type", "no drafts"]);
        screen.press(DIALOG, "radio button", words);
        screen.press(DIALOG, "push button", "Deny");
        assert_eq!(harness.event(), event);
        assert_no_dialog(&screen);
    }
}

#[test]
fn questions_are_shown_in_order_and_withdrawn_question_closes() {
    let screen = Screen::start();
    let mut harness = show_question(&screen, "write", TIMEOUT * 4);
    harness.order("ask unsandboxed q2 120000");
    harness.order("ask many q3 120000");
    screen.control(DIALOG, "label", "2 more waiting");
    harness.order("withdraw q1");
    assert_eq!(harness.event(), "q1 dropped");
    let second = screen.window("delete /srv/photos");
    harness.order("withdraw q3");
    assert_eq!(harness.event(), "q3 dropped");
    screen.activate(&second);
    screen.key("Escape");
    assert_eq!(harness.event(), "q2 deny");
    assert_no_dialog(&screen);
}

/// Asserts that no dialog is on the screen.
fn assert_no_dialog(screen: &Screen) {
    until("every window to close", || {
        screen.xdotool(&["search", "--onlyvisible", "--name", DIALOG]).is_empty().then_some(())
    });
}
