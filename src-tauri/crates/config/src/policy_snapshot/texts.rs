//! The files a policy is read from, as they stood at one moment.

use super::{Hosts, PolicyFiles, SnapshotError};
use crate::home::Home;
use crate::{ConfigError, Text};
use ironcurtain_audit::hash_of;
use ironcurtain_policy::defaults;
use std::io;
use std::path::{Path, PathBuf};

/// The three files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyTexts {
    policy: Text,
    annotations: Text,
    lists: Text,
}

impl PolicyTexts {
    /// Reads those that are named, and the person's where none is.
    ///
    /// # Errors
    /// When one cannot be read, or one that is named is not there.
    pub fn read(home: &Home, files: &PolicyFiles) -> Result<Self, SnapshotError> {
        let [policy, annotations, lists] = Self::paths(home);
        Ok(Self {
            policy: named_or(files.policy.as_deref(), policy)?,
            annotations: named_or(files.annotations.as_deref(), annotations)?,
            lists: named_or(files.lists.as_deref(), lists)?,
        })
    }

    /// The paths of the person's files.
    pub fn paths(home: &Home) -> [PathBuf; 3] {
        ["compiled-policy.json", "tool-annotations.json", "dynamic-lists.json"]
            .map(|name| home.policy().join(name))
    }

    /// All of them.
    pub fn files(&self) -> [&Text; 3] {
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

    /// Of all that is said, together with the hosts of servers. Each part stands behind its length.
    pub(super) fn hash(&self, hosts: &Hosts) -> String {
        let mut all = Vec::new();
        let hosts = hosts.iter().flat_map(|(name, hosts)| {
            let count = hosts.len().to_string();
            [name.clone(), count].into_iter().chain(hosts.clone())
        });
        let files = [self.policy().0, self.annotations().0, self.lists().0.unwrap_or_default()];
        for part in files.into_iter().map(str::to_owned).chain(hosts) {
            all.extend((part.len() as u64).to_be_bytes());
            all.extend(part.into_bytes());
        }
        hash_of(&all)
    }
}

/// The text of one file. One that was named must be there.
fn named_or(named: Option<&Path>, usual: PathBuf) -> Result<Text, SnapshotError> {
    let text = Text::read(named.map_or(usual, Path::to_path_buf))?;
    if named.is_some() && text.content.is_none() {
        let source = io::Error::new(io::ErrorKind::NotFound, "there is no such file");
        return Err(ConfigError::Io { path: text.path, source }.into());
    }
    Ok(text)
}

fn name(text: &Text) -> String {
    text.path.display().to_string()
}
