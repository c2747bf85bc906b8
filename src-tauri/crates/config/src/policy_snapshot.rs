//! Immutable snapshot of the policy, the tool annotations and the protected paths.
//!
//! - A user's file replaces the built-in default of the same name. An invalid file is an error.
//! - A snapshot never changes. A reload creates a new snapshot with a higher version.

mod texts;

pub use texts::PolicyTexts;

use crate::home::{Home, UnresolvedPath, canonical_home};
use crate::protection::protection;
use crate::snapshot_error::SnapshotError;
use crate::{ManagedPolicy, Server, Servers};
use ironcurtain_grants::{GrantLimits, StandingGrant};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{
    AllowedHosts, Annotations, DynamicLists, OpenFolder, Policy, ProtectedPaths, WithinError, is_suspended,
    open_folders,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Policy data that all sessions use to judge calls.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicySnapshot {
    /// Version number, which starts at 1 when the trusted process starts.
    pub version: u64,
    /// SHA-256 of the three files (or their defaults), all servers' hosts and the organization's rules.
    pub hash: String,
    /// Rules of the policy.
    pub policy: Policy,
    /// Annotations of tools and their arguments.
    pub annotations: Annotations,
    /// Paths that no call may access.
    pub protected: Arc<ProtectedPaths>,
    /// Hosts that each server may reach without approval.
    pub allowed_hosts: AllowedHosts,
    /// The user's home directory.
    pub home: CanonicalPath,
    /// Rules of the user's organization, or `None` if this machine is not managed.
    pub managed: Option<Arc<ManagedPolicy>>,
    text: PolicyTexts,
    hosts: Hosts,
}

/// Host patterns that each server may reach without approval, by server name. A server without an entry may reach all
/// hosts.
pub type Hosts = BTreeMap<String, Vec<String>>;

/// Policy files to use instead of the configured ones. `None` selects the configured file.
#[derive(Debug, Clone, Default)]
pub struct PolicyFiles {
    /// Compiled policy.
    pub policy: Option<PathBuf>,
    /// Tool annotations.
    pub annotations: Option<PathBuf>,
    /// Dynamic lists.
    pub lists: Option<PathBuf>,
    /// `true` to combine `policy` with the rules of the user's organization. Otherwise, those rules apply only to the
    /// configured policy.
    pub with_managed_rules: bool,
}

impl PolicySnapshot {
    /// Loads the configured files and the hosts from the servers' entries.
    ///
    /// # Errors
    /// Returns a [`SnapshotError`] that names the file and the position.
    pub fn load(home: &Home, servers: &Servers) -> Result<Self, SnapshotError> {
        Self::from_files(home, servers, &PolicyFiles::default())
    }

    /// Loads `files` in place of the configured ones.
    ///
    /// # Errors
    /// Returns a [`SnapshotError`] that names the file and the position.
    pub fn from_files(home: &Home, servers: &Servers, files: &PolicyFiles) -> Result<Self, SnapshotError> {
        let uses_managed = files.policy.is_none() || files.with_managed_rules;
        let managed = if uses_managed { ManagedPolicy::load(home)? } else { None };
        Self::from_texts(home, hosts(servers), PolicyTexts::read(home, files)?, managed)
    }

    /// Parses the text of the policy files and combines the result with the rules of the user's organization.
    pub fn from_texts(
        home: &Home,
        hosts: Hosts,
        text: PolicyTexts,
        managed: Option<ManagedPolicy>,
    ) -> Result<Self, SnapshotError> {
        let user_home = canonical_home(home)?;
        let resolver = Resolver::new(user_home.clone(), user_home.clone());
        let within = |raw: &str| resolver.locate(raw).map_err(WithinError::from);
        let (lists, lists_file) = text.lists();
        let lists =
            lists.map(|text| DynamicLists::from_json(text, &lists_file)).transpose()?.unwrap_or_default();
        let (policy, policy_file) = text.policy();
        let policy = Policy::from_json(policy, &policy_file, &within, &lists)?;
        let (annotations, annotations_file) = text.annotations();
        let annotations = Annotations::from_json(annotations, &annotations_file)?;
        policy.check_examples(&policy_file, &annotations, &user_home)?;
        let policy = managed.iter().try_fold(policy, |policy, managed| managed.merge_rules(policy, home))?;
        let managed = managed.map(Arc::new);
        let (hash, allowed_hosts) = (hash(&text, &hosts, managed.as_deref()), AllowedHosts::new(&hosts));
        let snapshot = Self {
            version: 1,
            hash,
            policy,
            annotations,
            protected: Arc::default(),
            allowed_hosts,
            home: user_home,
            managed,
            text,
            hosts,
        };
        Ok(snapshot.with_current_protection(home)?)
    }

    /// Returns a copy of the snapshot with these hosts.
    pub fn with_hosts(&self, hosts: Hosts) -> Self {
        let hash = hash(&self.text, &hosts, self.managed.as_deref());
        let allowed_hosts = AllowedHosts::new(&hosts);
        Self { hash, allowed_hosts, hosts, ..self.clone() }
    }

    /// Returns a copy of the snapshot with the current protected paths.
    ///
    /// # Errors
    /// Returns an error if one of IronCurtain's folders cannot be resolved.
    pub fn with_current_protection(&self, home: &Home) -> Result<Self, UnresolvedPath> {
        let protected = protection(home, &self.home)?;
        let protected = match &self.managed {
            Some(managed) => managed.hide_token(protected).with_managed(&self.policy),
            None => protected,
        };
        Ok(self.with_protection(protected))
    }

    /// Returns a copy of the snapshot with these protected paths.
    pub fn with_protection(&self, protected: ProtectedPaths) -> Self {
        Self { protected: Arc::new(protected), ..self.clone() }
    }

    /// Returns the snapshot's hosts, updated with those of `servers`. Keeps a removed server's hosts, because a
    /// session may still be using that server.
    pub fn updated_hosts(&self, servers: &Servers) -> Hosts {
        let removed = self.hosts.iter().filter(|(name, _)| servers.find(Some(name)).is_none());
        removed.map(|(name, hosts)| (name.clone(), hosts.clone())).chain(hosts(servers)).collect()
    }

    /// Returns the host patterns that a server may reach without approval.
    pub fn hosts_of(&self, server: &str) -> &[String] {
        self.hosts.get(server).map_or(&[], Vec::as_slice)
    }

    /// Returns the source text of the policy rules.
    #[must_use]
    pub fn policy_text(&self) -> &str {
        self.text.policy().0
    }

    /// Returns the contents of the files from which the snapshot was parsed.
    pub fn text(&self) -> &PolicyTexts {
        &self.text
    }
}

impl PolicySnapshot {
    /// Returns the limits on paths that can be granted.
    #[must_use]
    pub fn limits(&self) -> GrantLimits<'_> {
        GrantLimits { home: &self.home, protected: self.protected.paths() }
    }

    /// Returns `true` if a rule of the user's organization overrides a part of a server's path grant. The path must
    /// then not stay mounted.
    #[must_use]
    pub fn suspends(&self, server: &str, grant: &StandingGrant) -> bool {
        grant.for_judging().is_some_and(|grant| is_suspended(&self.policy, server, &grant))
    }

    /// Returns the folders that the rules permanently allow a server to access, except those that cannot be granted
    /// as a whole.
    #[must_use]
    pub fn open_folders(&self, server: &str) -> Vec<OpenFolder> {
        let mut folders = open_folders(&self.policy, server);
        folders.retain(|folder| self.limits().may_be_granted(&folder.path));
        folders
    }
}

fn hash(text: &PolicyTexts, hosts: &Hosts, managed: Option<&ManagedPolicy>) -> String {
    text.hash(hosts, managed.map(ManagedPolicy::text))
}

/// Returns the hosts that each server may reach without approval.
///
/// An unsandboxed server and a server without `network` settings have no entry. For a server with an empty list, every
/// host requires approval.
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
    fn an_error_names_the_invalid_policy_file() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        home.prepare().unwrap();
        std::fs::write(home.policy().join("compiled-policy.json"), "{\"rules\": 3}").unwrap();
        let error = PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap_err().to_string();
        assert!(error.contains("compiled-policy.json"), "{error}");
    }

    #[test]
    fn a_dangling_link_is_an_error_and_not_a_missing_file() {
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
        let admits = |server: &str, url: &str| {
            snapshot.allowed_hosts.allows(server, &Destination::parse(Role::FetchUrl, url))
        };
        assert!(admits("net", "https://github.com/x") && admits("net", "https://b.a.example"));
        assert!(!admits("net", "https://evil.example") && !admits("net", "https://github.com.evil.example"));
        assert!(!admits("none", "https://github.com"));
        assert!(["silent", "plain", "free"].iter().all(|server| admits(server, "https://evil.example")));
    }
}
