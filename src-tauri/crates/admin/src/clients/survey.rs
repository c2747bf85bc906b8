//! The clients as they are: which are there, and what each starts.

use super::{ClientError, ClientTarget, Clients};
use ironcurtain_client_config::{
    CLIENTS, FoundClient, KnownClient, SettingsEntry, ShimSelection, StartCommand,
};
use ironcurtain_config::read;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// One client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientReport {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The file of its settings, as it is or would be.
    pub file: PathBuf,
    /// Its state.
    pub state: ClientState,
    /// Its entries.
    pub entries: Vec<EntryReport>,
    /// Why its settings cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The state of a client, the worst of its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// Nothing of it is on this machine.
    Missing,
    /// It is there, and no entry of it starts our shim.
    NotConnected,
    /// Every server that it starts is behind the shield.
    Connected,
    /// It starts our shim, and servers past it as well.
    Bypassing,
    /// It starts a shim that is not there, or not this one.
    Drifted,
    /// Its settings cannot be read.
    Unreadable,
}

/// One entry of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EntryReport {
    /// Its name.
    pub name: String,
    /// Its way.
    #[serde(flatten)]
    pub way: EntryUse,
}

/// The way that an entry leads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "use")]
pub enum EntryUse {
    /// It starts our shim.
    Shield {
        /// The server that it gives; none for several of them.
        server: Option<String>,
        /// The profile whose servers it gives; without one and without a server, all of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        profile: Option<String>,
    },
    /// It starts a shim that is not there, or another one.
    OtherShim {
        /// The path.
        path: String,
    },
    /// It starts a server itself.
    Server {
        /// The command line.
        command: String,
    },
    /// It connects to an address itself.
    Remote {
        /// The address.
        url: String,
    },
    /// The client does not use it.
    Disabled,
    /// Nothing is known of it.
    Unknown,
}

impl Clients {
    /// All clients of the table, those that are not there among them.
    #[must_use]
    pub fn survey(&self) -> Vec<ClientReport> {
        let found = |client: &'static KnownClient| {
            let target = ClientTarget { id: client.id, project: None };
            self.find(target).ok().map(|(client, found)| self.report(client, &found))
        };
        CLIENTS.iter().filter_map(found).collect()
    }

    /// One client.
    ///
    /// # Errors
    /// [`ClientError::Unknown`], [`ClientError::NoProject`], [`ClientError::Missing`].
    pub fn look(&self, target: ClientTarget<'_>) -> Result<ClientReport, ClientError> {
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
            .map(|entry| EntryReport { way: self.way(&entry), name: entry.name })
            .collect();
        let state = match found {
            _ if problem.is_some() => ClientState::Unreadable,
            FoundClient::Missing(_) => ClientState::Missing,
            FoundClient::Configured(_) | FoundClient::Installed(_) => state(&entries),
        };
        ClientReport { id: client.id, name: client.name, file: file.to_path_buf(), state, entries, problem }
    }

    fn way(&self, entry: &SettingsEntry) -> EntryUse {
        match (&entry.launch, &entry.url) {
            _ if entry.is_disabled => EntryUse::Disabled,
            (Some(launch), _) if launch.is_shim() => {
                if Path::new(&launch.command) == self.shim {
                    let (server, profile) = match launch.shim_selection() {
                        ShimSelection::All => (None, None),
                        ShimSelection::Server(server) => (Some(server.to_owned()), None),
                        ShimSelection::Profile(profile) => (None, Some(profile.to_owned())),
                    };
                    EntryUse::Shield { server, profile }
                } else {
                    EntryUse::OtherShim { path: launch.command.clone() }
                }
            }
            (Some(launch), _) => EntryUse::Server { command: command_line(launch) },
            (None, Some(url)) => EntryUse::Remote { url: url.clone() },
            (None, None) => EntryUse::Unknown,
        }
    }
}

/// The entries of a client's settings.
pub(super) fn entries(client: &KnownClient, file: &Path) -> Result<Vec<SettingsEntry>, ClientError> {
    let text = read(file)?;
    client
        .entries(text.as_deref())
        .map_err(|problem| ClientError::Document { file: file.to_path_buf(), problem })
}

/// The words of a command, for people.
pub(super) fn command_line(launch: &StartCommand) -> String {
    let words = std::iter::once(&launch.command).chain(&launch.args);
    words.map(String::as_str).collect::<Vec<_>>().join(" ")
}

fn state(entries: &[EntryReport]) -> ClientState {
    let has = |test: fn(&EntryUse) -> bool| entries.iter().any(|entry| test(&entry.way));
    let drifted = has(|way| matches!(way, EntryUse::OtherShim { .. }));
    let shielded = has(|way| matches!(way, EntryUse::Shield { .. }));
    let bypassing = has(|way| matches!(way, EntryUse::Server { .. } | EntryUse::Remote { .. }));
    match (drifted, shielded, bypassing) {
        (true, _, _) => ClientState::Drifted,
        (false, true, true) => ClientState::Bypassing,
        (false, true, false) => ClientState::Connected,
        (false, false, _) => ClientState::NotConnected,
    }
}
