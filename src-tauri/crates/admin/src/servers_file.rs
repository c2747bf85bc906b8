//! Edits and validates the text of `mcp-servers.json`.
//!
//! - Writes a new text only if it is valid and the file has not changed since it was read.

use crate::file_edit::{self, FileEditError};
use crate::named_server::UnknownServer;
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, Managed, Server, Servers, read};
use ironcurtain_paths::PathError;
use serde_json::Value;
use std::path::PathBuf;

/// Key of the object that contains the servers in agent clients' settings.
const SERVERS_KEY: &str = "mcpServers";

/// Error from changing a server's entry.
#[derive(Debug, thiserror::Error)]
pub enum ServerChangeError {
    /// The old or new file is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A file could not be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// The server does not exist.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// The file changed after it was read.
    #[error("`{0}` has changed since it was read; nothing was written; try again")]
    Changed(PathBuf),
    /// Another server already uses the removed server's name.
    #[error("a server named `{0}` already exists; remove it first")]
    NameInUse(String),
    /// No removed server has this name.
    #[error("no removed server is named `{0}`")]
    NotRemoved(String),
    /// The file that contains the removed servers is invalid.
    #[error("failed to parse `{0}`: {1}; repair it, or move it away")]
    RemovedServers(PathBuf, serde_json::Error),
    /// The server is not sandboxed, so it can access everything.
    #[error(
        "`{0}` is not sandboxed: it can reach everything that you can, so nothing can be allowed or limited"
    )]
    NotSandboxed(String),
    /// The server is remote, so it has no sandbox.
    #[error("`{0}` is a remote server; sandbox permissions and limits apply only to local servers")]
    Remote(String),
    /// The host is invalid.
    #[error("{0}; nothing was changed")]
    Host(#[from] ironcurtain_egress::RuleError),
    /// The path could not be resolved.
    #[error("failed to resolve `{path}`: {problem}")]
    Path {
        /// Path of the folder.
        path: String,
        /// Reason the path could not be resolved.
        problem: PathError,
    },
    /// The path is not a folder.
    #[error("`{0}` is not a folder")]
    NotAFolder(String),
    /// The folder is, contains or is inside a protected path.
    #[error(
        "`{0}` cannot be allowed, because it is or contains your home, keys, or IronCurtain's own files; choose a folder inside it"
    )]
    Protected(String),
    /// The protected paths could not be determined.
    #[error("nothing was changed: {0}")]
    Snapshot(#[from] ironcurtain_config::SnapshotError),
    /// The host or folder is already allowed.
    #[error("`{0}` is already allowed")]
    AlreadyAllowed(String),
    /// The entry does not allow the host or folder.
    #[error("`{0}` is not permanently allowed")]
    NotAllowed(String),
}

/// Contents of the servers file when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServersFile {
    pub(crate) file: PathBuf,
    /// Text of the file, or `None` if it does not exist.
    pub(crate) before: Option<String>,
    /// Text of the file, or of the default servers if it does not exist.
    pub(crate) text: String,
    user_home: PathBuf,
}

impl ServersFile {
    pub(crate) fn open(home: &Home) -> Result<Self, ServerChangeError> {
        let file = home.config.join("mcp-servers.json");
        let before = read(&file)?;
        let text = before.clone().unwrap_or_else(|| Servers::DEFAULT.to_owned());
        let this = Self { file, text, before, user_home: home.user_home.clone() };
        this.servers(&this.text)?;
        Ok(this)
    }

    /// Parses `text` as the contents of this file.
    pub(crate) fn servers(&self, text: &str) -> Result<Servers, ServerChangeError> {
        Ok(Servers::parse(text, &self.file, &self.user_home)?.restricted(Managed::load()?.as_ref()))
    }

    /// Returns the server with this name.
    pub(crate) fn server(&self, name: &str) -> Result<Server, ServerChangeError> {
        let servers = self.servers(&self.text)?;
        Ok(servers.find(Some(name)).ok_or_else(|| UnknownServer::new(&servers, name))?.clone())
    }

    /// Returns an entry and the keys that lead to it. Also finds disabled servers.
    pub(crate) fn entry(&self, name: &str) -> Result<(Vec<String>, Value), ServerChangeError> {
        let all: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let wrapped =
            all.get(SERVERS_KEY).filter(|servers| servers.is_object()).and_then(|all| all.get(name));
        let is_entry = |name: &str| !name.starts_with("_comment");
        let top_level = all.get(name).filter(|entry| name != SERVERS_KEY || !entry.is_object());
        let owned_keys = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        match (top_level, wrapped) {
            (Some(entry), _) if is_entry(name) => Ok((owned_keys(&[name]), entry.clone())),
            (None, Some(entry)) if is_entry(name) => Ok((owned_keys(&[SERVERS_KEY, name]), entry.clone())),
            (_, _) => Err(UnknownServer::new(&self.servers(&self.text)?, name).into()),
        }
    }

    /// Returns the text with `value` at the path.
    pub(crate) fn with(&self, path: &[&str], value: &Value) -> Result<String, ServerChangeError> {
        self.validate(file_edit::set(&self.file, &self.text, path, value)?)
    }

    /// Returns the text without the value at the path.
    pub(crate) fn without(&self, path: &[&str]) -> Result<String, ServerChangeError> {
        self.validate(file_edit::remove(&self.file, &self.text, path)?)
    }

    /// Returns the text with this entry added. Replaces any entry with the same name.
    pub(crate) fn with_entry(&self, name: &str, value: &Value) -> Result<String, ServerChangeError> {
        let keys = self.entry(name).map_or_else(|_| vec![name.to_owned()], |(keys, _)| keys);
        self.with(&keys.iter().map(String::as_str).collect::<Vec<_>>(), value)
    }

    /// Returns the text, or an error if it is invalid.
    pub(crate) fn validate(&self, text: String) -> Result<String, ServerChangeError> {
        self.servers(&text).map(|_| text)
    }

    /// Returns an error if the file has changed since it was read.
    pub(crate) fn check_unchanged(&self) -> Result<(), ServerChangeError> {
        let is_unchanged = read(&self.file)? == self.before;
        if is_unchanged { Ok(()) } else { Err(ServerChangeError::Changed(self.file.clone())) }
    }

    /// Replaces the file if it has not changed since it was read.
    pub(crate) fn write(&self, text: &str) -> Result<(), ServerChangeError> {
        self.check_unchanged()?;
        Ok(file_edit::replace(&self.file, text)?)
    }
}
