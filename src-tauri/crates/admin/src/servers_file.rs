//! `mcp-servers.json` while it is changed: the text as it was read, and as it will be. Whatever of ours writes it does so here.
//!
//! - A text is written only if the loader takes it, and only onto the one that it was made from.

use crate::file_edit::{self, FileEditError};
use crate::named_server::UnknownServer;
use ironcurtain_config::home::Home;
use ironcurtain_config::{ConfigError, Server, Servers, read};
use ironcurtain_paths::PathError;
use serde_json::Value;
use std::path::PathBuf;

/// The key that entries stand below as their makers print them.
const WRAPPER: &str = "mcpServers";

/// Why the entry of a server is not changed.
#[derive(Debug, thiserror::Error)]
pub enum ServerChangeError {
    /// A file is refused, as it is or as it would be.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A file is not changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// There is no such server.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// Somebody else wrote it meanwhile.
    #[error("`{0}` was changed meanwhile; nothing was written: look again")]
    Changed(PathBuf),
    /// A server of the name is there.
    #[error("there is a server `{0}` already; take that one out first")]
    There(String),
    /// No server of the name was taken out.
    #[error("no server `{0}` was taken out that could be put back")]
    NotKept(String),
    /// The servers that were taken out cannot be read.
    #[error("`{0}` is damaged: {1}; put it right, or move it away")]
    Kept(PathBuf, serde_json::Error),
    /// It has no sandbox, so it reaches everything.
    #[error(
        "`{0}` is not sandboxed: it reaches everything that you can, and nothing can be opened, closed or limited"
    )]
    NotSandboxed(String),
    /// It runs elsewhere.
    #[error("`{0}` runs elsewhere: it has no sandbox here, and nothing can be opened, closed or limited")]
    Remote(String),
    /// The host is not taken.
    #[error("{0}; nothing was opened")]
    Host(#[from] ironcurtain_egress::RuleError),
    /// The path cannot be resolved.
    #[error("`{path}` cannot be opened: {problem}")]
    Path {
        /// The path.
        path: String,
        /// Why not.
        problem: PathError,
    },
    /// The path names no folder.
    #[error("`{0}` is no folder")]
    NoFolder(String),
    /// It holds, or lies in, what no server may reach.
    #[error(
        "`{0}` is never opened: it is or holds your home, keys, or IronCurtain's own files; pick a folder within it"
    )]
    Limits(String),
    /// The paths that are protected cannot be told.
    #[error("nothing was opened: {0}")]
    Snapshot(#[from] ironcurtain_daemon::SnapshotError),
    /// It is open already.
    #[error("`{0}` is open to it already")]
    OpenAlready(String),
    /// It is not open.
    #[error("`{0}` is not open to it for good")]
    NotOpen(String),
}

/// The file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServersFile {
    pub(crate) file: PathBuf,
    /// Its text; nothing without a file.
    pub(crate) before: Option<String>,
    /// The same; without a file, that of the servers which are there anyway.
    pub(crate) text: String,
    person: PathBuf,
}

impl ServersFile {
    pub(crate) fn open(home: &Home) -> Result<Self, ServerChangeError> {
        let file = home.config.join("mcp-servers.json");
        let before = read(&file)?;
        let text = before.clone().unwrap_or_else(|| Servers::DEFAULT.to_owned());
        let this = Self { file, text, before, person: home.person.clone() };
        this.servers(&this.text)?;
        Ok(this)
    }

    /// The servers that a text of it says.
    pub(crate) fn servers(&self, text: &str) -> Result<Servers, ServerChangeError> {
        Ok(Servers::parse(text, &self.file, &self.person)?)
    }

    /// The server of this name, as the file has it.
    pub(crate) fn server(&self, name: &str) -> Result<Server, ServerChangeError> {
        let servers = self.servers(&self.text)?;
        Ok(servers.find(Some(name)).ok_or_else(|| UnknownServer::among(&servers, name))?.clone())
    }

    /// The keys that lead to the entry of this name, and the entry, be it to run or not.
    pub(crate) fn entry(&self, name: &str) -> Result<(Vec<String>, Value), ServerChangeError> {
        let all: Value = serde_json::from_str(&self.text).unwrap_or_default();
        let wrapped = all.get(WRAPPER).filter(|wrapper| wrapper.is_object()).and_then(|all| all.get(name));
        let is_entry = |name: &str| !name.starts_with("_comment");
        let plain = all.get(name).filter(|entry| name != WRAPPER || !entry.is_object());
        let own = |way: &[&str]| way.iter().map(|key| (*key).to_owned()).collect();
        match (plain, wrapped) {
            (Some(entry), _) if is_entry(name) => Ok((own(&[name]), entry.clone())),
            (None, Some(entry)) if is_entry(name) => Ok((own(&[WRAPPER, name]), entry.clone())),
            (_, _) => Err(UnknownServer::among(&self.servers(&self.text)?, name).into()),
        }
    }

    /// The text with a value at a place.
    pub(crate) fn with(&self, path: &[&str], value: &Value) -> Result<String, ServerChangeError> {
        self.checked(file_edit::set(&self.file, &self.text, path, value)?)
    }

    /// The text without a place.
    pub(crate) fn without(&self, path: &[&str]) -> Result<String, ServerChangeError> {
        self.checked(file_edit::remove(&self.file, &self.text, path)?)
    }

    /// The text with this entry, in the place of one of the name.
    pub(crate) fn with_entry(&self, name: &str, value: &Value) -> Result<String, ServerChangeError> {
        let way = self.entry(name).map_or_else(|_| vec![name.to_owned()], |(way, _)| way);
        self.with(&way.iter().map(String::as_str).collect::<Vec<_>>(), value)
    }

    /// The text, if the loader takes it.
    pub(crate) fn checked(&self, text: String) -> Result<String, ServerChangeError> {
        self.servers(&text).map(|_| text)
    }

    /// Refuses a file that somebody else wrote since.
    pub(crate) fn unchanged(&self) -> Result<(), ServerChangeError> {
        let is_as_read = read(&self.file)? == self.before;
        if is_as_read { Ok(()) } else { Err(ServerChangeError::Changed(self.file.clone())) }
    }

    /// Writes another text in its place.
    pub(crate) fn write(&self, text: &str) -> Result<(), ServerChangeError> {
        self.unchanged()?;
        Ok(file_edit::replace(&self.file, text)?)
    }
}
