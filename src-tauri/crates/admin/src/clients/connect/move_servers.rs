//! Moves a client's own servers to IronCurtain's configuration, as far as they can be moved.

use super::{UnmovedEntry, UnmovedReason};
use crate::catalog::{GivenSecrets, ValidatedEntry, validate};
use crate::clients::{ClientError, Clients};
use crate::file_edit;
use crate::plain_secrets::{self, PlainSecret};
use crate::servers_file::ServersFile;
use ironcurtain_client_config::{Edit, SettingsEntry};
use ironcurtain_config::Servers;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A client's servers that are moved to IronCurtain's configuration.
pub(super) struct MovedServers {
    pub(super) servers: (PathBuf, Edit),
    pub(super) secrets: Vec<PlainSecret>,
    pub(super) names: Vec<String>,
    pub(super) unmoved: Vec<UnmovedEntry>,
}

impl Clients {
    /// Converts a client's entries to entries in IronCurtain's configuration.
    pub(super) fn move_servers<'a>(
        &self,
        entries: impl Iterator<Item = &'a SettingsEntry>,
        with_secrets: bool,
        given: &GivenSecrets,
    ) -> Result<MovedServers, ClientError> {
        let servers = ServersFile::open(&self.home)?;
        let mut text = servers.text.clone();
        let existing = servers.servers(&text)?;
        let (mut names, mut unmoved) = (Vec::new(), Vec::new());
        for entry in entries {
            match to_server_entry(entry, &existing, given) {
                Err(reason) => unmoved.push(UnmovedEntry { name: entry.name.clone(), reason }),
                Ok(value) => {
                    if let Some(value) = value {
                        text = file_edit::set(&servers.file, &text, &[entry.name.as_str()], &value)?;
                    }
                    names.push(entry.name.clone());
                }
            }
        }
        let mut secrets = Vec::new();
        if with_secrets {
            (text, secrets) = plain_secrets::extract_secrets(&servers.file, &text, |name| {
                names.iter().any(|moved| moved == name)
            })?;
        }
        let text = servers.validate(text)?;
        let ServersFile { file, before, .. } = servers;
        let after = Some(text).filter(|_| !names.is_empty()).or_else(|| before.clone());
        Ok(MovedServers { servers: (file, Edit { before, after }), secrets, names, unmoved })
    }
}

/// Converts a client's entry to an `mcp-servers.json` entry. Returns `None` if the same server is already configured.
fn to_server_entry(
    entry: &SettingsEntry,
    existing: &Servers,
    given: &GivenSecrets,
) -> Result<Option<Value>, UnmovedReason> {
    let Some(launch) = &entry.launch else {
        return Err(entry.url.clone().map_or(UnmovedReason::Unknown, UnmovedReason::Remote));
    };
    let words = std::iter::once(&launch.command).chain(&launch.args).chain(launch.env.values());
    if let Some(word) = words.into_iter().find(|word| word.contains("${")) {
        return Err(UnmovedReason::Variable(word.clone()));
    }
    match existing.find(Some(&entry.name)) {
        Some(same) if same.command == launch.command && same.args == launch.args => Ok(None),
        Some(other) => Err(UnmovedReason::Taken(other.command_line())),
        None => {
            let fields = [
                ("command", json!(launch.command)),
                ("args", json!(launch.args)),
                ("env", json!(launch.env)),
            ];
            let fields = fields.into_iter().filter(|(key, _)| *key != "env" || !launch.env.is_empty());
            let entry = fields.map(|(key, value)| (key.to_owned(), value)).collect();
            let ValidatedEntry { mut entry, .. } = validate(entry, given)?;
            entry.insert("unannotated".to_owned(), json!("ask"));
            Ok(Some(Value::Object(entry)))
        }
    }
}
