//! Tools that servers last listed, so that a client can read the list before it starts the servers.
//!
//! - Contains what the client received: pinned definitions of changed tools, and no removed tools.
//! - A decision about a server's tools deletes its lists, so a list never outlives the pins with which it was made.

use super::StoreError;
use super::store::schema;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Tools of one server for clients of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedTools {
    /// Capabilities declared by the server, as JSON.
    pub capabilities: String,
    /// Instructions of the server, if any.
    pub instructions: Option<String>,
    /// Definitions of the tools, as JSON in the server's order.
    pub tools: Vec<String>,
}

/// Table of remembered tools in the grants database.
#[derive(Debug, Clone)]
pub struct ToolMemory {
    database: PathBuf,
}

impl ToolMemory {
    /// Creates a handle to the table in this database.
    #[must_use]
    pub fn of(database: &Path) -> Self {
        Self { database: database.to_path_buf() }
    }

    /// Returns the remembered tools of the servers with these identities for one kind of client, in the same order.
    /// `None` means that a server's list is missing or unreadable.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub fn find(&self, servers: &[String], client: &str) -> Result<Vec<Option<RememberedTools>>, StoreError> {
        let found = schema::with_current(&self.database, |connection| {
            let mut query =
                connection.prepare("SELECT listed FROM tool_lists WHERE server = ?1 AND client = ?2")?;
            let mut of = |server: &String| {
                query.query_row([server.as_str(), client], |row| row.get::<_, String>(0)).optional()
            };
            servers.iter().map(&mut of).collect::<Result<Vec<_>, _>>()
        })?;
        let found = found.unwrap_or_else(|| servers.iter().map(|_| None).collect());
        Ok(found.into_iter().map(|listed| serde_json::from_str(&listed?).ok()).collect())
    }

    /// Stores the tools of a server for one kind of client. `None` deletes the stored tools.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be written.
    pub fn remember(
        &self,
        server: &str,
        client: &str,
        tools: Option<&RememberedTools>,
    ) -> Result<(), StoreError> {
        let listed = tools.and_then(|tools| serde_json::to_string(tools).ok());
        schema::with_current(&self.database, |connection| match listed {
            Some(listed) => connection.execute(
                "INSERT OR REPLACE INTO tool_lists (server, client, listed) VALUES (?1, ?2, ?3)",
                params![server, client, listed],
            ),
            None => connection
                .execute("DELETE FROM tool_lists WHERE server = ?1 AND client = ?2", params![server, client]),
        })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ListedDefinition, Listing, PinDecision, PinKey, Pins};

    #[test]
    fn tools_are_remembered_until_the_user_decides_about_one_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        drop(schema::open(&database).unwrap());
        let (memory, pins) = (ToolMemory::of(&database), Pins::of(&database));
        let tools = RememberedTools {
            capabilities: r#"{"tools":{}}"#.to_owned(),
            instructions: Some("Look first.".to_owned()),
            tools: vec![r#"{"name":"t"}"#.to_owned()],
        };
        let find = |server: &str| memory.find(&[server.to_owned(), "none".to_owned()], "c").unwrap();
        for server in ["a", "b"] {
            memory.remember(server, "c", Some(&tools)).unwrap();
            assert_eq!(find(server), [Some(tools.clone()), None]);
        }
        assert_eq!(memory.find(&["a".to_owned()], "another client").unwrap(), [None]);
        memory.remember("gone", "c", Some(&tools)).unwrap();
        memory.remember("gone", "c", None).unwrap();
        assert_eq!(find("gone"), [None, None]);
        let key = PinKey { server: "a".to_owned(), capabilities: String::new() };
        let listed = |definition: &str| {
            let tools = [ListedDefinition { tool: "t".to_owned(), definition: definition.to_owned() }];
            pins.compare(&key, Listing { tools: &tools, is_whole: true }, false, 1).unwrap();
        };
        listed("1");
        listed("2");
        assert!(pins.decide("a", ("t", "2"), PinDecision::Remove).unwrap());
        assert_eq!((find("a")[0].is_some(), find("b")[0].is_some()), (false, true));
        pins.forget("b").unwrap();
        assert_eq!(find("b"), [None, None]);
    }
}
