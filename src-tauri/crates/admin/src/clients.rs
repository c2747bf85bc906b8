//! Agent clients on this computer: lists them, connects them to IronCurtain and disconnects them.
//!
//! - A change is planned ([`ClientChange`]) and displayed before it is written. It is written only if the file has
//!   not changed in the meantime.
//! - Disconnecting restores the original file if only IronCurtain has changed it since. Otherwise, it restores only
//!   the replaced entries.

mod client_command;
mod connect;
mod record;
mod survey;

pub use client_command::ClientCommand;
pub use connect::{ClientChange, ConnectRequest, UnmovedEntry, UnmovedReason};
pub use survey::{ClientReport, ClientState, EntryReport, EntryTarget};

use crate::file_edit::FileEditError;
use crate::servers_file::ServerChangeError;
use ironcurtain_client_config::{
    ClientDirs, DocumentError, FoundClient, KnownClient, ShimSelection, StartCommand,
};
use ironcurtain_config::ConfigError;
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_protocol::HOME_VARIABLE;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// A user's agent clients.
#[derive(Debug, Clone)]
pub struct Clients {
    home: Home,
    client_dirs: ClientDirs,
    /// Absolute path of `ironcurtain-shim`.
    shim: PathBuf,
    /// Environment variables that the shim needs, because agent clients pass on few variables.
    environment: BTreeMap<String, String>,
}

/// Error from connecting or disconnecting a client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No supported client has this id.
    #[error("unknown client `{0}`; run `ironcurtain clients list --all` to list the supported ones")]
    Unknown(String),
    /// The client does not have project settings.
    #[error("{0} does not support project settings")]
    NoProject(&'static str),
    /// The project's settings file is a symlink to a path outside the project.
    #[error(
        "`{file}` is a symlink to `{target}`, outside the project; replace it with a file, or edit the target yourself"
    )]
    LeavesProject {
        /// Path of the symlink: the settings file or one of its parent folders.
        file: PathBuf,
        /// Target of the symlink.
        target: PathBuf,
    },
    /// The client is not installed.
    #[error("{client} is not installed; its settings file would be `{file}`")]
    Missing {
        /// Display name of the client.
        client: &'static str,
        /// Settings file that the client would use.
        file: PathBuf,
    },
    /// The settings file could not be parsed or changed.
    #[error("`{file}`, {problem}")]
    Document {
        /// Path of the settings file.
        file: PathBuf,
        /// Parser error, including the line number.
        problem: DocumentError,
    },
    /// A file could not be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// The file changed after it was read.
    #[error("`{0}` has changed since it was read; nothing was written; try again")]
    Changed(PathBuf),
    /// A configuration file could not be read or is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The old or new servers file is invalid.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// One of IronCurtain's directories could not be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The shim is not next to this program.
    #[error("`{0}` is not installed; reinstall IronCurtain")]
    NoShim(PathBuf),
    /// The server does not exist.
    #[error("unknown server `{0}`; run `ironcurtain servers list` to list them")]
    NoServer(String),
    /// The profile does not exist.
    #[error("unknown profile `{0}`; run `ironcurtain profiles` to list them")]
    NoProfile(String),
    /// The client has no entry with this name that starts a server directly.
    #[error("{client} does not start a server `{name}` directly, so there is nothing to move")]
    NothingToMove {
        /// Display name of the client.
        client: &'static str,
        /// Name of the server.
        name: String,
    },
    /// The client already has a different entry with this name.
    #[error(
        "{client} already has an entry `{name}`, which starts `{starts}`; to run it through IronCurtain, use `--move`"
    )]
    NameInUse {
        /// Display name of the client.
        client: &'static str,
        /// Name of the entry.
        name: String,
        /// Command line or address of the entry.
        starts: String,
    },
    /// No entry of the client starts the shim.
    #[error("{0} is not connected")]
    NotConnected(&'static str),
    /// The command that the client provides for changing its settings failed.
    #[error("`{command}` failed: {output}; check its settings with `ironcurtain clients list`")]
    Command {
        /// Command line that failed.
        command: String,
        /// Last line of the command's output.
        output: String,
    },
    /// The record of original settings is invalid.
    #[error("failed to read `{file}`: {problem}")]
    InvalidRecord {
        /// Path of the record.
        file: PathBuf,
        /// Parser error.
        problem: String,
    },
}

/// A client, and which of its settings to change.
#[derive(Debug, Clone, Copy)]
pub struct ClientTarget<'a> {
    /// Id of the client.
    pub id: &'a str,
    /// Project whose settings are changed, or `None` for the user's settings.
    pub project: Option<&'a Path>,
}

impl Clients {
    /// Creates the list of clients for the current user. `programs` is the directory that contains IronCurtain's
    /// programs.
    ///
    /// # Errors
    /// Returns [`ClientError::NoShim`] if the shim is not in `programs`.
    pub fn new(home: Home, programs: &Path) -> Result<Self, ClientError> {
        let shim = programs.join("ironcurtain-shim");
        if !shim.is_file() {
            return Err(ClientError::NoShim(shim));
        }
        let client_dirs =
            ClientDirs::from_environment(&home.user_home, |name| env::var_os(name).map(PathBuf::from));
        let ironcurtain_home = env::var(HOME_VARIABLE).ok().filter(|home| !home.is_empty());
        let environment = ironcurtain_home.map(|home| (HOME_VARIABLE.to_owned(), home)).into_iter().collect();
        Ok(Self { home, client_dirs, shim, environment })
    }

    /// Returns the command that starts the shim for the selected servers.
    fn shim(&self, selection: ShimSelection<'_>) -> StartCommand {
        StartCommand { env: self.environment.clone(), ..StartCommand::of_shim(&self.shim, selection) }
    }

    /// Returns the client and its settings file.
    fn find(&self, target: ClientTarget<'_>) -> Result<(&'static KnownClient, FoundClient), ClientError> {
        let client =
            KnownClient::named(target.id).ok_or_else(|| ClientError::Unknown(target.id.to_owned()))?;
        let found = match (target.project, client.project_file) {
            (None, _) => client.find(&self.client_dirs, has_program),
            (Some(_), None) => return Err(ClientError::NoProject(client.name)),
            (Some(project), Some(file)) => {
                check_stays_inside(project, file)?;
                let file = project.join(file);
                Some(if file.is_file() {
                    FoundClient::Configured(file)
                } else {
                    FoundClient::Installed(file)
                })
            }
        };
        let no_settings = || ClientError::Missing { client: client.name, file: PathBuf::new() };
        Ok((client, found.ok_or_else(no_settings)?))
    }
}

/// Returns an error for a symlink that leads outside the project or to a missing file. Such a link would let the
/// project redirect reads and writes.
fn check_stays_inside(project: &Path, file: &str) -> Result<(), ClientError> {
    let root = project.canonicalize().unwrap_or_else(|_| project.to_path_buf());
    let mut path = project.to_path_buf();
    for name in Path::new(file).components() {
        path.push(name);
        let Ok(target) = path.read_link() else { continue };
        let is_inside = path.canonicalize().is_ok_and(|real| real.starts_with(&root));
        if !is_inside {
            return Err(ClientError::LeavesProject { file: path, target });
        }
    }
    Ok(())
}

fn has_program(name: &str) -> bool {
    find_program(name).is_some()
}

/// Searches for a program on `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests;
