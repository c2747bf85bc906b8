//! Formats a client's permanent grants.

use crate::text_lines::TextLines;
use ironcurtain_admin::trial::ClientGrants;
use ironcurtain_grants::{Files, Granted, StandingGrant};
use ironcurtain_policy::{Access, GrantKind};
use serde_json::{Value, json};

pub fn to_text(held: &ClientGrants) -> TextLines {
    let mut text = TextLines::default();
    text.line(match held.grants.len() {
        0 => format!("`{}` has no permanent grants for this server.", held.client),
        count => format!("`{}` has {count} permanent grants for this server:", held.client),
    });
    for grant in &held.grants {
        let reach = if kind(grant) == "folder" { " and below" } else { "" };
        let accesses = accesses(grant).join("+");
        text.line(format_args!("  `{}`: {accesses} {}{reach}", grant.id, grant.what));
    }
    text.line("Grants that end with their session were not considered.");
    text
}

pub fn as_json(held: &ClientGrants) -> Value {
    let grants = held.grants.iter().map(|grant| {
        json!({
            "id": grant.id, "path": grant.what.to_string(), "access": accesses(grant), "kind": kind(grant),
        })
    });
    json!({ "key": held.client, "grants": grants.collect::<Vec<_>>() })
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
