//! Connects and disconnects a client.

mod move_servers;

use super::client_command::ClientCommand;
use super::record::Record;
use super::survey::{command_line, entries};
use super::{ClientError, ClientTarget, Clients};
use crate::catalog::{GivenSecrets, UntrustedEntryError};
use crate::file_edit::FileEditError;
use crate::plain_secrets::{self, PlainSecret};
use ironcurtain_client_config::{Edit, FoundClient, KnownClient, SettingsEntry, ShimSelection, StartCommand};
use ironcurtain_config::{Config, Servers, read};
use ironcurtain_paths::atomic_file;
use ironcurtain_secrets::Secret;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of an entry that provides several servers.
const COMBINED_ENTRY: &str = "ironcurtain";

/// Entries to add to a client's settings.
#[derive(Debug, Clone, Copy)]
pub enum ConnectRequest<'a> {
    /// One entry for each configured server.
    Each,
    /// One entry for this server.
    Server(&'a str),
    /// A single entry for all servers.
    AsOne,
    /// A single entry for the servers of a profile.
    Profile(&'a str),
    /// One entry for each server that the client starts directly. The servers are added to IronCurtain's
    /// configuration.
    Move {
        /// `true` to also move the servers' unprotected secrets to the keyring.
        secrets: bool,
        /// Names of the servers to move, or `None` for all.
        only: Option<&'a [String]>,
        /// Stored secrets that the moved servers receive.
        given: &'a GivenSecrets,
    },
}

/// Planned change to a client's settings. [`Clients::write`] applies it.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientChange {
    /// Display name of the client.
    pub client: &'static str,
    /// Path of the client's settings file.
    pub file: PathBuf,
    /// Change to the settings file.
    pub edit: Edit,
    /// The client's own commands that make the change. Empty if the settings file is edited directly.
    pub commands: Vec<ClientCommand>,
    /// Path of `mcp-servers.json` and its change, if servers are moved to it.
    pub servers: Option<(PathBuf, Edit)>,
    /// Secrets to store in the keyring before anything is written ([`plain_secrets::store_secrets`]).
    pub secrets: Vec<PlainSecret>,
    /// Names of the entries to write or remove.
    pub names: Vec<String>,
    /// Entries that will still bypass IronCurtain after the change.
    pub unmoved: Vec<UnmovedEntry>,
    /// Original values of the replaced entries. `None` for entries that did not exist.
    originals: BTreeMap<String, Option<Value>>,
    /// `true` if no entry started the shim before the change.
    had_no_shim: bool,
    /// `true` if the change connects the client, `false` if it disconnects it.
    is_connecting: bool,
    /// Secrets in the client's settings, which are hidden when the change is displayed.
    hidden: Vec<Secret>,
}

/// An entry that a change leaves unchanged, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmovedEntry {
    /// Name of the entry.
    pub name: String,
    /// Reason the entry is unchanged.
    pub reason: UnmovedReason,
}

/// Reason a client's entry is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnmovedReason {
    /// The entry connects to a remote server.
    #[error("it connects directly to `{0}`")]
    Remote(String),
    /// The entry contains a variable that only the client can replace.
    #[error("it uses `{0}`, which only the client can replace")]
    Variable(String),
    /// A configured server has the same name but a different command.
    #[error("one of your servers already has this name, and starts `{0}`")]
    Taken(String),
    /// The entry has an unrecognized format.
    #[error("its format is not recognized")]
    Unknown,
    /// The entry sets options other than the program or address.
    #[error("it is rejected: {0}")]
    Rejected(#[from] UntrustedEntryError),
    /// The entry has the name of a configured server, but starts a program directly.
    #[error("it starts `{0}` directly; to run it through IronCurtain, use `--move`")]
    Bypassing(String),
}

impl ClientChange {
    /// Returns the diff of the settings, with secrets hidden.
    #[must_use]
    pub fn redacted_diff(&self) -> String {
        plain_secrets::redact(self.edit.diff(), &self.hidden)
    }

    /// Returns the diff of `mcp-servers.json`, with secrets hidden.
    #[must_use]
    pub fn redacted_servers_diff(&self) -> Option<String> {
        self.servers.as_ref().map(|(_, edit)| plain_secrets::redact(edit.diff(), &self.hidden))
    }
}

impl Clients {
    /// Plans the change that connects a client.
    ///
    /// # Errors
    /// Returns a [`ClientError`] if the client or its settings cannot be used.
    pub fn connect(
        &self,
        target: ClientTarget<'_>,
        request: ConnectRequest<'_>,
    ) -> Result<ClientChange, ClientError> {
        let (client, found) = self.find(target)?;
        let file = match found {
            FoundClient::Configured(file) | FoundClient::Installed(file) => file,
            FoundClient::Missing(file) => return Err(ClientError::Missing { client: client.name, file }),
        };
        let existing = entries(client, &file)?;
        let starts_shim = |entry: &SettingsEntry| entry.launch.as_ref().is_some_and(StartCommand::is_shim);
        let entry_named = |name: &str| existing.iter().find(|entry| entry.name == name);
        let servers = Servers::load(&self.home)?;
        let (mut moved, mut unmoved, mut secrets) = (None, Vec::new(), Vec::new());
        let server_entry = |name: String| (self.shim(ShimSelection::Server(&name)), name);
        // Commands and names of the new entries.
        let planned: Vec<(StartCommand, String)> = match request {
            ConnectRequest::AsOne => vec![(self.shim(ShimSelection::All), COMBINED_ENTRY.to_owned())],
            ConnectRequest::Profile(name) if !Config::load(&self.home)?.profiles.contains_key(name) => {
                return Err(ClientError::NoProfile(name.to_owned()));
            }
            ConnectRequest::Profile(name) => {
                vec![(self.shim(ShimSelection::Profile(name)), COMBINED_ENTRY.to_owned())]
            }
            ConnectRequest::Server(name) if servers.find(Some(name)).is_none() => {
                return Err(ClientError::NoServer(name.to_owned()));
            }
            ConnectRequest::Server(name) => vec![server_entry(name.to_owned())],
            ConnectRequest::Each => servers.names().map(|name| server_entry(name.to_owned())).collect(),
            ConnectRequest::Move { secrets: with_secrets, only, given } => {
                let is_movable = |entry: &&SettingsEntry| !entry.is_disabled && !starts_shim(entry);
                let is_selected = |entry: &&SettingsEntry| only.is_none_or(|only| only.contains(&entry.name));
                let is_missing =
                    |name: &&String| !existing.iter().filter(is_movable).any(|one| one.name == **name);
                if let Some(name) = only.into_iter().flatten().find(is_missing) {
                    return Err(ClientError::NothingToMove { client: client.name, name: name.clone() });
                }
                let selected = existing.iter().filter(is_movable).filter(is_selected);
                let moving = self.move_servers(selected, with_secrets, given)?;
                (unmoved, secrets) = (moving.unmoved, moving.secrets);
                moved = Some(moving.servers);
                moving.names.into_iter().map(server_entry).collect()
            }
        };
        let mut launches = Vec::new();
        for (launch, name) in planned {
            let other = entry_named(&name).filter(|entry| !starts_shim(entry) && moved.is_none());
            match (other, request) {
                (None, _) => launches.push((name, launch)),
                (Some(other), ConnectRequest::Each) => {
                    unmoved.push(UnmovedEntry {
                        name,
                        reason: UnmovedReason::Bypassing(describe_launch(other)),
                    });
                }
                (Some(other), _) => {
                    return Err(ClientError::NameInUse {
                        client: client.name,
                        name,
                        starts: describe_launch(other),
                    });
                }
            }
        }
        let text = read(&file)?;
        // Skips an entry that already starts the same command.
        let is_unchanged = |name: &str, launch: &StartCommand| {
            entry_named(name).is_some_and(|entry| entry.launch.as_ref() == Some(launch) && !entry.is_disabled)
        };
        let named: Vec<(&str, &StartCommand)> = launches
            .iter()
            .filter(|(name, launch)| !is_unchanged(name, launch))
            .map(|(name, launch)| (name.as_str(), launch))
            .collect();
        let edit = client
            .add_entries(text.as_deref(), &named)
            .map_err(|problem| ClientError::Document { file: file.clone(), problem })?;
        let is_new = named.iter().all(|(name, _)| entry_named(name).is_none());
        let commands = if target.project.is_none() && is_new {
            named.iter().filter_map(|(name, launch)| ClientCommand::add_entry(client, name, launch)).collect()
        } else {
            Vec::new()
        };
        let names: Vec<String> = launches.into_iter().map(|(name, _)| name).collect();
        let newly_written = names.iter().filter(|name| !entry_named(name).is_some_and(starts_shim));
        let originals = newly_written
            .map(|name| (name.clone(), entry_named(name).map(|entry| entry.value.clone())))
            .collect();
        let had_no_shim = !existing.iter().any(starts_shim);
        let servers = moved.filter(|(_, edit)| !edit.is_empty());
        Ok(ClientChange {
            client: client.name,
            file,
            edit,
            commands,
            servers,
            secrets,
            names,
            unmoved,
            originals,
            had_no_shim,
            is_connecting: true,
            hidden: existing.iter().flat_map(|entry| plain_secrets::secret_values(&entry.value)).collect(),
        })
    }

    /// Plans the change that disconnects a client from a server, or from all servers if `server` is `None`.
    ///
    /// # Errors
    /// Returns a [`ClientError`] if the client or its settings cannot be used.
    pub fn disconnect(
        &self,
        target: ClientTarget<'_>,
        server: Option<&str>,
    ) -> Result<ClientChange, ClientError> {
        let (client, found) = self.find(target)?;
        let file = found.file().to_path_buf();
        let ours: Vec<SettingsEntry> = entries(client, &file)?
            .into_iter()
            .filter(|entry| entry.launch.as_ref().is_some_and(StartCommand::is_shim))
            .collect();
        let is_selected = |entry: &&SettingsEntry| server.is_none_or(|server| entry.name == server);
        let names: Vec<String> = ours.iter().filter(is_selected).map(|entry| entry.name.clone()).collect();
        if names.is_empty() {
            return Err(ClientError::NotConnected(client.name));
        }
        let record = Record::open(&self.home)?;
        let text = read(&file)?;
        let original =
            if names.len() == ours.len() { record.original_contents(&file, text.as_deref())? } else { None };
        let edit = match original {
            Some(after) => Edit { before: text, after },
            None => restore_entries(client, &file, text.as_deref(), &names, &record)?,
        };
        let file_record = record.changes_to(&file);
        let restored_values = file_record.iter().flat_map(|written| written.entries.values().flatten());
        let replaced_entry = |name: &String| {
            file_record.is_some_and(|written| written.entries.get(name).is_some_and(Option::is_some))
        };
        let commands = if target.project.is_none() && !names.iter().any(replaced_entry) {
            names.iter().filter_map(|name| ClientCommand::remove_entry(client, name)).collect()
        } else {
            Vec::new()
        };
        Ok(ClientChange {
            client: client.name,
            file,
            edit,
            commands,
            servers: None,
            secrets: Vec::new(),
            names,
            unmoved: Vec::new(),
            originals: BTreeMap::new(),
            had_no_shim: false,
            is_connecting: false,
            hidden: restored_values.flat_map(plain_secrets::secret_values).collect(),
        })
    }

    /// Writes a change: first the record of the original settings, then IronCurtain's servers, and last the client's
    /// settings.
    ///
    /// # Errors
    /// Returns [`ClientError::Changed`] if a file has changed since the change was planned, or another
    /// [`ClientError`] if writing fails.
    pub fn write(&self, change: &ClientChange) -> Result<(), ClientError> {
        if read(&change.file)? != change.edit.before {
            return Err(ClientError::Changed(change.file.clone()));
        }
        let mut record = Record::open(&self.home)?;
        if change.is_connecting {
            record.add(&change.file, &change.edit, change.originals.clone(), change.had_no_shim)?;
        }
        if let Some((file, edit)) = &change.servers {
            if read(file)? != edit.before {
                return Err(ClientError::Changed(file.clone()));
            }
            replace(file, edit)?;
        }
        if change.commands.is_empty() {
            replace(&change.file, &change.edit)?;
        } else {
            change.commands.iter().try_for_each(ClientCommand::run)?;
        }
        if !change.is_connecting {
            record.remove(&change.file, &change.names, &change.edit)?;
        }
        Ok(())
    }
}

fn describe_launch(entry: &SettingsEntry) -> String {
    let command = entry.launch.as_ref().map(command_line);
    command.or_else(|| entry.url.clone()).unwrap_or_else(|| entry.value.to_string())
}

/// Restores the original values of entries and removes entries that IronCurtain added.
fn restore_entries(
    client: &KnownClient,
    file: &Path,
    text: Option<&str>,
    names: &[String],
    record: &Record,
) -> Result<Edit, ClientError> {
    let original_value =
        |name: &String| record.changes_to(file).and_then(|written| written.entries.get(name)?.clone());
    let entries: Vec<(&str, Option<Value>)> =
        names.iter().map(|name| (name.as_str(), original_value(name))).collect();
    client
        .set_entries(text, &entries)
        .map_err(|problem| ClientError::Document { file: file.to_path_buf(), problem })
}

fn replace(file: &Path, edit: &Edit) -> Result<(), ClientError> {
    let written = match &edit.after {
        None => std::fs::remove_file(file),
        Some(text) => file
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| atomic_file::replace(file, text)),
    };
    written.map_err(|source| FileEditError::write(file, source).into())
}
