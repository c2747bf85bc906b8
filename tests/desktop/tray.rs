//! The tray: its state and menu as a panel reads them, and the actions of its items.

use crate::harness::{DIALOG, Harness};
use crate::screen::{Screen, until};
use serde_json::{Value, json};

/// Title of the window.
const WINDOW: &str = "^IronCurtain$";

#[test]
fn tray_menu_follows_the_state() {
    let screen = with_panel();
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    let rest = menu(&screen, "Protecting 2 sessions");
    assert_eq!(
        rest["menu"],
        json!([
            [1, "Protecting 2 sessions", false],
            [1, "---", true],
            [1, "No questions", false],
            [1, "Unanswered (1)", true],
            [2, "Claude Code: write /home/ada/Documents/tax/2026/summary.md (+3 -1 lines)", true],
            [1, "Sessions (2)", true],
            [2, "End Claude Code \u{2192} filesystem", true],
            [2, "End Cursor \u{2192} git", true],
            [1, "Lock down (deny everything that would ask me)", true],
            [1, "---", true],
            [1, "Open IronCurtain", true],
            [1, "Quit (ends 2 sessions)", true],
        ])
    );
    harness.order("ask write q1 120000");
    let asking = menu(&screen, "1 question is waiting for you");
    assert_eq!(asking["label"], "1");
    assert_ne!(asking["icon"], rest["icon"], "each state has its own icon");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
    assert_eq!(menu(&screen, "Protecting 2 sessions")["label"], "");
}

#[test]
fn tray_menu_items_open_question_end_session_open_window_and_quit() {
    let screen = with_panel();
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    menu(&screen, "Protecting 2 sessions");
    assert_eq!(
        screen.xdotool(&["search", "--onlyvisible", "--name", WINDOW]),
        "",
        "no window opens in the background"
    );

    press(&screen, "Open IronCurtain");
    let window = screen.window(WINDOW);
    screen.activate(&window);

    harness.order("ask write q1 120000");
    menu(&screen, "1 question is waiting for you");
    let dialog = screen.window(DIALOG);
    press(&screen, "Questions (1)");
    screen.wait_for_focus(&dialog);
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");

    press(&screen, "End Cursor \u{2192} git");
    assert_eq!(harness.event(), "ended s2");
    menu(&screen, "Protecting 1 session");

    press(&screen, "Quit (ends 1 session)");
    assert_eq!(harness.event(), "shutdown");
    assert_eq!(harness.exit(), Some(0));
}

#[test]
fn background_start_without_tray_opens_the_window() {
    let screen = Screen::start();
    let _harness = Harness::start(&screen, &["app", "--background"]);
    screen.window(WINDOW);
}

#[test]
fn xembed_only_panel_shows_icon_and_no_window_opens() {
    let mut screen = Screen::start();
    screen.spawn("tint2", &[]);
    let panel = screen.window("^tint2$");
    let own_tray = || screen.read("xwininfo", &["-tree", "-id", &panel]);
    let before = own_tray();
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    until("our icon in the panel", || (own_tray().lines().count() > before.lines().count()).then_some(()));
    screen.picture("tint2");
    // The shell responds, so it has decided whether to open its window.
    harness.order("ask write q1 120000");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
    assert_eq!(screen.xdotool(&["search", "--onlyvisible", "--name", WINDOW]), "");
}

/// Starts a screen with a panel that shows tray icons.
pub(crate) fn with_panel() -> Screen {
    let mut screen = Screen::start();
    screen.spawn("xfce4-panel", &["--disable-wm-check"]);
    until("the tray", || {
        let owner = ["call", "--session", "--dest", "org.freedesktop.DBus", "--object-path", "/", "--method"];
        let asked = ["org.freedesktop.DBus.NameHasOwner", "org.kde.StatusNotifierWatcher"];
        screen.read("gdbus", &[&owner[..], &asked[..]].concat()).contains("true").then_some(())
    });
    screen
}

/// Returns the tray's menu, once its first item has that label.
pub(crate) fn menu(screen: &Screen, first: &str) -> Value {
    until(&format!("the tray line {first}"), || {
        let read = screen.helper("tray.py", &["read"]);
        let shown: Value = serde_json::from_str(&read).ok()?;
        (shown["menu"][0][1] == first).then_some(shown)
    })
}

fn press(screen: &Screen, line: &str) {
    until(line, || (screen.helper("tray.py", &["press", line]) == "done").then_some(()));
}
