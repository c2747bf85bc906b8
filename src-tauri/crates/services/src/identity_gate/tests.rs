//! Tests that identity bindings match or suspend servers, and that the user's decisions take effect.

use super::*;
use ironcurtain_audit::Audit;
use ironcurtain_audit::clock::Clock;
use ironcurtain_config::Servers;
use ironcurtain_grants::{Binding, GrantParts, Grants};
use ironcurtain_server_identity::{FileIdentity, ProgramFile, ProgramIdentity, bind_existing};
use std::path::{Path, PathBuf};

/// Database in the previous format (version 5), with a grant for the server `s`.
const VERSION_5: &str = "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, server TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('file', 'tree', 'host', 'tool')),
        path TEXT, can_read INTEGER NOT NULL, can_write INTEGER NOT NULL, can_delete INTEGER NOT NULL,
        host TEXT, port INTEGER, tool TEXT,
        expires_ms INTEGER, lifetime TEXT NOT NULL, created_ms INTEGER NOT NULL,
        last_used_ms INTEGER, uses INTEGER NOT NULL, provenance TEXT NOT NULL,
        boot TEXT, ends_boot_ms INTEGER, left_ms INTEGER,
        CHECK ((kind = 'host') = (host IS NOT NULL AND port IS NOT NULL AND path IS NULL)),
        CHECK ((kind = 'tool') = (tool IS NOT NULL AND path IS NULL))
    ) STRICT;
    CREATE TABLE ended (id TEXT PRIMARY KEY, why TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE servers (identity TEXT PRIMARY KEY, since_ms INTEGER NOT NULL) STRICT;
    PRAGMA user_version = 5;
    INSERT INTO grants VALUES
        ('a', 'k', 'n', 's', 'tree', '/docs', 1, 0, 0, NULL, NULL, NULL, NULL, 'always', 5, 7, 2, 'q', NULL, NULL, NULL);";

fn identity(digest: &str) -> ServerIdentity {
    let file = ProgramFile { path: "/u/notes".into(), by: FileIdentity::Digest(digest.into()) };
    ServerIdentity { name: "notes".into(), args: String::new(), program: ProgramIdentity::Files(vec![file]) }
}

fn something() -> StoredServerState {
    StoredServerState { annotated: 2, secrets: vec!["notes-key".into()], ..StoredServerState::default() }
}

/// Creates a home directory with a database in the current or in the previous format.
fn home(version_before: bool) -> (tempfile::TempDir, Home) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::under(&dir.path().join("ic"), dir.path());
    home.prepare().unwrap();
    if version_before {
        let database = rusqlite::Connection::open(home.database()).unwrap();
        database.execute_batch(VERSION_5).unwrap();
    }
    make_database(home.database());
    (dir, home)
}

/// Creates the tables, as the daemon does at startup.
fn make_database(database: PathBuf) {
    let make = move || {
        let audit = Audit::open(database.parent().unwrap(), |_| ()).unwrap();
        let clock = Clock::system().unwrap();
        let parts = GrantParts { database: &database, audit, on_trouble: Box::new(drop), clock };
        Grants::open(parts).map(drop).unwrap();
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    std::thread::spawn(move || runtime.block_on(async { make() })).join().unwrap();
}

fn outcome(bindings: &Bindings, digest: &str, kept: &StoredServerState) -> Result<&'static str, String> {
    match admission(bindings, &identity(digest), kept) {
        Ok(Admission::Known) => Ok("known"),
        Ok(Admission::Rebound(_)) => Ok("other"),
        Ok(Admission::Decided(IdentityDecision::Keep)) => Ok("kept"),
        Ok(Admission::Decided(IdentityDecision::StartFresh)) => Ok("afresh"),
        Err(problem) => Err(problem.to_string()),
    }
}

const REFUSED: &str = "the server `notes` is not the program that you allowed before: `/u/notes` was changed. Suspended: 2 annotated \
    tools, its secrets `notes-key`. Keep them for the new program or start afresh, with `ironcurtain servers identity notes` or in \
    the window under Servers";

#[test]
fn another_program_under_a_name_is_refused_until_the_user_decides() {
    let (_dir, home) = home(false);
    let bindings = Bindings::of(&home.database());
    let given = |digest: &str| outcome(&bindings, digest, &something());
    assert_eq!(given("a"), Ok("known"));
    assert_eq!(given("a"), Ok("known"));
    assert_eq!(given("b"), Err(REFUSED.into()));
    assert_eq!(given("b"), Err(REFUSED.into()), "asking again decides nothing");
    // The old program was restored, so the name is no longer suspended.
    assert_eq!(given("a"), Ok("known"));
    assert_eq!(bindings.get("notes").unwrap().unwrap().found, None);
    assert!(given("b").is_err());
    let found = identity("b").to_json();
    assert!(
        !bindings.decide("notes", &identity("c").to_json(), IdentityDecision::Keep).unwrap(),
        "not what was shown"
    );
    assert!(bindings.decide("notes", &found, IdentityDecision::Keep).unwrap());
    assert!(!bindings.decide("notes", &found, IdentityDecision::StartFresh).unwrap(), "it is decided once");
    assert_eq!(given("b"), Ok("kept"));
    bindings.clear_decision("notes").unwrap();
    assert_eq!(given("b"), Ok("known"));
    assert!(given("a").is_err(), "the old program is another one now");
}

#[test]
fn a_name_without_state_is_rebound_without_a_question() {
    let (_dir, home) = home(false);
    let bindings = Bindings::of(&home.database());
    assert_eq!(outcome(&bindings, "a", &StoredServerState::default()), Ok("known"));
    assert_eq!(outcome(&bindings, "b", &StoredServerState::default()), Ok("other"));
    assert_eq!(outcome(&bindings, "b", &something()), Ok("known"));
    assert!(outcome(&bindings, "a", &something()).is_err());
}

#[test]
fn state_of_an_older_version_is_bound_at_the_first_start_without_a_question() {
    let (dir, home) = home(true);
    let program = dir.path().join("notes");
    std::fs::write(&program, "\u{7f}ELF 1").unwrap();
    let text = format!(
        r#"{{ "notes": {{ "command": "{}" }}, "later": {{ "command": "/nonexistent/later" }} }}"#,
        program.display()
    );
    let servers = Servers::parse(&text, Path::new("/c"), dir.path()).unwrap();
    let grants = ironcurtain_grants::StandingGrant::on_disk(&home.database()).unwrap();
    assert_eq!(grants.len(), 1);
    std::fs::create_dir_all(home.server_data("gone")).unwrap();
    let ours = Path::new("/nonexistent");
    let first = || bind_existing(&home, ours, &servers, &grants).unwrap();
    first();
    let bindings = Bindings::of(&home.database());
    let now = |name: &str| {
        let server = servers.find(Some(name)).unwrap();
        ServerIdentity::of(server, None, ours, &Digests::default()).unwrap().identity
    };
    assert!(matches!(admission(&bindings, &now("notes"), &something()), Ok(Admission::Known)));
    let owners: Vec<(String, bool)> = bindings
        .all()
        .unwrap()
        .into_iter()
        .map(|Binding { server, owner, .. }| (server, owner.is_some()))
        .collect();
    let expected = [("gone", false), ("later", true), ("notes", true), ("s", false)];
    assert_eq!(owners, expected.map(|(name, is_known)| (name.to_owned(), is_known)));
    // A server that could not be identified before is bound to the first program that can be identified. A name
    // without an entry is not bound.
    let named = |name: &str| ServerIdentity { name: name.into(), ..identity("a") };
    let later = ServerIdentity { args: now("notes").args, ..named("later") };
    assert!(matches!(admission(&bindings, &later, &something()), Ok(Admission::Known)));
    let refused = admission(&bindings, &named("s"), &something()).map(drop).unwrap_err().to_string();
    assert!(refused.contains("it is unknown which program had this name before"), "{refused}");
    // The second start creates no bindings, so the changed program is refused.
    std::fs::write(&program, "\u{7f}ELF 2").unwrap();
    first();
    assert!(admission(&bindings, &now("notes"), &something()).is_err());
}

#[test]
fn a_new_database_has_nothing_to_bind() {
    let (_dir, home) = home(false);
    let servers =
        Servers::parse(r#"{ "notes": { "command": "/bin/sh" } }"#, Path::new("/c"), Path::new("/u")).unwrap();
    bind_existing(&home, Path::new("/nonexistent"), &servers, &[]).unwrap();
    assert_eq!(Bindings::of(&home.database()).all().unwrap(), []);
}
