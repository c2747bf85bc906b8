//! Binds each server name to the program that owns the grants and data stored under the name.
//!
//! - Identities are opaque text here. The `server-identity` crate creates and compares them.
//! - The daemon binds and suspends names. The user's own programs write the user's decisions to the same table. No
//!   request on the socket can make such a decision.
//! - Every change is a single statement or transaction, so that concurrent processes cannot interleave their changes.

use super::StoreError;
use super::store::schema;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::{Path, PathBuf};

/// Binding of a server name to the program that owns the grants and data under that name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Name of the server.
    pub server: String,
    /// Identity of the owner, or `None` if it is unknown. An unknown owner differs from every program.
    pub owner: Option<String>,
    /// Identity of a different program that now uses the name, if any. While this field is set, the grants and data are
    /// suspended.
    pub found: Option<String>,
    /// The user's decision about the different program. Kept until the audit log contains the decision.
    pub decided: Option<IdentityDecision>,
}

/// The user's decision about a name that a different program now uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityDecision {
    /// Transfer the grants and data to the new program.
    Keep,
    /// Set the grants and data aside, and start without them.
    StartFresh,
}

impl IdentityDecision {
    const ALL: [Self; 2] = [Self::Keep, Self::StartFresh];

    fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::StartFresh => "start-afresh",
        }
    }
}

/// Table of bindings in the grant database.
#[derive(Debug, Clone)]
pub struct Bindings {
    database: PathBuf,
}

impl Bindings {
    /// Creates a handle to the table in this database.
    #[must_use]
    pub fn of(database: &Path) -> Self {
        Self { database: database.to_path_buf() }
    }

    /// Returns all bindings, sorted by name. Empty if the daemon has not created the table yet.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub fn all(&self) -> Result<Vec<Binding>, StoreError> {
        let all = self.with(|connection| {
            let mut statement = connection.prepare("SELECT * FROM bindings ORDER BY server")?;
            let rows = statement.query_map([], binding)?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(all.unwrap_or_default())
    }

    /// Returns a server's binding, or `None` if its name is unbound.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
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

    /// Returns a server's binding. If the name is unbound, first binds it to `owner`.
    pub fn get_or_bind(&self, server: &str, owner: &str, at_ms: u64) -> Result<Binding, StoreError> {
        // Reads first, because writing needs the database lock, which another process may hold for a long time.
        if let Some(binding) = self.get(server)? {
            return Ok(binding);
        }
        self.bind_new(server, owner, at_ms)?;
        self.get(server)?.ok_or_else(|| StoreError::Replaced(self.database.clone()))
    }

    /// Replaces the owner `from` with `to`. Returns `false` if `from` is not the owner.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be written.
    pub fn replace_owner(&self, server: &str, from: &str, to: &str) -> Result<bool, StoreError> {
        self.change(
            "UPDATE bindings SET owner = ?3, found = NULL WHERE server = ?1 AND owner = ?2",
            params![server, from, to],
        )
    }

    /// Replaces the owner of a name that has no grants or data.
    pub fn rebind(&self, server: &str, owner: &str, at_ms: u64) -> Result<(), StoreError> {
        self.change(
            "UPDATE bindings SET owner = ?2, since_ms = ?3, found = NULL, decided = NULL WHERE server = ?1",
            params![server, owner, signed(at_ms)],
        )?;
        Ok(())
    }

    /// Records the identity of a different program that uses the name, or `None` when the owner uses it again.
    pub fn set_found(&self, server: &str, found: Option<&str>) -> Result<(), StoreError> {
        let update = "UPDATE bindings SET found = ?2 WHERE server = ?1 AND found IS NOT ?2";
        self.change(update, params![server, found])?;
        Ok(())
    }

    /// Makes the identity `found` the owner and records the user's decision. Returns `false` if a different identity
    /// was found in the meantime or a decision was already made.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be written.
    pub fn decide(&self, server: &str, found: &str, decision: IdentityDecision) -> Result<bool, StoreError> {
        self.change(
            "UPDATE bindings SET owner = found, found = NULL, decided = ?3 WHERE server = ?1 AND found = ?2",
            params![server, found, decision.name()],
        )
    }

    /// Clears a decision after it was recorded in the audit log.
    pub fn clear_decision(&self, server: &str) -> Result<(), StoreError> {
        self.change("UPDATE bindings SET decided = NULL WHERE server = ?1", params![server])?;
        Ok(())
    }

    /// Returns `true` if the database was written by an older version and its names must still be bound.
    pub fn needs_migration(&self) -> Result<bool, StoreError> {
        let query = "SELECT 1 FROM steps WHERE name = 'bound'";
        Ok(self.with(|connection| connection.query_row(query, [], |_| Ok(())).optional())? == Some(None))
    }

    /// Binds all names in an older version's database to their owners, in one transaction. `None` means that the
    /// owner is unknown.
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

    /// Executes a statement and returns `true` if it changed a row.
    fn change(&self, statement: &str, values: impl rusqlite::Params) -> Result<bool, StoreError> {
        let changed = self.with(|connection| connection.execute(statement, values))?;
        Ok(changed.unwrap_or_default() > 0)
    }

    fn with<T>(
        &self,
        then: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<Option<T>, StoreError> {
        schema::with_current(&self.database, then)
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
