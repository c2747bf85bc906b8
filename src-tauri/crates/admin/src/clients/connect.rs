//! Connects and disconnects a client.

use super::own_command::OwnCommand;
use super::record::Record;
use super::survey::{command_line, entries};
use super::{ClientError, ClientTarget, Clients};
use crate::catalog::{Checked, ForeignTextError, GivenSecrets, checked};
use crate::file_edit::{self, FileEditError};
use crate::plain_secrets::{self, PlainSecret};
use crate::servers_file::ServersFile;
use ironcurtain_client_config::{Edit, FoundClient, KnownClient, SettingsEntry, ShimSelection, StartCommand};
use ironcurtain_config::{Config, Servers, read};
use ironcurtain_paths::atomic_file;
use ironcurtain_secrets::Secret;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of an entry that provides several servers.
const ALL: &str = "ironcurtain";

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
    pub commands: Vec<OwnCommand>,
    /// Path of `mcp-servers.json` and its change, if servers are moved to it.
    pub servers: Option<(PathBuf, Edit)>,
    /// Secrets to store in the keyring before anything is written ([`plain_secrets::keep`]).
    pub secrets: Vec<PlainSecret>,
    /// Names of the entries to write or remove.
    pub names: Vec<String>,
    /// Entries that will still bypass IronCurtain after the change.
    pub left: Vec<Unmoved>,
    /// Original values of the replaced entries. `None` for entries that did not exist.
    originals: BTreeMap<String, Option<Value>>,
    /// `true` if no entry started the shim before the change.
    is_free: bool,
    /// `true` if the change connects the client, `false` if it disconnects it.
    is_connecting: bool,
    /// Secrets in the client's settings, which are hidden when the change is displayed.
    hidden: Vec<Secret>,
}

/// An entry that a change leaves unchanged, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmoved {
    /// Name of the entry.
    pub name: String,
    /// Reason the entry is unchanged.
    pub why: NotConnected,
}

/// Reason a client's entry is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotConnected {
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
    Foreign(#[from] ForeignTextError),
    /// The entry has the name of a configured server, but starts a program directly.
    #[error("it starts `{0}` directly; to run it through IronCurtain, use `--move`")]
    Bypassing(String),
}

impl ClientChange {
    /// Returns the diff of the settings, with secrets hidden.
    #[must_use]
    pub fn shown(&self) -> String {
        plain_secrets::hidden(self.edit.diff(), &self.hidden)
    }

    /// Returns the diff of `mcp-servers.json`, with secrets hidden.
    #[must_use]
    pub fn servers_shown(&self) -> Option<String> {
        self.servers.as_ref().map(|(_, edit)| plain_secrets::hidden(edit.diff(), &self.hidden))
    }
}

/// A client's servers that are moved to IronCurtain's configuration.
struct Moved {
    servers: (PathBuf, Edit),
    secrets: Vec<PlainSecret>,
    names: Vec<String>,
    left: Vec<Unmoved>,
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
        let there = entries(client, &file)?;
        let is_ours = |entry: &SettingsEntry| entry.launch.as_ref().is_some_and(StartCommand::is_shim);
        let at = |name: &str| there.iter().find(|entry| entry.name == name);
        let servers = Servers::load(&self.home)?;
        let (mut moved, mut left, mut secrets) = (None, Vec::new(), Vec::new());
        let each = |name: String| (self.shim(ShimSelection::Server(&name)), name);
        // Commands and names of the new entries.
        let wanted: Vec<(StartCommand, String)> = match request {
            ConnectRequest::AsOne => vec![(self.shim(ShimSelection::All), ALL.to_owned())],
            ConnectRequest::Profile(name) if !Config::load(&self.home)?.profiles.contains_key(name) => {
                return Err(ClientError::NoProfile(name.to_owned()));
            }
            ConnectRequest::Profile(name) => {
                vec![(self.shim(ShimSelection::Profile(name)), ALL.to_owned())]
            }
            ConnectRequest::Server(name) if servers.find(Some(name)).is_none() => {
                return Err(ClientError::NoServer(name.to_owned()));
            }
            ConnectRequest::Server(name) => vec![each(name.to_owned())],
            ConnectRequest::Each => servers.names().map(|name| each(name.to_owned())).collect(),
            ConnectRequest::Move { secrets: with_secrets, only, given } => {
                let movable = |entry: &&SettingsEntry| !entry.is_disabled && !is_ours(entry);
                let is_meant = |entry: &&SettingsEntry| only.is_none_or(|only| only.contains(&entry.name));
                let is_missing = |name: &&String| !there.iter().filter(movable).any(|one| one.name == **name);
                if let Some(name) = only.into_iter().flatten().find(is_missing) {
                    return Err(ClientError::NothingToMove { client: client.name, name: name.clone() });
                }
                let meant = there.iter().filter(movable).filter(is_meant);
                let moving = self.moving(meant, with_secrets, given)?;
                (left, secrets) = (moving.left, moving.secrets);
                moved = Some(moving.servers);
                moving.names.into_iter().map(each).collect()
            }
        };
        let mut launches = Vec::new();
        for (launch, name) in wanted {
            let other = at(&name).filter(|entry| !is_ours(entry) && moved.is_none());
            match (other, request) {
                (None, _) => launches.push((name, launch)),
                (Some(other), ConnectRequest::Each) => {
                    left.push(Unmoved { name, why: NotConnected::Bypassing(starts(other)) });
                }
                (Some(other), _) => {
                    return Err(ClientError::Taken { client: client.name, name, starts: starts(other) });
                }
            }
        }
        let text = read(&file)?;
        // Skips an entry that already starts the same command.
        let is_there = |name: &str, launch: &StartCommand| {
            at(name).is_some_and(|entry| entry.launch.as_ref() == Some(launch) && !entry.is_disabled)
        };
        let named: Vec<(&str, &StartCommand)> = launches
            .iter()
            .filter(|(name, launch)| !is_there(name, launch))
            .map(|(name, launch)| (name.as_str(), launch))
            .collect();
        let edit = client
            .with(text.as_deref(), &named)
            .map_err(|problem| ClientError::Document { file: file.clone(), problem })?;
        let is_new = named.iter().all(|(name, _)| at(name).is_none());
        let commands = if target.project.is_none() && is_new {
            named.iter().filter_map(|(name, launch)| OwnCommand::adding(client, name, launch)).collect()
        } else {
            Vec::new()
        };
        let names: Vec<String> = launches.into_iter().map(|(name, _)| name).collect();
        let replaced = names.iter().filter(|name| !at(name).is_some_and(is_ours));
        let originals =
            replaced.map(|name| (name.clone(), at(name).map(|entry| entry.value.clone()))).collect();
        let is_free = !there.iter().any(is_ours);
        let servers = moved.filter(|(_, edit)| !edit.is_empty());
        Ok(ClientChange {
            client: client.name,
            file,
            edit,
            commands,
            servers,
            secrets,
            names,
            left,
            originals,
            is_free,
            is_connecting: true,
            hidden: there.iter().flat_map(|entry| plain_secrets::texts(&entry.value)).collect(),
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
        let is_meant = |entry: &&SettingsEntry| server.is_none_or(|server| entry.name == server);
        let names: Vec<String> = ours.iter().filter(is_meant).map(|entry| entry.name.clone()).collect();
        if names.is_empty() {
            return Err(ClientError::NotConnected(client.name));
        }
        let record = Record::open(&self.home)?;
        let text = read(&file)?;
        let whole = if names.len() == ours.len() { record.untouched(&file, text.as_deref())? } else { None };
        let edit = match whole {
            Some(after) => Edit { before: text, after },
            None => restored(client, &file, text.as_deref(), &names, &record)?,
        };
        let known = record.of(&file);
        let given_back = known.iter().flat_map(|written| written.entries.values().flatten());
        let had = |name: &String| {
            known.is_some_and(|written| written.entries.get(name).is_some_and(Option::is_some))
        };
        let commands = if target.project.is_none() && !names.iter().any(had) {
            names.iter().filter_map(|name| OwnCommand::removing(client, name)).collect()
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
            left: Vec::new(),
            originals: BTreeMap::new(),
            is_free: false,
            is_connecting: false,
            hidden: given_back.flat_map(plain_secrets::texts).collect(),
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
            record.note(&change.file, &change.edit, change.originals.clone(), change.is_free)?;
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
            change.commands.iter().try_for_each(OwnCommand::run)?;
        }
        if !change.is_connecting {
            record.forget(&change.file, &change.names, &change.edit)?;
        }
        Ok(())
    }

    /// Converts a client's entries to entries in IronCurtain's configuration.
    fn moving<'a>(
        &self,
        entries: impl Iterator<Item = &'a SettingsEntry>,
        with_secrets: bool,
        given: &GivenSecrets,
    ) -> Result<Moved, ClientError> {
        let servers = ServersFile::open(&self.home)?;
        let mut text = servers.text.clone();
        let there = servers.servers(&text)?;
        let (mut names, mut left) = (Vec::new(), Vec::new());
        for entry in entries {
            match movable(entry, &there, given) {
                Err(why) => left.push(Unmoved { name: entry.name.clone(), why }),
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
            (text, secrets) =
                plain_secrets::moved(&servers.file, &text, |name| names.iter().any(|moved| moved == name))?;
        }
        let text = servers.checked(text)?;
        let ServersFile { file, before, .. } = servers;
        let after = Some(text).filter(|_| !names.is_empty()).or_else(|| before.clone());
        Ok(Moved { servers: (file, Edit { before, after }), secrets, names, left })
    }
}

/// Converts a client's entry to an `mcp-servers.json` entry. Returns `None` if the same server is already configured.
fn movable(
    entry: &SettingsEntry,
    there: &Servers,
    given: &GivenSecrets,
) -> Result<Option<Value>, NotConnected> {
    let Some(launch) = &entry.launch else {
        return Err(entry.url.clone().map_or(NotConnected::Unknown, NotConnected::Remote));
    };
    let words = std::iter::once(&launch.command).chain(&launch.args).chain(launch.env.values());
    if let Some(word) = words.into_iter().find(|word| word.contains("${")) {
        return Err(NotConnected::Variable(word.clone()));
    }
    match there.find(Some(&entry.name)) {
        Some(same) if same.command == launch.command && same.args == launch.args => Ok(None),
        Some(other) => Err(NotConnected::Taken(other.command_line())),
        None => {
            let fields = [
                ("command", json!(launch.command)),
                ("args", json!(launch.args)),
                ("env", json!(launch.env)),
            ];
            let fields = fields.into_iter().filter(|(key, _)| *key != "env" || !launch.env.is_empty());
            let entry = fields.map(|(key, value)| (key.to_owned(), value)).collect();
            let Checked { mut entry, .. } = checked(entry, given)?;
            entry.insert("unannotated".to_owned(), json!("ask"));
            Ok(Some(Value::Object(entry)))
        }
    }
}

fn starts(entry: &SettingsEntry) -> String {
    let command = entry.launch.as_ref().map(command_line);
    command.or_else(|| entry.url.clone()).unwrap_or_else(|| entry.value.to_string())
}

/// Restores the original values of entries, and removes entries that IronCurtain added.
fn restored(
    client: &KnownClient,
    file: &Path,
    text: Option<&str>,
    names: &[String],
    record: &Record,
) -> Result<Edit, ClientError> {
    let original = |name: &String| record.of(file).and_then(|written| written.entries.get(name)?.clone());
    let entries: Vec<(&str, Option<Value>)> =
        names.iter().map(|name| (name.as_str(), original(name))).collect();
    client
        .changed(text, &entries)
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
