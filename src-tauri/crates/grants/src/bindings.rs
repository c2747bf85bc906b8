//! Table of server names: which program owns the grants and data under each name.
//!
//! - Identities are opaque text here; `server_identity` creates and compares them.
//! - The trusted process binds and suspends names. Only the user's own programs decide, by writing to the same table;
//!   no request on the socket can.
//! - Every change is one statement, so that concurrent processes cannot interleave.

use super::StoreError;
use super::store::schema;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::{Path, PathBuf};

/// Binding of a server's name to the program that owns its grants and data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Name of the server.
    pub server: String,
    /// Identity of the owner. If `None`, it is unknown and every program counts as a different one.
    pub owner: Option<String>,
    /// Different identity found under the name; everything under the name is suspended then.
    pub found: Option<String>,
    /// The user's decision, until it is recorded.
    pub decided: Option<IdentityDecision>,
}

/// The user's decision about a name that another program now uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityDecision {
    /// The new program takes over the grants and data.
    Keep,
    /// The grants and data are set aside.
    StartAfresh,
}

impl IdentityDecision {
    const ALL: [Self; 2] = [Self::Keep, Self::StartAfresh];

    fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::StartAfresh => "start-afresh",
        }
    }
}

/// Bindings table in the grants database.
#[derive(Debug, Clone)]
pub struct Bindings {
    database: PathBuf,
}

impl Bindings {
    /// Returns the table in this database.
    #[must_use]
    pub fn of(database: &Path) -> Self {
        Self { database: database.to_path_buf() }
    }

    /// Returns all rows by name; empty if the trusted process has not created the table yet.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn all(&self) -> Result<Vec<Binding>, StoreError> {
        let all = self.with(|connection| {
            let mut statement = connection.prepare("SELECT * FROM bindings ORDER BY server")?;
            let rows = statement.query_map([], binding)?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(all.unwrap_or_default())
    }

    /// Returns the row of a server.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn get(&self, server: &str) -> Result<Option<Binding>, StoreError> {
        let query = "SELECT * FROM bindings WHERE server = ?1";
        Ok(self.with(|connection| connection.query_row(query, [server], binding).optional())?.flatten())
    }

    fn bind_new(&self, server: &str, owner: &str, at_ms: u64) -> Result<(), StoreError> {
        self.change(
            "INSERT OR IGNORE INTO bindings (server, owner, since_ms) VALUES (?1, ?2, ?3)",
            params![server, owner, signed(at_ms)],
        )?;
        Ok(())
    }

    /// Binds an unbound name and returns its binding.
    pub fn bound(&self, server: &str, owner: &str, at_ms: u64) -> Result<Binding, StoreError> {
        // Reads first, because writing needs the lock, which another process may hold for a long time.
        if let Some(binding) = self.get(server)? {
            return Ok(binding);
        }
        self.bind_new(server, owner, at_ms)?;
        self.get(server)?.ok_or_else(|| StoreError::Replaced(self.database.clone()))
    }

    /// Replaces the owner if it is still `from`, and returns whether it was.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn carry_over(&self, server: &str, from: &str, to: &str) -> Result<bool, StoreError> {
        self.change(
            "UPDATE bindings SET owner = ?3, found = NULL WHERE server = ?1 AND owner = ?2",
            params![server, from, to],
        )
    }

    /// Rebinds a name that has no grants or data to another owner.
    pub fn bind_anew(&self, server: &str, owner: &str, at_ms: u64) -> Result<(), StoreError> {
        self.change(
            "UPDATE bindings SET owner = ?2, since_ms = ?3, found = NULL, decided = NULL WHERE server = ?1",
            params![server, owner, signed(at_ms)],
        )?;
        Ok(())
    }

    /// Records the identity found in place of the owner, or `None` when the owner was found again.
    pub fn found(&self, server: &str, found: Option<&str>) -> Result<(), StoreError> {
        let update = "UPDATE bindings SET found = ?2 WHERE server = ?1 AND found IS NOT ?2";
        self.change(update, params![server, found])?;
        Ok(())
    }

    /// Applies the user's decision and makes the found identity the owner. Returns `false` if another identity was
    /// found since, or the decision was already made.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn decide(&self, server: &str, found: &str, decision: IdentityDecision) -> Result<bool, StoreError> {
        self.change(
            "UPDATE bindings SET owner = found, found = NULL, decided = ?3 WHERE server = ?1 AND found = ?2",
            params![server, found, decision.name()],
        )
    }

    /// Clears a decision once it is recorded.
    pub fn decision_recorded(&self, server: &str) -> Result<(), StoreError> {
        self.change("UPDATE bindings SET decided = NULL WHERE server = ?1", params![server])?;
        Ok(())
    }

    /// Returns whether the database is from an older version whose names are not bound yet.
    pub fn are_outstanding(&self) -> Result<bool, StoreError> {
        let query = "SELECT 1 FROM steps WHERE name = 'bound'";
        Ok(self.with(|connection| connection.query_row(query, [], |_| Ok(())).optional())? == Some(None))
    }

    /// Binds the names of an older database, all or none, each to its owner if known.
    pub fn bind_existing(&self, all: &[(String, Option<String>)], at_ms: u64) -> Result<(), StoreError> {
        let bound = self.with(|connection| {
            let change = connection.transaction()?;
            for (server, owner) in all {
                change.execute(
                    "INSERT OR IGNORE INTO bindings (server, owner, since_ms) VALUES (?1, ?2, ?3)",
                    params![server, owner, signed(at_ms)],
                )?;
            }
            change
                .execute("INSERT OR IGNORE INTO steps (name, at_ms) VALUES ('bound', ?1)", [signed(at_ms)])?;
            change.commit()
        })?;
        bound.ok_or_else(|| StoreError::Replaced(self.database.clone()))
    }

    /// Runs one change and returns whether it affected a row.
    fn change(&self, statement: &str, values: impl rusqlite::Params) -> Result<bool, StoreError> {
        let changed = self.with(|connection| connection.execute(statement, values))?;
        Ok(changed.unwrap_or_default() > 0)
    }

    fn with<T>(
        &self,
        then: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<Option<T>, StoreError> {
        let Some(mut connection) = schema::open_current(&self.database)? else { return Ok(None) };
        let failed = |source| StoreError::Database { path: self.database.clone(), source };
        then(&mut connection).map(Some).map_err(failed)
    }
}

fn binding(row: &Row<'_>) -> Result<Binding, rusqlite::Error> {
    let decided: Option<String> = row.get("decided")?;
    Ok(Binding {
        server: row.get("server")?,
        owner: row.get("owner")?,
        found: row.get("found")?,
        decided: decided
            .and_then(|name| IdentityDecision::ALL.into_iter().find(|decision| decision.name() == name)),
    })
}

fn signed(at_ms: u64) -> i64 {
    i64::try_from(at_ms).unwrap_or(i64::MAX)
}
