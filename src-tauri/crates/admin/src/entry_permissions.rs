//! Hosts and folders that a server's entry allows permanently.
//!
//! - Allows only hosts that the proxy accepts, and folders that the user could grant.
//! - Changes only the list that contains the host or folder.
//! - An opening applies to all agents that use the server. To give a single agent access to a folder, use a grant
//!   instead.

use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicySnapshot, Sandbox, Server, Servers};
use ironcurtain_egress::HostRules;
use ironcurtain_paths::{PathKind, Resolver};
use ironcurtain_visible as visible;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// A host or folder that a server may always access, as spelled in its entry. Variants are ordered from most to least
/// dangerous.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "kind", content = "what", rename_all = "kebab-case")]
pub enum EntryPermission {
    /// A folder that the server may read and change.
    Write(String),
    /// A host name, or a pattern for all subdomains of a name.
    Host(String),
    /// A folder that the server may read.
    Read(String),
}

/// Planned change to an opening. [`Self::write`] applies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPermissionChange {
    /// Name of the server.
    pub server: String,
    /// Host or folder that the change allows or no longer allows.
    pub permission: EntryPermission,
    /// Path of the servers file.
    pub file: PathBuf,
    servers: ServersFile,
    after: String,
}

impl EntryPermission {
    /// Describes the access for the user.
    #[must_use]
    pub fn describe(&self, server: &str) -> String {
        let any = "at any time and without asking, for every agent that uses it";
        let displayed = visible::line(self.target());
        match self {
            Self::Write(_) => {
                format!("{server} may read, change and delete everything in `{displayed}`, {any}")
            }
            Self::Host(host) if host.starts_with("*.") => {
                let domain = visible::line(host.trim_start_matches("*."));
                format!("{server} may send anything it knows to every subdomain of `{domain}`, {any}")
            }
            Self::Host(_) => format!("{server} may send anything it knows to `{displayed}`, {any}"),
            Self::Read(_) => format!("{server} may read everything in `{displayed}`, {any}"),
        }
    }

    /// Returns the host or folder as text.
    #[must_use]
    pub fn target(&self) -> &str {
        match self {
            Self::Write(target) | Self::Host(target) | Self::Read(target) => target,
        }
    }

    /// Returns the keys that lead to the list in the entry's sandbox object.
    fn list_keys(&self) -> [&'static str; 2] {
        match self {
            Self::Write(_) => ["filesystem", "allowWrite"],
            Self::Host(_) => ["network", "allowedDomains"],
            Self::Read(_) => ["filesystem", "allowRead"],
        }
    }
}

/// Returns all openings of a server, most dangerous first.
#[must_use]
pub fn entry_permissions(server: &Server) -> Vec<EntryPermission> {
    let Some(settings) = server.sandbox.settings() else { return Vec::new() };
    let files = &settings.filesystem;
    let hosts = settings.network.iter().flat_map(|network| &network.allowed_domains);
    let mut all: Vec<EntryPermission> =
        files.allow_write.iter().cloned().map(EntryPermission::Write).collect();
    all.extend(hosts.cloned().map(EntryPermission::Host));
    all.extend(files.allow_read.iter().cloned().map(EntryPermission::Read));
    // Patterns come before names, because `*` sorts before letters.
    all.sort();
    all
}

impl EntryPermissionChange {
    /// Plans a change that allows a server to access a host or folder.
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] if the change is not possible or the servers file is invalid.
    pub fn allow(home: &Home, server: &str, wanted: EntryPermission) -> Result<Self, ServerChangeError> {
        let file = ServersFile::open(home)?;
        let permission = match wanted {
            EntryPermission::Host(host) => {
                let host = host.trim().to_owned();
                HostRules::new([host.as_str()], [""; 0], false)?;
                EntryPermission::Host(host)
            }
            EntryPermission::Read(folder) => EntryPermission::Read(checked_folder(home, &folder)?),
            EntryPermission::Write(folder) => EntryPermission::Write(checked_folder(home, &folder)?),
        };
        Self::plan(file, server, permission, |list, permission| {
            if list.iter().any(|one| one == permission.target()) {
                return Err(ServerChangeError::AlreadyAllowed(visible::line(permission.target())));
            }
            list.push(permission.target().to_owned());
            Ok(())
        })
    }

    /// Plans the removal of one of a server's [`entry_permissions`].
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] if the change is not possible or the servers file is invalid.
    pub fn remove(home: &Home, server: &str, permission: EntryPermission) -> Result<Self, ServerChangeError> {
        Self::plan(ServersFile::open(home)?, server, permission, |list, permission| {
            let before = list.len();
            list.retain(|one| one != permission.target());
            if list.len() == before {
                return Err(ServerChangeError::NotAllowed(visible::line(permission.target())));
            }
            Ok(())
        })
    }

    fn plan(
        servers: ServersFile,
        server: &str,
        permission: EntryPermission,
        change: impl FnOnce(&mut Vec<String>, &EntryPermission) -> Result<(), ServerChangeError>,
    ) -> Result<Self, ServerChangeError> {
        let found = servers.server(server)?;
        if found.remote.is_some() {
            return Err(ServerChangeError::Remote(found.name));
        }
        if found.sandbox == Sandbox::OptedOut {
            return Err(ServerChangeError::NotSandboxed(found.name));
        }
        let (keys, entry) = servers.entry(server)?;
        let [section_key, name] = permission.list_keys();
        let section = entry.pointer(&format!("/sandbox/{section_key}"));
        let mut list: Vec<String> = section
            .and_then(|section| section.get(name))
            .and_then(|list| serde_json::from_value(list.clone()).ok())
            .unwrap_or_default();
        change(&mut list, &permission)?;
        let mut path: Vec<&str> = keys.iter().map(String::as_str).chain(["sandbox", section_key]).collect();
        // `"network": false` and `"network": "ask"` are replaced by an object that contains the list.
        let value = if section.is_some_and(Value::is_object) {
            path.push(name);
            json!(list)
        } else if section.is_some_and(|section| section == "ask") {
            json!({ name: list, "askUnknown": true })
        } else {
            json!({ name: list })
        };
        let after = servers.with(&path, &value)?;
        Ok(Self { server: server.to_owned(), permission, file: servers.file.clone(), servers, after })
    }

    /// Writes the change.
    ///
    /// # Errors
    /// Returns a [`ServerChangeError`] on failure, in which case the servers are unchanged.
    pub fn write(&self) -> Result<(), ServerChangeError> {
        self.servers.write(&self.after)
    }
}

/// Returns the canonical path of a folder that may be allowed.
fn checked_folder(home: &Home, folder: &str) -> Result<String, ServerChangeError> {
    let snapshot = PolicySnapshot::load(home, &Servers::load(home)?)?;
    let displayed = visible::path(folder);
    let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
    let found = resolver
        .resolve(folder)
        .map_err(|problem| ServerChangeError::Path { path: displayed.clone(), problem })?;
    if found.target != PathKind::Folder {
        return Err(ServerChangeError::NotAFolder(displayed));
    }
    if !snapshot.limits().may_be_granted(&found.path) {
        return Err(ServerChangeError::Protected(visible::path(found.path.as_str())));
    }
    Ok(found.path.as_str().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::NetworkSettings;
    use std::fs;

    const TEXT: &str = r#"{
  "_comment": "mine",
  "mcpServers": { "a": { "command": "a", "sandbox": { "network": false } } },
  "c": { "command": "c", "sandbox": { "network": "ask" } },
  "b" : { "command":"b", "sandbox": { "network": { "allowedDomains": ["b.example"], "askUnknown": true } } },
  "open": { "command": "o", "sandbox": false },
  "far": { "url": "https://far.example/mcp" }
}
"#;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = Home::under(&base.join("ic"), &base.join("ada"));
        fs::create_dir_all(home.user_home.join("cache/deep")).unwrap();
        fs::create_dir_all(home.user_home.join(".ssh")).unwrap();
        home.prepare().unwrap();
        fs::write(home.config.join("mcp-servers.json"), TEXT).unwrap();
        (dir, home)
    }

    fn open(home: &Home, name: &str) -> Vec<EntryPermission> {
        entry_permissions(Servers::load(home).unwrap().find(Some(name)).unwrap())
    }

    #[test]
    fn openings_change_only_their_list() {
        let (_dir, home) = home();
        let before = fs::read_to_string(home.config.join("mcp-servers.json")).unwrap();
        let cache = home.user_home.join("cache").display().to_string();
        let host = |host: &str| EntryPermission::Host(host.to_owned());
        for (server, permission) in [
            ("a", host("a.example:8443")),
            ("a", host("*.wide.example")),
            ("b", host("c.example")),
            ("a", EntryPermission::Read(cache.clone())),
            ("a", EntryPermission::Write(cache.clone())),
        ] {
            EntryPermissionChange::allow(&home, server, permission).unwrap().write().unwrap();
        }
        let all = open(&home, "a");
        let expected = [
            EntryPermission::Write(cache.clone()),
            host("*.wide.example"),
            host("a.example:8443"),
            EntryPermission::Read(cache.clone()),
        ];
        assert_eq!(all, expected);
        assert_eq!(open(&home, "b"), [host("b.example"), host("c.example")]);
        assert!(open(&home, "c").is_empty());
        EntryPermissionChange::allow(&home, "c", host("d.example")).unwrap().write().unwrap();
        let servers = Servers::load(&home).unwrap();
        let settings = servers.find(Some("c")).unwrap().sandbox.settings().unwrap().clone();
        let hosts = vec!["d.example".to_owned()];
        let expected = NetworkSettings { allowed_domains: hosts, ..NetworkSettings::asking() };
        assert_eq!(settings.network, Some(expected));
        EntryPermissionChange::remove(&home, "c", host("d.example")).unwrap().write().unwrap();
        assert!(
            Servers::load(&home)
                .unwrap()
                .find(Some("b"))
                .unwrap()
                .sandbox
                .settings()
                .unwrap()
                .network
                .as_ref()
                .unwrap()
                .ask_unknown
        );
        for permission in all {
            EntryPermissionChange::remove(&home, "a", permission).unwrap().write().unwrap();
        }
        EntryPermissionChange::remove(&home, "b", host("c.example")).unwrap().write().unwrap();
        assert_eq!(open(&home, "a"), []);
        let text = fs::read_to_string(home.config.join("mcp-servers.json")).unwrap();
        assert_eq!(text.lines().next_back(), before.lines().next_back());
        assert!(text.contains("\"_comment\": \"mine\"") && text.contains("\"far\": { \"url\""), "{text}");
        let missing = EntryPermissionChange::remove(&home, "b", host("c.example")).unwrap_err().to_string();
        assert_eq!(missing, "`c.example` is not permanently allowed");
    }

    #[test]
    fn invalid_openings_are_rejected_and_nothing_is_written() {
        let (_dir, home) = home();
        let before = fs::read_to_string(home.config.join("mcp-servers.json")).unwrap();
        let rejected = |server: &str, permission: EntryPermission| {
            EntryPermissionChange::allow(&home, server, permission).unwrap_err().to_string()
        };
        let host = |server: &str, host: &str| rejected(server, EntryPermission::Host(host.to_owned()));
        let folder = |path: PathBuf| rejected("a", EntryPermission::Write(path.display().to_string()));
        assert!(host("a", "https://a.example/x").starts_with("`https://a.example/x` is not a host"));
        assert!(host("a", "*").starts_with("`*` covers too much"));
        assert!(host("a", "*.com").starts_with("`*.com` covers too much"));
        assert!(host("a", "printer").starts_with("`printer` has no dot"));
        assert_eq!(host("b", "b.example"), "`b.example` is already allowed");
        assert!(host("open", "a.example").starts_with("`open` is not sandboxed"));
        assert!(host("far", "a.example").starts_with("`far` is a remote server"));
        assert!(host("nobody", "a.example").starts_with("no server is named `nobody`"));
        for path in
            [home.user_home.clone(), home.user_home.join(".ssh"), home.config.clone(), PathBuf::from("/")]
        {
            assert!(folder(path).contains("cannot be allowed, because it is or contains your home, keys"));
        }
        fs::write(home.user_home.join("file"), "x").unwrap();
        assert!(folder(home.user_home.join("file")).ends_with("is not a folder"));
        // Symlinks are resolved before the check.
        std::os::unix::fs::symlink(home.user_home.join(".ssh"), home.user_home.join("cache/link")).unwrap();
        assert!(folder(home.user_home.join("cache/link")).contains(".ssh` cannot be allowed"));
        assert_eq!(fs::read_to_string(home.config.join("mcp-servers.json")).unwrap(), before);
        let deep = home.user_home.join("cache/deep").display().to_string();
        EntryPermissionChange::allow(&home, "a", EntryPermission::Read(deep)).unwrap().write().unwrap();
    }
}
