//! Another version of a server's package: installed beside the one that is there, compared by the tools of both, and put
//! in its place only by an explicit word.
//!
//! - Until that word nothing changes; servers that run go on with what they were started from.

use super::fetch::{fetch, find, sweep};
use super::place::Alone;
use super::record::Record;
use super::{Asked, InstallError, Installer, Installs, Wanted};
use crate::config::{Server, Servers, read};
use crate::edit;
use crate::server::inspect::{Inspection, ListedTool, inspect_server};
use std::collections::BTreeMap;

/// A version that could take the place of the one that is there. Dropped, it is forgotten.
pub struct Update {
    installs: Installs,
    installer: Installer,
    alone: Alone,
    server: Server,
    asked: Asked,
    record: Record,
    /// The version that is there.
    pub from: String,
    /// The version that could be.
    pub to: String,
    /// Why the version that is there could not be compared: then every tool counts as new.
    pub not_compared: Option<InstallError>,
    /// How their tools differ.
    pub tools: Vec<ToolChange>,
}

/// What there is to update.
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
        /// What is said of it.
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
        /// Whether its arguments are others.
        arguments: bool,
        /// Whether its hints are others.
        hints: bool,
    },
}

/// Installs another version of a server's package beside the one that is there, and starts both, in sandboxes without
/// network, to compare their tools. `version` is the newest when it is not named. A version that is there and does not
/// start is no reason to keep it; a new one that does not start is none to take it.
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
    let (server, asked) = find(&servers, name)?;
    let not_understood = |problem: String| InstallError::NotUnderstood { server: name.to_owned(), problem };
    if let Some(version) = version.filter(|version| !super::wanted::is_version(version)) {
        return Err(not_understood(format!("`{}` is not a version", version.escape_default())));
    }
    if asked.wanted.version.is_some() && asked.at == usize::MAX {
        return Err(not_understood("its entry names the version with `=`; change it there".to_owned()));
    }
    let installs = Installs::of(&installer.home);
    let alone = installs.alone()?;
    let not_ready = |problem| InstallError::NotReady { server: name.to_owned(), problem };
    let there = installs.ready(server).map_err(not_ready)?;
    let (Some(there), Ok(Some(old))) = (there, installs.record(name)) else {
        return Err(InstallError::NoPackage(name.to_owned()));
    };
    sweep(&installs, &alone, &servers)?;
    let mut record = fetch(installer, &installs, &alone, &asked.wanted, version).await?;
    if record.version == old.version {
        sweep(&installs, &alone, &servers)?;
        return Ok(Updated::Newest(old.version));
    }
    // An entry that names a version names the one that runs.
    record.wanted.version = asked.wanted.version.as_ref().map(|_| record.version.clone());
    let new = installs.ready_with(server, &asked, &record).map_err(not_ready)?;
    let before = tools(installer, &there.server, &old.version).await;
    let after = tools(installer, &new.server, &record.version).await?;
    let (before, not_compared) = match before {
        Ok(before) => (before, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    drop((there, new));
    Ok(Updated::Found(Box::new(Update {
        installs,
        installer: installer.clone(),
        alone,
        server: server.clone(),
        from: old.version,
        to: record.version.clone(),
        asked,
        record,
        not_compared,
        tools: changes(&before, &after),
    })))
}

impl Update {
    /// Whether the entry in `mcp-servers.json` names the version, and is changed with it.
    #[must_use]
    pub fn changes_entry(&self) -> bool {
        self.asked.wanted.version.is_some()
    }

    /// Puts the new version in the place of the old one, for whatever is started from now on.
    ///
    /// # Errors
    /// [`InstallError`].
    pub fn switch(&self) -> Result<(), InstallError> {
        // Between the two the server is refused, since its entry and its record do not agree.
        if self.changes_entry() {
            self.rewrite().map_err(InstallError::Record)?;
        }
        self.installs.write(&self.server.name, &self.record).map_err(InstallError::Record)?;
        sweep(&self.installs, &self.alone, &Servers::load(&self.installer.home)?)
    }

    fn rewrite(&self) -> Result<(), String> {
        let file = self.installer.home.config.join("mcp-servers.json");
        let text = read(&file).map_err(|e| e.to_string())?.unwrap_or_default();
        let now = Servers::parse(&text, &file, &self.installer.home.person).map_err(|e| e.to_string())?;
        if now.find(Some(&self.server.name)) != Some(&self.server) {
            return Err(format!("`{}` changed in the meantime; try again", file.display()));
        }
        let mut args = self.server.args.clone();
        if let Some(arg) = args.get_mut(self.asked.at) {
            *arg = spelled(arg, &self.record.wanted);
        }
        let text = edit::set(&text, &[&self.server.name, "args"], &args.into())?;
        edit::replace(&file, &text).map_err(|e| format!("`{}` cannot be written: {e}", file.display()))
    }
}

impl Drop for Update {
    fn drop(&mut self) {
        // What is left is removed the next time.
        let servers = Servers::load(&self.installer.home).ok();
        let _ = servers.map(|servers| self.installs.sweep(&self.alone, &servers));
    }
}

/// The package with its version, in the way the person wrote it.
fn spelled(written: &str, wanted: &Wanted) -> String {
    let version = wanted.version.as_deref();
    if written.contains("==") || !written.contains('@') {
        return wanted.spelled(version);
    }
    version.map_or_else(|| wanted.package.clone(), |version| format!("{}@{version}", wanted.package))
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
    };
    let listed = inspect_server(&inspection, server).await;
    let bad = |e| InstallError::Inspect { version: version.to_owned(), problem: Box::new(e) };
    listed.map_err(bad)
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
