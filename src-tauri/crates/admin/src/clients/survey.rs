//! Lists agent clients and the servers that their entries start.

use super::{ClientError, ClientTarget, Clients};
use ironcurtain_client_config::{
    CLIENTS, FoundClient, KnownClient, SettingsEntry, ShimSelection, StartCommand,
};
use ironcurtain_config::read;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// State of a client and its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientReport {
    /// Id of the client on the command line.
    pub id: &'static str,
    /// Display name of the client.
    pub name: &'static str,
    /// Path of the settings file, which may not exist.
    pub file: PathBuf,
    /// State of the client.
    pub state: ClientState,
    /// Server entries in the client's settings.
    pub entries: Vec<EntryReport>,
    /// Error from reading the settings, or `None` on success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// State of a client, as determined by its worst entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// The client is not installed.
    Missing,
    /// The client is installed, but no entry starts the shim.
    NotConnected,
    /// All of the client's servers run through IronCurtain.
    Connected,
    /// Some of the client's servers run through IronCurtain, and others bypass it.
    Bypassing,
    /// An entry starts a shim that does not exist or belongs to another installation.
    Drifted,
    /// The settings could not be read.
    Unreadable,
}

/// A server entry in a client's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryReport {
    /// Name of the entry.
    pub name: String,
    /// Program or address in the entry.
    #[serde(flatten)]
    pub target: EntryTarget,
}

/// Program that an entry starts, or server that it connects to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "use")]
pub enum EntryTarget {
    /// The entry starts the shim.
    #[serde(rename = "shield")]
    Shim {
        /// Server that the shim provides, or `None` if it provides several servers.
        server: Option<String>,
        /// Profile whose servers the shim provides. If `server` is also `None`, the shim provides all servers.
        #[serde(skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
    },
    /// The entry starts a shim that does not exist or belongs to another installation.
    OtherShim {
        /// Path of the shim.
        path: String,
    },
    /// The entry starts a server directly.
    Server {
        /// Command line.
        command: String,
    },
    /// The entry connects to a remote server directly.
    Remote {
        /// Address of the server.
        url: String,
    },
    /// The entry is disabled.
    Disabled,
    /// The format of the entry is not recognized.
    Unknown,
}

impl Clients {
    /// Returns the state of every supported client, installed or not.
    #[must_use]
    pub fn survey(&self) -> Vec<ClientReport> {
        let found = |client: &'static KnownClient| {
            let target = ClientTarget { id: client.id, project: None };
            self.find(target).ok().map(|(client, found)| self.report(client, &found))
        };
        CLIENTS.iter().filter_map(found).collect()
    }

    /// Returns the state of one client.
    ///
    /// # Errors
    /// Returns [`ClientError::Unknown`], [`ClientError::NoProject`] or [`ClientError::Missing`] if the client is
    /// unknown, has no project settings or is not installed.
    pub fn report_for(&self, target: ClientTarget<'_>) -> Result<ClientReport, ClientError> {
        let (client, found) = self.find(target)?;
        Ok(self.report(client, &found))
    }

    fn report(&self, client: &'static KnownClient, found: &FoundClient) -> ClientReport {
        let file = found.file();
        let (entries, problem) = match entries(client, file) {
            Ok(entries) => (entries, None),
            Err(problem) => (Vec::new(), Some(problem.to_string())),
        };
        let entries: Vec<EntryReport> = entries
            .into_iter()
            .map(|entry| EntryReport { target: self.target(&entry), name: entry.name })
            .collect();
        let state = match found {
            _ if problem.is_some() => ClientState::Unreadable,
            FoundClient::Missing(_) => ClientState::Missing,
            FoundClient::Configured(_) | FoundClient::Installed(_) => state(&entries),
        };
        ClientReport { id: client.id, name: client.name, file: file.to_path_buf(), state, entries, problem }
    }

    fn target(&self, entry: &SettingsEntry) -> EntryTarget {
        match (&entry.launch, &entry.url) {
            _ if entry.is_disabled => EntryTarget::Disabled,
            (Some(launch), _) if launch.is_shim() => {
                if Path::new(&launch.command) == self.shim {
                    let (server, profile) = match launch.shim_selection() {
                        ShimSelection::All => (None, None),
                        ShimSelection::Server(server) => (Some(server.to_owned()), None),
                        ShimSelection::Profile(profile) => (None, Some(profile.to_owned())),
                    };
                    EntryTarget::Shim { server, profile }
                } else {
                    EntryTarget::OtherShim { path: launch.command.clone() }
                }
            }
            (Some(launch), _) => EntryTarget::Server { command: command_line(launch) },
            (None, Some(url)) => EntryTarget::Remote { url: url.clone() },
            (None, None) => EntryTarget::Unknown,
        }
    }
}

/// Parses the entries in a client's settings file.
pub(super) fn entries(client: &KnownClient, file: &Path) -> Result<Vec<SettingsEntry>, ClientError> {
    let text = read(file)?;
    client
        .entries(text.as_deref())
        .map_err(|problem| ClientError::Document { file: file.to_path_buf(), problem })
}

/// Formats a command line for display.
pub(super) fn command_line(launch: &StartCommand) -> String {
    let words = std::iter::once(&launch.command).chain(&launch.args);
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn state(entries: &[EntryReport]) -> ClientState {
    let any_entry = |test: fn(&EntryTarget) -> bool| entries.iter().any(|entry| test(&entry.target));
    let drifted = any_entry(|target| matches!(target, EntryTarget::OtherShim { .. }));
    let through_shim = any_entry(|target| matches!(target, EntryTarget::Shim { .. }));
    let bypassing =
        any_entry(|target| matches!(target, EntryTarget::Server { .. } | EntryTarget::Remote { .. }));
    match (drifted, through_shim, bypassing) {
        (true, _, _) => ClientState::Drifted,
        (false, true, true) => ClientState::Bypassing,
        (false, true, false) => ClientState::Connected,
        (false, false, _) => ClientState::NotConnected,
    }
}
