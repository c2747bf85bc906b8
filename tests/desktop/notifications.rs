//! Notifications about a question that the user has not noticed.

use crate::harness::{DIALOG, Harness};
use crate::screen::{Screen, until};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ChildStdin;
use std::time::{Duration, Instant};

/// Duration of the user's activity, longer than the time until a visible dialog is announced.
const ACTIVE: Duration = Duration::from_secs(8);

/// Screen with a notification service.
struct Announced {
    screen: Screen,
    /// File with the notifications, one JSON object per line.
    notifications: PathBuf,
    /// Accepts clicks on notifications.
    clicks: ChildStdin,
}

impl Announced {
    fn start() -> Self {
        let mut screen = Screen::start();
        let service = crate::screen::helper_path("notifications.py");
        let notifications = screen.home().join("notifications");
        let arguments =
            ["-u", service.to_str().expect("a UTF-8 path"), notifications.to_str().expect("a UTF-8 path")];
        let (clicks, said) = screen.spawn_with_stdin("/usr/bin/python3", &arguments);
        assert_eq!(said.lines().map_while(Result::ok).next().as_deref(), Some("ready"));
        Self { screen, notifications, clicks }
    }

    /// Waits for the first notification.
    fn first(&self) -> serde_json::Value {
        let read = || std::fs::read_to_string(&self.notifications).ok().filter(|text| text.ends_with('\n'));
        serde_json::from_str(&until("the notification", read)).expect("one notification")
    }
}

#[test]
fn notification_for_unseen_question_opens_it_and_offers_no_allow() {
    let mut announced = Announced::start();
    let mut harness = Harness::start(&announced.screen, &["dialog"]);
    harness.order("ask write q1 120000");
    assert_eq!(
        announced.first(),
        serde_json::json!({
            "app": "IronCurtain",
            "summary": "A question is waiting for you",
            "body": "Claude Code wants to write a file or folder",
            "actions": ["default", "Open", "open", "Open", "deny", "Deny"],
        })
    );
    let screen = &announced.screen;
    let dialog = screen.window(DIALOG);
    assert_ne!(screen.xdotool(&["getwindowfocus"]), dialog);
    // Simulates a click on the notification, as the notification service would report it.
    writeln!(announced.clicks, "1 default").expect("a service");
    screen.wait_for_focus(&dialog);
    screen.key("Escape");
    assert_eq!(harness.event(), "q1 deny");
}

#[test]
fn no_notification_covers_the_dialog_while_the_user_moves_the_pointer_on_it() {
    let announced = Announced::start();
    let screen = &announced.screen;
    let mut harness = Harness::start(screen, &["dialog"]);
    harness.order("ask write q1 120000");
    let deny = screen.control(DIALOG, "push button", "Deny");
    let start = Instant::now();
    while start.elapsed() < ACTIVE {
        screen.move_pointer_onto(&deny);
    }
    assert_ne!(screen.xdotool(&["getwindowfocus"]), screen.window(DIALOG));
    assert!(!announced.notifications.exists(), "{}", announced.first());
}
