//! Another version of a server's package: installed beside the one that is there, compared by the tools of both, and put
//! in its place only by an explicit word.
//!
//! - Until that word nothing changes; servers that run go on with what they were started from.

use super::fetch::{fetch, find};
use super::store::PackageStore;
use super::{InstallError, Installer};
use crate::identity;
use crate::inspect::{Inspection, ListedTool, inspect_server};
use crate::servers_file::ServersFile;
use ironcurtain_config::{Server, Servers};
use ironcurtain_daemon::packages::{PackageRecord, RequestedPackage, RunnerCommand, is_version};
use ironcurtain_daemon::server_identity::ServerIdentity;
use std::collections::BTreeMap;

/// A version that could take the place of the one that is there. Dropped, it is forgotten.
pub struct Update {
    store: PackageStore,
    installer: Installer,
    server: Server,
    command: RunnerCommand,
    record: PackageRecord,
    /// The identity of the server before.
    was: ServerIdentity,
    /// The version that is there.
    pub from: String,
    /// The version that could be.
    pub to: String,
    /// Why the two could not be compared: then every tool counts as new.
    pub not_compared: Option<InstallError>,
    /// The differences between the tools of the two.
    pub tools: Vec<ToolChange>,
}

/// The outcome of looking for another version.
pub enum Updated {
    /// Nothing: this is the newest version.
    Newest(String),
    /// Another version.
    Found(Box<Update>),
}

/// One difference between what two versions say of their tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChange {
    /// The new version has it.
    New {
        /// Its name.
        name: String,
        /// Its description by the server.
        description: String,
    },
    /// The new version does not have it.
    Gone {
        /// Its name.
        name: String,
    },
    /// The new version says something else of it.
    Other {
        /// Its name.
        name: String,
        /// The description before and after, when it is another.
        description: Option<(String, String)>,
        /// Its arguments changed.
        arguments: bool,
        /// Its hints changed.
        hints: bool,
    },
}

/// Installs another version of a server's package beside the one that is there, and starts both without the user's secrets, to
/// compare their tools. `version` is the newest when it is not named. A version that is there and does not start is no reason to
/// keep it. A new one that does not start is none to take it, unless it may need a secret to start: then it is not compared.
///
/// # Errors
/// [`InstallError`].
pub async fn look_for_update(
    installer: &Installer,
    name: &str,
    version: Option<&str>,
) -> Result<Updated, InstallError> {
    installer.home.prepare()?;
    let servers = Servers::load(&installer.home)?;
    let (server, command) = find(&servers, name)?;
    let not_understood = |problem: String| InstallError::NotUnderstood { server: name.to_owned(), problem };
    if let Some(version) = version.filter(|version| !is_version(version)) {
        return Err(not_understood(format!("`{}` is not a version", version.escape_default())));
    }
    if command.requested.version.is_some() && command.position.is_none() {
        return Err(not_understood("its entry names the version with `=`; change it there".to_owned()));
    }
    let store = PackageStore::lock(installer, name).await?;
    let not_ready = |problem| InstallError::NotReady { server: name.to_owned(), problem };
    let there = store.packages.ready(server).map_err(not_ready)?;
    let (Some(there), Ok(Some(old))) = (there, store.packages.record(name)) else {
        return Err(InstallError::NoPackage(name.to_owned()));
    };
    store.sweep(&servers)?;
    let mut record = fetch(installer, &store, &command.requested, version).await?;
    if record.version == old.version {
        store.sweep(&servers)?;
        return Ok(Updated::Newest(old.version));
    }
    // An entry that names a version names the one that runs.
    record.requested.version = command.requested.version.as_ref().map(|_| record.version.clone());
    let new = store.packages.ready_with(server, &command, &record).map_err(not_ready)?;
    let before = tools(installer, &there.server, &old.version).await;
    let after = tools(installer, &new.server, &record.version).await;
    let (before, after, not_compared) = match (before, after) {
        (Ok(before), Ok(after)) => (before, after, None),
        (Err(problem), Ok(after)) => (Vec::new(), after, Some(problem)),
        (_, Err(problem)) if !server.secret_names().is_empty() => (Vec::new(), Vec::new(), Some(problem)),
        (_, Err(problem)) => return Err(problem),
    };
    drop((there, new));
    let was = identity::now(&installer.home, &installer.programs, server)?;
    Ok(Updated::Found(Box::new(Update {
        store,
        installer: installer.clone(),
        server: server.clone(),
        from: old.version,
        to: record.version.clone(),
        command,
        record,
        was,
        not_compared,
        tools: changes(&before, &after),
    })))
}

impl Update {
    /// Returns `true` if the entry in `mcp-servers.json` names the version, and is changed with it.
    #[must_use]
    pub fn changes_entry(&self) -> bool {
        self.command.requested.version.is_some()
    }

    /// Replaces the old version with the new one. Processes that start from now on run the new version, and what is kept under the
    /// server's name belongs to it.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn switch(&self) -> Result<(), InstallError> {
        // Between the two the server is refused, since its entry and its record do not agree.
        if self.changes_entry() {
            self.rewrite()?;
        }
        self.store.write(&self.server.name, &self.record)?;
        let home = &self.installer.home;
        let servers = Servers::load(home)?;
        if let Some(server) = servers.find(Some(&self.server.name)) {
            identity::carry_over(home, &self.was, &identity::now(home, &self.installer.programs, server)?)?;
        }
        self.store.sweep(&Servers::load(&self.installer.home)?)
    }

    fn rewrite(&self) -> Result<(), InstallError> {
        let file = ServersFile::open(&self.installer.home)?;
        if file.server(&self.server.name).ok().as_ref() != Some(&self.server) {
            return Err(InstallError::ChangedMeanwhile(file.file));
        }
        let mut args = self.server.args.clone();
        if let Some(arg) = self.command.position.and_then(|position| args.get_mut(position)) {
            *arg = spelled(arg, &self.record.requested);
        }
        let (way, _) = file.entry(&self.server.name)?;
        let way: Vec<&str> = way.iter().map(String::as_str).chain(["args"]).collect();
        Ok(file.write(&file.with(&way, &args.into())?)?)
    }
}

impl Drop for Update {
    fn drop(&mut self) {
        // What is left is removed the next time.
        let servers = Servers::load(&self.installer.home).ok();
        let _ = servers.map(|servers| self.store.sweep(&servers));
    }
}

/// The package with its version, in the way the person wrote it.
fn spelled(written: &str, requested: &RequestedPackage) -> String {
    let version = requested.version.as_deref();
    if written.contains("==") || !written.contains('@') {
        return requested.spelled(version);
    }
    version.map_or_else(|| requested.package.clone(), |version| format!("{}@{version}", requested.package))
}

async fn tools(
    installer: &Installer,
    server: &Server,
    version: &str,
) -> Result<Vec<ListedTool>, InstallError> {
    let inspection = Inspection {
        home: installer.home.clone(),
        programs: installer.programs.clone(),
        allow_root: installer.allow_root,
        patience: installer.patience,
        secrets: installer.secrets.clone(),
    };
    let servers = Servers::load(&installer.home)?;
    let look = inspect_server(&inspection, &servers, &server.without_secrets()).await;
    let bad = |e| InstallError::Inspect { version: version.to_owned(), problem: Box::new(e) };
    look.and_then(|look| look.listed).map_err(bad)
}

fn changes(before: &[ListedTool], after: &[ListedTool]) -> Vec<ToolChange> {
    let by_name = |tools: &[ListedTool]| -> BTreeMap<String, ListedTool> {
        tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let gone = gone.map(|name| ToolChange::Gone { name: name.clone() });
    let there = after.values().filter_map(|tool| match before.get(&tool.name) {
        None => Some(ToolChange::New { name: tool.name.clone(), description: tool.description.clone() }),
        Some(old) if old == tool => None,
        Some(old) => Some(ToolChange::Other {
            name: tool.name.clone(),
            description: (old.description != tool.description)
                .then(|| (old.description.clone(), tool.description.clone())),
            arguments: old.input_schema != tool.input_schema,
            hints: old.annotations != tool.annotations,
        }),
    });
    there.chain(gone).collect()
}
