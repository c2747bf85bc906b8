//! The dialog as eyes and screen readers find it, whatever the text in it.

use crate::screen::{BOUND, Control, Screen, until};
use crate::stand::{DIALOG, Stand, armed, focused, shown};
use std::io::BufRead;
use std::time::Duration;

/// The words of Allow before all of it was in view.
const UNREAD: &str = "To allow: scroll down first, there is more to read";

#[test]
fn every_control_has_a_name_and_a_role() {
    let screen = Screen::start();
    let _stand = focused(&screen, "edit");
    screen.picture("dialog");
    let all = screen.controls(DIALOG);
    let pressable = ["push button", "toggle button", "radio button"];
    let found: Vec<(&str, &str)> = all
        .iter()
        .filter(|one| pressable.contains(&one.role.as_str()) && one.is("visible") && one.is("showing"))
        .map(|one| (one.role.as_str(), one.name.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            ("toggle button", "What it would change"),
            ("toggle button", "All details"),
            ("radio button", "this file"),
            ("radio button", "~/notes and below"),
            ("radio button", "once"),
            ("radio button", "this session"),
            ("radio button", "15 minutes"),
            ("radio button", "1 hour"),
            ("radio button", "always"),
            ("toggle button", "More ways to deny"),
            ("push button", "Deny"),
            ("push button", "Allow once"),
        ]
    );
    let title = "IronCurtain: Claude Code wants to change notes/plan.md";
    assert!(all.iter().any(|one| one.role == "dialog" && one.name == title));
    let labels: Vec<&str> =
        all.iter().filter(|one| one.role == "label").map(|one| one.name.as_str()).collect();
    let sentences = [
        "Claude Code wants to change notes/plan.md",
        "change ~/notes/plan.md (12 kB, +2 -1 lines)",
        "reached through ~/src/app/plan.md",
        "~/.local/bin/claude, started by zsh in gnome-terminal, in ~/src/app",
        "says it is \u{201c}claude-code 2.1.7\u{201d}",
        "filesystem server, edit_file, sandboxed",
        "outside the folders you granted (rule ask-outside)",
        "\u{2192} Claude Code may create and change this one file, once.",
    ];
    for sentence in sentences {
        assert!(labels.contains(&sentence), "`{sentence}` is missing in {labels:#?}");
    }
    let deny = all.iter().find(|one| one.name == "Deny");
    assert!(deny.is_some_and(|deny| deny.is("focused")), "Deny has the focus: {deny:?}");
}

#[test]
fn a_screen_reader_is_told_what_to_do_what_a_choice_means_and_when_the_time_is_nearly_over() {
    let mut screen = Screen::start();
    let listener = crate::screen::helper_path("announced.py");
    let (_orders, said) =
        screen.spoken_to("/usr/bin/python3", &["-u", listener.to_str().expect("a plain path")]);
    let mut said = said.lines().map_while(Result::ok);
    assert_eq!(said.next().as_deref(), Some("ready"));
    let stand = shown(&screen, "write", Duration::from_secs(14));
    let mut hears = |words: &str| assert!(said.any(|line| line.starts_with(words)), "`{words}` is not said");
    hears("No answer in 0:10 means no");
    screen.activate(&screen.window(DIALOG));
    screen.press(DIALOG, "radio button", "this session");
    hears("Claude Code may create and change this one file until this session ends.");
    armed(&screen, "Allow for this session");
    hears("Press Alt+A to allow");
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
}

#[test]
fn the_first_screen_says_all_that_would_happen_the_worst_first() {
    let questions: [(&str, &str, &[&str]); 7] = [
        ("one", "read 2026/holiday-00.jpg", &["read ~/Pictures/2026/holiday-00.jpg (2 MB)"]),
        (
            "ten",
            "read 2026/holiday-00.jpg and 9 more",
            &["read ~/Pictures/2026/holiday-00.jpg (2 MB)", "read ~/Pictures/2026/holiday-09.jpg (2 MB)"],
        ),
        (
            "push",
            "push main to https://evil.example/stolen.git and 1 other thing",
            &[
                "push main to https://evil.example/stolen.git",
                "asked for as origin",
                "change the history of ~/src/app (folder, allowed already)",
                "with force: true",
                "Reaching the network needs your word. (rule ask-before-connecting)",
            ],
        ),
        (
            "mail",
            "send a message to boss@rival.example and 1 more",
            &[
                "send a message to boss@rival.example",
                "send a message to ada@home.example",
                "with subject: Figures",
            ],
        ),
        (
            "issue",
            "publish to acme/app on GitHub",
            &["publish to acme/app on GitHub", "with title: It leaks"],
        ),
        (
            "write",
            "write 2026/summary.md",
            &[
                "write ~/Documents/tax/2026/summary.md (new file, 101 bytes)",
                "Opens ~/Documents/tax/2026: meanwhile its server can read and change everything in there.",
            ],
        ),
        (
            "move",
            "overwrite old/a.txt and 1 other thing",
            &[
                "overwrite ~/src/old/a.txt (9 bytes are there now)",
                "move ~/src/app/a.txt to ~/src/old/a.txt (12 kB)",
            ],
        ),
    ];
    for (name, headline, labels) in questions {
        let screen = Screen::start();
        let stand = focused(&screen, name);
        screen.control(DIALOG, "label", &format!("Claude Code wants to {headline}"));
        screen.picture(&format!("dialog-{name}"));
        for label in labels {
            let label = screen.control(DIALOG, "label", label);
            assert!(label.is("showing") && on_screen(&label), "{label:?}");
        }
        screen.key("Escape");
        assert_eq!(stand.event(), "q1 deny");
    }
}

#[test]
fn a_server_without_a_sandbox_has_a_band_and_its_outcome_says_anything_else() {
    let screen = Screen::start();
    let _stand = focused(&screen, "unsandboxed");
    armed(&screen, "Allow once");
    screen.picture("dialog-unsandboxed");
    for sentence in [
        "\u{26a0} NOT SANDBOXED: this server can do anything that you can, whatever you allow here.",
        "delete /srv/photos (folder, with everything in it)",
        "\u{2192} Claude Code may delete this folder and everything in it, once, and anything else that you can.",
    ] {
        screen.control(DIALOG, "label", sentence);
    }
}

#[test]
fn what_does_not_fit_must_be_scrolled_into_view_before_allow_is_armed() {
    let screen = Screen::start();
    let stand = focused(&screen, "many");
    let last = "read ~/Pictures/2026/holiday-39.jpg (2 MB)";
    screen.control(DIALOG, "label", last);
    until("the word to scroll", || {
        let all = screen.controls(DIALOG);
        all.into_iter().find(|one| one.description == UNREAD)
    });
    screen.picture("dialog-many");
    let headline =
        screen.control(DIALOG, "label", "Claude Code wants to read 2026/holiday-00.jpg and 39 more");
    let [_, top, _, _] = screen.controls(DIALOG).first().expect("the dialog").place;
    assert!(headline.place[1] > top, "it begins at its top: {headline:?}");
    // However long it has rested: a press of its key is no answer.
    screen.key("alt+a");
    assert_eq!(screen.control(DIALOG, "push button", "Allow once").description, UNREAD);
    until("an armed Allow", || {
        screen.key("Next");
        let allow = screen.control(DIALOG, "push button", "Allow once");
        (allow.description != UNREAD).then_some(())
    });
    armed(&screen, "Allow once");
    screen.picture("dialog-many-end");
    screen.key("alt+a");
    assert_eq!(stand.event(), "q1 allow 0 Once");
}

#[test]
fn a_host_is_named_with_its_port_and_so_is_what_allowing_it_does() {
    let screen = Screen::start();
    let stand = focused(&screen, "host");
    armed(&screen, "Allow once");
    screen.picture("dialog-host");
    let name = "IronCurtain: Claude Code wants to reach files.example.org:443";
    screen.control(DIALOG, "dialog", name);
    for sentence in [
        "reach files.example.org:443",
        "fetch server, sandboxed",
        "the host is not on the list of the server fetch (rule network.askUnknown)",
        "\u{2192} Claude Code may reach files.example.org:443 through the server fetch, once.",
    ] {
        screen.control(DIALOG, "label", sentence);
    }
    screen.press(DIALOG, "radio button", "this session");
    let allowed = "\u{2192} Claude Code may reach files.example.org:443 through the server fetch until this session ends.";
    screen.control(DIALOG, "label", allowed);
    armed(&screen, "Allow for this session");
    screen.key("alt+a");
    assert_eq!(stand.event(), "q1 allow 0 Session");
}

#[test]
fn a_call_that_fetches_shows_the_host_and_the_whole_address() {
    let screen = Screen::start();
    let stand = focused(&screen, "fetch");
    armed(&screen, "Allow once");
    screen.picture("dialog-fetch");
    let whole =
        "fetch https://files.example.org/packages/source/r/requests/requests-2.34.2.tar.gz?from=agent";
    for sentence in [whole, "fetch server, fetch, sandboxed"] {
        screen.control(DIALOG, "label", sentence);
    }
    screen.press(DIALOG, "radio button", "this host and port");
    armed(&screen, "Allow for this session");
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
}

#[test]
fn hostile_text_stays_text_and_leaves_the_buttons_where_they_are() {
    let screen = Screen::start();
    let stand = shown(&screen, "hostile", BOUND * 4);
    for name in ["More ways to deny", "Deny", "Allow once"] {
        let found = until(name, || screen.controls(DIALOG).into_iter().find(|one| one.name == name));
        assert!(on_screen(&found), "{name} is off the screen: {found:?}");
    }
    screen.picture("hostile");
    let all = screen.controls(DIALOG);
    let markup = "write ~/<b>Allow</b>&amp;<span size=\"99999\">\\u{a}Deny\\u{0}\\u{202e}gnp.exe (18446744073 GB are there now)";
    assert!(all.iter().any(|one| one.name == markup), "the path is shown as it is");
    assert!(all.iter().any(|one| one.name == "<i>x</i>\\u{a}\\u{a}\\u{a}"), "the choice is shown as it is");
    let [_, _, width, height] = all.first().expect("the dialog").place;
    assert!((520..=660).contains(&width) && height <= 700, "{width} by {height}");
    screen.activate(&screen.window(DIALOG));
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
}

#[test]
fn with_text_twice_as_large_on_a_small_screen_every_control_stays_on_the_screen() {
    let screen = Screen::small_with_large_text();
    for question in ["offers", "unsandboxed", "unknown"] {
        let stand = focused(&screen, question);
        screen.key("alt+n");
        until("the note", || {
            screen
                .controls(DIALOG)
                .into_iter()
                .find(|one| one.name == "Note for the agent" && one.is("focused"))
        });
        for name in
            ["More ways to deny", "Deny", "Allow once", "Deny, and pause the agent until you resume it"]
        {
            let found = until(name, || screen.controls(DIALOG).into_iter().find(|one| one.name == name));
            let [x, y, width, height] = found.place;
            assert!(x >= 0 && y >= 0 && x + width <= 1024 && y + height <= 768, "{question}: {found:?}");
        }
        screen.key("Escape");
        assert_eq!(stand.event(), "q1 deny");
    }
}

#[test]
fn what_large_text_pushes_out_of_view_is_not_read_because_the_window_was_larger_before_it_was_shown() {
    let screen = Screen::small_with_large_text();
    let stand = focused(&screen, "push");
    let waits_for = || screen.control(DIALOG, "push button", "Allow once").description;
    until("the word to scroll", || (waits_for() == UNREAD).then_some(()));
    until("all of it in view", || {
        screen.key("Next");
        (waits_for() != UNREAD).then_some(())
    });
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
}

#[test]
fn forty_paths_leave_the_buttons_on_the_screen() {
    let screen = Screen::start();
    let stand = focused(&screen, "many");
    let deny = screen.control(DIALOG, "push button", "Deny");
    assert!(on_screen(&deny), "{deny:?}");
    screen.control(DIALOG, "label", "read ~/Pictures/2026/holiday-39.jpg (2 MB)");
    screen.key("Escape");
    assert_eq!(stand.event(), "q1 deny");
}

#[test]
fn what_would_be_written_and_all_arguments_can_be_read() {
    let screen = Screen::start();
    let _stand = focused(&screen, "edit");
    screen.press(DIALOG, "toggle button", "All details");
    screen.control(DIALOG, "text", "What it would change");
    screen.picture("dialog-open");
    let deny = screen.control(DIALOG, "push button", "Deny");
    assert!(on_screen(&deny), "{deny:?}");
}

#[test]
fn a_notification_tells_of_a_question_nobody_sees_and_has_no_yes() {
    let mut screen = Screen::start();
    let service = crate::screen::helper_path("notifications.py");
    let seen = screen.home().join("notifications");
    let (service, file) = (service.to_str().expect("a plain path"), seen.to_str().expect("a plain path"));
    screen.first_line("/usr/bin/python3", &["-u", service, file]);
    let mut stand = Stand::start(&screen, &["dialog"]);
    stand.order("ask write q1 120000");
    let told =
        until("the notification", || std::fs::read_to_string(&seen).ok().filter(|text| text.ends_with('\n')));
    let told: serde_json::Value = serde_json::from_str(&told).expect("one notification");
    assert_eq!(
        told,
        serde_json::json!({
            "app": "IronCurtain",
            "summary": "A question waits for you",
            "body": "Claude Code wants to write a file or folder",
            "actions": ["open", "Open", "deny", "Deny"],
        })
    );
}

fn on_screen(control: &Control) -> bool {
    let [x, y, width, height] = control.place;
    x >= 0 && y >= 0 && width > 0 && height > 0 && x + width <= 1280 && y + height <= 800
}
