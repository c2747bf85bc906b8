//! Tables of the grant database, and migrations from older versions.
//!
//! - A migration is a single transaction, so that the database has either the old or the new version after a crash.

use super::super::journal::JournalError;
use ironcurtain_paths::bounded_read;
use rusqlite::{Connection, OpenFlags};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Schema version, kept in SQLite's `user_version`.
const VERSION: i64 = 8;

/// Maximum time to wait while another program has locked the database.
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
    CREATE TABLE IF NOT EXISTS pins (
        server TEXT NOT NULL, capabilities TEXT NOT NULL, tool TEXT NOT NULL, definition TEXT NOT NULL,
        found TEXT, decided TEXT, since_ms INTEGER NOT NULL, position INTEGER, is_new INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (server, capabilities, tool)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS tool_lists (
        server TEXT NOT NULL, client TEXT NOT NULL, listed TEXT NOT NULL, PRIMARY KEY (server, client)
    ) STRICT;
    PRAGMA user_version = 8;";

/// Records that all names in a new database are bound, because it contains no names.
const NOTHING_TO_BIND: &str = "INSERT INTO steps (name, at_ms) VALUES ('bound', 0);";

/// Selects the grants of version 1 with the current columns. That version had only paths, and a `tree` flag.
const FROM_1: &str = "
    SELECT id, client, client_name, server, CASE tree WHEN 0 THEN 'file' ELSE 'tree' END AS kind,
        path, can_read, can_write, can_delete, NULL AS host, NULL AS port, NULL AS tool, expires_ms, lifetime,
        created_ms, last_used_ms, uses, provenance, NULL AS boot, NULL AS ends_boot_ms, NULL AS left_ms FROM";

/// Selects the grants of version 2 with the current columns. In that version, grants expired only by the wall clock,
/// and there were no tool grants.
const FROM_2: &str = "
    SELECT id, client, client_name, server, kind, path, can_read, can_write, can_delete, host, port,
        NULL AS tool, expires_ms, lifetime, created_ms, last_used_ms, uses, provenance, NULL AS boot,
        NULL AS ends_boot_ms, NULL AS left_ms FROM";

/// Selects the grants of version 3 with the current columns. That version had no tool grants.
const FROM_3: &str = "
    SELECT id, client, client_name, server, kind, path, can_read, can_write, can_delete, host, port,
        NULL AS tool, expires_ms, lifetime, created_ms, last_used_ms, uses, provenance, boot,
        ends_boot_ms, left_ms FROM";

/// Selects the grants of versions 4 to 6, which have the current columns. Version 4 had no table of servers that
/// answered a call, versions 4 and 5 had no bindings of names to identities, and none of them had tool pins.
const FROM_4: &str = "SELECT * FROM";

/// Adds the pin columns and the table that version 7 lacks. All tools count as listed until their server lists them
/// again.
const FROM_7: &str = "
    BEGIN;
    ALTER TABLE pins ADD COLUMN position INTEGER;
    ALTER TABLE pins ADD COLUMN is_new INTEGER NOT NULL DEFAULT 0;
    UPDATE pins SET position = 0;
    CREATE TABLE tool_lists (
        server TEXT NOT NULL, client TEXT NOT NULL, listed TEXT NOT NULL, PRIMARY KEY (server, client)
    ) STRICT;
    PRAGMA user_version = 8;
    COMMIT;";

/// Reason the grant database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// SQLite returned an error.
    #[error("the grant database `{path}` {}", words(.source))]
    Database {
        /// Path of the database.
        path: PathBuf,
        /// SQLite error.
        source: rusqlite::Error,
    },
    /// Opening or inspecting the file failed.
    #[error("failed to open the grant database `{path}`: {source}")]
    File {
        /// Path of the database.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// Another process removed or replaced the file while it was open.
    #[error(
        "the grant database `{path}` was {what} while IronCurtain was running; restore it, or restart IronCurtain to use the \
         current file"
    )]
    Lost {
        /// Path of the database.
        path: PathBuf,
        /// `removed` or `replaced`, for the message.
        what: &'static str,
    },
    /// A newer version of IronCurtain wrote the database.
    #[error(
        "the grant database `{path}` has version {found}, which is newer than this program supports; update IronCurtain"
    )]
    Newer {
        /// Path of the database.
        path: PathBuf,
        /// Schema version of the database.
        found: i64,
    },
    /// The database does not exist or was written by an older version, although the daemon is running.
    #[error("the grant database `{0}` was removed or replaced; restart IronCurtain")]
    Replaced(PathBuf),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The clocks cannot be read, or the kernel provides no timer.
    #[error("failed to read the clocks: {0}")]
    Clock(io::Error),
    /// The thread that owns the database could not be spawned.
    #[error("failed to spawn the grant thread: {0}")]
    Thread(String),
    /// The trusted process is shutting down.
    #[error("failed to change grants: the trusted process is shutting down")]
    ShuttingDown,
}

impl StoreError {
    /// Returns `true` if the database is damaged and the user must move it away.
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

/// Describes an SQLite error without the SQL statement.
fn words(source: &rusqlite::Error) -> String {
    if let rusqlite::Error::SqlInputError { msg, .. } = source {
        return format!("is damaged: {msg}");
    }
    if is_damage(source) { format!("is damaged: {source}") } else { format!("failed: {source}") }
}

/// Opens the database and migrates it to the current version. Creates it if it does not exist.
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
        4..=6 => connection.execute_batch(&change(FROM_4)).map_err(at)?,
        7 => connection.execute_batch(FROM_7).map_err(at)?,
        VERSION => {}
        found => return Err(StoreError::Newer { path: path.to_path_buf(), found }),
    }
    Ok(connection)
}

/// Returns the SQL that migrates an older version. `from` selects that version's grants.
fn change(from: &str) -> String {
    format!(
        "BEGIN; ALTER TABLE grants RENAME TO older; {TABLES}
         INSERT INTO grants {from} older; DROP TABLE older; COMMIT;"
    )
}

/// Opens the database read-only. Returns `None` if it does not exist.
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
        // Temporary views are in memory and take precedence over tables with the same name.
        1 => connection.execute_batch(&view(FROM_1)).map_err(at)?,
        2 => connection.execute_batch(&view(FROM_2)).map_err(at)?,
        3 => connection.execute_batch(&view(FROM_3)).map_err(at)?,
        4..=VERSION => {}
        found => return Err(StoreError::Newer { path: path.to_path_buf(), found }),
    }
    Ok(Some(connection))
}

/// Opens the database and runs `work` on it, without migrating it. Returns `None` if the database does not exist or
/// the daemon has not migrated it yet.
///
/// While a process has any connection open, SQLite keeps the file descriptors of closed connections and reuses them
/// for later ones. This function therefore opens only one connection at a time, so that few descriptors accumulate.
pub(crate) fn with_current<T>(
    path: &Path,
    work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
) -> Result<Option<T>, StoreError> {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(mut connection) = open_current(path)? else { return Ok(None) };
    let failed = |source| StoreError::Database { path: path.to_path_buf(), source };
    work(&mut connection).map(Some).map_err(failed)
}

fn open_current(path: &Path) -> Result<Option<Connection>, StoreError> {
    match bounded_read::is_absent(path) {
        Ok(true) => return Ok(None),
        Ok(false) => {}
        Err(source) => return Err(StoreError::File { path: path.to_path_buf(), source }),
    }
    let at = |source| StoreError::Database { path: path.to_path_buf(), source };
    bounded_read::check_own(path).map_err(|source| StoreError::File { path: path.to_path_buf(), source })?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.busy_timeout(BUSY).map_err(at)?;
    let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
    match found {
        VERSION => Ok(Some(connection)),
        found if found > VERSION => Err(StoreError::Newer { path: path.to_path_buf(), found }),
        _ => Ok(None),
    }
}

/// Opens an existing database that is not a symlink. First resolves symlinks in the folder's path, because SQLite would
/// also reject them.
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
