//! The tables, and how those of an older version become these.
//!
//! - A change of version is one transaction: after a crash the database is of the one or of the other.

use super::super::journal::JournalError;
use ironcurtain_paths::bounded_read;
use rusqlite::{Connection, OpenFlags};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Version of the tables, kept in SQLite's `user_version`.
const VERSION: i64 = 6;

/// The time for which another program that holds the database is waited for.
const BUSY: Duration = Duration::from_secs(1);

const TABLES: &str = "
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
    CREATE TABLE IF NOT EXISTS servers (identity TEXT PRIMARY KEY, since_ms INTEGER NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS bindings (
        server TEXT PRIMARY KEY, owner TEXT, since_ms INTEGER NOT NULL, found TEXT, decided TEXT
    ) STRICT;
    CREATE TABLE IF NOT EXISTS steps (name TEXT PRIMARY KEY, at_ms INTEGER NOT NULL) STRICT;
    PRAGMA user_version = 6;";

/// Notes that nothing is to be bound to the servers that are found: a new database has nothing.
const NOTHING_TO_BIND: &str = "INSERT INTO steps (name, at_ms) VALUES ('bound', 0);";

/// Reads grants of version 1 in today's columns: there were paths only, with `tree` as a flag.
const FROM_1: &str = "
    SELECT id, client, client_name, server, CASE tree WHEN 0 THEN 'file' ELSE 'tree' END AS kind,
        path, can_read, can_write, can_delete, NULL AS host, NULL AS port, NULL AS tool, expires_ms, lifetime,
        created_ms, last_used_ms, uses, provenance, NULL AS boot, NULL AS ends_boot_ms, NULL AS left_ms FROM";

/// Reads grants of version 2 in today's columns: they ended by the wall clock alone, and there were no tools.
const FROM_2: &str = "
    SELECT id, client, client_name, server, kind, path, can_read, can_write, can_delete, host, port,
        NULL AS tool, expires_ms, lifetime, created_ms, last_used_ms, uses, provenance, NULL AS boot,
        NULL AS ends_boot_ms, NULL AS left_ms FROM";

/// Reads grants of version 3 in today's columns: there were no tools.
const FROM_3: &str = "
    SELECT id, client, client_name, server, kind, path, can_read, can_write, can_delete, host, port,
        NULL AS tool, expires_ms, lifetime, created_ms, last_used_ms, uses, provenance, boot,
        ends_boot_ms, left_ms FROM";

/// Reads grants of versions 4 and 5, which are those of today. Version 4 did not keep which servers have answered a call, and
/// neither did bind what is under a server's name to its identity.
const FROM_4: &str = "SELECT * FROM";

/// Why grants cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database failed.
    #[error("the database of grants `{path}` {}", words(.source))]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
    /// Its file cannot be used.
    #[error("the database `{path}` cannot be opened: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It is not the file that was opened.
    #[error(
        "the database of grants `{path}` was {what} while IronCurtain ran: put it back, or start IronCurtain again to use \
         what is there"
    )]
    Lost {
        /// The file.
        path: PathBuf,
        /// The fate of the file, in a word.
        what: &'static str,
    },
    /// Written by a newer program.
    #[error("the database `{path}` is of version {found}, newer than this program; update IronCurtain")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// It is missing, or of an older version, while the trusted process runs.
    #[error("the database `{0}` was removed or replaced; restart IronCurtain")]
    Replaced(PathBuf),
    /// The journal beside it failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The clocks cannot be read or watched.
    #[error("the time of grants cannot be kept: {0}")]
    Clock(io::Error),
    /// No thread could be started.
    #[error("the owner of the grants could not be started: {0}")]
    Thread(String),
    /// The trusted process is ending.
    #[error("grants cannot change: the trusted process is ending")]
    Ended,
}

impl StoreError {
    /// Returns whether the database itself is damaged, so that only moving it away helps.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        matches!(self, Self::Database { source, .. } if is_damage(source))
    }
}

fn is_damage(source: &rusqlite::Error) -> bool {
    let damage = [rusqlite::ErrorCode::NotADatabase, rusqlite::ErrorCode::DatabaseCorrupt];
    matches!(source, rusqlite::Error::SqlInputError { .. })
        || source.sqlite_error_code().is_some_and(|code| damage.contains(&code))
}

/// Returns SQLite's answer without the statement that it is about.
fn words(source: &rusqlite::Error) -> String {
    if let rusqlite::Error::SqlInputError { msg, .. } = source {
        return format!("is damaged: {msg}");
    }
    if is_damage(source) { format!("is damaged: {source}") } else { format!("failed: {source}") }
}

/// Opens the database, with the tables of this version.
pub(crate) fn open(path: &Path) -> Result<Connection, StoreError> {
    let at = |source| StoreError::Database { path: path.to_path_buf(), source };
    bounded_read::open_own(path).map_err(|source| StoreError::File { path: path.to_path_buf(), source })?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").map_err(at)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
    match found {
        0 => connection.execute_batch(&format!("BEGIN; {TABLES} {NOTHING_TO_BIND} COMMIT;")).map_err(at)?,
        1 => connection.execute_batch(&change(FROM_1)).map_err(at)?,
        2 => connection.execute_batch(&change(FROM_2)).map_err(at)?,
        3 => connection.execute_batch(&change(FROM_3)).map_err(at)?,
        4 | 5 => connection.execute_batch(&change(FROM_4)).map_err(at)?,
        VERSION => {}
        found => return Err(StoreError::Newer { path: path.to_path_buf(), found }),
    }
    Ok(connection)
}

/// The change from the tables of an older version.
fn change(from: &str) -> String {
    format!(
        "BEGIN; ALTER TABLE grants RENAME TO older; {TABLES}
         INSERT INTO grants {from} older; DROP TABLE older; COMMIT;"
    )
}

/// Opens the database as it is and changes nothing in it; nothing when there is none yet.
pub(super) fn open_to_read(path: &Path) -> Result<Option<Connection>, StoreError> {
    match bounded_read::is_absent(path) {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(source) => return Err(StoreError::File { path: path.to_path_buf(), source }),
    }
    let at = |source| StoreError::Database { path: path.to_path_buf(), source };
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
    let view = |from: &str| format!("CREATE TEMP VIEW grants AS {from} main.grants;");
    match found {
        0 => return Ok(None),
        // What is temporary is in memory, and found first.
        1 => connection.execute_batch(&view(FROM_1)).map_err(at)?,
        2 => connection.execute_batch(&view(FROM_2)).map_err(at)?,
        3 => connection.execute_batch(&view(FROM_3)).map_err(at)?,
        4 | 5 | VERSION => {}
        found => return Err(StoreError::Newer { path: path.to_path_buf(), found }),
    }
    Ok(Some(connection))
}

/// Opens a database of this version to change it, and changes nothing by that. Nothing, where there is none, or an older one that the
/// trusted process has not brought to this version yet.
pub(crate) fn open_current(path: &Path) -> Result<Option<Connection>, StoreError> {
    match bounded_read::is_absent(path) {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(source) => return Err(StoreError::File { path: path.to_path_buf(), source }),
    }
    let at = |source| StoreError::Database { path: path.to_path_buf(), source };
    bounded_read::open_own(path).map_err(|source| StoreError::File { path: path.to_path_buf(), source })?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
    match found {
        VERSION => Ok(Some(connection)),
        found if found > VERSION => Err(StoreError::Newer { path: path.to_path_buf(), found }),
        _ => Ok(None),
    }
}

/// Opens a file that is there, and no link. SQLite would refuse links in its folder's path too, so these are resolved.
fn connect(path: &Path, how: OpenFlags) -> Result<Connection, StoreError> {
    let real = path.parent().map_or(Ok(PathBuf::new()), Path::canonicalize);
    let real = real.map_err(|source| StoreError::File { path: path.to_path_buf(), source })?;
    let flags = how | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let real = path.file_name().map(|name| real.join(name)).unwrap_or(real);
    Connection::open_with_flags(real, flags)
        .map_err(|source| StoreError::Database { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests;
