//! Reads a client's permanent grants from the database, without the trusted process.

use super::TrialError;
use ironcurtain_config::home::Home;
use ironcurtain_grants::StandingGrant;
use ironcurtain_policy::{HostGrant, PathGrant, ToolGrant};
use std::collections::BTreeSet;

/// Error if several clients have the given name.
#[derive(Debug, thiserror::Error)]
#[error("several clients are named `{name}`; use {}", .keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(" or "))]
pub struct AmbiguousClient {
    name: String,
    keys: BTreeSet<String>,
}

/// A client's permanent grants for one server.
pub struct ClientGrants {
    /// Executable of the client, or the given name if it has no grants.
    pub client: String,
    /// The client's grants for the server.
    pub grants: Vec<StandingGrant>,
}

impl ClientGrants {
    /// Reads a client's grants for a server. `client` is its executable or a unique name.
    ///
    /// # Errors
    /// Returns [`TrialError::Grants`] if reading fails, or [`TrialError::Client`] if several clients have the name.
    pub fn read(home: &Home, client: &str, server: &str) -> Result<Self, TrialError> {
        let all = StandingGrant::on_disk(&home.database())?;
        let key = client_key(client, &all)?;
        let applies = |grant: &StandingGrant| grant.subject.client == key && grant.subject.server == server;
        let grants = all.into_iter().filter(applies).collect();
        Ok(Self { client: key, grants })
    }

    pub(super) fn path_grants(&self) -> Vec<PathGrant> {
        self.grants.iter().filter_map(StandingGrant::for_judging).collect()
    }

    pub(super) fn host_grants(&self) -> Vec<HostGrant> {
        self.grants.iter().filter_map(StandingGrant::for_gate).collect()
    }

    pub(super) fn tool_grants(&self) -> Vec<ToolGrant> {
        self.grants.iter().filter_map(StandingGrant::for_tool).collect()
    }
}

/// Returns the executable that identifies the client in grants, or the given name if the client has no grants.
fn client_key(client: &str, all: &[StandingGrant]) -> Result<String, AmbiguousClient> {
    let subjects = || all.iter().map(|grant| &grant.subject);
    if subjects().any(|subject| subject.client == client) {
        return Ok(client.to_owned());
    }
    let named = subjects().filter(|subject| subject.client_name == client);
    let keys: BTreeSet<String> = named.map(|subject| subject.client.clone()).collect();
    match keys.len() {
        0 => Ok(client.to_owned()),
        1 => Ok(keys.into_iter().next().unwrap_or_default()),
        _ => Err(AmbiguousClient { name: client.to_owned(), keys }),
    }
}
