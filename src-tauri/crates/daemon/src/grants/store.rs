//! The database of standing grants. Grants of one session are not in it.

use super::{StandingGrant, Subject};
use crate::consent::Lifetime;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, GrantKind};
use rusqlite::{Connection, OpenFlags, Row, params};
use std::path::{Path, PathBuf};

/// Version of the tables, kept in SQLite's `user_version`.
const SCHEMA_VERSION: i64 = 1;

const SCHEMA: &str = "
    CREATE TABLE grants (
        id TEXT PRIMARY KEY, client TEXT NOT NULL, client_name TEXT NOT NULL, server TEXT NOT NULL,
        path TEXT NOT NULL, tree INTEGER NOT NULL, can_read INTEGER NOT NULL, can_write INTEGER NOT NULL,
        can_delete INTEGER NOT NULL, expires_ms INTEGER, lifetime TEXT NOT NULL, created_ms INTEGER NOT NULL,
        last_used_ms INTEGER, uses INTEGER NOT NULL, provenance TEXT NOT NULL
    ) STRICT;
    PRAGMA user_version = 1;";

/// Why grants cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database failed.
    #[error("the database `{path}` failed: {source}")]
    Database {
        /// The file.
        path: PathBuf,
        /// SQLite's answer.
        source: rusqlite::Error,
    },
    /// Written by a newer program.
    #[error("the database `{path}` is of version {found}, newer than this program; update IronCurtain")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// No thread could be started.
    #[error("the owner of the grants could not be started: {0}")]
    Thread(String),
    /// The trusted process is ending.
    #[error("grants cannot change: the trusted process is ending")]
    Ended,
}

pub(super) struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let at = |source| StoreError::Database { path: path.to_path_buf(), source };
        let connection = Connection::open(path).map_err(at)?;
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;").map_err(at)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
        match found {
            0 => connection.execute_batch(&format!("BEGIN; {SCHEMA} COMMIT;")).map_err(at)?,
            SCHEMA_VERSION => {}
            found => return Err(StoreError::Newer { path: path.to_path_buf(), found }),
        }
        Ok(Self { connection, path: path.to_path_buf() })
    }

    /// Opens the database as it is and changes nothing in it; nothing when there is none yet.
    pub(super) fn open_to_read(path: &Path) -> Result<Option<Self>, StoreError> {
        if !path.exists() {
            return Ok(None);
        }
        let at = |source| StoreError::Database { path: path.to_path_buf(), source };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(at)?;
        let found: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0)).map_err(at)?;
        match found {
            0 => Ok(None),
            SCHEMA_VERSION => Ok(Some(Self { connection, path: path.to_path_buf() })),
            found => Err(StoreError::Newer { path: path.to_path_buf(), found }),
        }
    }

    /// Every grant that can be understood. One that cannot is left out, which denies, and is told of.
    pub(super) fn load(&self) -> Result<Vec<StandingGrant>, StoreError> {
        let mut statement = self
            .connection
            .prepare("SELECT * FROM grants ORDER BY created_ms, id")
            .map_err(|e| self.failed(e))?;
        let rows = statement.query_map([], |row| Ok(read(row))).map_err(|e| self.failed(e))?;
        let mut grants = Vec::new();
        for row in rows {
            match row.map_err(|e| self.failed(e))? {
                Ok(grant) => grants.push(grant),
                Err(problem) => {
                    tracing::error!(problem, "a grant in the database is not understood and does not apply")
                }
            }
        }
        Ok(grants)
    }

    /// Keeps those that outlive their session, all or none.
    pub(super) fn insert(&mut self, grants: &[StandingGrant]) -> Result<(), StoreError> {
        let path = self.path.clone();
        let at = |source| StoreError::Database { path: path.clone(), source };
        let change = self.connection.transaction().map_err(at)?;
        for g in grants.iter().filter(|g| g.subject.session.is_none()) {
            let tree = g.kind == GrantKind::Tree;
            change
                .execute(
                    "INSERT INTO grants (id, client, client_name, server, path, tree, can_read, can_write, can_delete,
                     expires_ms, lifetime, created_ms, last_used_ms, uses, provenance)
                     VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15)",
                    params![
                        g.id, g.subject.client, g.subject.client_name, g.subject.server, g.path.as_str(), tree,
                        g.access.read, g.access.write, g.access.delete, signed(g.expires_ms), lifetime_name(g.lifetime),
                        signed(Some(g.created_ms)), signed(g.last_used_ms), signed(Some(g.uses)), g.provenance
                    ],
                )
                .map_err(at)?;
        }
        change.commit().map_err(at)
    }

    pub(super) fn delete(&self, id: &str) -> Result<(), StoreError> {
        self.connection.execute("DELETE FROM grants WHERE id = ?1", [id]).map_err(|e| self.failed(e))?;
        Ok(())
    }

    pub(super) fn note_use(&self, grant: &StandingGrant) -> Result<(), StoreError> {
        self.connection
            .execute(
                "UPDATE grants SET uses = ?2, last_used_ms = ?3 WHERE id = ?1",
                params![grant.id, signed(Some(grant.uses)), signed(grant.last_used_ms)],
            )
            .map_err(|e| self.failed(e))?;
        Ok(())
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), source }
    }
}

fn read(row: &Row<'_>) -> Result<StandingGrant, String> {
    let problem = |e: rusqlite::Error| e.to_string();
    let path: String = row.get("path").map_err(problem)?;
    let tree: bool = row.get("tree").map_err(problem)?;
    let lifetime: String = row.get("lifetime").map_err(problem)?;
    let number = |name: &str| -> Result<Option<u64>, String> {
        let value: Option<i64> = row.get(name).map_err(problem)?;
        value.map(|n| u64::try_from(n).map_err(|e| e.to_string())).transpose()
    };
    Ok(StandingGrant {
        id: row.get("id").map_err(problem)?,
        subject: Subject {
            client: row.get("client").map_err(problem)?,
            client_name: row.get("client_name").map_err(problem)?,
            server: row.get("server").map_err(problem)?,
            session: None,
        },
        path: CanonicalPath::assume_canonical(&path).map_err(|e| e.to_string())?,
        kind: if tree { GrantKind::Tree } else { GrantKind::File },
        access: AccessSet {
            read: row.get("can_read").map_err(problem)?,
            write: row.get("can_write").map_err(problem)?,
            delete: row.get("can_delete").map_err(problem)?,
        },
        lifetime: lifetime_of(&lifetime).ok_or_else(|| format!("unknown lifetime `{lifetime}`"))?,
        expires_ms: number("expires_ms")?,
        created_ms: number("created_ms")?.unwrap_or_default(),
        last_used_ms: number("last_used_ms")?,
        uses: number("uses")?.unwrap_or_default(),
        provenance: row.get("provenance").map_err(problem)?,
    })
}

/// SQLite's integers are signed; times and counts stay far below the difference.
fn signed(number: Option<u64>) -> Option<i64> {
    number.map(|n| i64::try_from(n).unwrap_or(i64::MAX))
}

fn lifetime_name(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::Once => "once",
        Lifetime::Session => "session",
        Lifetime::QuarterHour => "quarter-hour",
        Lifetime::Hour => "hour",
        Lifetime::Always => "always",
    }
}

/// Lifetimes that outlive a session; one with a clock and no end would never end, so those need their end too.
fn lifetime_of(name: &str) -> Option<Lifetime> {
    [Lifetime::QuarterHour, Lifetime::Hour, Lifetime::Always].into_iter().find(|l| lifetime_name(*l) == name)
}
