//! The database of standing grants. Grants of one session are not in it.

mod schema;

pub use schema::StoreError;

use super::Lifetime;
use super::{Files, GrantSubject, Granted, StandingGrant};
use ironcurtain_egress::{Host, HostPort};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, GrantKind};
use rusqlite::{Connection, Row, params};
use std::path::{Path, PathBuf};

pub(super) struct Store {
    connection: Connection,
    path: PathBuf,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let connection = schema::open(path)?;
        Ok(Self { connection, path: path.to_path_buf() })
    }

    /// Opens the database as it is and changes nothing in it; nothing when there is none yet.
    pub(super) fn open_to_read(path: &Path) -> Result<Option<Self>, StoreError> {
        let connection = schema::open_to_read(path)?;
        Ok(connection.map(|connection| Self { connection, path: path.to_path_buf() }))
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
            let row = Columns::of(&g.what);
            change
                .execute(
                    "INSERT INTO grants (id, client, client_name, server, kind, path, can_read, can_write, can_delete,
                     host, port, expires_ms, lifetime, created_ms, last_used_ms, uses, provenance)
                     VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17)",
                    params![
                        g.id, g.subject.client, g.subject.client_name, g.subject.server, row.kind, row.path,
                        row.access.read, row.access.write, row.access.delete, row.host, row.port,
                        signed(g.expires_ms), lifetime_name(g.lifetime), signed(Some(g.created_ms)),
                        signed(g.last_used_ms), signed(Some(g.uses)), g.provenance
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

/// The columns of the table that say what a grant opens.
struct Columns {
    kind: &'static str,
    path: Option<String>,
    access: AccessSet,
    host: Option<String>,
    port: Option<u16>,
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
            },
            Granted::Host(target) => Self {
                kind: "host",
                path: None,
                access: AccessSet::default(),
                host: Some(target.host.to_string()),
                port: Some(target.port),
            },
        }
    }
}

fn granted(row: &Row<'_>) -> Result<Granted, String> {
    let problem = |e: rusqlite::Error| e.to_string();
    let kind: String = row.get("kind").map_err(problem)?;
    let files = |kind: GrantKind| -> Result<Granted, String> {
        let path: String = row.get("path").map_err(problem)?;
        Ok(Granted::Files(Files {
            path: CanonicalPath::assume_canonical(&path).map_err(|e| e.to_string())?,
            kind,
            access: AccessSet {
                read: row.get("can_read").map_err(problem)?,
                write: row.get("can_write").map_err(problem)?,
                delete: row.get("can_delete").map_err(problem)?,
            },
        }))
    };
    match kind.as_str() {
        "file" => files(GrantKind::File),
        "tree" => files(GrantKind::Tree),
        "host" => {
            let host: String = row.get("host").map_err(problem)?;
            let port: u16 = row.get("port").map_err(problem)?;
            Ok(Granted::Host(HostPort { host: Host::parse(&host).map_err(|e| e.to_string())?, port }))
        }
        other => Err(format!("unknown kind `{other}`")),
    }
}

fn read(row: &Row<'_>) -> Result<StandingGrant, String> {
    let problem = |e: rusqlite::Error| e.to_string();
    let lifetime: String = row.get("lifetime").map_err(problem)?;
    let number = |name: &str| -> Result<Option<u64>, String> {
        let value: Option<i64> = row.get(name).map_err(problem)?;
        value.map(|n| u64::try_from(n).map_err(|e| e.to_string())).transpose()
    };
    Ok(StandingGrant {
        id: row.get("id").map_err(problem)?,
        subject: GrantSubject {
            client: row.get("client").map_err(problem)?,
            client_name: row.get("client_name").map_err(problem)?,
            server: row.get("server").map_err(problem)?,
            session: None,
        },
        what: granted(row)?,
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
