//! Database of grants that outlive their session.

pub(super) mod schema;
mod tool;

pub use schema::StoreError;

use self::tool::StoredToolError;
use super::ending::{EndReason, StoredTermination};
use super::table::initial_time_left;
use super::uses::Uses;
use super::{Files, GrantSubject, Granted, Lifetime, StandingGrant};
use ironcurtain_audit::clock::Clock;
use ironcurtain_egress::{Host, HostError, HostPort};
use ironcurtain_paths::{CanonicalPath, NotCanonicalError};
use ironcurtain_policy::{AccessSet, GrantKind};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use std::collections::HashSet;
use std::io;
use std::num::TryFromIntError;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of terminations to keep in the database. Beyond this number, the oldest terminations are removed.
const MAX_ENDED: i64 = 10_000;

pub(super) struct Store {
    connection: Connection,
    path: PathBuf,
    /// Device and inode number of the database when it was opened.
    identity: (u64, u64),
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = schema::open(path)?;
        Self::of(connection, path)
    }

    /// Opens the database read-only. Returns `None` if it does not exist.
    pub(super) fn open_to_read(path: &Path) -> Result<Option<Self>, StoreError> {
        schema::open_to_read(path)?.map(|connection| Self::of(connection, path)).transpose()
    }

    fn of(connection: Connection, path: &Path) -> Result<Self, StoreError> {
        let identity =
            identity(path).map_err(|source| StoreError::File { path: path.to_path_buf(), source })?;
        Ok(Self { connection, path: path.to_path_buf(), identity })
    }

    /// Checks that the database's path still leads to the open file. SQLite keeps writing to a file that was removed
    /// or replaced. A restart would then read a different file, in which revoked grants are still active.
    ///
    /// # Errors
    /// Returns [`StoreError::Lost`] if the path leads to a different file or to no file.
    pub(super) fn check_file(&self) -> Result<(), StoreError> {
        let lost = |what| Err(StoreError::Lost { path: self.path.clone(), what });
        match identity(&self.path) {
            Ok(found) if found == self.identity => Ok(()),
            Ok(_) => lost("replaced"),
            Err(e) if e.kind() == io::ErrorKind::NotFound => lost("removed"),
            Err(source) => Err(StoreError::File { path: self.path.clone(), source }),
        }
    }

    /// Loads all valid grants. Logs and omits invalid ones, so that they permit nothing.
    pub(super) fn load(&self) -> Result<Vec<(StandingGrant, Option<StoredEnd>)>, StoreError> {
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
                    tracing::error!(%problem, "ignoring a grant in the database that cannot be parsed")
                }
            }
        }
        Ok(grants)
    }

    /// Stores grants in one transaction. For grants that expire, also stores the expiry time on the boot clock.
    pub(super) fn insert(
        &mut self,
        grants: &[(&StandingGrant, Option<StoredEnd>)],
    ) -> Result<(), StoreError> {
        self.change(|change| {
            for (g, end) in grants {
                let row = Columns::of(&g.what);
                change.execute(
                    "INSERT INTO grants (id, client, client_name, server, kind, path, can_read, can_write, can_delete,
                     host, port, tool, expires_ms, lifetime, created_ms, last_used_ms, uses, provenance)
                     VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18)",
                    params![
                        g.id, g.subject.client, g.subject.client_name, g.subject.server, row.kind, row.path,
                        row.access.read, row.access.write, row.access.delete, row.host, row.port, row.tool,
                        signed(g.expires_ms), lifetime_name(g.lifetime), signed(Some(g.created_ms)),
                        signed(g.last_used_ms), signed(Some(g.uses)), g.provenance
                    ],
                )?;
                if let Some(end) = end {
                    note_end(change, &g.id, end)?;
                }
            }
            Ok(())
        })
    }

    /// Removes grants in one transaction and stores their terminations. Storing a termination again has no effect.
    pub(super) fn end(&mut self, ended: &[(&str, StoredTermination)]) -> Result<(), StoreError> {
        self.change(|change| {
            for (id, StoredTermination { why, at_ms }) in ended {
                change.execute("DELETE FROM grants WHERE id = ?1", [id])?;
                change.execute(
                    "INSERT OR IGNORE INTO ended (id, why, at_ms) VALUES (?1, ?2, ?3)",
                    params![id, why.name(), signed(Some(*at_ms))],
                )?;
            }
            change.execute(
                "DELETE FROM ended WHERE rowid <= (SELECT max(rowid) FROM ended) - ?1",
                [MAX_ENDED],
            )?;
            Ok(())
        })
    }

    /// Returns a grant's stored termination, if any.
    pub(super) fn termination(&self, id: &str) -> Result<Option<StoredTermination>, StoreError> {
        let found = self.connection.query_row("SELECT why, at_ms FROM ended WHERE id = ?1", [id], |row| {
            let (why, at_ms): (String, i64) = (row.get("why")?, row.get("at_ms")?);
            Ok(EndReason::parse(&why)
                .map(|why| StoredTermination { why, at_ms: u64::try_from(at_ms).unwrap_or(0) }))
        });
        found.optional().map(Option::flatten).map_err(|e| self.failed(e))
    }

    /// Returns the identities of the servers that have answered a call.
    pub(super) fn known_servers(&self) -> Result<HashSet<String>, StoreError> {
        let mut statement =
            self.connection.prepare("SELECT identity FROM servers").map_err(|e| self.failed(e))?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(|e| self.failed(e))?;
        rows.collect::<Result<_, _>>().map_err(|e| self.failed(e))
    }

    /// Records that a server has answered a call.
    pub(super) fn note_served(&mut self, server: &str, at_ms: u64) -> Result<(), StoreError> {
        self.change(|change| {
            change.execute(
                "INSERT OR IGNORE INTO servers (identity, since_ms) VALUES (?1, ?2)",
                params![server, signed(Some(at_ms))],
            )?;
            Ok(())
        })
    }

    /// Stores the use counts of grants and the remaining times of expiring grants.
    pub(super) fn store_counts(
        &mut self,
        uses: &[(String, Uses)],
        ends: &[(String, StoredEnd)],
    ) -> Result<(), StoreError> {
        self.change(|change| {
            for (id, uses) in uses {
                change.execute(
                    "UPDATE grants SET uses = ?2, last_used_ms = ?3 WHERE id = ?1",
                    params![id, signed(Some(uses.count)), signed(uses.last_ms)],
                )?;
            }
            ends.iter().try_for_each(|(id, end)| note_end(change, id, end))
        })
    }

    /// Runs `with` in a transaction.
    fn change(
        &mut self,
        with: impl FnOnce(&Transaction<'_>) -> Result<(), rusqlite::Error>,
    ) -> Result<(), StoreError> {
        self.check_file()?;
        let changed = self.connection.transaction().and_then(|change| {
            with(&change)?;
            change.commit()
        });
        changed.map_err(|e| self.failed(e))
    }

    fn failed(&self, source: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), source }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

fn note_end(change: &Transaction<'_>, id: &str, end: &StoredEnd) -> Result<(), rusqlite::Error> {
    change.execute(
        "UPDATE grants SET boot = ?2, ends_boot_ms = ?3, left_ms = ?4 WHERE id = ?1",
        params![id, end.boot, signed(Some(end.ends_ms)), signed(Some(end.left_ms))],
    )?;
    Ok(())
}

/// Expiry of a grant on the boot clock, as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredEnd {
    /// Id of the boot to which `ends_ms` refers.
    pub(super) boot: String,
    /// Time of expiry, in milliseconds since that boot.
    pub(super) ends_ms: u64,
    /// Time that remained when the expiry was stored, in milliseconds. Used after a reboot.
    pub(super) left_ms: u64,
}

impl StoredEnd {
    /// Creates the expiry of a grant with this remaining time in milliseconds.
    pub(super) fn of(left_ms: u64, clock: &Clock) -> Self {
        let ends_ms = clock.now().boot_ms.saturating_add(left_ms);
        Self { boot: clock.boot().to_owned(), ends_ms, left_ms }
    }

    /// Returns a grant's remaining time in milliseconds, which is the shorter of the times on the two clocks. Returns
    /// `None` if the grant does not expire.
    pub(super) fn remaining_ms(grant: &StandingGrant, stored: Option<&Self>, clock: &Clock) -> Option<u64> {
        let now = clock.now();
        let left = initial_time_left(grant, now)?;
        Some(match stored {
            Some(end) if end.boot == clock.boot() => left.min(end.ends_ms.saturating_sub(now.boot_ms)),
            Some(end) => left.min(end.left_ms),
            None => left,
        })
    }
}

/// Column values that describe the granted files, host or tools.
struct Columns {
    kind: &'static str,
    path: Option<String>,
    access: AccessSet,
    host: Option<String>,
    port: Option<u16>,
    tool: Option<String>,
}

impl Columns {
    fn of(what: &Granted) -> Self {
        match what {
            Granted::Files(Files { path, kind, access }) => Self {
                kind: match kind {
                    GrantKind::File => "file",
                    GrantKind::Tree => "tree",
                },
                path: Some(path.as_str().to_owned()),
                access: *access,
                host: None,
                port: None,
                tool: None,
            },
            Granted::Host(target) => Self {
                kind: "host",
                path: None,
                access: AccessSet::default(),
                host: Some(target.host.to_string()),
                port: Some(target.port),
                tool: None,
            },
            Granted::Tool(tool) => Self {
                kind: "tool",
                path: None,
                access: AccessSet::default(),
                host: None,
                port: None,
                tool: Some(tool::serialize(tool)),
            },
        }
    }
}

/// Reason a row is not a valid grant.
#[derive(Debug, thiserror::Error)]
enum RowError {
    /// A column is missing or has the wrong type.
    #[error(transparent)]
    Column(#[from] rusqlite::Error),
    /// The kind of grant is unknown.
    #[error("unknown kind `{0}`")]
    Kind(String),
    /// The lifetime is unknown.
    #[error("unknown lifetime `{0}`")]
    Lifetime(String),
    /// The tool use is invalid.
    #[error(transparent)]
    Tool(#[from] StoredToolError),
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] NotCanonicalError),
    /// The host is invalid.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A time or count is negative.
    #[error(transparent)]
    Number(#[from] TryFromIntError),
}

fn granted(row: &Row<'_>) -> Result<Granted, RowError> {
    let kind: String = row.get("kind")?;
    let files = |kind: GrantKind| -> Result<Granted, RowError> {
        let path: String = row.get("path")?;
        Ok(Granted::Files(Files {
            path: CanonicalPath::assume_canonical(&path)?,
            kind,
            access: AccessSet {
                read: row.get("can_read")?,
                write: row.get("can_write")?,
                delete: row.get("can_delete")?,
            },
        }))
    };
    match kind.as_str() {
        "file" => files(GrantKind::File),
        "tree" => files(GrantKind::Tree),
        "host" => {
            let host: String = row.get("host")?;
            let port: u16 = row.get("port")?;
            Ok(Granted::Host(HostPort { host: Host::parse(&host)?, port }))
        }
        "tool" => {
            let tool: String = row.get("tool")?;
            Ok(Granted::Tool(tool::parse(&tool)?))
        }
        other => Err(RowError::Kind(other.to_owned())),
    }
}

fn read(row: &Row<'_>) -> Result<(StandingGrant, Option<StoredEnd>), RowError> {
    let lifetime: String = row.get("lifetime")?;
    let number = |name: &str| -> Result<Option<u64>, RowError> {
        let value: Option<i64> = row.get(name)?;
        Ok(value.map(u64::try_from).transpose()?)
    };
    let boot: Option<String> = row.get("boot")?;
    let end = match (boot, number("ends_boot_ms")?, number("left_ms")?) {
        (Some(boot), Some(ends_ms), Some(left_ms)) => Some(StoredEnd { boot, ends_ms, left_ms }),
        _ => None,
    };
    let grant = StandingGrant {
        id: row.get("id")?,
        subject: GrantSubject {
            client: row.get("client")?,
            client_name: row.get("client_name")?,
            server: row.get("server")?,
            session: None,
        },
        what: granted(row)?,
        lifetime: lifetime_of(&lifetime).ok_or(RowError::Lifetime(lifetime))?,
        expires_ms: number("expires_ms")?,
        created_ms: number("created_ms")?.unwrap_or_default(),
        last_used_ms: number("last_used_ms")?,
        uses: number("uses")?.unwrap_or_default(),
        provenance: row.get("provenance")?,
    };
    Ok((grant, end))
}

/// Converts to SQLite's signed integers, saturating. Real times and counts are far below the limit.
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

/// Parses a lifetime that is not limited to a session. A row with a fixed duration must also have an expiry time,
/// because the grant would otherwise never expire.
fn lifetime_of(name: &str) -> Option<Lifetime> {
    [Lifetime::QuarterHour, Lifetime::Hour, Lifetime::Always].into_iter().find(|l| lifetime_name(*l) == name)
}
