//! Tests the window: the content of its pages, and the effects of its buttons.

use crate::harness::{DIALOG, Harness};
use crate::screen::{Control, Screen, until};

/// Title of the window.
pub(crate) const WINDOW: &str = "^IronCurtain$";

#[test]
fn home_shows_live_sessions_decisions_and_pending_questions() {
    let screen = Screen::start();
    let mut harness = Harness::start(&screen, &["app"]);
    says(&screen, "Partly protected");
    says(&screen, "Claude Code");
    says(&screen, "filesystem, in a sandbox");
    says(&screen, "git, not sandboxed");
    says(&screen, "everything you can reach");
    // This text would become an element if the page parsed it as HTML.
    says(&screen, "~/<b>x</b>");
    screen.picture("home");
    harness.order("ask write q1 120000");
    says(&screen, "1 asking");
    says(&screen, "Claude Code wants to write ~/Documents/tax/2026/summary.md (new file, 101 bytes)");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
    says(&screen, "Protected, except 1 server");
}

#[test]
fn folder_shows_as_revoked_only_after_the_mount_is_gone() {
    let screen = Screen::start();
    let harness = Harness::start(&screen, &["app"]);
    open(&screen, "Permissions");
    says(&screen, "Revoke /home/ada/Pictures/2026");
    screen.press(WINDOW, "push button", "Revoke /home/ada/Pictures/2026");
    assert_eq!(harness.event(), "took-back g2");
    gone(&screen, "Revoke /home/ada/Pictures/2026");
    screen.press(WINDOW, "push button", "Revoke /srv/projects/shared");
    assert_eq!(harness.event(), "refused-to-take-back g4");
    says(&screen, "Not revoked: the server could not be restarted");
    says(&screen, "Revoke /srv/projects/shared");
}

#[test]
fn session_page_shows_sandbox_proof_and_folders_and_ends_session() {
    let screen = Screen::start();
    let harness = Harness::start(&screen, &["app"]);
    open(&screen, "Agents");
    says(&screen, "allowed by rule work");
    says(&screen, "everything you can reach");
    screen.press(WINDOW, "push button", "Details of filesystem for Claude Code");
    says(&screen, "zsh in gnome-terminal");
    screen.press(WINDOW, "push button", "Details of git for Cursor");
    says(&screen, "not sandboxed: it can do anything you can");
    screen.press(WINDOW, "push button", "More about git for Cursor");
    screen.press(WINDOW, "push button", "End session of Cursor with git");
    assert_eq!(harness.event(), "ended s2");
    gone(&screen, "More about git for Cursor");
}

#[test]
fn window_pauses_agent_locks_down_and_undoes_denials() {
    let screen = Screen::start();
    let harness = Harness::start(&screen, &["app"]);
    says(&screen, "Not answered in time: denied. If the agent tries again, you are asked again.");
    let missed = "Claude Code, write /home/ada/Documents/tax/2026/summary.md (+3 -1 lines)";
    screen.press(WINDOW, "push button", &format!("Review: {missed}"));
    assert_eq!(harness.event(), "asked-again q8");
    gone(&screen, &format!("Review: {missed}"));
    screen.press(WINDOW, "push button", "Lock down");
    assert_eq!(harness.event(), "lockdown true false", "lockdown starts at the first click");
    named(&screen, "End lockdown");
    says(&screen, "Locked down");
    screen.picture("lockdown");
    screen.press(WINDOW, "push button", "More ways to lock down");
    named(&screen, "Lock down and end all sessions");
    screen.press(WINDOW, "push button", "End lockdown");
    assert_eq!(harness.event(), "lockdown false false");
    named(&screen, "Lock down");
    open(&screen, "Agents");
    screen.press(WINDOW, "push button", "Pause Cursor with git");
    assert_eq!(harness.event(), "paused s2");
    // Screen readers announce the result.
    says(&screen, "Paused: Pause Cursor with git");
    says(&screen, "Everything it asks for is denied until you resume it.");
    screen.press(WINDOW, "push button", "Resume Cursor with git");
    assert_eq!(harness.event(), "resumed s2");
    screen.press(WINDOW, "push button", "Ask me again about delete_file in /home/ada/Pictures");
    assert_eq!(harness.event(), "forgot q5");
    gone(&screen, "Ask me again about delete_file in /home/ada/Pictures");
}

#[test]
fn autostart_files_are_listed_and_kept_or_quarantined_by_the_user() {
    let screen = Screen::start();
    let harness = Harness::start(&screen, &["app"]);
    says(&screen, "Sessions left 3 files that can run code later");
    open(&screen, "Agents");
    says(&screen, "2 files to review");
    screen.press(WINDOW, "push button", "Review 2 files of filesystem");
    says(&screen, "New. It runs when you open this folder in VS Code.");
    says(
        &screen,
        "Git settings that start programs were changed; IronCurtain put them back: core.fsmonitor, core.pager.",
    );
    screen.picture("left");
    screen.press(WINDOW, "push button", "Keep /home/ada/src/app/.vscode/tasks.json");
    assert_eq!(harness.event(), "Keep /home/ada/src/app/.vscode/tasks.json");
    gone(&screen, "Keep /home/ada/src/app/.vscode/tasks.json");
    gone(&screen, "Details of 2 files of filesystem");
    screen.press(WINDOW, "push button", "Quarantine /home/ada/src/app/Makefile");
    assert_eq!(harness.event(), "refused-to-move /home/ada/src/app/Makefile");
    says(&screen, "Not moved: the disk is full");
    screen.press(WINDOW, "push button", "Review 1 file of filesystem");
    screen.press(WINDOW, "push button", "Quarantine /home/ada/src/site/package.json");
    assert_eq!(harness.event(), "Quarantine /home/ada/src/site/package.json");
    gone(&screen, "Quarantine /home/ada/src/site/package.json");
    screen.picture("left-decided");
}

#[test]
fn closing_window_keeps_app_running() {
    let screen = crate::tray::with_panel();
    let mut harness = Harness::start(&screen, &["app"]);
    let window = screen.window(WINDOW);
    says(&screen, "Partly protected");
    screen.activate(&window);
    screen.key("alt+F4");
    until("the window to close", || screen.xdotool(&["search", "--name", WINDOW]).is_empty().then_some(()));
    crate::tray::menu(&screen, "Partly protected: 1 server is not sandboxed");
    harness.order("ask write q1 120000");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}

/// Returns all text in the window, as a screen reader reads it.
pub(crate) fn text(screen: &Screen) -> String {
    screen.text(WINDOW)
}

/// Waits until the window contains this text.
pub(crate) fn says(screen: &Screen, words: &str) {
    until(&format!("the window to say `{words}`"), || text(screen).contains(words).then_some(()));
}

/// Waits until the window has a control with this name, and returns it.
pub(crate) fn named(screen: &Screen, name: &str) -> Control {
    until(name, || screen.find(WINDOW, "", name))
}

/// Waits until no button has this name.
fn gone(screen: &Screen, button: &str) {
    until(&format!("`{button}` to disappear"), || {
        let all = screen.controls(WINDOW);
        let left = all.iter().any(|one| one.role == "push button" && one.name == button);
        (!all.is_empty() && !left).then_some(())
    });
}

/// Waits until the setup pages are open, and skips them.
pub(crate) fn skip_setup(screen: &Screen) {
    named(screen, "Skip setup");
    until("the pages", || {
        let all = screen.controls(WINDOW);
        if let Some(skip) = all.iter().find(|one| one.name == "Skip setup") {
            screen.click(skip);
            return None;
        }
        all.iter().any(|one| one.role == "link" && one.name.starts_with("Home")).then_some(())
    });
}

/// Opens a page through its link, and waits until the page is shown.
pub(crate) fn open(screen: &Screen, page: &str) {
    let link = || {
        let mut all = screen.controls(WINDOW).into_iter();
        all.find(|one| one.role == "link" && one.name.starts_with(page))
    };
    until(page, || {
        screen.click(&link()?);
        link().filter(|link| link.is("active"))
    });
}
