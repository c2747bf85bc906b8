//! The table that says to whom the things under a server's name belong: one row for each name, with the identity of its owner.
//!
//! - Identities are texts here, which `server_identity` writes and compares.
//! - The trusted process binds and suspends. The user's own programs decide, in the same table: nothing on the socket does.
//! - Every change is one statement, so that two processes cannot mix theirs.

use super::StoreError;
use super::store::schema;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::{Path, PathBuf};

/// To whom the things under a server's name belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The server's name.
    pub server: String,
    /// The identity of the owner. Nothing, where it is not known: then every program is another one.
    pub owner: Option<String>,
    /// The identity that was found under the name and is not the owner's: then all of it is suspended.
    pub found: Option<String>,
    /// The user's decision, until it is on record.
    pub decided: Option<IdentityDecision>,
}

/// The user's decision about the things under a name that another program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityDecision {
    /// The new program gets them.
    Keep,
    /// They are put aside.
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

/// The table, in the database of grants.
#[derive(Debug, Clone)]
pub struct Bindings {
    database: PathBuf,
}

impl Bindings {
    /// The table in this database.
    #[must_use]
    pub fn of(database: &Path) -> Self {
        Self { database: database.to_path_buf() }
    }

    /// All rows, by name. None, where the trusted process has made no such table yet.
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

    /// The row of a server.
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

    /// Binds a name, unless it is bound, and returns whose it is.
    pub fn bound(&self, server: &str, owner: &str, at_ms: u64) -> Result<Binding, StoreError> {
        // A look needs no lock, which writers may hold for long.
        if let Some(binding) = self.get(server)? {
            return Ok(binding);
        }
        self.bind_new(server, owner, at_ms)?;
        self.get(server)?.ok_or_else(|| StoreError::Replaced(self.database.clone()))
    }

    /// Changes the owner, if it is still this one. Returns whether it was.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn carry_over(&self, server: &str, from: &str, to: &str) -> Result<bool, StoreError> {
        self.change(
            "UPDATE bindings SET owner = ?3, found = NULL WHERE server = ?1 AND owner = ?2",
            params![server, from, to],
        )
    }

    /// Gives a name with nothing under it to another owner.
    pub fn bind_anew(&self, server: &str, owner: &str, at_ms: u64) -> Result<(), StoreError> {
        self.change(
            "UPDATE bindings SET owner = ?2, since_ms = ?3, found = NULL, decided = NULL WHERE server = ?1",
            params![server, owner, signed(at_ms)],
        )?;
        Ok(())
    }

    /// Notes the identity that was found in the place of the owner; nothing, where it is the owner again.
    pub fn found(&self, server: &str, found: Option<&str>) -> Result<(), StoreError> {
        let update = "UPDATE bindings SET found = ?2 WHERE server = ?1 AND found IS NOT ?2";
        self.change(update, params![server, found])?;
        Ok(())
    }

    /// The user decided about what was found: it is the owner from now on. Returns `false` where something else was found meanwhile, or
    /// somebody decided before.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn decide(&self, server: &str, found: &str, decision: IdentityDecision) -> Result<bool, StoreError> {
        self.change(
            "UPDATE bindings SET owner = found, found = NULL, decided = ?3 WHERE server = ?1 AND found = ?2",
            params![server, found, decision.name()],
        )
    }

    /// The decision is on record.
    pub fn decision_recorded(&self, server: &str) -> Result<(), StoreError> {
        self.change("UPDATE bindings SET decided = NULL WHERE server = ?1", params![server])?;
        Ok(())
    }

    /// Returns `true` if the database is of an older version's making, and nothing in it is bound yet.
    pub fn are_outstanding(&self) -> Result<bool, StoreError> {
        let query = "SELECT 1 FROM steps WHERE name = 'bound'";
        Ok(self.with(|connection| connection.query_row(query, [], |_| Ok(())).optional())? == Some(None))
    }

    /// Binds the names of an older version's database, each to its owner if that is known, all or none.
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

    /// Makes one change; returns whether there was something to change.
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
