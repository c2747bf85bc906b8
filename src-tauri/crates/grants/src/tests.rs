//! Tests creating, using and revoking grants, including across restarts and kills.

mod clocks;

use super::ending::JournalEntry;
use super::*;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Event, LOG_NAME};
use ironcurtain_egress::HostPort;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, BoundValue, GrantKind, Role, ToolGrant, ToolScope, ToolUse};
use ironcurtain_testkit::wait::eventually;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

fn grant(id: &str, lifetime: Lifetime, session: Option<&str>) -> StandingGrant {
    StandingGrant {
        id: id.into(),
        subject: GrantSubject {
            client: "/usr/bin/claude".into(),
            client_name: "claude".into(),
            server: "filesystem".into(),
            session: session.map(Into::into),
        },
        what: Granted::Files(Files {
            path: CanonicalPath::assume_canonical("/home/u/docs").unwrap(),
            kind: GrantKind::Tree,
            access: AccessSet { read: true, write: true, delete: false },
        }),
        lifetime,
        expires_ms: None,
        created_ms: 5,
        last_used_ms: None,
        uses: 0,
        provenance: "question q1".into(),
    }
}

struct TestStore {
    dir: tempfile::TempDir,
    trouble: Arc<Mutex<Option<String>>>,
}

impl TestStore {
    fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), trouble: Arc::default() }
    }

    fn database(&self) -> PathBuf {
        self.dir.path().join("state.db")
    }

    fn troubles(&self) -> Vec<String> {
        self.trouble.lock().unwrap().iter().cloned().collect()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join(LOG_NAME)).unwrap()
    }

    fn ends_on_record(&self, id: &str) -> usize {
        let is_its =
            |line: &&str| line.contains("\"event\":\"revoked\"") && line.contains(&format!("\"{id}\""));
        self.log().lines().filter(is_its).count()
    }

    fn open(&self) -> Grants {
        self.open_by(Clock::system().unwrap())
    }

    fn open_by(&self, clock: Clock) -> Grants {
        let audit = Audit::open(self.dir.path(), |_| ()).unwrap();
        let trouble = Arc::clone(&self.trouble);
        let on_trouble: ProblemCallback = Box::new(move |now| *trouble.lock().unwrap() = now);
        let parts = GrantParts { database: &self.database(), audit, on_trouble, clock };
        Grants::open(parts).unwrap()
    }
}

fn gift(grant: &StandingGrant) -> (StandingGrant, Entry) {
    let mut entry = Entry::new(Event::Grant, "given");
    entry.grant_id = Some(grant.id.clone());
    (grant.clone(), entry)
}

async fn give(grants: &Grants, given: &[StandingGrant]) {
    grants.create(given.iter().map(gift).collect()).await.unwrap();
}

fn ids(grants: &Grants) -> Vec<String> {
    grants.now().grants.iter().map(|grant| grant.id.clone()).collect()
}

/// Locks the database, as another program would, until the returned connection is dropped.
fn hold(fixture: &TestStore) -> rusqlite::Connection {
    let other = rusqlite::Connection::open(fixture.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

async fn stored(grants: &Grants) {
    grants.watch().wait_for(|table| table.ending.is_empty()).await.unwrap();
}

#[tokio::test]
async fn standing_grants_survive_a_restart_and_session_grants_do_not() {
    let fixture = TestStore::new();
    let always = grant("a", Lifetime::Always, None);
    let grants = fixture.open();
    let session = grant("s", Lifetime::Session, Some("one"));
    give(&grants, std::slice::from_ref(&always)).await;
    give(&grants, std::slice::from_ref(&session)).await;
    assert_eq!(grants.now().grants, [always.clone(), session]);
    grants.close().await;
    let grants = fixture.open();
    assert_eq!(grants.now().grants, std::slice::from_ref(&always));
    let taken = grants.revoke("a").unwrap();
    assert_eq!((taken.grant.clone(), taken.version), (always, grants.now().version));
    assert_eq!(taken.stored().await, Stored::Complete);
    assert!(grants.revoke("a").is_none());
    grants.close().await;
    assert_eq!(ids(&fixture.open()), [""; 0]);
    assert_eq!(fixture.ends_on_record("a"), 1);
}

#[tokio::test]
async fn a_host_grant_survives_a_restart_and_can_be_revoked() {
    let fixture = TestStore::new();
    let target = HostPort::parse("docs.example.org:443", None).unwrap();
    let host = StandingGrant { what: Granted::Host(target.clone()), ..grant("h", Lifetime::Always, None) };
    let grants = fixture.open();
    give(&grants, std::slice::from_ref(&host)).await;
    grants.close().await;
    let grants = fixture.open();
    assert_eq!(grants.now().grants, std::slice::from_ref(&host));
    assert_eq!(host.for_proxy(), Some(ironcurtain_egress::GrantedHost { id: "h".into(), target }));
    let gate = host.for_gate().map(|gate| (gate.host, gate.port));
    assert_eq!(gate, Some(("docs.example.org".to_owned(), 443)));
    assert_eq!((host.for_judging(), host.what.to_string()), (None, "docs.example.org:443".to_owned()));
    assert_eq!(grants.revoke("h").unwrap().stored().await, Stored::Complete);
    grants.close().await;
    assert_eq!(ids(&fixture.open()), [""; 0]);
}

#[tokio::test]
async fn closing_a_session_removes_its_grants() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    give(&grants, &[grant("a", Lifetime::Session, Some("one"))]).await;
    give(&grants, &[grant("b", Lifetime::Session, Some("two"))]).await;
    grants.end_session("one");
    assert_eq!(ids(&grants), ["b"]);
}

#[tokio::test]
async fn expired_grants_are_removed_at_once_and_at_the_next_start() {
    let fixture = TestStore::new();
    let short = |id| StandingGrant { expires_ms: Some(now_ms() + 30), ..grant(id, Lifetime::Hour, None) };
    let grants = fixture.open();
    give(&grants, &[short("x")]).await;
    grants.watch().wait_for(|table| table.grants.is_empty()).await.unwrap();
    stored(&grants).await;
    assert_eq!(fixture.ends_on_record("x"), 1);
    assert!(fixture.log().contains("a grant expired"));
    grants.close().await;
    let store = |sql: &str| rusqlite::Connection::open(fixture.database()).unwrap().execute(sql, []).unwrap();
    let grants = fixture.open();
    give(&grants, &[grant("past", Lifetime::Hour, None)]).await;
    grants.close().await;
    assert_eq!(store("UPDATE grants SET expires_ms = 1"), 1);
    let grants = fixture.open();
    assert_eq!(ids(&grants), [""; 0]);
    stored(&grants).await;
    assert_eq!(fixture.ends_on_record("past"), 1);
}

#[tokio::test]
async fn grants_on_disk_can_be_read_with_and_without_the_trusted_process() {
    let fixture = TestStore::new();
    let database = fixture.database();
    assert_eq!(StandingGrant::on_disk(&database).unwrap(), []);
    assert!(!database.exists());
    let always = grant("a", Lifetime::Always, None);
    let later =
        StandingGrant { expires_ms: Some(now_ms() + 3_600_000), ..grant("later", Lifetime::Hour, None) };
    let grants = fixture.open();
    give(&grants, &[always.clone(), later.clone()]).await;
    give(&grants, &[grant("s", Lifetime::Session, Some("one"))]).await;
    assert_eq!(StandingGrant::on_disk(&database).unwrap(), [always.clone(), later.clone()]);
    let held = hold(&fixture);
    assert!(matches!(grants.revoke("later").unwrap().stored().await, Stored::InJournal(_)));
    assert_eq!(
        StandingGrant::on_disk(&database).unwrap(),
        std::slice::from_ref(&always),
        "the database still contains it"
    );
    drop(held);
    grants.close().await;
    assert_eq!(StandingGrant::on_disk(&database).unwrap(), [always]);
    let other = fixture.dir.path().join("other.db");
    std::fs::write(&other, "not a database").unwrap();
    assert!(matches!(StandingGrant::on_disk(&other), Err(StoreError::Database { .. })));
}

#[tokio::test]
async fn uses_are_counted_at_once_and_stored_on_close() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    give(&grants, &[grant("a", Lifetime::Always, None)]).await;
    let before = grants.now().version;
    for _ in 0..1000 {
        grants.count_use(&["a".into(), "unknown".into()]);
    }
    assert_eq!(grants.for_display()[0].uses, 1000);
    assert_eq!(grants.now().version, before, "a use does not wake watchers");
    grants.close().await;
    let listed = fixture.open().for_display();
    assert_eq!(listed[0].uses, 1000);
    assert!(listed[0].last_used_ms.is_some());
}

#[tokio::test]
async fn a_revoked_grant_is_denied_before_it_is_stored_and_after_a_kill() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    give(&grants, &[grant("a", Lifetime::Always, None), grant("kept", Lifetime::Always, None)]).await;
    let held = hold(&fixture);
    assert!(grants.are_active(&["a".into()]));
    let taken = grants.revoke("a").unwrap();
    assert!(!grants.are_active(&["a".into()]) && grants.are_active(&["kept".into()]));
    let Stored::InJournal(problem) = taken.stored().await else { panic!("it was stored") };
    assert!(problem.contains("database is locked"), "{problem}");
    let ending = grants.pending_terminations();
    assert_eq!((ending.len(), ending[0].id.as_str()), (1, "a"));
    let troubles = fixture.troubles();
    assert!(troubles[0].starts_with("1 grant has ended, but that could not be stored:"), "{troubles:?}");
    let GrantState::Terminating(again) = grants.state_of("a").await.unwrap() else {
        panic!("its end is stored")
    };
    assert!(again.trouble.unwrap().contains("locked"));
    // Simulates a kill: the next run finds the termination in the journal and stores it.
    drop((grants, held));
    let grants = fixture.open();
    assert_eq!(ids(&grants), ["kept"]);
    stored(&grants).await;
    assert_eq!(fixture.troubles(), [""; 0]);
    assert!(matches!(
        grants.state_of("a").await.unwrap(),
        GrantState::Terminated(StoredTermination { why: EndReason::Revoked, .. })
    ));
    assert_eq!(grants.state_of("kept").await.unwrap(), GrantState::Unknown);
    grants.close().await;
    let rows: i64 = rusqlite::Connection::open(fixture.database())
        .unwrap()
        .query_row("SELECT count(*) FROM grants", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
}

#[tokio::test]
async fn a_pending_end_is_stored_once_the_database_is_unlocked() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    give(&grants, &[grant("a", Lifetime::Always, None)]).await;
    let held = hold(&fixture);
    assert!(matches!(grants.revoke("a").unwrap().stored().await, Stored::InJournal(_)));
    assert_eq!(fixture.troubles().len(), 1);
    drop(held);
    stored(&grants).await;
    grants.close().await;
    assert_eq!(fixture.troubles(), [""; 0]);
    assert_eq!(fixture.ends_on_record("a"), 1);
}

#[tokio::test]
async fn a_grant_that_cannot_be_stored_is_not_created_and_its_end_is_recorded() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    let held = hold(&fixture);
    let refused = grants.create(vec![gift(&grant("a", Lifetime::Always, None))]).await;
    assert!(matches!(refused, Err(GrantError::Store(StoreError::Database { .. }))), "{refused:?}");
    assert_eq!(ids(&grants), [""; 0]);
    drop(held);
    stored(&grants).await;
    assert_eq!(fixture.ends_on_record("a"), 1);
    assert!(fixture.log().contains("a grant could not be stored, and is not in force"));
    give(&grants, &[grant("b", Lifetime::Always, None)]).await;
    assert_eq!(ids(&grants), ["b"]);
}

#[tokio::test]
async fn a_recorded_grant_lost_in_a_kill_gets_a_recorded_end() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    give(&grants, &[grant("kept", Lifetime::Always, None)]).await;
    grants.close().await;
    // Simulates kills after the audit entry: one before the database is changed, and one right after the change.
    let (mut journal, _) = Journal::open(&fixture.database()).unwrap();
    let being_given = |id| {
        JournalEntry::of(&PendingTermination::new(grant(id, Lifetime::Always, None), EndReason::NotStored, 1))
    };
    journal.append(&[being_given("lost"), being_given("kept")]).unwrap();
    drop(journal);
    let grants = fixture.open();
    stored(&grants).await;
    assert_eq!(ids(&grants), ["kept"]);
    assert_eq!((fixture.ends_on_record("lost"), fixture.ends_on_record("kept")), (1, 0));
    grants.close().await;
    stored(&fixture.open()).await;
    assert_eq!(fixture.ends_on_record("lost"), 1, "it is recorded once");
}

#[tokio::test]
async fn a_tool_grant_survives_a_restart_and_can_be_revoked() {
    let fixture = TestStore::new();
    let owner =
        BoundValue { argument: "owner".to_owned(), role: Role::GithubOwner, value: "provos".to_owned() };
    let scope = ToolScope::Use(ToolUse::new("create_issue".to_owned(), vec![owner]));
    let granted = StandingGrant { what: Granted::Tool(scope.clone()), ..grant("t", Lifetime::Always, None) };
    let grants = fixture.open();
    give(&grants, std::slice::from_ref(&granted)).await;
    grants.close().await;
    let grants = fixture.open();
    assert_eq!(grants.now().grants, std::slice::from_ref(&granted));
    assert_eq!(
        granted.for_tool(),
        Some(ToolGrant { id: "t".to_owned(), created_ms: granted.created_ms, scope })
    );
    assert_eq!((granted.for_judging(), granted.for_proxy(), granted.for_gate()), (None, None, None));
    assert_eq!(granted.what.to_string(), "create_issue in provos");
    assert_eq!(grants.revoke("t").unwrap().stored().await, Stored::Complete);
    grants.close().await;
    assert_eq!(ids(&fixture.open()), [""; 0]);
}

#[tokio::test]
async fn ended_grants_leave_nothing_in_any_table() {
    let fixture = TestStore::new();
    let grants = fixture.open();
    for n in 0..6 {
        let of = |name: &str| format!("{name}{n}");
        let hour = StandingGrant {
            expires_ms: Some(now_ms() + 3_600_000),
            ..grant(&of("hour"), Lifetime::Hour, None)
        };
        let always = grant(&of("always"), Lifetime::Always, None);
        let session = grant(&of("session"), Lifetime::Session, Some("one"));
        for given in [&hour, &always, &session] {
            give(&grants, std::slice::from_ref(given)).await;
        }
        grants.count_use(&[of("always"), of("session")]);
        for id in [of("hour"), of("always")] {
            assert_eq!(grants.revoke(&id).unwrap().stored().await, Stored::Complete);
        }
        grants.end_session("one");
    }
    assert_eq!(grants.shared.published.counts(), (0, 0, 0));
    eventually("use counts are dropped", Duration::from_secs(20), || grants.shared.uses.counted() == 0);
    grants.close().await;
}

#[tokio::test]
async fn a_removed_or_replaced_database_is_reported_and_refuses_grants() {
    for replaced in [false, true] {
        let fixture = TestStore::new();
        let grants = fixture.open();
        give(&grants, &[grant("a", Lifetime::Always, None)]).await;
        let aside = fixture.dir.path().join("aside.db");
        std::fs::rename(fixture.database(), &aside).unwrap();
        if replaced {
            std::fs::copy(&aside, fixture.database()).unwrap();
        }
        let refused = grants.create(vec![gift(&grant("b", Lifetime::Always, None))]).await;
        assert!(matches!(refused, Err(GrantError::Store(StoreError::Lost { .. }))), "{refused:?}");
        let what = if replaced { "was replaced while" } else { "was removed while" };
        let troubles = fixture.troubles();
        assert!(troubles.len() == 1 && troubles[0].contains(what), "{troubles:?}");
        // A revocation takes effect, and stays in the journal until the database is writable again.
        let Stored::InJournal(problem) = grants.revoke("a").unwrap().stored().await else {
            panic!("it was stored")
        };
        assert!(problem.contains(what), "{problem}");
        assert_eq!(ids(&grants), [""; 0]);
        // Changes are stored again once the file is back.
        std::fs::rename(&aside, fixture.database()).unwrap();
        stored(&grants).await;
        give(&grants, &[grant("c", Lifetime::Always, None)]).await;
        assert_eq!(fixture.troubles(), [""; 0]);
        grants.close().await;
    }
}
