//! Tools that servers listed last. A client can read the list before it starts the servers.
//!
//! - Contains the tools as the client received them: pinned definitions of changed tools, and no removed tools.
//! - A client chooses its own kind, so the number of kinds per server is limited, and the newest are kept.
//! - A decision about a server's tools deletes its lists, so a list never outlives the pins with which it was made.

use super::StoreError;
use super::store::schema;
use rusqlite::{OptionalExtension, params};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Maximum number of kinds of clients per server.
const MAX_KINDS: u32 = 32;

/// Maximum length of a kind, in bytes. Lists for a longer kind are not stored.
const MAX_KIND_LEN: usize = 4096;

/// Tools of one server for clients of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedTools {
    /// Capabilities declared by the server, as JSON.
    pub capabilities: String,
    /// Instructions of the server, if any.
    pub instructions: Option<String>,
    /// Definitions of the tools, as JSON in the server's order.
    pub tools: Vec<String>,
}

/// Table of stored tool lists in the grants database.
#[derive(Debug, Clone)]
pub struct ToolListCache {
    database: PathBuf,
}

impl ToolListCache {
    /// Creates a handle to the table in this database.
    #[must_use]
    pub fn of(database: &Path) -> Self {
        Self { database: database.to_path_buf() }
    }

    /// Returns the stored tools of the servers with these identities for one kind of client, in the same order. `None`
    /// means that a server's list is missing or unreadable.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub fn find(&self, servers: &[String], client: &str) -> Result<Vec<Option<CachedTools>>, StoreError> {
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
        tools: Option<&CachedTools>,
    ) -> Result<(), StoreError> {
        if client.len() > MAX_KIND_LEN {
            return Ok(());
        }
        let listed = tools.and_then(|tools| serde_json::to_string(tools).ok());
        schema::with_current(&self.database, |connection| match listed {
            Some(listed) => {
                connection.execute(
                    "INSERT OR REPLACE INTO tool_lists (server, client, listed) VALUES (?1, ?2, ?3)",
                    params![server, client, listed],
                )?;
                connection.execute(
                    "DELETE FROM tool_lists WHERE server = ?1 AND rowid NOT IN
                     (SELECT rowid FROM tool_lists WHERE server = ?1 ORDER BY rowid DESC LIMIT ?2)",
                    params![server, MAX_KINDS],
                )
            }
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
    fn the_kinds_of_clients_are_limited() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        drop(schema::open(&database).unwrap());
        let memory = ToolListCache::of(&database);
        let tools = CachedTools { capabilities: "{}".into(), instructions: None, tools: vec![] };
        let has = |server: &str, client: &str| {
            memory.find(&[server.to_owned()], client).unwrap()[0] == Some(tools.clone())
        };
        memory.remember("other", "0", Some(&tools)).unwrap();
        for kind in 0..=MAX_KINDS {
            memory.remember("a", &kind.to_string(), Some(&tools)).unwrap();
            // A kind whose list is stored again counts as the newest, so it stays.
            memory.remember("a", "usual", Some(&tools)).unwrap();
        }
        assert!(has("a", "usual") && has("a", &MAX_KINDS.to_string()) && has("other", "0"));
        assert!(!has("a", "0") && !has("a", "1"));
        let (longest, longer) = ("k".repeat(MAX_KIND_LEN), "k".repeat(MAX_KIND_LEN + 1));
        for kind in [&longest, &longer] {
            memory.remember("a", kind, Some(&tools)).unwrap();
        }
        assert!(has("a", &longest) && !has("a", &longer));
    }

    #[test]
    fn tools_are_remembered_until_the_user_decides_about_one_of_them() {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        drop(schema::open(&database).unwrap());
        let (memory, pins) = (ToolListCache::of(&database), Pins::of(&database));
        let tools = CachedTools {
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
            pins.compare(&key, Listing { tools: &tools, is_complete: true }, false, 1).unwrap();
        };
        listed("1");
        listed("2");
        assert!(pins.decide("a", ("t", "2"), PinDecision::Remove).unwrap());
        assert_eq!((find("a")[0].is_some(), find("b")[0].is_some()), (false, true));
        pins.forget("b").unwrap();
        assert_eq!(find("b"), [None, None]);
    }
}
