//! The dialogs that the documentation shows. `cargo xtask pictures` keeps what is drawn here.

use crate::screen::Screen;
use crate::stand::{DIALOG, focused};

/// A question, and the name of its picture.
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
