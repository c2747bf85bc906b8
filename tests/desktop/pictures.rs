//! Pictures of dialogs for the documentation. `cargo xtask pictures` stores them.

use crate::harness::{DIALOG, Harness, show_question, wait_for_hint};
use crate::screen::Screen;
use crate::window::{self, WINDOW};
use std::time::Duration;

/// Names of the questions and their pictures.
const SHOWN: [(&str, &str); 4] = [
    ("whole", "dialog"),
    ("host", "dialog-network"),
    ("album", "dialog-unsandboxed"),
    ("push", "dialog-push"),
];

#[test]
fn every_documented_dialog_has_a_current_picture() {
    for (question, picture) in SHOWN {
        let screen = Screen::start();
        // The default deadline.
        let harness = show_question(&screen, question, Duration::from_secs(45));
        screen.activate(&screen.window(DIALOG));
        let window = screen.window(DIALOG);
        screen.control(DIALOG, "push button", "Deny");
        screen.picture_of(&window, picture);
        screen.key("Escape");
        assert_eq!(harness.event(), "q1 deny");
    }
}

#[test]
fn the_dialog_over_the_home_page_has_a_current_picture() {
    let screen = Screen::start();
    screen.read("display", &["-window", "root", "xc:#4d5a73"]);
    let mut harness = Harness::start(&screen, &["app", "--picture"]);
    window::skip_setup(&screen);
    // The pointer would highlight what it is on.
    screen.xdotool(&["mousemove", "5", "790"]);
    for words in ["1 agent", "filesystem, in a sandbox", "fetch, in a sandbox", "git, in a sandbox"] {
        window::says(&screen, words);
    }
    window::says(&screen, "Protected");
    let shown = window::text(&screen);
    assert!(!shown.contains("not sandboxed") && !shown.contains("Not fully checked"), "{shown}");
    screen.xdotool(&["windowmove", &screen.window(WINDOW), "20", "20"]);
    harness.order("ask whole q1 45000");
    window::says(&screen, "1 asking");
    let dialog = screen.window(DIALOG);
    screen.activate(&dialog);
    screen.xdotool(&["windowmove", "--sync", &dialog, "590", "150"]);
    wait_for_hint(&screen, "To allow: point at Allow, or press Tab until you are on it");
    screen.picture("dialog-over-home");
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}
