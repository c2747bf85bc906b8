//! Table of pinned tools. A pin is the definition of a tool that the server listed first, or that the user accepted
//! later.
//!
//! - Definitions are compared as text, in one canonical form.
//! - A definition that differs from its pin suspends the tool until the user decides. A tool that disappears keeps
//!   its pin, so that removing and adding the tool does not replace its definition.
//! - A tool that is added later is pinned and marked as new until the user has seen it.
//! - The trusted process compares definitions and suspends tools. Only the user's own programs record the user's
//!   decisions, by writing to the same table. No request on the socket can make such a decision.

use super::StoreError;
use super::listed_definition::ListedDefinition;
use super::store::schema;
use rusqlite::{Connection, Row, Transaction, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Deletes a server's stored tool lists, which were made with its pins.
const FORGET_LISTS: &str = "DELETE FROM tool_lists WHERE server = ?1";

/// Maximum number of a server's tools that can be pinned for one kind of client. A longer list is rejected.
pub const MAX_TOOLS: usize = 2000;

/// Server and kind of client for which a list of tools is intended. Some servers offer different tools to different
/// clients.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PinKey {
    /// Identity of the server.
    pub server: String,
    /// The client's capabilities, in canonical form.
    pub capabilities: String,
}

/// List of tools as a server returns it.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a> {
    /// Tools in the server's order.
    pub tools: &'a [ListedDefinition],
    /// `true` for a complete list on one page. Pinned tools that are missing from the list were removed from the
    /// server, and unpinned tools were added to it later.
    pub is_complete: bool,
}

/// Stored pin of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPin {
    /// Capabilities of the clients to which the pin applies.
    pub capabilities: String,
    /// Name of the tool.
    pub tool: String,
    /// Pinned definition.
    pub definition: String,
    /// Different definition that the server listed last, if any.
    pub found: Option<String>,
    /// The user's decision about the different definition, if any.
    pub decided: Option<PinDecision>,
    /// Position in the server's latest list; `None` if the server no longer lists the tool.
    pub position: Option<u64>,
    /// `true` if the server added the tool after its first list and the user has not seen the tool.
    pub is_new: bool,
}

/// The user's decision about a changed definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinDecision {
    /// Agents continue to use the pinned definition.
    Keep,
    /// The changed definition becomes the pin.
    Update,
    /// Agents can no longer use the tool.
    Remove,
}

/// State of a listed tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinState {
    /// The tool was not pinned before, and is pinned now.
    New,
    /// The definition matches its pin.
    Unchanged,
    /// The definition differs from its pin, and the user has not decided. Agents receive the pinned definition.
    Suspended {
        /// Pinned definition.
        pinned: String,
        /// `true` if the definition was not seen before.
        is_first_seen: bool,
    },
    /// The definition differs from its pin, which the user has decided to keep.
    Kept {
        /// Pinned definition.
        pinned: String,
    },
    /// The definition differed from its pin, and the user removed the tool.
    Removed,
}

impl PinDecision {
    fn name(self) -> Option<&'static str> {
        match self {
            Self::Keep => Some("keep"),
            Self::Remove => Some("remove"),
            Self::Update => None,
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::Keep, Self::Remove].into_iter().find(|decision| decision.name() == Some(name))
    }
}

impl ToolPin {
    /// Returns `true` if calls to the tool are refused until the user decides.
    #[must_use]
    pub fn is_suspended(&self) -> bool {
        self.found.is_some() && self.decided.is_none()
    }

    /// Returns `true` if the user must decide: the tool is suspended, and its server still lists it.
    #[must_use]
    pub fn needs_decision(&self) -> bool {
        self.is_suspended() && self.position.is_some()
    }

    /// Returns `true` if the user removed the tool.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.decided == Some(PinDecision::Remove)
    }

    /// Returns the definition that the server listed last.
    #[must_use]
    pub fn listed(&self) -> &str {
        self.found.as_deref().unwrap_or(&self.definition)
    }
}

/// Table of pins in the grants database.
#[derive(Debug, Clone)]
pub struct Pins {
    database: PathBuf,
}

impl Pins {
    /// Creates a handle to the table in this database.
    #[must_use]
    pub fn of(database: &Path) -> Self {
        Self { database: database.to_path_buf() }
    }

    /// Compares a list of tools with their pins, pins new tools, and returns the state of each tool in order. With
    /// `only_warn`, a changed definition becomes the pin at once, and its state is [`PinState::Suspended`] with
    /// `is_first_seen`.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be used. In that case, nothing is pinned.
    pub fn compare(
        &self,
        key: &PinKey,
        listing: Listing<'_>,
        only_warn: bool,
        at_ms: u64,
    ) -> Result<Vec<PinState>, StoreError> {
        let listed = listing.tools;
        self.with(|connection| {
            let pins = by_tool(pins_for_key(connection, key)?);
            let is_pinned = |(position, listed): (u64, &ListedDefinition)| {
                pins.get(&listed.tool).is_some_and(|pin| {
                    let is_same = pin.found.is_none() && pin.definition == listed.definition;
                    is_same && pin.decided.is_none() && pin.position == Some(position)
                })
            };
            let positioned = pins.values().filter(|pin| pin.position.is_some()).count();
            // An unchanged list, the usual case, needs no lock.
            if (!listing.is_complete || positioned == listed.len()) && (0..).zip(listed).all(is_pinned) {
                return Ok(listed.iter().map(|_| PinState::Unchanged).collect());
            }
            let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut pins = by_tool(pins_for_key(&change, key)?);
            let is_new = listing.is_complete && !pins.is_empty();
            if listing.is_complete {
                let unlisted = "UPDATE pins SET position = NULL WHERE server = ?1 AND capabilities = ?2";
                change.execute(unlisted, params![key.server, key.capabilities])?;
            }
            let mut states = Vec::new();
            for (position, listed) in (0_i64..).zip(listed) {
                states.push(match pins.get(&listed.tool) {
                    None => pin_new(&change, (key, listed), is_new, at_ms)?,
                    Some(pin) => compare_with_pin(&change, (key, pin), &listed.definition, only_warn)?,
                });
                change.execute(
                    "UPDATE pins SET position = ?4 WHERE server = ?1 AND capabilities = ?2 AND tool = ?3",
                    params![key.server, key.capabilities, listed.tool, position],
                )?;
                // A second tool with this name in the same list is compared with the first.
                pins.entry(listed.tool.clone()).or_insert_with(|| ToolPin {
                    capabilities: key.capabilities.clone(),
                    tool: listed.tool.clone(),
                    definition: listed.definition.clone(),
                    found: None,
                    decided: None,
                    position: None,
                    is_new,
                });
            }
            change.commit()?;
            Ok(states)
        })
    }

    /// Returns a server's pins for clients with these capabilities.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub fn for_client(&self, key: &PinKey) -> Result<Vec<ToolPin>, StoreError> {
        self.with(|connection| pins_for_key(connection, key))
    }

    /// Returns all of a server's pins. Returns no pins if the daemon has not created the table yet.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be read.
    pub fn for_server(&self, server: &str) -> Result<Vec<ToolPin>, StoreError> {
        let pins = self.with_existing(|connection| {
            let query = "SELECT * FROM pins WHERE server = ?1 ORDER BY tool, capabilities";
            connection.prepare(query)?.query_map([server], pin)?.collect::<Result<Vec<_>, _>>()
        })?;
        Ok(pins.unwrap_or_default())
    }

    /// Applies the user's decision to every pin of a tool whose listed definition is `listed`. Returns `false` if there
    /// is no such pin.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be written.
    pub fn decide(
        &self,
        server: &str,
        (tool, listed): (&str, &str),
        decision: PinDecision,
    ) -> Result<bool, StoreError> {
        let change = match decision {
            PinDecision::Update => {
                "UPDATE pins SET definition = ?3, found = NULL, decided = ?4, is_new = 0
                 WHERE server = ?1 AND tool = ?2 AND COALESCE(found, definition) = ?3"
            }
            PinDecision::Keep => {
                "UPDATE pins SET decided = ?4, is_new = 0 WHERE server = ?1 AND tool = ?2 AND found = ?3"
            }
            PinDecision::Remove => {
                "UPDATE pins SET decided = ?4, is_new = 0
                 WHERE server = ?1 AND tool = ?2 AND COALESCE(found, definition) = ?3"
            }
        };
        let changed = self.with(|connection| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let changed = all.execute(change, params![server, tool, listed, decision.name()])?;
            all.execute(FORGET_LISTS, [server])?;
            all.commit()?;
            Ok(changed)
        })?;
        Ok(changed > 0)
    }

    /// Removes all of a server's pins. Call this after the user has accepted all of the server's new definitions.
    ///
    /// # Errors
    /// Returns [`StoreError`] if the database cannot be written.
    pub fn forget(&self, server: &str) -> Result<(), StoreError> {
        self.with_existing(|connection| {
            let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            all.execute("DELETE FROM pins WHERE server = ?1", [server])?;
            all.execute(FORGET_LISTS, [server])?;
            all.commit()
        })?;
        Ok(())
    }

    fn with<T>(
        &self,
        then: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        self.with_existing(then)?.ok_or_else(|| StoreError::Replaced(self.database.clone()))
    }

    fn with_existing<T>(
        &self,
        then: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<Option<T>, StoreError> {
        schema::with_current(&self.database, then)
    }
}

fn by_tool(pins: Vec<ToolPin>) -> HashMap<String, ToolPin> {
    pins.into_iter().map(|pin| (pin.tool.clone(), pin)).collect()
}

fn pins_for_key(connection: &Connection, key: &PinKey) -> Result<Vec<ToolPin>, rusqlite::Error> {
    let query = "SELECT * FROM pins WHERE server = ?1 AND capabilities = ?2";
    connection.prepare(query)?.query_map([&key.server, &key.capabilities], pin)?.collect()
}

fn pin_new(
    change: &Transaction<'_>,
    (key, listed): (&PinKey, &ListedDefinition),
    is_new: bool,
    at_ms: u64,
) -> Result<PinState, rusqlite::Error> {
    change.execute(
        "INSERT INTO pins (server, capabilities, tool, definition, since_ms, is_new) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            key.server,
            key.capabilities,
            listed.tool,
            listed.definition,
            i64::try_from(at_ms).unwrap_or(i64::MAX),
            is_new,
        ],
    )?;
    Ok(PinState::New)
}

/// Compares a listed definition with its pin, and stores any difference.
fn compare_with_pin(
    change: &Transaction<'_>,
    (key, pin): (&PinKey, &ToolPin),
    definition: &str,
    only_warn: bool,
) -> Result<PinState, rusqlite::Error> {
    let store = |definition: &str, found: Option<&str>, decided: Option<PinDecision>| {
        change.execute(
            "UPDATE pins SET definition = ?4, found = ?5, decided = ?6
             WHERE server = ?1 AND capabilities = ?2 AND tool = ?3",
            params![
                key.server,
                key.capabilities,
                pin.tool,
                definition,
                found,
                decided.and_then(PinDecision::name)
            ],
        )
    };
    let is_same = pin.definition == definition;
    if pin.is_removed() {
        return Ok(PinState::Removed);
    }
    if is_same {
        if pin.found.is_some() {
            store(definition, None, None)?;
        }
        return Ok(PinState::Unchanged);
    }
    let pinned = pin.definition.clone();
    if only_warn {
        store(definition, None, None)?;
        return Ok(PinState::Suspended { pinned, is_first_seen: true });
    }
    let is_known = pin.found.as_deref() == Some(definition);
    match pin.decided {
        Some(_) if is_known => Ok(PinState::Kept { pinned }),
        Some(_) | None => {
            if !is_known {
                store(&pinned, Some(definition), None)?;
            }
            Ok(PinState::Suspended { pinned, is_first_seen: !is_known })
        }
    }
}

fn pin(row: &Row<'_>) -> Result<ToolPin, rusqlite::Error> {
    let decided: Option<String> = row.get("decided")?;
    Ok(ToolPin {
        capabilities: row.get("capabilities")?,
        tool: row.get("tool")?,
        definition: row.get("definition")?,
        found: row.get("found")?,
        decided: decided.as_deref().and_then(PinDecision::parse),
        position: row.get::<_, Option<i64>>("position")?.map(|at| u64::try_from(at).unwrap_or_default()),
        is_new: row.get("is_new")?,
    })
}

#[cfg(test)]
mod tests;
