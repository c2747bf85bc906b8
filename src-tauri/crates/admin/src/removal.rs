//! Removes servers and restores them. A removed server's entry is saved unchanged.
//!
//! - INVARIANT: an entry is saved before it is removed from `mcp-servers.json`.
//! - Removes only the entry. Reports the server's client entries, profiles and data so that the user can decide what
//!   to do with them.

use crate::clients::{ClientReport, EntryTarget};
use crate::servers_file::{ServerChangeError, ServersFile};
use crate::{file_edit, plain_secrets};
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, read};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Planned removal of a server, with everything that refers to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Removal {
    /// Name of the server.
    pub name: String,
    /// Entry of the server for display, with secrets hidden.
    pub entry: String,
    /// Client entries that start the server. They will fail once the server is removed.
    pub clients: Vec<DependentEntry>,
    /// Names of the profiles that contain the server.
    pub profiles: Vec<String>,
    /// Data folder of the server, or `None` if it has no data folder. The folder is not deleted.
    pub data: Option<PathBuf>,
    /// Path of the file in which the entry is saved.
    pub saved_in: PathBuf,
    value: Value,
    file: ServersFile,
    after: String,
}

/// A client entry that refers to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DependentEntry {
    /// Display name of the client.
    pub client: &'static str,
    /// Name of the entry.
    pub entry: String,
}

/// A server that was removed.
#[derive(Debug, Clone, PartialEq)]
pub struct RemovedServer {
    /// Name of the server.
    pub name: String,
    /// Entry of the server for display, with secrets hidden.
    pub entry: String,
}

impl Removal {
    /// Plans the removal of a server. `clients` is the result of [`crate::clients::Clients::survey`].
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] if the change is not possible or the servers file is invalid.
    pub fn plan(home: &Home, clients: &[ClientReport], name: &str) -> Result<Self, ServerChangeError> {
        let file = ServersFile::open(home)?;
        let (keys, value) = file.entry(name)?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let after = file.without(&keys)?;
        let dependent_entries = |report: &ClientReport| {
            let matching = report.entries.iter().filter(
                |entry| matches!(&entry.target, EntryTarget::Shim { server: Some(server), .. } if server == name),
            );
            let dependents =
                matching.map(|entry| DependentEntry { client: report.name, entry: entry.name.clone() });
            dependents.collect::<Vec<_>>()
        };
        let profiles = Config::load(home)?.profiles.into_iter();
        Ok(Self {
            name: name.to_owned(),
            entry: redacted(&value),
            clients: clients.iter().flat_map(dependent_entries).collect(),
            profiles: profiles.filter(|(_, set)| set.contains(name)).map(|(profile, _)| profile).collect(),
            data: Some(home.server_data(name)).filter(|data| data.is_dir()),
            saved_in: removed_servers_file(home),
            value,
            file,
            after,
        })
    }

    /// Saves the entry and removes it from `mcp-servers.json`.
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] on failure, in which case the servers are unchanged.
    pub fn write(&self) -> Result<(), ServerChangeError> {
        self.file.check_unchanged()?;
        let text = read(&self.saved_in)?.unwrap_or_else(|| "{}\n".to_owned());
        let text = file_edit::set(&self.saved_in, &text, &[&self.name], &self.value)?;
        file_edit::replace(&self.saved_in, &text)?;
        self.file.write(&self.after)
    }
}

/// Returns the removed servers that can be restored, sorted by name.
///
/// # Errors
/// Returns a [`ServerChangeError`] if the file of removed servers is unreadable or invalid.
pub fn removed_servers(home: &Home) -> Result<Vec<RemovedServer>, ServerChangeError> {
    let all = load_removed(home)?.into_iter();
    Ok(all.map(|(name, entry)| RemovedServer { entry: redacted(&entry), name }).collect())
}

/// Restores a removed server's entry.
///
/// # Errors
/// Returns a [`ServerChangeError`] on failure, in which case nothing changed.
pub fn restore_server(home: &Home, name: &str) -> Result<(), ServerChangeError> {
    let file = ServersFile::open(home)?;
    let entry =
        load_removed(home)?.remove(name).ok_or_else(|| ServerChangeError::NotRemoved(name.to_owned()))?;
    if file.entry(name).is_ok() {
        return Err(ServerChangeError::NameInUse(name.to_owned()));
    }
    file.write(&file.with(&[name], &entry)?)?;
    discard_server(home, name)
}

/// Deletes the saved entry of a removed server.
///
/// # Errors
/// Returns a [`ServerChangeError`] if no removed server has this name, or the file of removed servers cannot be
/// changed.
pub fn discard_server(home: &Home, name: &str) -> Result<(), ServerChangeError> {
    if !load_removed(home)?.contains_key(name) {
        return Err(ServerChangeError::NotRemoved(name.to_owned()));
    }
    let file = removed_servers_file(home);
    let text = read(&file)?.unwrap_or_default();
    Ok(file_edit::replace(&file, &file_edit::remove(&file, &text, &[name])?)?)
}

fn removed_servers_file(home: &Home) -> PathBuf {
    home.config.join("removed-servers.json")
}

fn load_removed(home: &Home) -> Result<Map<String, Value>, ServerChangeError> {
    let file = removed_servers_file(home);
    let Some(text) = read(&file)? else { return Ok(Map::new()) };
    serde_json::from_str(&text).map_err(|problem| ServerChangeError::RemovedServers(file, problem))
}

fn redacted(entry: &Value) -> String {
    let text = serde_json::to_string_pretty(entry).unwrap_or_default();
    plain_secrets::redact(text, &plain_secrets::secret_values(entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientState, EntryReport};
    use ironcurtain_config::Servers;
    use std::fs;

    const TEXT: &str = r#"{
  "_comment": "mine",
  "mcpServers": { "git": { "command": "git-mcp", "env": { "API_KEY": "s3cret-value" }, "_comment": "why" } },
  "notes" : { "command":"notes" }
}
"#;

    fn home(text: &str) -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        fs::write(home.config.join("mcp-servers.json"), text).unwrap();
        (dir, home)
    }

    fn text(home: &Home) -> String {
        fs::read_to_string(home.config.join("mcp-servers.json")).unwrap()
    }

    #[test]
    fn only_the_server_is_removed_and_restored_unchanged() {
        let (_dir, home) = home(TEXT);
        fs::write(home.config.join("config.json"), r#"{ "profiles": { "work": ["git", "notes"] } }"#)
            .unwrap();
        let entry = |server: Option<&str>| EntryReport {
            name: "mine".into(),
            target: EntryTarget::Shim { server: server.map(Into::into), profile: None },
        };
        let client = ClientReport {
            id: "zed",
            name: "Zed",
            file: "/z".into(),
            state: ClientState::Connected,
            entries: vec![entry(Some("git")), entry(Some("notes")), entry(None)],
            problem: None,
        };
        let removal = Removal::plan(&home, &[client], "git").unwrap();
        assert_eq!(removal.clients, [DependentEntry { client: "Zed", entry: "mine".into() }]);
        assert_eq!(removal.profiles, ["work"]);
        assert!(removal.entry.contains("(hidden)") && !removal.entry.contains("s3cret"), "{}", removal.entry);
        assert_eq!(text(&home), TEXT, "nothing is written yet");
        removal.write().unwrap();
        let expected = TEXT.replace(
            r#"{ "git": { "command": "git-mcp", "env": { "API_KEY": "s3cret-value" }, "_comment": "why" } }"#,
            "{ }",
        );
        assert_eq!(text(&home), expected);
        assert_eq!(
            removed_servers(&home).unwrap(),
            [RemovedServer { name: "git".into(), entry: removal.entry.clone() }]
        );
        restore_server(&home, "git").unwrap();
        let servers = Servers::load(&home).unwrap();
        assert_eq!(servers.names().collect::<Vec<_>>(), ["git", "notes"]);
        assert_eq!(servers.find(Some("git")).unwrap().env["API_KEY"], "s3cret-value");
        assert!(
            text(&home).contains("\"_comment\": \"why\"") && text(&home).contains("\"_comment\": \"mine\"")
        );
        assert_eq!(removed_servers(&home).unwrap(), []);
    }

    #[test]
    fn missing_existing_and_changed_servers_are_rejected() {
        let (_dir, home) = home(TEXT);
        let plan_error = |name: &str| Removal::plan(&home, &[], name).unwrap_err().to_string();
        assert_eq!(plan_error("gti"), "no server is named `gti`; existing servers: `git`, `notes`");
        assert!(
            plan_error("mcpServers").starts_with("no server is named")
                && plan_error("_comment").starts_with("no server")
        );
        let removal = Removal::plan(&home, &[], "notes").unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT.replace("mine", "yours")).unwrap();
        assert!(matches!(removal.write(), Err(ServerChangeError::Changed(_))));
        assert_eq!(removed_servers(&home).unwrap(), []);
        Removal::plan(&home, &[], "notes").unwrap().write().unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT).unwrap();
        assert!(matches!(restore_server(&home, "notes"), Err(ServerChangeError::NameInUse(_))));
        assert!(matches!(restore_server(&home, "git"), Err(ServerChangeError::NotRemoved(_))));
        assert_eq!(text(&home), TEXT);
        discard_server(&home, "notes").unwrap();
        assert!(matches!(discard_server(&home, "notes"), Err(ServerChangeError::NotRemoved(_))));
    }

    #[test]
    fn default_server_can_be_removed_and_restored() {
        let (_dir, home) = home("{}");
        fs::remove_file(home.config.join("mcp-servers.json")).unwrap();
        Removal::plan(&home, &[], "filesystem").unwrap().write().unwrap();
        assert_eq!(Servers::load(&home).unwrap().names().count(), 0);
        restore_server(&home, "filesystem").unwrap();
        assert_eq!(Servers::load(&home).unwrap(), {
            let default = Home::under(&home.config.join("none"), &home.user_home);
            Servers::load(&default).unwrap()
        });
    }
}
