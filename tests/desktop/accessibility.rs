//! Tests the accessibility of the app's window: on every page, each control has a role, a name and a position in the
//! focus order.

use crate::app::{App, agent};
use crate::screen::{Control, Screen, until};
use crate::{tray, window};

const WINDOW: &str = "^IronCurtain$";

const PAGES: [&str; 7] = ["Home", "Activity", "Agents", "Permissions", "Servers", "Rules", "Settings"];

/// Accessibility roles of controls that a user can press, select or fill in.
const CONTROLS: [&str; 8] = [
    "push button",
    "toggle button",
    "check box",
    "combo box",
    "entry",
    "password text",
    "spin button",
    "link",
];

#[test]
fn every_window_control_has_role_name_and_keyboard_focus() {
    let screen = tray::with_panel();
    let _app = App::start(&screen, &[]);
    // No client has connected yet, so the setup pages open automatically and must not claim any protection.
    window::says(&screen, "Nothing is protected until an agent is connected.");
    assert_named(&screen, "First steps", 2);
    window::skip_setup(&screen);
    window::says(&screen, "Not protected");
    let _agent = agent(&screen);
    window::says(&screen, "1 agent");
    for page in PAGES {
        if page != "Home" {
            window::open(&screen, page);
        }
        // Waits for the page's data, which loads after its heading is shown.
        match page {
            "Home" => drop(screen.control(WINDOW, "push button", "Lock down")),
            "Settings" => drop(screen.control(WINDOW, "combo box", "Notifications")),
            _ => {}
        }
        // Counts the links to the pages and at least one control on the page itself.
        assert_named(&screen, page, PAGES.len() + 1);
        if page == "Servers" {
            window::open(&screen, "Secrets");
            let controls = assert_named(&screen, "Secrets", PAGES.len() + 1);
            let typed = controls.iter().any(|one| one.role == "password text" && one.name == "Secret");
            assert!(typed || !window::text(&screen).contains("Store the secret"), "{controls:?}");
        }
    }
}

/// Asserts that the open page has at least `least` controls, and that all of them are named and focusable.
#[track_caller]
fn assert_named(screen: &Screen, page: &str, least: usize) -> Vec<Control> {
    let controls: Vec<Control> = until(page, || {
        let all = screen.controls(WINDOW);
        let drawn = all.iter().any(|one| one.role == "heading");
        let controls = all.into_iter().filter(|one| CONTROLS.contains(&one.role));
        Some(controls.collect::<Vec<_>>()).filter(|all| drawn && all.len() >= least)
    });
    let nameless: Vec<&Control> = controls.iter().filter(|one| one.name.trim().is_empty()).collect();
    assert!(nameless.is_empty(), "{page}: {nameless:?}");
    let deaf: Vec<&Control> = controls
        .iter()
        .filter(|one| one.is("enabled") && one.is("visible") && !one.is("focusable"))
        .collect();
    assert!(deaf.is_empty(), "{page}: {deaf:?}");
    controls
}
