//! Profiles in `config.json`. A profile is a set of servers that a client reaches through one entry.

use crate::clients::{ClientReport, EntryTarget};
use crate::file_edit;
use crate::named_server::UnknownServer;
use crate::settings::{self, ConfigChangeError};
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, ConfigError, Servers};
use serde_json::json;
use std::collections::BTreeSet;

/// A profile and the clients that use it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerProfile {
    /// Name of the profile.
    pub name: String,
    /// Servers of the profile.
    pub servers: BTreeSet<String>,
    /// Servers in the profile that are not configured.
    pub missing: BTreeSet<String>,
    /// Display names of the clients that use the profile.
    pub clients: Vec<&'static str>,
}

/// Error from reading or changing profiles.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A file is invalid.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The file could not be changed.
    #[error(transparent)]
    Change(#[from] ConfigChangeError),
    /// A server in the profile is not configured.
    #[error(transparent)]
    Unknown(#[from] UnknownServer),
    /// The name is invalid.
    #[error("invalid profile name `{0}`; use letters, digits, `-`, `_` and `.`")]
    Name(String),
    /// The profile would contain no servers.
    #[error("choose at least one server for the profile `{0}`")]
    Empty(String),
    /// The profile does not exist.
    #[error("unknown profile `{0}`; run `ironcurtain profiles` to list them")]
    Missing(String),
}

/// Returns all profiles. `clients` is the result of [`crate::clients::Clients::survey`].
///
/// # Errors
/// Returns a [`ProfileError`] if a configuration file is invalid.
pub fn profiles(home: &Home, clients: &[ClientReport]) -> Result<Vec<ServerProfile>, ProfileError> {
    let configured = Servers::load(home)?;
    let all = Config::load(home)?.profiles.into_iter().map(|(name, servers)| {
        let uses_profile = |report: &&ClientReport| {
            report.entries.iter().any(|entry| {
                matches!(&entry.target, EntryTarget::Shim { profile: Some(profile), .. } if *profile == name)
            })
        };
        let clients = clients.iter().filter(uses_profile).map(|report| report.name).collect();
        let missing =
            servers.iter().filter(|server| configured.find(Some(server)).is_none()).cloned().collect();
        ServerProfile { clients, missing, servers, name }
    });
    Ok(all.collect())
}

/// Creates a profile, or replaces the servers of an existing profile.
///
/// # Errors
/// Returns a [`ProfileError`] on failure, in which case nothing changed.
pub fn set_profile(home: &Home, name: &str, servers: &BTreeSet<String>) -> Result<(), ProfileError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.starts_with('-') || !name.chars().all(is_plain) {
        return Err(ProfileError::Name(name.escape_debug().to_string()));
    }
    if servers.is_empty() {
        return Err(ProfileError::Empty(name.to_owned()));
    }
    let configured = Servers::load(home)?;
    let existing = Config::load(home)?.profiles.remove(name).unwrap_or_default();
    // Accepts a missing server that was already in the profile, because the user may restore it.
    let is_unknown =
        |server: &&String| configured.find(Some(server)).is_none() && !existing.contains(*server);
    if let Some(unknown) = servers.iter().find(is_unknown) {
        return Err(UnknownServer::new(&configured, unknown).into());
    }
    settings::edit(home, |file, text| file_edit::set(file, &text, &["profiles", name], &json!(servers)))?;
    Ok(())
}

/// Removes a profile. A client that uses the profile cannot start servers until it is connected again.
///
/// # Errors
/// Returns a [`ProfileError`] on failure, in which case nothing changed.
pub fn remove_profile(home: &Home, name: &str) -> Result<(), ProfileError> {
    if !Config::load(home)?.profiles.contains_key(name) {
        return Err(ProfileError::Missing(name.escape_debug().to_string()));
    }
    settings::edit(home, |file, text| file_edit::remove(file, &text, &["profiles", name]))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::{ClientState, EntryReport};
    use std::fs;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn profiles_are_created_changed_and_removed_without_other_changes() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        let config = home.config.join("config.json");
        let servers = home.config.join("mcp-servers.json");
        fs::write(&servers, r#"{ "git": { "command": "g" }, "notes": { "command": "n" } }"#).unwrap();
        fs::write(&config, "{\n  \"maxSessions\" : 7\n}\n").unwrap();
        set_profile(&home, "work", &set(&["git", "notes"])).unwrap();
        set_profile(&home, "play", &set(&["notes"])).unwrap();
        let zed = ClientReport {
            id: "zed",
            name: "Zed",
            file: "/z".into(),
            state: ClientState::Connected,
            entries: vec![EntryReport {
                name: "ironcurtain".into(),
                target: EntryTarget::Shim { server: None, profile: Some("work".into()) },
            }],
            problem: None,
        };
        fs::write(&servers, r#"{ "notes": { "command": "n" } }"#).unwrap();
        let work = ServerProfile {
            name: "work".into(),
            servers: set(&["git", "notes"]),
            missing: set(&["git"]),
            clients: vec!["Zed"],
        };
        assert_eq!(profiles(&home, &[zed]).unwrap()[1], work);
        set_profile(&home, "work", &set(&["git"])).unwrap();
        for (refused, expected) in [
            (
                set_profile(&home, "play", &set(&["git"])),
                "no server is named `git`; existing servers: `notes`",
            ),
            (set_profile(&home, "a b", &set(&["notes"])), "invalid profile name `a b`"),
            (set_profile(&home, "--all", &set(&["notes"])), "invalid profile name `--all`"),
            (set_profile(&home, "none", &set(&[])), "choose at least one server for the profile `none`"),
            (remove_profile(&home, "rest"), "unknown profile `rest`"),
        ] {
            let problem = refused.unwrap_err().to_string();
            assert!(problem.starts_with(expected), "{problem}");
        }
        remove_profile(&home, "work").unwrap();
        let remaining = profiles(&home, &[]).unwrap();
        assert_eq!(remaining.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["play"]);
        assert!(fs::read_to_string(&config).unwrap().starts_with("{\n  \"maxSessions\" : 7"));
    }
}
