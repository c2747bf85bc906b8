//! Settings files for `srt`, one per server, accessible only to this user.

use super::Profile;
use ironcurtain_config::home::{HomeError, private_dir};
use ironcurtain_paths::atomic_file;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io;
use std::path::{Path, PathBuf};

/// Content of a settings file. Unknown keys are preserved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SrtSettings {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    network: Option<Network>,
    #[serde(default)]
    filesystem: Filesystem,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Network {
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_domains: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    denied_domains: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_unix_sockets: Option<Vec<String>>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Filesystem {
    #[serde(skip_serializing_if = "Option::is_none")]
    deny_read: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_read: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow_write: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deny_write: Option<Vec<String>>,
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// Paths of one server's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// Path of the settings file.
    pub settings: PathBuf,
    /// Working directory of the server.
    pub cwd: PathBuf,
}

/// Failure to write a settings file.
#[derive(Debug, thiserror::Error)]
pub enum SrtSettingsError {
    /// The server name contains a slash or NUL, or is empty.
    #[error("the server name `{0}` is not a valid file name")]
    Name(String),
    /// The working directory cannot be created.
    #[error(transparent)]
    Directory(#[from] HomeError),
    /// Writing the settings file failed.
    #[error("failed to write `{path}`: {source}")]
    Write {
        /// Path of the settings file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
}

impl ServerFiles {
    /// Returns the paths of a server's files in `dir`.
    ///
    /// # Errors
    /// Returns [`SrtSettingsError::Name`] if the server name is not a valid file name.
    pub fn of(server: &str, dir: &Path) -> Result<Self, SrtSettingsError> {
        if server.is_empty() || server.contains(['/', '\0']) {
            return Err(SrtSettingsError::Name(server.escape_default().to_string()));
        }
        Ok(Self {
            settings: dir.join(format!("{server}.srt-settings.json")),
            cwd: dir.join(format!("{server}.cwd")),
        })
    }
}

impl SrtSettings {
    /// Creates the settings for a profile. `agent` is the socket of the user's SSH agent, if the server is allowed to
    /// use it.
    #[must_use]
    pub fn new(profile: &Profile, deny_read: Vec<String>, cwd: &Path, agent: Option<&Path>) -> Self {
        let network = profile.network.clone();
        let sockets = network.as_ref().and(agent).and_then(Path::parent);
        let network = network.unwrap_or_default();
        let mut allow_write = profile.allow_write.clone();
        allow_write.push(cwd.display().to_string());
        Self {
            network: Some(Network {
                allowed_domains: Some(network.allowed_domains),
                denied_domains: Some(network.denied_domains),
                allow_unix_sockets: sockets.map(|dir| vec![dir.display().to_string()]),
                other: Map::new(),
            }),
            filesystem: Filesystem {
                deny_read: Some(deny_read),
                allow_read: Some(profile.allow_read.clone()),
                allow_write: Some(allow_write),
                deny_write: Some(profile.deny_write.clone()),
                other: Map::new(),
            },
            other: Map::new(),
        }
    }

    /// Writes the settings file and creates the working directory, both accessible only to this user.
    ///
    /// # Errors
    /// Returns an [`SrtSettingsError`] with the path that could not be written.
    pub fn write(&self, files: &ServerFiles) -> Result<(), SrtSettingsError> {
        private_dir(&files.cwd)?;
        let problem = |source: io::Error| SrtSettingsError::Write { path: files.settings.clone(), source };
        let text = serde_json::to_string_pretty(self).map_err(|e| problem(e.into()))?;
        atomic_file::replace(&files.settings, &text).map_err(problem)
    }

    /// Adds readable and writable paths.
    pub fn extend(&mut self, allow_read: &[String], allow_write: &[String]) {
        let files = &mut self.filesystem;
        add_missing(&mut files.allow_read, allow_read);
        add_missing(&mut files.allow_write, allow_write);
    }
}

/// Appends those paths in `more` that the list does not contain yet.
fn add_missing(list: &mut Option<Vec<String>>, more: &[String]) {
    if more.is_empty() {
        return;
    }
    let mut once: Vec<String> = Vec::new();
    for path in list.take().into_iter().flatten().chain(more.iter().cloned()) {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    *list = Some(once);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::NetworkSettings;
    use serde_json::json;
    use std::os::unix::fs::MetadataExt;

    fn profile(network: Option<NetworkSettings>) -> Profile {
        Profile {
            allow_write: vec!["/s".into(), "/w".into()],
            allow_read: vec!["/r".into()],
            deny_read: Some(vec!["~/.gnupg".into()]),
            deny_write: vec!["/w/n".into()],
            network,
            ..Profile::default()
        }
    }

    #[test]
    fn the_file_contains_the_resolved_settings_and_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let files = ServerFiles::of("git", dir.path()).unwrap();
        let settings = SrtSettings::new(
            &profile(None),
            vec!["~/.ssh".into()],
            &files.cwd,
            Some(Path::new("/run/a/sock")),
        );
        settings.write(&files).unwrap();
        settings.write(&files).unwrap();
        let written: Value = serde_json::from_slice(&std::fs::read(&files.settings).unwrap()).unwrap();
        let expected = json!({
            "network": { "allowedDomains": [], "deniedDomains": [] },
            "filesystem": { "denyRead": ["~/.ssh"], "allowRead": ["/r"], "allowWrite": ["/s", "/w", files.cwd],
                "denyWrite": ["/w/n"] },
        });
        assert_eq!(written, expected);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&files.settings), mode(&files.cwd)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_server_with_network_access_can_get_the_key_agent() {
        let network =
            NetworkSettings { allowed_domains: vec!["a.example".into()], ..NetworkSettings::default() };
        let settings = SrtSettings::new(
            &profile(Some(network)),
            vec![],
            Path::new("/c"),
            Some(Path::new("/run/a/sock")),
        );
        let network = serde_json::to_value(settings).unwrap()["network"].take();
        let expected =
            json!({ "allowedDomains": ["a.example"], "deniedDomains": [], "allowUnixSockets": ["/run/a"] });
        assert_eq!(network, expected);
    }

    #[test]
    fn paths_are_added_once_and_other_settings_are_preserved() {
        let text = json!({ "x": 1, "network": { "y": 2 }, "filesystem": { "denyRead": ["d"], "allowRead": ["a", "a"], "z": 3 } });
        let mut settings: SrtSettings = serde_json::from_value(text).unwrap();
        settings.extend(&["b".into(), "a".into()], &["w".into(), "w".into()]);
        let expected = json!({ "x": 1, "network": { "y": 2 },
            "filesystem": { "denyRead": ["d"], "allowRead": ["a", "b"], "allowWrite": ["w"], "z": 3 } });
        assert_eq!(serde_json::to_value(&settings).unwrap(), expected);
        settings.extend(&[], &[]);
        assert_eq!(serde_json::to_value(&settings).unwrap(), expected);
    }

    #[test]
    fn a_name_that_is_not_a_file_name_is_refused() {
        for name in ["", "../x", "a/b", "a\0"] {
            assert!(
                matches!(ServerFiles::of(name, Path::new("/d")), Err(SrtSettingsError::Name(_))),
                "{name:?}"
            );
        }
    }
}
