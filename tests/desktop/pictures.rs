//! Pictures of dialogs for the documentation. `cargo xtask pictures` stores them.

use crate::harness::{DIALOG, show_focused_question};
use crate::screen::Screen;

/// Questions and the names of their pictures.
const SHOWN: [(&str, &str); 4] = [
    ("whole", "dialog"),
    ("host", "dialog-network"),
    ("unsandboxed", "dialog-unsandboxed"),
    ("push", "dialog-push"),
];

#[test]
fn every_documented_dialog_has_a_current_picture() {
    for (question, picture) in SHOWN {
        let screen = Screen::start();
        let harness = show_focused_question(&screen, question);
        let window = screen.window(DIALOG);
        screen.control(DIALOG, "push button", "Deny");
        screen.picture_of(&window, picture);
        screen.key("Escape");
        assert_eq!(harness.event(), "q1 deny");
    }
}
