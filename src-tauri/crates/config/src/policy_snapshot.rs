//! The policy, the annotations and the protected paths that calls are judged by.
//!
//! - A file of the person's replaces the default of the same name; one that is not understood is an error.
//! - A policy never changes: another one takes its place, with a higher version (`reload`).

mod texts;

pub use texts::PolicyTexts;

use crate::home::{Home, UnresolvedPath, canonical_home};
use crate::protection::{Exposure, protection};
use crate::{ConfigError, Server, Servers};
use ironcurtain_grants::GrantLimits;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{
    AllowedHosts, Annotations, DynamicLists, LoadError, OpenFolder, Policy, ProtectedPaths, WithinError,
    open_folders,
};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Everything judging needs that is the same for all sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySnapshot {
    /// Which one it is, of those that were in force since the trusted process started; from 1.
    pub version: u64,
    /// SHA-256 of what it is made of: the three files as they are written (what ships, where there is none), and the
    /// hosts of each server.
    pub hash: String,
    /// The rules.
    pub policy: Policy,
    /// The meaning of tools and their arguments.
    pub annotations: Annotations,
    /// Paths no call touches.
    pub protected: ProtectedPaths,
    /// Hosts each server may reach without a question.
    pub gates: AllowedHosts,
    /// The home directory, `~`.
    pub home: CanonicalPath,
    text: PolicyTexts,
    hosts: Hosts,
}

/// The patterns of the hosts each server may reach without a question. A server that is not in it may reach all.
pub type Hosts = BTreeMap<String, Vec<String>>;

/// Files that a person names in place of those in force.
#[derive(Debug, Clone, Default)]
pub struct PolicyFiles {
    /// The compiled policy.
    pub policy: Option<PathBuf>,
    /// The tool annotations.
    pub annotations: Option<PathBuf>,
    /// The dynamic lists.
    pub lists: Option<PathBuf>,
}

/// Why there is no policy to judge by.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file cannot be read.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// A file is not understood.
    #[error("{0}")]
    Load(#[from] LoadError),
    /// A file lies where a server may write.
    #[error(transparent)]
    Exposed(#[from] ExposedFile),
    /// A path of ours or the home directory cannot be resolved.
    #[error(transparent)]
    Path(#[from] UnresolvedPath),
}

/// A file that says what is in force, where a server may write.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is at `{}`, where {} may write; put the file itself in its place, or take that from the server",
    .0.file.display(), .0.place, .0.by
)]
pub struct ExposedFile(pub Exposure);

impl PolicySnapshot {
    /// Loads the files, and takes the hosts of each server from its configuration.
    ///
    /// # Errors
    /// [`SnapshotError`], naming file and place.
    pub fn load(home: &Home, servers: &Servers) -> Result<Self, SnapshotError> {
        Self::from_files(home, servers, &PolicyFiles::default())
    }

    /// As [`PolicySnapshot::load`], with other files in the places of the person's.
    ///
    /// # Errors
    /// [`SnapshotError`], naming file and place.
    pub fn from_files(home: &Home, servers: &Servers, files: &PolicyFiles) -> Result<Self, SnapshotError> {
        Self::of(home, hosts(servers), PolicyTexts::read(home, files)?)
    }

    /// The policy that these files make.
    pub fn of(home: &Home, hosts: Hosts, text: PolicyTexts) -> Result<Self, SnapshotError> {
        let person = canonical_home(home)?;
        let resolver = Resolver::new(person.clone(), person.clone());
        let within = |raw: &str| resolver.locate(raw).map_err(WithinError::from);
        let (lists, lists_file) = text.lists();
        let lists =
            lists.map(|text| DynamicLists::from_json(text, &lists_file)).transpose()?.unwrap_or_default();
        let (policy, policy_file) = text.policy();
        let policy = Policy::from_json(policy, &policy_file, &within, &lists)?;
        let (annotations, annotations_file) = text.annotations();
        let annotations = Annotations::from_json(annotations, &annotations_file)?;
        policy.check_examples(&policy_file, &annotations, &person)?;
        let protected = protection(home, &person)?;
        let (hash, gates) = (text.hash(&hosts), AllowedHosts::new(&hosts));
        Ok(Self { version: 1, hash, policy, annotations, protected, gates, home: person, text, hosts })
    }

    /// The same with other hosts.
    pub fn with_hosts(&self, hosts: Hosts) -> Self {
        let (hash, gates) = (self.text.hash(&hosts), AllowedHosts::new(&hosts));
        Self { hash, gates, hosts, ..self.clone() }
    }

    /// The same with what is protected now.
    pub fn with_protection(&self, protected: ProtectedPaths) -> Self {
        Self { protected, ..self.clone() }
    }

    /// The hosts of servers, where those that are not configured any more keep theirs: a session may still have one.
    pub fn hosts_with(&self, servers: &Servers) -> Hosts {
        let gone = self.hosts.iter().filter(|(name, _)| servers.find(Some(name)).is_none());
        gone.map(|(name, hosts)| (name.clone(), hosts.clone())).chain(hosts(servers)).collect()
    }

    /// The hosts of a server's list.
    pub fn hosts_of(&self, server: &str) -> &[String] {
        self.hosts.get(server).map_or(&[], Vec::as_slice)
    }

    /// The text of the file that the rules were read from.
    #[must_use]
    pub fn policy_text(&self) -> &str {
        self.text.policy().0
    }

    /// The files it was read from.
    pub fn text(&self) -> &PolicyTexts {
        &self.text
    }
}

impl PolicySnapshot {
    /// The limits of what may be granted, and opened.
    #[must_use]
    pub fn limits(&self) -> GrantLimits<'_> {
        GrantLimits { home: &self.home, protected: self.protected.paths() }
    }

    /// Folders that the rules open to a server for good, without those that cannot be opened as a whole.
    #[must_use]
    pub fn open_folders(&self, server: &str) -> Vec<OpenFolder> {
        let mut folders = open_folders(&self.policy, server);
        folders.retain(|folder| self.limits().may_be_granted(&folder.path));
        folders
    }
}

/// The hosts each server may reach without a question. One that opted out of the sandbox, or says nothing about the
/// network, has no gate; one that allows no host is asked about for every one.
fn hosts(servers: &Servers) -> Hosts {
    let hosts = |server: &Server| {
        let network = server.sandbox.settings()?.network.as_ref()?;
        Some((server.name.clone(), network.allowed_domains.clone()))
    };
    servers.iter().filter_map(hosts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::{Destination, Role};

    #[test]
    fn our_own_directories_and_the_targets_of_links_are_protected() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("person/vault")).unwrap();
        std::os::unix::fs::symlink(base.join("person/vault"), base.join("person/.ssh")).unwrap();
        let home = Home::under(&base.join("ic"), &base.join("person"));
        home.prepare().unwrap();
        let snapshot = PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap();
        for path in ["ic/config", "ic/state", "ic/run", "person/.ssh", "person/vault", "person/.aws"] {
            let path = CanonicalPath::assume_canonical(base.join(path).to_str().unwrap()).unwrap();
            assert!(snapshot.protected.paths().contains(&path), "{path}");
        }
    }

    #[test]
    fn a_policy_that_is_not_understood_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        home.prepare().unwrap();
        std::fs::write(home.policy().join("compiled-policy.json"), "{\"rules\": 3}").unwrap();
        let error = PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap_err().to_string();
        assert!(error.contains("compiled-policy.json"), "{error}");
    }

    #[test]
    fn a_file_that_is_a_link_to_nowhere_is_refused_and_not_taken_for_none() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        home.prepare().unwrap();
        let load = |home: &Home| -> Result<(), String> {
            let said = |problem: &dyn std::fmt::Display| problem.to_string();
            crate::Config::load(home).map_err(|e| said(&e))?;
            let servers = Servers::load(home).map_err(|e| said(&e))?;
            PolicySnapshot::load(home, &servers).map(drop).map_err(|e| said(&e))
        };
        assert_eq!(load(&home), Ok(()));
        let files = [home.config.join("config.json"), home.config.join("mcp-servers.json")];
        for file in files.into_iter().chain(PolicyTexts::paths(&home)) {
            std::os::unix::fs::symlink(dir.path().join("unmounted"), &file).unwrap();
            let refused = load(&home).unwrap_err();
            assert!(refused.contains("it is a link to a file that does not exist"), "{refused}");
            assert!(refused.contains(&file.display().to_string()), "{refused}");
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::remove_dir(home.policy()).unwrap();
        std::os::unix::fs::symlink(dir.path().join("unmounted"), home.policy()).unwrap();
        load(&home).unwrap_err();
    }

    #[test]
    fn a_server_may_reach_the_hosts_of_its_configuration_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        home.prepare().unwrap();
        let servers = r#"{
            "net": { "command": "c", "sandbox": { "network": { "allowedDomains": ["github.com", "*.a.example"] } } },
            "none": { "command": "c", "sandbox": { "network": { "allowedDomains": [] } } },
            "silent": { "command": "c", "sandbox": {} }, "plain": { "command": "c" },
            "free": { "command": "c", "sandbox": false } }"#;
        std::fs::write(home.config.join("mcp-servers.json"), servers).unwrap();
        let snapshot = PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap();
        let admits =
            |server: &str, url: &str| snapshot.gates.admits(server, &Destination::parse(Role::FetchUrl, url));
        assert!(admits("net", "https://github.com/x") && admits("net", "https://b.a.example"));
        assert!(!admits("net", "https://evil.example") && !admits("net", "https://github.com.evil.example"));
        assert!(!admits("none", "https://github.com"));
        assert!(["silent", "plain", "free"].iter().all(|server| admits(server, "https://evil.example")));
    }
}
