//! Tests the tray icon: its state and menu, as a panel reads them, and the effects of its menu items.

use crate::harness::{DIALOG, Harness};
use crate::screen::{Screen, until};
use crate::tray_item::{self, WATCHER};
use serde_json::{Value, json};
use x11rb::protocol::xproto::ConnectionExt;
use x11rb::rust_connection::RustConnection;

/// Title of the window.
const WINDOW: &str = "^IronCurtain$";
/// First line of the menu while no question is pending.
const PART: &str = "Partly protected: 1 server is not sandboxed";
/// First line of the menu while a question is pending.
const ASKING: &str = "1 question is waiting for you";

#[test]
fn tray_menu_follows_the_state() {
    let screen = with_panel();
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    let rest = menu(&screen, PART);
    assert_eq!(rest["title"], "IronCurtain Desktop", "what panels show as a tooltip");
    assert_eq!(
        rest["menu"],
        json!([
            [1, PART, false],
            [1, "---", true],
            [1, "Unanswered (1)", true],
            [2, "Claude Code: write /home/ada/Documents/tax/2026/summary.md (+3 -1 lines)", true],
            [1, "---", true],
            [1, "Claude Code", true],
            [2, "Pause", true],
            [2, "End filesystem", true],
            [1, "Cursor", true],
            [2, "Pause", true],
            [2, "End git", true],
            [1, "---", true],
            [1, "Lock down (deny everything that would ask me)", true],
            [1, "Open IronCurtain", true],
            [1, "Quit (ends 2 sessions)", true],
        ])
    );
    harness.order("ask write q1 120000");
    let asking = menu(&screen, ASKING);
    assert_eq!(asking["label"], "1");
    assert_ne!(asking["icon"], rest["icon"], "each state has its own icon");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
    assert_eq!(menu(&screen, PART)["label"], "");
}

#[test]
fn tray_menu_items_open_question_pause_agent_end_session_open_window_and_quit() {
    let screen = with_panel();
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    menu(&screen, PART);
    assert_eq!(
        screen.xdotool(&["search", "--onlyvisible", "--name", WINDOW]),
        "",
        "no window opens in the background"
    );

    press(&screen, "Open IronCurtain");
    let window = screen.window(WINDOW);
    screen.activate(&window);

    harness.order("ask write q1 120000");
    let asking = menu(&screen, ASKING);
    let question = asking["menu"][2][1].as_str().expect("a label");
    assert!(question.starts_with("Claude Code wants to write "), "{asking}");
    let dialog = screen.window(DIALOG);
    press(&screen, question);
    screen.wait_for_focus(&dialog);
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");

    press(&screen, "Pause");
    assert_eq!(harness.event(), "paused s1");
    let has = |line: &str| {
        let shown = menu(&screen, PART);
        shown["menu"].as_array().is_some_and(|lines| lines.iter().any(|one| one[1] == line))
    };
    until("the paused agent", || (has("Claude Code (paused)") && has("Resume")).then_some(()));
    press(&screen, "Resume");
    assert_eq!(harness.event(), "resumed s1");

    press(&screen, "End git");
    assert_eq!(harness.event(), "ended s2");
    menu(&screen, "Protected: 1 agent");

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

/// Returns the window that embeds tray icons, or 0 if there is none.
fn embedding_window(screen: &Screen) -> Option<u32> {
    let (server, number) = RustConnection::connect(Some(screen.display())).ok()?;
    let name = format!("_NET_SYSTEM_TRAY_S{number}");
    let selection = server.intern_atom(false, name.as_bytes()).ok()?.reply().ok()?.atom;
    Some(server.get_selection_owner(selection).ok()?.reply().ok()?.owner)
}

#[test]
fn xembed_only_panel_shows_icon_and_no_window_opens() {
    let mut screen = Screen::start();
    screen.spawn("tint2", &[]);
    let panel = screen.window("^tint2$");
    // The panel's window appears before it takes the tray's selection.
    until("a panel that embeds icons", || (embedding_window(&screen)? != 0).then_some(()));
    let own_tray = || screen.read("xwininfo", &["-tree", "-id", &panel]);
    let before = own_tray();
    let mut harness = Harness::start(&screen, &["app", "--background"]);
    until("our icon in the panel", || (own_tray().lines().count() > before.lines().count()).then_some(()));
    screen.picture("tint2");
    // The app has shown a dialog, so it has already decided whether to open its window.
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
    until("the tray", || screen.session_bus().has(WATCHER).then_some(()));
    screen
}

/// Waits until the first item of the tray menu has this label, and returns the menu.
pub(crate) fn menu(screen: &Screen, first: &str) -> Value {
    until(&format!("the tray line {first}"), || {
        let shown = tray_item::read(screen.session_bus())?;
        (shown["menu"][0][1] == first).then_some(shown)
    })
}

/// Waits for an item of the tray menu and activates it.
pub(crate) fn press(screen: &Screen, line: &str) {
    until(line, || tray_item::press(screen.session_bus(), line).then_some(()));
}
