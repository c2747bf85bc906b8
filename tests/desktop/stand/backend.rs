//! A made-up trusted process, with data for every page of the window.

use crate::questions::client;
use ironcurtain_daemon::consent::LateError;
use ironcurtain_desktop::{Backend, BoxFuture};
use ironcurtain_protocol::{
    ActivityView, AuditCheckView, ClientView, ErrorCode, GrantView, LeftChoice, LeftFileView, LeftState,
    Protection, QuestionsView, Reply, Request, RootView, SessionRecordView, SessionView, StatusView,
};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

pub(crate) struct Made {
    state: Arc<Mutex<State>>,
    changes: watch::Sender<u64>,
    ended: watch::Sender<bool>,
}

struct State {
    sessions: Vec<SessionView>,
    grants: Vec<GrantView>,
    records: Vec<SessionRecordView>,
}

impl Made {
    pub(crate) fn new() -> Self {
        let now = now();
        let state = State { sessions: sessions(now), grants: grants(now), records: records(now) };
        Self {
            state: Arc::new(Mutex::new(state)),
            changes: watch::Sender::new(0),
            ended: watch::Sender::new(false),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic while it was held")
    }

    fn reply(&self, request: Request) -> Reply {
        match request {
            Request::Status => Reply::Status(StatusView {
                protection: Protection::Protecting,
                pid: std::process::id(),
                version: "0.1.0".into(),
                started_ms: now() - 3_600_000,
                sessions: self.state().sessions.len(),
                questions: 0,
                lockdown: false,
                troubles: vec![],
                servers: vec!["filesystem".into(), "git".into()],
                policy: "0".repeat(64),
            }),
            Request::Sessions => Reply::Sessions(self.state().sessions.clone()),
            Request::LeftBehind => {
                let records = self.state().records.clone();
                Reply::LeftBehind(records.into_iter().filter(|one| one.ended_ms.is_some()).collect())
            }
            Request::Session { session } => {
                let found = self.state().records.iter().find(|one| one.id == session).cloned();
                found.map_or_else(|| not_found(&session), Reply::Session)
            }
            Request::DecideLeft { path, choice: LeftChoice::Quarantine, .. }
                if path.ends_with("Makefile") =>
            {
                println!("refused-to-move {path}");
                Reply::Failed { code: ErrorCode::Storage, message: "the disk is full".into() }
            }
            Request::DecideLeft { session, path, choice } => {
                println!("{choice:?} {path}");
                let mut state = self.state();
                let record = state.records.iter_mut().find(|one| one.id == session);
                let record = record.expect("a session that is listed");
                let file = record.files.iter_mut().find(|file| file.path == path).expect("a listed file");
                match choice {
                    LeftChoice::Keep => file.state = LeftState::Kept,
                    LeftChoice::Quarantine => {
                        file.state = LeftState::Quarantined;
                        file.moved_to =
                            Some("/home/ada/.local/state/ironcurtain/sandboxes/quarantine/1".into());
                    }
                }
                self.changes.send_modify(|n| *n += 1);
                Reply::Session(record.clone())
            }
            Request::Questions => Reply::Questions(QuestionsView::default()),
            Request::Forget { .. }
            | Request::Pause { .. }
            | Request::Resume { .. }
            | Request::Lockdown { .. } => Reply::Done,
            Request::LastLooks => Reply::LastLooks(vec![]),
            Request::Grants => Reply::Grants(self.state().grants.clone()),
            Request::Revoke { grant } if grant == "g4" => {
                println!("refused-to-take-back {grant}");
                let message = "the server could not be restarted, so it may still see the folder".into();
                Reply::Failed { code: ErrorCode::Storage, message }
            }
            Request::Revoke { grant } => {
                println!("took-back {grant}");
                self.state().grants.retain(|one| one.id != grant);
                self.changes.send_modify(|n| *n += 1);
                Reply::Revoked { grant, restarted: vec![], unstored: None }
            }
            Request::EndSession { session } => {
                println!("ended {session}");
                self.state().sessions.retain(|one| one.id != session);
                self.changes.send_modify(|n| *n += 1);
                Reply::Done
            }
            Request::Activity { .. } => Reply::Activity(activity(now())),
            Request::VerifyAudit => Reply::Audit(AuditCheckView {
                intact: true,
                entries: 1_482,
                problem: None,
                known_by: String::new(),
            }),
            Request::Metrics => Reply::Metrics(String::new()),
            Request::Shutdown => {
                println!("shutdown");
                self.ended.send_replace(true);
                Reply::Done
            }
        }
    }
}

impl Backend for Made {
    fn request(&self, request: Request) -> BoxFuture<Reply> {
        let reply = self.reply(request);
        Box::pin(async move { reply })
    }

    fn ask_again(&self, question: String) -> BoxFuture<Result<bool, LateError>> {
        println!("asked-again {question}");
        Box::pin(async { Ok(true) })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    fn ended(&self) -> BoxFuture<()> {
        let mut ended = self.ended.subscribe();
        Box::pin(async move { drop(ended.wait_for(|ended| *ended).await) })
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    u64::try_from(since.as_millis()).expect("a clock before the year 584,000,000")
}

fn sessions(now: u64) -> Vec<SessionView> {
    let root = |path: &str, source: &str, grant: Option<&str>| RootView {
        path: path.into(),
        source: source.into(),
        grant: grant.map(Into::into),
    };
    let sandbox = "/home/ada/.local/state/ironcurtain/sessions/s1/sandbox";
    vec![
        SessionView {
            id: "s1".into(),
            client: client(),
            server: "filesystem".into(),
            connection: None,
            trouble: None,
            sandboxed: true,
            remote: false,
            server_pid: Some(4720),
            started_ms: now - 26 * 60_000,
            sandbox_dir: sandbox.into(),
            allowed: 148,
            denied: 3,
            asked: 5,
            roots: vec![
                root(sandbox, "session sandbox", None),
                root("/home/ada/src/app", "rule `work`", None),
                root("/home/ada/Documents/tax", "grant `g1`", Some("g1")),
            ],
            left: 2,
            paused: false,
        },
        SessionView {
            id: "s2".into(),
            client: ClientView {
                name: "Cursor".into(),
                exe: Some("/opt/cursor/cursor".into()),
                says_it_is: None,
                ..client()
            },
            server: "git".into(),
            connection: None,
            trouble: None,
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
                "session sandbox",
                None,
            )],
            left: 0,
            paused: false,
        },
    ]
}

fn not_found(session: &str) -> Reply {
    let message = format!("there is no record of a session `{session}`");
    Reply::Failed { code: ErrorCode::NotFound, message }
}

fn records(now: u64) -> Vec<SessionRecordView> {
    let file = |path: &str, when: &str, state: LeftState, diff: Option<&str>| LeftFileView {
        path: path.into(),
        shown: path.into(),
        when: when.into(),
        is_new: diff.is_none_or(|diff| !diff.contains("\n-")),
        diff: diff.map(Into::into),
        state,
        moved_to: (state == LeftState::Quarantined)
            .then(|| "/home/ada/.local/state/ironcurtain/sandboxes/quarantine/1-0/pre-commit".into()),
        keys: if state == LeftState::PutBack {
            vec!["core.fsmonitor".into(), "core.pager".into()]
        } else {
            vec![]
        },
        time_ms: now - 50_000,
    };
    let record = |id: &str, ended_ms: Option<u64>, files: Vec<LeftFileView>| SessionRecordView {
        id: id.into(),
        client: "Claude Code".into(),
        server: "filesystem".into(),
        sandboxed: true,
        remote: false,
        started_ms: now - 26 * 60_000,
        ended_ms,
        looking: false,
        files,
        unfinished: vec![],
    };
    let live = vec![
        file(
            "/home/ada/src/app/.vscode/tasks.json",
            "when you open this folder in VS Code",
            LeftState::Left,
            Some(
                "+{ \"version\": \"2.0.0\", \"tasks\": [\n+  { \"label\": \"<b>build</b>\", \"command\": \"make\" }\n+] }",
            ),
        ),
        file(
            "/home/ada/src/app/Makefile",
            "when you run make here",
            LeftState::Left,
            Some(" all:\n-\tcargo build\n+\tcargo build --release"),
        ),
        file(
            "/home/ada/src/app/.git/hooks/pre-commit",
            "when you commit in this repository",
            LeftState::Quarantined,
            None,
        ),
        file("/home/ada/src/app/.git/config", "when git runs here", LeftState::PutBack, None),
    ];
    let ended = vec![file(
        "/home/ada/src/site/package.json",
        "when you run npm here",
        LeftState::Left,
        Some("+{ \"scripts\": { \"prepare\": \"husky\" } }"),
    )];
    vec![record("s1", None, live), record("s0", Some(now - 3 * 3_600_000), ended)]
}

fn grants(now: u64) -> Vec<GrantView> {
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

fn activity(now: u64) -> Vec<ActivityView> {
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
