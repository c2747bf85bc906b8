//! Tests migrations of databases that were created with older versions' SQL statements.

use super::super::Store;
use super::*;
use crate::{EndReason, StandingGrant, StoredTermination};

const VERSION_1: &str = "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, server TEXT NOT NULL,
        path TEXT NOT NULL, tree INTEGER NOT NULL, can_read INTEGER NOT NULL, can_write INTEGER NOT NULL,
        can_delete INTEGER NOT NULL, expires_ms INTEGER, lifetime TEXT NOT NULL, created_ms INTEGER NOT NULL,
        last_used_ms INTEGER, uses INTEGER NOT NULL, provenance TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 1;
    INSERT INTO grants VALUES ('a', 'k', 'n', 's', '/docs', 1, 1, 0, 0, NULL, 'always', 5, 7, 2, 'question q');
    INSERT INTO grants VALUES ('b', 'k', 'n', 's', '/docs/f', 0, 1, 1, 0, 9, 'hour', 6, NULL, 0, 'question r');";

const VERSION_2: &str = "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, server TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('file', 'tree', 'host')),
        path TEXT, can_read INTEGER NOT NULL, can_write INTEGER NOT NULL, can_delete INTEGER NOT NULL,
        host TEXT, port INTEGER,
        expires_ms INTEGER, lifetime TEXT NOT NULL, created_ms INTEGER NOT NULL,
        last_used_ms INTEGER, uses INTEGER NOT NULL, provenance TEXT NOT NULL,
        CHECK ((kind = 'host') = (host IS NOT NULL AND port IS NOT NULL AND path IS NULL))
    ) STRICT;
    PRAGMA user_version = 2;
    INSERT INTO grants VALUES ('a', 'k', 'n', 's', 'tree', '/docs', 1, 0, 0, NULL, NULL, NULL, 'always', 5, 7, 2, 'q');
    INSERT INTO grants VALUES ('b', 'k', 'n', 's', 'file', '/docs/f', 1, 1, 0, NULL, NULL, 9, 'hour', 6, NULL, 0, 'r');";

/// Database of version 3 with a permanent folder grant, a file grant for an hour, a host grant, and a revoked grant.
const VERSION_3: &str = "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, server TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('file', 'tree', 'host')),
        path TEXT, can_read INTEGER NOT NULL, can_write INTEGER NOT NULL, can_delete INTEGER NOT NULL,
        host TEXT, port INTEGER,
        expires_ms INTEGER, lifetime TEXT NOT NULL, created_ms INTEGER NOT NULL,
        last_used_ms INTEGER, uses INTEGER NOT NULL, provenance TEXT NOT NULL,
        boot TEXT, ends_boot_ms INTEGER, left_ms INTEGER,
        CHECK ((kind = 'host') = (host IS NOT NULL AND port IS NOT NULL AND path IS NULL))
    ) STRICT;
    CREATE TABLE ended (id TEXT PRIMARY KEY, why TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
    PRAGMA user_version = 3;
    INSERT INTO grants VALUES
        ('a', 'k', 'n', 's', 'tree', '/docs', 1, 0, 0, NULL, NULL, NULL, 'always', 5, 7, 2, 'q', NULL, NULL, NULL),
        ('b', 'k', 'n', 's', 'file', '/docs/f', 1, 1, 0, NULL, NULL, 9, 'hour', 6, NULL, 0, 'r', 'boot', 70, 60),
        ('h', 'k', 'n', 's', 'host', NULL, 0, 0, 0, 'a.example', 443, NULL, 'always', 7, NULL, 1, 'r', NULL, NULL, NULL);
    INSERT INTO ended VALUES ('gone', 'taken-back', 8);";

/// Database of version 4 with the same grants and a tool grant.
const VERSION_4: &str = r#"
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
    CREATE TABLE IF NOT EXISTS ended (id TEXT PRIMARY KEY, why TEXT NOT NULL, at_ms INTEGER NOT NULL) STRICT;
    PRAGMA user_version = 4;
    INSERT INTO grants VALUES
        ('a', 'k', 'n', 's', 'tree', '/docs', 1, 0, 0, NULL, NULL, NULL, NULL, 'always', 5, 7, 2, 'q', NULL, NULL, NULL),
        ('b', 'k', 'n', 's', 'file', '/docs/f', 1, 1, 0, NULL, NULL, NULL, 9, 'hour', 6, NULL, 0, 'r', 'boot', 70, 60),
        ('h', 'k', 'n', 's', 'host', NULL, 0, 0, 0, 'a.example', 443, NULL, NULL, 'always', 7, NULL, 1, 'r', NULL, NULL, NULL),
        ('t', 'k', 'n', 's', 'tool', NULL, 0, 0, 0, NULL, NULL, '{"tool":"note","values":[]}', NULL, 'always', 8, NULL, 3, 'r', NULL, NULL, NULL);
    INSERT INTO ended VALUES ('gone', 'taken-back', 8);"#;

const FILES: [&str; 2] = [
    "a Files(Files { path: CanonicalPath(\"/docs\"), kind: Tree, access: AccessSet { read: true, write: false, delete: false } }) 2 None",
    "b Files(Files { path: CanonicalPath(\"/docs/f\"), kind: File, access: AccessSet { read: true, write: true, delete: false } }) 0 Some(9)",
];
const HOST: &str = "h Host(HostPort { host: Name(\"a.example\"), port: 443 }) 1 None";
const TOOL: &str = "t Tool(Use(ToolUse { tool: \"note\", values: [] })) 3 None";

/// Returns the grants in a database, and their remaining times on the boot clock.
fn granted(store: &Store) -> (Vec<String>, Vec<u64>) {
    let grants = store.load().unwrap();
    let short = |g: &StandingGrant| format!("{} {:?} {} {:?}", g.id, g.what, g.uses, g.expires_ms);
    let ends = grants.iter().filter_map(|(_, end)| end.as_ref().map(|end| end.left_ms));
    (grants.iter().map(|(grant, _)| short(grant)).collect(), ends.collect())
}

#[test]
fn migration_keeps_grants_and_revocations() {
    let with = |more: &[&'static str]| [&FILES, more].concat();
    let version_5 = VERSION_4.replace(
        "PRAGMA user_version = 4;",
        "CREATE TABLE servers (identity TEXT PRIMARY KEY, since_ms INTEGER NOT NULL) STRICT; PRAGMA user_version = 5;",
    );
    for (older, expected, left, ended) in [
        (VERSION_1, with(&[]), vec![], false),
        (VERSION_2, with(&[]), vec![], false),
        (VERSION_3, with(&[HOST]), vec![60], true),
        (VERSION_4, with(&[HOST, TOOL]), vec![60], true),
        (version_5.as_str(), with(&[HOST, TOOL]), vec![60], true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state.db");
        Connection::open(&path).unwrap().execute_batch(older).unwrap();
        let expected: (Vec<String>, Vec<u64>) = (expected.iter().map(ToString::to_string).collect(), left);
        assert_eq!(granted(&Store::open_to_read(&path).unwrap().unwrap()), expected);
        for _ in 0..2 {
            let store = Store::open(&path).unwrap();
            assert_eq!(granted(&store), expected);
            let gone = store.termination("gone").unwrap().map(|ended| (ended.why, ended.at_ms));
            assert_eq!(gone, ended.then_some((EndReason::Revoked, 8)));
            assert!(store.known_servers().unwrap().is_empty());
        }
        assert_eq!(granted(&Store::open_to_read(&path).unwrap().unwrap()), expected);
        // Revocations and servers that are recorded after the migration are also kept.
        let mut store = Store::open(&path).unwrap();
        store.end(&[("a", StoredTermination { why: EndReason::Revoked, at_ms: 11 })]).unwrap();
        store.note_served("one", 12).unwrap();
        drop(store);
        let store = Store::open(&path).unwrap();
        assert_eq!(granted(&store).0, expected.0[1..]);
        assert_eq!(store.termination("a").unwrap().map(|ended| ended.at_ms), Some(11));
        assert!(store.known_servers().unwrap().contains("one"));
        let version: i64 = store.connection.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
        assert_eq!(version, VERSION);
    }
}

#[test]
fn migration_keeps_pins_as_listed_and_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let older = format!(
        "{} {}",
        VERSION_4.replace("PRAGMA user_version = 4;", "PRAGMA user_version = 7;"),
        "CREATE TABLE pins (
            server TEXT NOT NULL, capabilities TEXT NOT NULL, tool TEXT NOT NULL, definition TEXT NOT NULL,
            found TEXT, decided TEXT, since_ms INTEGER NOT NULL, PRIMARY KEY (server, capabilities, tool)
        ) STRICT;
        INSERT INTO pins VALUES ('s', '', 't', 'a', 'b', NULL, 1);"
    );
    Connection::open(&path).unwrap().execute_batch(&older).unwrap();
    let store = Store::open(&path).unwrap();
    let expected: Vec<String> =
        [&FILES[..], &[HOST, TOOL]].concat().iter().map(ToString::to_string).collect();
    assert_eq!(granted(&store).0, expected);
    let pins = crate::Pins::of(&path).for_server("s").unwrap();
    let kept = crate::ToolPin {
        capabilities: String::new(),
        tool: "t".to_owned(),
        definition: "a".to_owned(),
        found: Some("b".to_owned()),
        decided: None,
        position: Some(0),
        is_new: false,
    };
    assert_eq!(pins, [kept]);
}

#[test]
fn a_failed_migration_leaves_the_old_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let older = Connection::open(&path).unwrap();
    older.execute_batch(VERSION_3).unwrap();
    // Uses the name that the migration needs for the old table.
    older.execute_batch("CREATE TABLE older (x INTEGER) STRICT").unwrap();
    drop(older);
    assert!(matches!(open(&path), Err(StoreError::Database { .. })));
    let older = Connection::open(&path).unwrap();
    let rows: i64 = older.query_row("SELECT count(*) FROM grants", [], |row| row.get(0)).unwrap();
    let version: i64 = older.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    assert_eq!((rows, version), (3, 3));
    older.execute_batch("DROP TABLE older").unwrap();
    drop(older);
    assert_eq!(granted(&Store::open(&path).unwrap()).0.len(), 3);
}

#[test]
fn a_database_is_not_created_or_opened_through_a_link() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let link = |to: &str, from: &str| std::os::unix::fs::symlink(at(to), at(from)).unwrap();
    link("elsewhere", "state.db");
    let refused = open(&at("state.db")).unwrap_err().to_string();
    assert!(refused.ends_with("state.db`: it is a link"), "{refused}");
    assert!(!at("elsewhere").exists());
    drop(open(&at("other.db")).unwrap());
    link("other.db", "again.db");
    assert!(open(&at("again.db")).is_err() && open_to_read(&at("again.db")).is_err());
    // Symlinks in the folder's path are allowed, because the user created them.
    std::fs::create_dir(at("folder")).unwrap();
    link("folder", "way");
    drop(open(&at("way/state.db")).unwrap());
    assert!(at("folder/state.db").exists() && open_to_read(&at("way/state.db")).unwrap().is_some());
}

#[test]
fn a_newer_version_and_an_incomplete_host_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let connection = open(&path).unwrap();
    let half = "INSERT INTO grants VALUES ('a','k','n','s','host',NULL,0,0,0,'h',NULL,NULL,NULL,'always',1,NULL,0,'q',NULL,NULL,NULL)";
    assert!(connection.execute(half, []).unwrap_err().to_string().contains("CHECK"));
    connection.execute(&half.replace("'h',NULL", "'h',443"), []).unwrap();
    connection.execute_batch("PRAGMA user_version = 9").unwrap();
    assert!(matches!(open(&path), Err(StoreError::Newer { found: 9, .. })));
}

/// Checks the lock that shows that the database is in use. Without the lock, another program that closes the database
/// would remove the database's log.
#[cfg(target_os = "linux")]
#[test]
fn a_second_use_keeps_the_lock_of_the_open_database() {
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("state.db");
    let mut store = Store::open(&path).unwrap();
    store.note_served("one", 1).unwrap();
    let file = format!(":{} ", path.metadata().unwrap().ino());
    let locks = || {
        let all = std::fs::read_to_string("/proc/locks").unwrap();
        all.lines().filter(|lock| lock.contains(&file)).count()
    };
    assert_eq!(locks(), 1);
    let used =
        with_current(&path, |connection| connection.query_row("SELECT count(*) FROM pins", [], |_| Ok(())));
    assert_eq!(used.unwrap(), Some(()));
    assert_eq!(locks(), 1);
    drop(store);
    assert_eq!(locks(), 0);
}
