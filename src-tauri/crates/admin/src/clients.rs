//! Agent clients on this machine: which are there, which start our shim, and connecting them or giving them back.
//!
//! - A change is a value ([`ClientChange`]) that is shown before it is written; it is written only onto the text that it was made
//!   for.
//! - What a client had is kept: disconnecting gives back the same bytes where nobody changed the file since, and
//!   else the entries that were replaced.

mod connect;
mod own_command;
mod record;
mod survey;

pub use connect::{ClientChange, ConnectRequest, NotConnected, Unmoved};
pub use own_command::OwnCommand;
pub use survey::{ClientReport, ClientState, EntryReport, EntryUse};

use crate::file_edit::FileEditError;
use crate::servers_file::ServerChangeError;
use ironcurtain_client_config::{
    DocumentError, FoundClient, KnownClient, Places, ShimSelection, StartCommand,
};
use ironcurtain_config::ConfigError;
use ironcurtain_config::home::{Home, HomeError};
use ironcurtain_protocol::HOME_VARIABLE;
use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

/// The clients of one person.
#[derive(Debug, Clone)]
pub struct Clients {
    home: Home,
    places: Places,
    /// The absolute path of our shim.
    shim: PathBuf,
    /// The variables that the shim needs: clients hand on few of theirs, or none.
    environment: BTreeMap<String, String>,
}

/// Why a client is not connected or disconnected.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no client of this name in the table.
    #[error("no client is called `{0}`; `ironcurtain clients list` names them")]
    Unknown(String),
    /// It has no settings of a project.
    #[error("{0} has no settings of a project")]
    NoProject(&'static str),
    /// The settings of a project are a link out of it.
    #[error(
        "`{file}` is a link to `{target}`, outside the project; replace it by a file, or change that file yourself"
    )]
    LeavesProject {
        /// The settings, or the folder that they are in.
        file: PathBuf,
        /// The target of the link.
        target: PathBuf,
    },
    /// Nothing of it is on this machine.
    #[error("{client} was not found; it would have `{file}`")]
    Missing {
        /// Its name.
        client: &'static str,
        /// The settings that it would have.
        file: PathBuf,
    },
    /// Its settings cannot be read or changed.
    #[error("`{file}`, {problem}")]
    Document {
        /// The file.
        file: PathBuf,
        /// The problem, with its line.
        problem: DocumentError,
    },
    /// A file is not changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// Somebody else wrote it meanwhile.
    #[error("`{0}` was changed meanwhile; nothing was written: try again")]
    Changed(PathBuf),
    /// A file cannot be read, or our servers would be refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The file of our servers is refused, as it is or as it would be.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// A folder of ours cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The shim is not beside this program.
    #[error("`{0}` is missing, which clients are to start: install IronCurtain whole")]
    NoShim(PathBuf),
    /// None of our servers has this name.
    #[error("no server is called `{0}`; `ironcurtain servers list` names them")]
    NoServer(String),
    /// There is no such profile.
    #[error("no profile is called `{0}`; `ironcurtain profiles` names them")]
    NoProfile(String),
    /// The client starts no such server itself.
    #[error("{client} starts no server `{name}` itself that could be moved")]
    NothingToMove {
        /// The client.
        client: &'static str,
        /// The name.
        name: String,
    },
    /// An entry of the client's has the name.
    #[error(
        "{client} has an entry `{name}` already, which starts `{starts}`; move it behind the shield with `--move`"
    )]
    Taken {
        /// The client.
        client: &'static str,
        /// The entry.
        name: String,
        /// Its command line or address.
        starts: String,
    },
    /// No entry of the client's starts our shim.
    #[error("{0} is not connected")]
    NotConnected(&'static str),
    /// Its own command does not write its settings.
    #[error(
        "`{command}` did not do it: {said}; its settings are as they were, or see `ironcurtain clients list`"
    )]
    OwnCommand {
        /// The command.
        command: String,
        /// The end of what it said.
        said: String,
    },
    /// The record of the settings as they were cannot be read.
    #[error("`{file}` is damaged: {problem}")]
    Record {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
}

/// The settings of a client that are meant.
#[derive(Debug, Clone, Copy)]
pub struct ClientTarget<'a> {
    /// Its name in the table.
    pub id: &'a str,
    /// The project whose settings are meant, in place of the person's.
    pub project: Option<&'a Path>,
}

impl Clients {
    /// The clients of this process's person. `programs` is the folder of our programs.
    ///
    /// # Errors
    /// [`ClientError::NoShim`].
    pub fn new(home: Home, programs: &Path) -> Result<Self, ClientError> {
        let shim = programs.join("ironcurtain-shim");
        if !shim.is_file() {
            return Err(ClientError::NoShim(shim));
        }
        let places = Places::of(&home.person, |name| env::var_os(name).map(PathBuf::from));
        let moved = env::var(HOME_VARIABLE).ok().filter(|home| !home.is_empty());
        let environment = moved.map(|home| (HOME_VARIABLE.to_owned(), home)).into_iter().collect();
        Ok(Self { home, places, shim, environment })
    }

    /// Our shim, for these servers.
    fn shim(&self, selection: ShimSelection<'_>) -> StartCommand {
        StartCommand { env: self.environment.clone(), ..StartCommand::of_shim(&self.shim, selection) }
    }

    /// The client that is meant, and the file of its settings.
    fn find(&self, target: ClientTarget<'_>) -> Result<(&'static KnownClient, FoundClient), ClientError> {
        let client =
            KnownClient::named(target.id).ok_or_else(|| ClientError::Unknown(target.id.to_owned()))?;
        let found = match (target.project, client.project_file) {
            (None, _) => client.find(&self.places, has_program),
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
        let nowhere = || ClientError::Missing { client: client.name, file: PathBuf::new() };
        Ok((client, found.ok_or_else(nowhere)?))
    }
}

/// Refuses a link in a project that leads out of it, or nowhere: who made the project does not choose what is read and written.
fn check_stays_inside(project: &Path, file: &str) -> Result<(), ClientError> {
    let whole = project.canonicalize().unwrap_or_else(|_| project.to_path_buf());
    let mut part = project.to_path_buf();
    for name in Path::new(file).components() {
        part.push(name);
        let Ok(target) = part.read_link() else { continue };
        let leads_inside = part.canonicalize().is_ok_and(|real| real.starts_with(&whole));
        if !leads_inside {
            return Err(ClientError::LeavesProject { file: part, target });
        }
    }
    Ok(())
}

fn has_program(name: &str) -> bool {
    program(name).is_some()
}

/// A program on the path.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests;
