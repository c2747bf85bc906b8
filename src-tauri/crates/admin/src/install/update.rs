//! Updates a server's package: installs a different version next to the current version, compares their tools, and
//! switches on request.
//!
//! - Changes nothing before the switch. Running servers keep the version from which they were started.

use super::fetch::{fetch, find};
use super::store::PackageStore;
use super::{InstallError, Installer};
use crate::identity;
use crate::inspect::{Inspection, ListedTool, inspect_server};
use crate::servers_file::ServersFile;
use ironcurtain_config::{Server, Servers};
use ironcurtain_grants::Pins;
use ironcurtain_packages::{PackageRecord, RequestedPackage, RunnerCommand, is_version};
use ironcurtain_server_identity::ServerIdentity;
use std::collections::BTreeMap;

/// A different version of an installed package. Dropping the value without calling [`Self::switch`] discards that
/// version.
pub struct Update {
    store: PackageStore,
    installer: Installer,
    server: Server,
    command: RunnerCommand,
    record: PackageRecord,
    /// Identity of the server with the current version.
    old_identity: ServerIdentity,
    /// Current version.
    pub from: String,
    /// New version.
    pub to: String,
    /// Reason the tools could not be compared. If set, every tool counts as new.
    pub not_compared: Option<InstallError>,
    /// Differences between the tools of the two versions.
    pub tools: Vec<ToolChange>,
}

/// Result of checking for a different version.
pub enum UpdateCheck {
    /// The installed version, which is the newest.
    UpToDate(String),
    /// A different version was found and installed next to the current version.
    Found(Box<Update>),
}

/// Difference between the two versions of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChange {
    /// Only the new version has the tool.
    Added {
        /// Name of the tool.
        name: String,
        /// Description from the server.
        description: String,
    },
    /// Only the current version has the tool.
    Removed {
        /// Name of the tool.
        name: String,
    },
    /// Both versions have the tool, with different definitions.
    Changed {
        /// Name of the tool.
        name: String,
        /// Current and new description, if they differ.
        description: Option<(String, String)>,
        /// `true` if the argument schema differs.
        arguments: bool,
        /// `true` if the hints differ.
        hints: bool,
    },
}

/// Installs a different version of a server's package next to the current version. Starts both versions without the
/// user's secrets to compare their tools.
///
/// Installs the newest version if `version` is `None`. If the current version does not start, every tool counts as
/// new. If the new version does not start, the update fails, unless the server needs secrets. In that case, the tools
/// are not compared.
///
/// # Errors
/// Returns an [`InstallError`] if a package folder, a record or the configuration cannot be read or written.
pub async fn check_for_update(
    installer: &Installer,
    name: &str,
    version: Option<&str>,
) -> Result<UpdateCheck, InstallError> {
    installer.home.prepare()?;
    let servers = Servers::load(&installer.home)?;
    let (server, command) = find(&servers, name)?;
    let invalid_entry = |problem: String| InstallError::InvalidEntry { server: name.to_owned(), problem };
    if let Some(version) = version.filter(|version| !is_version(version)) {
        return Err(invalid_entry(format!("`{}` is not a version", version.escape_default())));
    }
    if command.requested.version.is_some() && command.position.is_none() {
        return Err(invalid_entry("its entry sets the version with `=`; change it there".to_owned()));
    }
    let store = PackageStore::lock(installer, name).await?;
    let unusable = |problem| InstallError::PackageUnusable { server: name.to_owned(), problem };
    let installed = store.packages.verify(server).map_err(unusable)?;
    let (Some(installed), Ok(Some(old))) = (installed, store.packages.record(name)) else {
        return Err(InstallError::NoPackage(name.to_owned()));
    };
    store.sweep(&servers)?;
    let mut record = fetch(installer, &store, &command.requested, version).await?;
    if record.version == old.version {
        store.sweep(&servers)?;
        return Ok(UpdateCheck::UpToDate(old.version));
    }
    // If the entry names a version, the record requests the new version.
    record.requested.version = command.requested.version.as_ref().map(|_| record.version.clone());
    let new = store.packages.verify_record(server, &command, &record).map_err(unusable)?;
    let before = list_tools(installer, &installed.server, &old.version).await;
    let after = list_tools(installer, &new.server, &record.version).await;
    let (before, after, not_compared) = match (before, after) {
        (Ok(before), Ok(after)) => (before, after, None),
        (Err(problem), Ok(after)) => (Vec::new(), after, Some(problem)),
        (_, Err(problem)) if !server.secret_names().is_empty() => (Vec::new(), Vec::new(), Some(problem)),
        (_, Err(problem)) => return Err(problem),
    };
    drop((installed, new));
    let old_identity = identity::current_identity(&installer.home, &installer.programs, server)?;
    Ok(UpdateCheck::Found(Box::new(Update {
        store,
        installer: installer.clone(),
        server: server.clone(),
        from: old.version,
        to: record.version.clone(),
        command,
        record,
        old_identity,
        not_compared,
        tools: compare_tools(&before, &after),
    })))
}

impl Update {
    /// Returns `true` if the entry in `mcp-servers.json` names the version and must therefore be changed.
    #[must_use]
    pub fn changes_entry(&self) -> bool {
        self.command.requested.version.is_some()
    }

    /// Switches to the new version: new server processes use it, and it takes over the state stored under the
    /// server's name.
    ///
    /// # Errors
    /// Returns an [`InstallError`] if a package folder, a record or the configuration cannot be read or written.
    pub fn switch(&self) -> Result<(), InstallError> {
        // Between these writes, the server cannot start, because its entry and its record differ.
        if self.changes_entry() {
            self.update_entry()?;
        }
        self.store.write(&self.server.name, &self.record)?;
        let home = &self.installer.home;
        // The user has seen the differences, so the first start after the update pins the new definitions.
        Pins::of(&home.database()).forget(&self.server.identity())?;
        let servers = Servers::load(home)?;
        if let Some(server) = servers.find(Some(&self.server.name)) {
            identity::replace_owner(
                home,
                &self.old_identity,
                &identity::current_identity(home, &self.installer.programs, server)?,
            )?;
        }
        self.store.sweep(&Servers::load(&self.installer.home)?)
    }

    fn update_entry(&self) -> Result<(), InstallError> {
        let file = ServersFile::open(&self.installer.home)?;
        if file.server(&self.server.name).ok().as_ref() != Some(&self.server) {
            return Err(InstallError::ServersChanged(file.file));
        }
        let mut args = self.server.args.clone();
        if let Some(arg) = self.command.position.and_then(|position| args.get_mut(position)) {
            *arg = with_version(arg, &self.record.requested);
        }
        let (keys, _) = file.entry(&self.server.name)?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).chain(["args"]).collect();
        Ok(file.write(&file.with(&keys, &args.into())?)?)
    }
}

impl Drop for Update {
    fn drop(&mut self) {
        // Ignores the error: a later installation removes leftover files.
        let servers = Servers::load(&self.installer.home).ok();
        let _ = servers.map(|servers| self.store.sweep(&servers));
    }
}

/// Formats the package with its version in the notation that the entry uses.
fn with_version(written: &str, requested: &RequestedPackage) -> String {
    let version = requested.version.as_deref();
    if written.contains("==") || !written.contains('@') {
        return requested.package_spec(version);
    }
    version.map_or_else(|| requested.package.clone(), |version| format!("{}@{version}", requested.package))
}

async fn list_tools(
    installer: &Installer,
    server: &Server,
    version: &str,
) -> Result<Vec<ListedTool>, InstallError> {
    let inspection = Inspection {
        home: installer.home.clone(),
        programs: installer.programs.clone(),
        allow_root: installer.allow_root,
        timeout: installer.timeout,
        secrets: installer.secrets.clone(),
    };
    let servers = Servers::load(&installer.home)?;
    let inspected = inspect_server(&inspection, &servers, &server.without_secrets()).await;
    let inspect_error = |e| InstallError::Inspect { version: version.to_owned(), problem: Box::new(e) };
    inspected.and_then(|inspected| inspected.listed).map_err(inspect_error)
}

fn compare_tools(before: &[ListedTool], after: &[ListedTool]) -> Vec<ToolChange> {
    let by_name = |tools: &[ListedTool]| -> BTreeMap<String, ListedTool> {
        tools.iter().map(|tool| (tool.name.clone(), tool.clone())).collect()
    };
    let (before, after) = (by_name(before), by_name(after));
    let removed = before.keys().filter(|name| !after.contains_key(*name));
    let removed = removed.map(|name| ToolChange::Removed { name: name.clone() });
    let added_or_changed = after.values().filter_map(|tool| match before.get(&tool.name) {
        None => Some(ToolChange::Added { name: tool.name.clone(), description: tool.description.clone() }),
        Some(old) if old == tool => None,
        Some(old) => Some(ToolChange::Changed {
            name: tool.name.clone(),
            description: (old.description != tool.description)
                .then(|| (old.description.clone(), tool.description.clone())),
            arguments: old.input_schema != tool.input_schema,
            hints: old.annotations != tool.annotations,
        }),
    });
    added_or_changed.chain(removed).collect()
}
