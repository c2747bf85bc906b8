//! Tests the complete menu for each state.

use super::*;
use ironcurtain_protocol::{ClientView, PromptLocation};

#[test]
fn shows_no_agent_when_idle() {
    let state = TrayState { status: Some(status(Protection::Protecting, &[])), ..TrayState::default() };
    assert_eq!(
        TrayMenu::new(&state),
        TrayMenu {
            picture: TrayPicture::Open,
            tooltip: "IronCurtain: No agent connected".into(),
            badge: String::new(),
            entries: vec![
                MenuEntry::Line("No agent connected".into()),
                MenuEntry::Separator,
                lock(true),
                MenuEntry::Press { text: "Open IronCurtain".into(), action: MenuAction::Open },
                MenuEntry::Press { text: "Quit".into(), action: MenuAction::Quit },
            ],
        }
    );
}

#[test]
fn lists_questions_and_agents() {
    let paused = SessionView { paused: true, ..session("s2", "R&D", "git") };
    let state = TrayState {
        status: Some(status(Protection::Asking, &[])),
        sessions: vec![
            session("s1", "Claude Code", "filesystem"),
            paused,
            session("s3", "Claude Code", "git"),
        ],
        questions: vec![question("Claude Code wants to write a & b.md")],
        missed: vec![],
        bypassing: BypassingServers::default(),
    };
    let end =
        |server: &str, session: &str| (format!("End {server}"), MenuAction::End { session: session.into() });
    let pause = |agent: &str, on| MenuAction::Pause { agent: agent.into(), on };
    assert_eq!(
        TrayMenu::new(&state),
        TrayMenu {
            picture: TrayPicture::Asking,
            tooltip: "IronCurtain: 1 question is waiting for you".into(),
            badge: "1".into(),
            entries: vec![
                MenuEntry::Line("1 question is waiting for you".into()),
                MenuEntry::Separator,
                MenuEntry::Press {
                    text: "Claude Code wants to write a && b.md".into(),
                    action: MenuAction::Questions
                },
                MenuEntry::Separator,
                MenuEntry::Sub {
                    text: "Claude Code".into(),
                    presses: vec![
                        ("Pause".into(), pause("Claude Code", true)),
                        end("filesystem", "s1"),
                        end("git", "s3"),
                    ],
                },
                MenuEntry::Sub {
                    text: "R&&D (paused)".into(),
                    presses: vec![("Resume".into(), pause("R&D", false)), end("git", "s2")],
                },
                MenuEntry::Separator,
                lock(true),
                MenuEntry::Press { text: "Open IronCurtain".into(), action: MenuAction::Open },
                MenuEntry::Press { text: "Quit (ends 3 sessions)".into(), action: MenuAction::Quit },
            ],
        }
    );
}

#[test]
fn the_first_line_says_how_far_the_agents_are_protected() {
    let menu = |sessions: Vec<SessionView>, bypassing| {
        let status = Some(status(Protection::Protecting, &[]));
        TrayMenu::new(&TrayState { status, sessions, bypassing, ..TrayState::default() })
    };
    let with = |sessions, servers| {
        let shown = menu(sessions, BypassingServers { servers, is_unchecked: false });
        (shown.tooltip, shown.picture)
    };
    let first = |sessions| with(sessions, 0);
    let open = |id, server| SessionView { sandboxed: false, ..session(id, "Cursor", server) };
    let remote = SessionView { remote: true, ..open("s4", "mail") };
    let held = session("s1", "Claude Code", "filesystem");
    let all = [
        (vec![held.clone(), remote], "Protected: 2 agents", TrayPicture::Protecting),
        (
            vec![held.clone(), open("s2", "git")],
            "Partly protected: 1 server is not sandboxed",
            TrayPicture::Part,
        ),
        (
            vec![held, open("s2", "git"), open("s3", "fetch")],
            "Partly protected: 2 servers are not sandboxed",
            TrayPicture::Part,
        ),
    ];
    for (sessions, words, picture) in all {
        assert_eq!(first(sessions), (format!("IronCurtain: {words}"), picture));
    }
    let held = || vec![session("s1", "Claude Code", "filesystem")];
    for (sessions, bypassing, words, picture) in [
        (vec![], 0, "No agent connected", TrayPicture::Open),
        (vec![], 1, "Not protected: 1 server bypasses IronCurtain", TrayPicture::Part),
        (held(), 2, "Partly protected: 2 servers bypass IronCurtain", TrayPicture::Part),
        (
            [held(), vec![open("s2", "git")]].concat(),
            2,
            "Partly protected: 3 servers are not sandboxed",
            TrayPicture::Part,
        ),
    ] {
        assert_eq!(with(sessions, bypassing), (format!("IronCurtain: {words}"), picture));
    }
}

#[test]
fn unreadable_settings_of_agents_are_not_called_protected() {
    let status = Some(status(Protection::Protecting, &[]));
    let sessions = vec![session("s1", "Claude Code", "filesystem")];
    let bypassing = BypassingServers { servers: 0, is_unchecked: true };
    let menu = TrayMenu::new(&TrayState { status, sessions, bypassing, ..TrayState::default() });
    let words = "IronCurtain: Not fully checked: the settings of an agent could not be read";
    assert_eq!((menu.tooltip.as_str(), menu.picture), (words, TrayPicture::Part));
}

#[test]
fn many_questions_are_counted_beyond_the_first() {
    let questions = (0..MAX_COUNT + 2).map(|_| question("Claude wants to read a")).collect();
    let status = Some(status(Protection::Asking, &[]));
    let menu = TrayMenu::new(&TrayState { status, questions, ..TrayState::default() });
    let more = MenuEntry::Press { text: "2 questions more".into(), action: MenuAction::Questions };
    assert!(menu.entries.contains(&more), "{:?}", menu.entries);
}

#[test]
fn problems_take_precedence_over_questions() {
    let state = TrayState {
        status: Some(status(Protection::Degraded, &["the audit log cannot be written"])),
        sessions: vec![],
        questions: vec![question("a"), question("b"), question("c")],
        missed: vec![],
        bypassing: BypassingServers::default(),
    };
    let menu = TrayMenu::new(&state);
    assert_eq!(
        (menu.picture, menu.tooltip.as_str(), menu.badge.as_str()),
        (TrayPicture::Degraded, "IronCurtain: Something is wrong: the audit log cannot be written", "3")
    );
    assert_eq!(TrayMenu::new(&TrayState::default()).picture, TrayPicture::Degraded, "unknown is not fine");
}

#[test]
fn lockdown_can_be_undone_and_expired_questions_reopened() {
    let question = |id: &str, state| QuestionView {
        id: id.into(),
        session: "s".into(),
        client: "R&D".into(),
        server: "git".into(),
        tool: None,
        lines: vec!["read /a".into()],
        rule: String::new(),
        reason: String::new(),
        since_ms: None,
        kept_seconds: Some(60),
        state,
    };
    let locked = StatusView { lockdown: true, ..status(Protection::Lockdown, &[]) };
    let missed = vec![question("q", QuestionState::Missed), question("r", QuestionState::AllowedLate)];
    let menu = TrayMenu::new(&TrayState { status: Some(locked), missed, ..TrayState::default() });
    assert_eq!(menu.picture, TrayPicture::Lockdown);
    assert_eq!(menu.tooltip, "IronCurtain: Locked down: everything that would ask you is denied");
    let again = MenuAction::AskAgain { question: "q".into() };
    let presses = vec![("R&&D: read /a".to_owned(), again)];
    assert!(menu.entries.contains(&MenuEntry::Sub { text: "Unanswered (1)".into(), presses }));
    assert!(menu.entries.contains(&lock(false)), "{:?}", menu.entries);
}

#[test]
fn servers_that_bypass_are_named_in_every_state() {
    let line = MenuEntry::Line("2 servers bypass IronCurtain".into());
    let bypassing = BypassingServers { servers: 2, is_unchecked: false };
    let locked = StatusView { lockdown: true, ..status(Protection::Lockdown, &[]) };
    for status in [locked, status(Protection::Degraded, &["no disk space"])] {
        let menu = |bypassing| {
            TrayMenu::new(&TrayState { status: Some(status.clone()), bypassing, ..TrayState::default() })
        };
        assert_eq!(menu(bypassing).entries[1], line);
        assert!(!menu(BypassingServers::default()).entries.contains(&line));
    }
    let sessions = vec![session("s1", "Claude Code", "filesystem")];
    let status = Some(status(Protection::Protecting, &[]));
    let menu = TrayMenu::new(&TrayState { status, sessions, bypassing, ..TrayState::default() });
    assert!(!menu.entries.contains(&line), "the first line names them: {:?}", menu.entries);
}

fn lock(on: bool) -> MenuEntry {
    let text = if on { "Lock down (deny everything that would ask me)" } else { "End lockdown" };
    MenuEntry::Press { text: text.into(), action: MenuAction::Lockdown { on } }
}

#[test]
fn entry_ids_round_trip() {
    let all = [
        MenuAction::Questions,
        MenuAction::End { session: "s:1".into() },
        MenuAction::AskAgain { question: "end:q".into() },
        MenuAction::Pause { agent: "R&D: end".into(), on: true },
        MenuAction::Pause { agent: "R&D: end".into(), on: false },
        MenuAction::Lockdown { on: true },
        MenuAction::Lockdown { on: false },
        MenuAction::Open,
        MenuAction::Quit,
    ];
    for action in all {
        assert_eq!(MenuAction::from_id(&action.id()), Some(action));
    }
    assert_eq!(MenuAction::from_id("else"), None);
}

fn question(sentence: &str) -> PendingQuestion {
    PendingQuestion {
        id: "q".into(),
        sentence: sentence.into(),
        line: None,
        session: "s1".into(),
        client: "Claude Code".into(),
        expires_ms: 0,
    }
}

fn status(protection: Protection, troubles: &[&str]) -> StatusView {
    StatusView {
        protection,
        pid: 1,
        version: "0.1.0".into(),
        started_ms: 0,
        sessions: 0,
        runs: 0,
        in_runs: 0,
        questions: 0,
        prompt_location: PromptLocation::App,
        lockdown: false,
        troubles: troubles.iter().map(ToString::to_string).collect(),
        managed_trouble: None,
        servers: vec![],
        policy: String::new(),
        secrets_file: None,
        attached_desktop: None,
        other_home: None,
    }
}

fn session(id: &str, client: &str, server: &str) -> SessionView {
    SessionView {
        id: id.into(),
        client: ClientView {
            name: client.into(),
            exe: None,
            chain: vec![],
            cwd: None,
            claimed_name: None,
            label: None,
        },
        server: server.into(),
        connection: None,
        run: None,
        trouble: None,
        restarts: 0,
        sandboxed: true,
        remote: false,
        server_pid: None,
        started_ms: 0,
        sandbox_dir: String::new(),
        allowed: 0,
        denied: 0,
        asked: 0,
        roots: vec![],
        always: vec![],
        hosts: vec![],
        left: 0,
        paused: false,
    }
}
