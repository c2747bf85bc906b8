//! Pictures of dialogs for the documentation. `cargo xtask pictures` stores them.

use crate::screen::Screen;
use crate::stand::{DIALOG, focused};

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
        let stand = focused(&screen, question);
        let window = screen.window(DIALOG);
        screen.control(DIALOG, "push button", "Deny");
        screen.picture_of(&window, picture);
        screen.key("Escape");
        assert_eq!(stand.event(), "q1 deny");
    }
}
