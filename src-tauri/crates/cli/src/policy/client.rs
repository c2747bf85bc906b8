//! The standing grants of one client, read from the database beside the trusted process.

use crate::sheet::Sheet;
use anyhow::bail;
use ironcurtain_daemon::{Files, Granted, Home, StandingGrant};
use ironcurtain_policy::{Access, GrantKind, HostGrant, PathGrant, ToolGrant};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The standing grants that a client holds with one server.
pub struct HeldGrants {
    /// The client's executable, else what it was called.
    client: String,
    grants: Vec<StandingGrant>,
}

impl HeldGrants {
    /// Reads the grants of a client that is named by its executable or, where only one has it, by its name.
    pub fn read(home: &Home, client: &str, server: &str) -> anyhow::Result<Self> {
        let all = StandingGrant::on_disk(&home.database())?;
        let key = key_of(client, &all)?;
        let is_held = |grant: &StandingGrant| grant.subject.client == key && grant.subject.server == server;
        let grants = all.into_iter().filter(is_held).collect();
        Ok(Self { client: key, grants })
    }

    pub fn for_judging(&self) -> Vec<PathGrant> {
        self.grants.iter().filter_map(StandingGrant::for_judging).collect()
    }

    pub fn for_gate(&self) -> Vec<HostGrant> {
        self.grants.iter().filter_map(StandingGrant::for_gate).collect()
    }

    pub fn for_tools(&self) -> Vec<ToolGrant> {
        self.grants.iter().filter_map(StandingGrant::for_tool).collect()
    }

    pub fn in_words(&self) -> Sheet {
        let mut text = Sheet::default();
        text.line(match self.grants.len() {
            0 => format!("`{}` holds no standing grants with this server.", self.client),
            count => format!("`{}` holds {count} standing grants with this server:", self.client),
        });
        for grant in &self.grants {
            let reach = if kind(grant) == "folder" { " and below" } else { "" };
            let accesses = accesses(grant).join("+");
            text.line(format_args!("  `{}`: {accesses} {}{reach}", grant.id, grant.what));
        }
        text.line("Grants that end with their session are not part of this.");
        text
    }

    pub fn as_json(&self) -> Value {
        let grants = self.grants.iter().map(|grant| {
            json!({
                "id": grant.id, "path": grant.what.to_string(), "access": accesses(grant), "kind": kind(grant),
            })
        });
        json!({ "key": self.client, "grants": grants.collect::<Vec<_>>() })
    }
}

/// The executable, which grants are tied to. A client that holds nothing is taken at its word.
fn key_of(client: &str, all: &[StandingGrant]) -> anyhow::Result<String> {
    let subjects = || all.iter().map(|grant| &grant.subject);
    if subjects().any(|subject| subject.client == client) {
        return Ok(client.to_owned());
    }
    let named = subjects().filter(|subject| subject.client_name == client);
    let mut keys: BTreeSet<&str> = named.map(|subject| subject.client.as_str()).collect();
    match (keys.pop_first(), keys.is_empty()) {
        (None, _) => Ok(client.to_owned()),
        (Some(only), true) => Ok(only.to_owned()),
        (Some(first), false) => {
            let others: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
            bail!("several clients are called `{client}`: name `{first}` or {}", others.join(" or "))
        }
    }
}

fn accesses(grant: &StandingGrant) -> Vec<&'static str> {
    let files = match &grant.what {
        Granted::Files(files) => files,
        Granted::Host(_) => return vec!["reach"],
        Granted::Tool(_) => return vec!["use"],
    };
    let words = [(Access::Read, "read"), (Access::Write, "write"), (Access::Delete, "delete")];
    words.iter().filter(|(access, _)| files.access.has(*access)).map(|(_, word)| *word).collect()
}

fn kind(grant: &StandingGrant) -> &'static str {
    match &grant.what {
        Granted::Files(Files { kind: GrantKind::Tree, .. }) => "folder",
        Granted::Files(Files { kind: GrantKind::File, .. }) => "file",
        Granted::Host(_) => "host",
        Granted::Tool(_) => "tool",
    }
}
