//! Contents of the policy files, all read at the same time.

use super::{Hosts, PolicyFiles};
use crate::home::Home;
use crate::snapshot_error::SnapshotError;
use crate::{ConfigError, ConfigText};
use ironcurtain_audit::hash_of;
use ironcurtain_policy::defaults;
use std::io;
use std::path::{Path, PathBuf};

/// Contents of the compiled policy, the tool annotations and the dynamic lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyTexts {
    policy: ConfigText,
    annotations: ConfigText,
    lists: ConfigText,
}

impl PolicyTexts {
    /// Reads the files in `files`. Reads the user's file in place of each `None`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or a file in `files` does not exist.
    pub fn read(home: &Home, files: &PolicyFiles) -> Result<Self, SnapshotError> {
        let [policy, annotations, lists] = Self::paths(home);
        Ok(Self {
            policy: read_or_default(files.policy.as_deref(), policy)?,
            annotations: read_or_default(files.annotations.as_deref(), annotations)?,
            lists: read_or_default(files.lists.as_deref(), lists)?,
        })
    }

    /// Returns the paths of the user's policy files.
    pub fn paths(home: &Home) -> [PathBuf; 3] {
        ["compiled-policy.json", "tool-annotations.json", "dynamic-lists.json"]
            .map(|name| home.policy().join(name))
    }

    /// Returns the contents of the three files.
    pub fn files(&self) -> [&ConfigText; 3] {
        [&self.policy, &self.annotations, &self.lists]
    }

    pub(super) fn policy(&self) -> (&str, String) {
        (self.policy.content.as_deref().unwrap_or(defaults::POLICY_JSON), name(&self.policy))
    }

    pub(super) fn annotations(&self) -> (&str, String) {
        (self.annotations.content.as_deref().unwrap_or(defaults::ANNOTATIONS_JSON), name(&self.annotations))
    }

    pub(super) fn lists(&self) -> (Option<&str>, String) {
        (self.lists.content.as_deref(), name(&self.lists))
    }

    /// Hashes the contents, the hosts of all servers and the organization's rules. Each part is preceded by its length.
    pub(super) fn hash(&self, hosts: &Hosts, managed: Option<String>) -> String {
        let mut all = Vec::new();
        let hosts = hosts.iter().flat_map(|(name, hosts)| {
            let count = hosts.len().to_string();
            [name.clone(), count].into_iter().chain(hosts.clone())
        });
        let files = [self.policy().0, self.annotations().0, self.lists().0.unwrap_or_default()];
        for part in files.into_iter().map(str::to_owned).chain(hosts).chain(managed) {
            all.extend((part.len() as u64).to_be_bytes());
            all.extend(part.into_bytes());
        }
        hash_of(&all)
    }
}

/// Reads `path`, which must exist. If `path` is `None`, reads `default`, which need not exist.
fn read_or_default(path: Option<&Path>, default: PathBuf) -> Result<ConfigText, SnapshotError> {
    let text = ConfigText::read(path.map_or(default, Path::to_path_buf))?;
    if path.is_some() && text.content.is_none() {
        let source = io::Error::new(io::ErrorKind::NotFound, "the file does not exist");
        return Err(ConfigError::Io { path: text.path, source }.into());
    }
    Ok(text)
}

fn name(text: &ConfigText) -> String {
    text.path.display().to_string()
}
