//! Fake sessions, grants, questions and calls.

use crate::questions::client;
use ironcurtain_protocol::{
    ActivityView, AutostartFileState, AutostartFileView, ClientView, DenialView, GrantView, QuestionState,
    QuestionView, QuestionsView, RootView, SessionRecordView, SessionView,
};

pub(super) fn sessions(now: u64) -> Vec<SessionView> {
    let root = |path: &str, source: &str, grant: Option<&str>, access: &[&str]| RootView {
        path: path.into(),
        source: source.into(),
        grant: grant.map(Into::into),
        access: access.iter().map(ToString::to_string).collect(),
    };
    let all = ["read", "write", "delete"];
    let sandbox = "/home/ada/.local/state/ironcurtain/sessions/s1/sandbox";
    vec![
        SessionView {
            id: "s1".into(),
            client: client(),
            server: "filesystem".into(),
            connection: None,
            run: None,
            trouble: None,
            restarts: 0,
            sandboxed: true,
            remote: false,
            server_pid: Some(4720),
            started_ms: now - 26 * 60_000,
            sandbox_dir: sandbox.into(),
            allowed: 148,
            denied: 3,
            asked: 5,
            roots: vec![
                root(sandbox, "the session's own folder", None, &all),
                root("/home/ada/src/app", "rule `work`", None, &["read"]),
                root("/home/ada/Documents/tax", "grant `g1`", Some("g1"), &["read", "write"]),
            ],
            always: vec![],
            hosts: vec!["docs.example.org".into()],
            left: 2,
            paused: false,
        },
        SessionView {
            id: "s2".into(),
            client: ClientView {
                name: "Cursor".into(),
                exe: Some("/opt/cursor/cursor".into()),
                claimed_name: None,
                ..client()
            },
            server: "git".into(),
            connection: None,
            run: None,
            trouble: None,
            restarts: 0,
            sandboxed: false,
            remote: false,
            server_pid: Some(4801),
            started_ms: now - 4 * 60_000,
            sandbox_dir: "/home/ada/.local/state/ironcurtain/sessions/s2/sandbox".into(),
            allowed: 12,
            denied: 0,
            asked: 0,
            roots: vec![root(
                "/home/ada/.local/state/ironcurtain/sessions/s2/sandbox",
                "the session's own folder",
                None,
                &all,
            )],
            always: vec![],
            hosts: vec![],
            left: 0,
            paused: false,
        },
    ]
}

pub(super) fn questions(now: u64) -> QuestionsView {
    let missed = QuestionView {
        id: "q8".into(),
        session: "s1".into(),
        client: "Claude Code".into(),
        server: "filesystem".into(),
        tool: Some("write_file".into()),
        lines: vec!["write /home/ada/Documents/tax/2026/summary.md (+3 -1 lines)".into()],
        rule: "ask-before-writing".into(),
        reason: "It is outside the folders you granted for writing.".into(),
        since_ms: None,
        kept_seconds: Some(700),
        state: QuestionState::Missed,
    };
    let denied = DenialView {
        id: "q5".into(),
        session: "s1".into(),
        client: "Claude Code".into(),
        server: "filesystem".into(),
        what: "delete_file in /home/ada/Pictures".into(),
        note: Some("not these".into()),
        time_ms: now - 300_000,
    };
    QuestionsView { waiting: vec![], missed: vec![missed], denied: vec![denied] }
}

pub(super) fn records(now: u64) -> Vec<SessionRecordView> {
    let file = |path: &str, when: &str, state: AutostartFileState, diff: Option<&str>| AutostartFileView {
        path: path.into(),
        shown: path.into(),
        when: when.into(),
        is_new: diff.is_none_or(|diff| !diff.contains("\n-")),
        diff: diff.map(Into::into),
        state,
        moved_to: (state == AutostartFileState::Quarantined)
            .then(|| "/home/ada/.local/state/ironcurtain/sandboxes/quarantine/1-0/pre-commit".into()),
        occupied: false,
        keys: if state == AutostartFileState::PutBack {
            vec!["core.fsmonitor".into(), "core.pager".into()]
        } else {
            vec![]
        },
        time_ms: now - 50_000,
    };
    let record = |id: &str, ended_ms: Option<u64>, files: Vec<AutostartFileView>| SessionRecordView {
        id: id.into(),
        client: "Claude Code".into(),
        server: "filesystem".into(),
        sandboxed: true,
        remote: false,
        started_ms: now - 26 * 60_000,
        ended_ms,
        is_scanning: false,
        files,
        unfinished: vec![],
    };
    let live = vec![
        file(
            "/home/ada/src/app/.vscode/tasks.json",
            "when you open this folder in VS Code",
            AutostartFileState::Undecided,
            Some(
                "+{ \"version\": \"2.0.0\", \"tasks\": [\n+  { \"label\": \"<b>build</b>\", \"command\": \"make\" }\n+] }",
            ),
        ),
        file(
            "/home/ada/src/app/Makefile",
            "when you run make here",
            AutostartFileState::Undecided,
            Some(" all:\n-\tcargo build\n+\tcargo build --release"),
        ),
        file(
            "/home/ada/src/app/.git/hooks/pre-commit",
            "when you commit in this repository",
            AutostartFileState::Quarantined,
            None,
        ),
        file("/home/ada/src/app/.git/config", "when git runs here", AutostartFileState::PutBack, None),
    ];
    let ended = vec![file(
        "/home/ada/src/site/package.json",
        "when you run npm here",
        AutostartFileState::Undecided,
        Some("+{ \"scripts\": { \"prepare\": \"husky\" } }"),
    )];
    vec![record("s1", None, live), record("s0", Some(now - 3 * 3_600_000), ended)]
}

pub(super) fn grants(now: u64) -> Vec<GrantView> {
    let grant = |id: &str, path: &str, access: &[&str], lifetime: &str| GrantView {
        id: id.into(),
        client: "Claude Code".into(),
        server: "filesystem".into(),
        session: None,
        path: path.into(),
        kind: "folder".into(),
        access: access.iter().map(ToString::to_string).collect(),
        lifetime: lifetime.into(),
        expires_ms: None,
        created_ms: now - 20 * 60_000,
        last_used_ms: Some(now - 90_000),
        uses: 31,
        provenance: "you answered question 12".into(),
        suspended: None,
        server_changed: false,
        ending: None,
        unused_days: None,
    };
    vec![
        GrantView {
            session: Some("s1".into()),
            ..grant("g1", "/home/ada/Documents/tax", &["read", "write"], "this session")
        },
        GrantView {
            expires_ms: Some(now + 14 * 60_000),
            ..grant("g2", "/home/ada/Pictures/2026", &["read"], "15 minutes")
        },
        GrantView {
            kind: "file".into(),
            last_used_ms: None,
            uses: 0,
            suspended: Some("it is now a link to another place".into()),
            ..grant("g3", "/home/ada/notes/plan.md", &["read", "write"], "always")
        },
        grant("g4", "/srv/projects/shared", &["read", "write", "delete"], "always"),
    ]
}

pub(super) fn activity(now: u64) -> Vec<ActivityView> {
    let entry = |seq: u64, ago: u64, decision: &str, tool: &str, summary: &str, path: &str| ActivityView {
        seq,
        time_ms: now - ago * 1000,
        event: "decision".into(),
        session: Some("s1".into()),
        client: Some("Claude Code".into()),
        server: Some("filesystem".into()),
        tool: Some(tool.into()),
        decision: Some(decision.into()),
        decided_by: None,
        summary: summary.into(),
        paths: vec![path.into()],
    };
    vec![
        entry(
            1475,
            9_000,
            "deny",
            "write_file",
            "Denied: <img src=x onerror=alert(1)> is not a path",
            "/home/ada/<b>x</b>",
        ),
        entry(1476, 4_000, "allow", "list_directory", "Allowed: list a folder", "/home/ada/src/app"),
        entry(1477, 3_100, "deny", "read_file", "Denied: protected place", "/home/ada/.ssh/id_ed25519"),
        entry(
            1478,
            1_300,
            "escalate",
            "write_file",
            "Asked you: write a file",
            "/home/ada/Documents/tax/a.md",
        ),
        entry(
            1479,
            1_290,
            "allow",
            "write_file",
            "You allowed it for this session",
            "/home/ada/Documents/tax/a.md",
        ),
        entry(
            1480,
            95,
            "allow",
            "read_file",
            "Allowed by a grant",
            "/home/ada/Documents/tax/2026/summary.md",
        ),
    ]
}
