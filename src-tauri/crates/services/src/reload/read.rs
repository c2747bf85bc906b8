//! Reads the configuration files and compares them with the current state. Blocks on file access and changes nothing.

use super::exposed::WritablePaths;
use ironcurtain_config::home::{Home, HomeError, private_dir};
use ironcurtain_config::{
    Config, ConfigError, ConfigText, ExposedFile, Hosts, MANAGED_FILE, Managed, ManagedPolicy, PolicyFiles,
    PolicySnapshot, PolicyTexts, Servers, SessionSettings, SnapshotError,
};
use ironcurtain_grants::GrantTable;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of folders in managed rules that are followed. Changes to further folders are detected when a session
/// opens.
const MAX_FOLLOWED: usize = 256;

/// Current configuration and policy, with the file contents from which they were parsed.
#[derive(Debug, Clone)]
pub(super) struct Current {
    pub(super) config: (ConfigText, Config),
    pub(super) servers: (ConfigText, Servers),
    pub(super) snapshot: Arc<PolicySnapshot>,
}

/// Result of reading the configuration files.
#[derive(Debug)]
pub(super) struct ReadResult {
    /// New state. Contains the previous value of each rejected file.
    pub(super) now: Current,
    /// Reasons why files were rejected.
    pub(super) rejected: RejectedFiles,
}

/// Reasons why files were rejected, by kind of file. A field is `None` if its files were accepted.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RejectedFiles {
    pub(super) config: Option<String>,
    pub(super) servers: Option<String>,
    pub(super) snapshot: Option<String>,
}

/// Reason why a file is rejected.
#[derive(Debug, thiserror::Error)]
enum ReadError {
    /// The file cannot be read or parsed.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The policy in the files is invalid.
    #[error(transparent)]
    Policy(#[from] SnapshotError),
    /// Other users can access one of IronCurtain's folders.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// A server has write access to the file.
    #[error(transparent)]
    Exposed(#[from] ExposedFile),
    /// The file was removed after it was loaded.
    #[error("`{path}` was removed; restore it, or restart IronCurtain to continue without it", path = .0.display())]
    Removed(PathBuf),
}

/// Returns all configuration files that are followed.
pub(super) fn files(home: &Home) -> Vec<PathBuf> {
    let own = ["config.json", "mcp-servers.json"].map(|name| home.config.join(name));
    own.into_iter().chain(PolicyTexts::paths(home)).collect()
}

impl Current {
    /// Reads the files at startup. Any error is fatal.
    pub(super) fn read(home: &Home) -> Result<Self, SnapshotError> {
        let config = Config::read_text(home)?;
        let managed = Managed::load()?;
        let config = (config.clone(), Config::from_text(&config)?.restricted(managed.as_ref()));
        let servers = Servers::read_text(home)?;
        let servers =
            (servers.clone(), Servers::from_text(&servers, &home.user_home)?.restricted(managed.as_ref()));
        let snapshot = PolicySnapshot::load(home, &servers.1)?;
        Ok(Self { config, servers, snapshot: snapshot.into() })
    }

    /// Refuses files that a server can write to.
    pub(super) fn check_not_writable(&self, home: &Home, grants: &GrantTable) -> Result<(), SnapshotError> {
        let writable = WritablePaths::new(home, &self.snapshot.home, &self.servers.1, grants);
        Ok(files(home).iter().try_for_each(|file| writable.refuse(file))?)
    }

    /// Replaces the snapshot. If the new snapshot differs, assigns the next version to it.
    fn with_snapshot(self, mut snapshot: PolicySnapshot) -> Self {
        snapshot.version = self.snapshot.version;
        if snapshot == *self.snapshot {
            return self;
        }
        snapshot.version += 1;
        Self { snapshot: Arc::new(snapshot), ..self }
    }

    /// Returns all paths whose changes can affect the configuration: the user's files, the organization's file, and the
    /// folders in its rules, which may be symlinks.
    pub(super) fn watched_paths(&self, home: &Home) -> Vec<PathBuf> {
        let organization = self.snapshot.managed.iter().map(|_| PathBuf::from(MANAGED_FILE));
        let rules = self.snapshot.policy.rules().iter().filter(|rule| rule.is_managed());
        let folders = rules.filter_map(|rule| rule.condition.paths.as_ref());
        let person = &self.snapshot.home;
        let folders = folders.map(|paths| match paths.written.strip_prefix('~') {
            Some(below) => PathBuf::from(format!("{person}{below}")),
            None => PathBuf::from(&paths.written),
        });
        // Skips folders outside the home directory: the user cannot replace them, and this process may not be permitted to
        // watch them.
        let folders = folders.filter(|folder| folder.starts_with(person.as_path())).take(MAX_FOLLOWED);
        files(home).into_iter().chain(organization).chain(folders).collect()
    }

    pub(super) fn settings(&self) -> SessionSettings {
        SessionSettings { config: self.config.1.clone(), servers: self.servers.1.clone() }
    }
}

/// Reads the files again. Updates the protected paths and the organization's settings even if the user's files are
/// rejected.
pub(super) fn reread(home: &Home, before: &Current, grants: &GrantTable) -> ReadResult {
    let organization = match organization(home, before) {
        Ok(organization) => organization,
        Err(problem) => {
            let why = Some(problem.to_string());
            let rejected = RejectedFiles { config: why.clone(), servers: why.clone(), snapshot: why };
            let snapshot = before.snapshot.with_current_protection(home);
            let now =
                snapshot.map_or_else(|_| before.clone(), |snapshot| before.clone().with_snapshot(snapshot));
            return ReadResult { now, rejected };
        }
    };
    let managed = organization.as_ref().map(|organization| &organization.managed);
    let check_private = || -> Result<(), ReadError> {
        Ok([home.config.clone(), home.policy()].iter().try_for_each(|dir| check_private(dir))?)
    };
    let writable = WritablePaths::new(home, &before.snapshot.home, &before.servers.1, grants);
    let (config, config_rejection) =
        match check_private().and_then(|()| config(home, &before.config.0, &writable)) {
            Ok(config) => (config, None),
            Err(why) => (before.config.clone(), Some(why.to_string())),
        };
    let (servers, servers_rejection) =
        match check_private().and_then(|()| servers(home, &before.servers.0, &writable)) {
            Ok(servers) => (servers, None),
            Err(why) => (before.servers.clone(), Some(why.to_string())),
        };
    let config = (config.0, config.1.restricted(managed));
    let servers = (servers.0, servers.1.restricted(managed));
    let writable = WritablePaths::new(home, &before.snapshot.home, &servers.1, grants);
    let hosts = before.snapshot.updated_hosts(&servers.1);
    let texts = check_private().and_then(|()| texts(home, &before.snapshot, &writable));
    let read = |texts| -> Result<PolicySnapshot, ReadError> {
        Ok(PolicySnapshot::from_texts(home, hosts.clone(), texts, organization.clone())?)
    };
    let (snapshot, policy_rejection) = match texts.and_then(read) {
        Ok(snapshot) => (snapshot, None),
        Err(why) => {
            let previous_texts =
                PolicySnapshot::from_texts(home, hosts.clone(), before.snapshot.text().clone(), organization);
            let snapshot =
                previous_texts.unwrap_or_else(|_| with_current_hosts(home, &before.snapshot, hosts));
            (snapshot, Some(why.to_string()))
        }
    };
    let now = Current { config, servers, snapshot: before.snapshot.clone() }.with_snapshot(snapshot);
    ReadResult {
        now,
        rejected: RejectedFiles {
            config: config_rejection,
            servers: servers_rejection,
            snapshot: policy_rejection,
        },
    }
}

/// Reads the organization's settings and rules and records when new rules were first seen. Rejects the removal of the
/// organization's file, as for the user's files.
fn organization(home: &Home, before: &Current) -> Result<Option<ManagedPolicy>, ReadError> {
    let mut organization = ManagedPolicy::load(home)?;
    if organization.is_none() && before.snapshot.managed.is_some() {
        return Err(ReadError::Removed(MANAGED_FILE.into()));
    }
    if let Some(Err(problem)) = organization.as_mut().map(|managed| managed.record_first_seen(home)) {
        tracing::warn!(%problem, "failed to store the arrival times of the organization's rules");
    }
    Ok(organization)
}

/// Returns the previous policy with the current host settings and protected paths.
fn with_current_hosts(home: &Home, before: &PolicySnapshot, hosts: Hosts) -> PolicySnapshot {
    let snapshot = before.with_hosts(hosts);
    snapshot.with_current_protection(home).unwrap_or(snapshot)
}

fn config(
    home: &Home,
    before: &ConfigText,
    writable: &WritablePaths<'_>,
) -> Result<(ConfigText, Config), ReadError> {
    let text = Config::read_text(home)?;
    writable.refuse(&text.path)?;
    check_not_removed(before, &text)?;
    let config = Config::from_text(&text)?;
    Ok((text, config))
}

fn servers(
    home: &Home,
    before: &ConfigText,
    writable: &WritablePaths<'_>,
) -> Result<(ConfigText, Servers), ReadError> {
    let text = Servers::read_text(home)?;
    writable.refuse(&text.path)?;
    check_not_removed(before, &text)?;
    let servers = Servers::from_text(&text, &home.user_home)?;
    Ok((text, servers))
}

fn texts(
    home: &Home,
    before: &PolicySnapshot,
    writable: &WritablePaths<'_>,
) -> Result<PolicyTexts, ReadError> {
    let texts = PolicyTexts::read(home, &PolicyFiles::default())?;
    texts.files().into_iter().try_for_each(|file| writable.refuse(&file.path))?;
    for (before, now) in before.text().files().into_iter().zip(texts.files()) {
        check_not_removed(before, now)?;
    }
    Ok(texts)
}

/// Rejects the removal of a file, because the defaults could be less strict.
fn check_not_removed(before: &ConfigText, now: &ConfigText) -> Result<(), ReadError> {
    if before.content.is_none() || now.content.is_some() {
        return Ok(());
    }
    Err(ReadError::Removed(now.path.clone()))
}

/// Checks that a directory, if it exists, is accessible only to this user.
fn check_private(dir: &Path) -> Result<(), HomeError> {
    if dir.symlink_metadata().is_ok() { private_dir(dir) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_paths::CanonicalPath;
    use ironcurtain_policy::{Destination, Role};

    struct Scene {
        home: Home,
        base: PathBuf,
        _dir: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            std::fs::create_dir_all(base.join("person/vault")).unwrap();
            let home = Home::under(&base.join("ic"), &base.join("person"));
            home.prepare().unwrap();
            Self { home, base, _dir: dir }
        }

        fn write(&self, below: &str, text: &str) {
            std::fs::write(self.home.config.join(below), text).unwrap();
        }

        fn reread(&self, before: &Current) -> ReadResult {
            reread(&self.home, before, &GrantTable::default())
        }
    }

    fn admits(snapshot: &PolicySnapshot, server: &str, host: &str) -> bool {
        snapshot.allowed_hosts.allows(server, &Destination::parse(Role::FetchUrl, &format!("https://{host}")))
    }

    const ONE: &str =
        r#"{ "net": { "command": "c", "sandbox": { "network": { "allowedDomains": ["a.example"] } } } }"#;

    #[test]
    fn unchanged_files_keep_the_snapshot() {
        let scene = Scene::new();
        let before = Current::read(&scene.home).unwrap();
        let reading = scene.reread(&before);
        assert!(Arc::ptr_eq(&reading.now.snapshot, &before.snapshot));
        assert_eq!(reading.rejected, RejectedFiles::default());
    }

    #[test]
    fn a_new_link_to_credentials_protects_its_target() {
        let scene = Scene::new();
        let before = Current::read(&scene.home).unwrap();
        let vault = CanonicalPath::assume_canonical(scene.base.join("person/vault").to_str().unwrap());
        let vault = vault.unwrap();
        assert!(!before.snapshot.protected.paths().contains(&vault));
        std::os::unix::fs::symlink(vault.as_path(), scene.base.join("person/.ssh")).unwrap();
        let now = scene.reread(&before).now.snapshot;
        assert!(now.protected.paths().contains(&vault));
        assert_eq!((now.version, &now.hash), (before.snapshot.version + 1, &before.snapshot.hash));
    }

    #[test]
    fn hosts_follow_the_servers_even_if_the_policy_is_invalid() {
        let scene = Scene::new();
        scene.write("mcp-servers.json", ONE);
        let before = Current::read(&scene.home).unwrap();
        assert!(
            admits(&before.snapshot, "net", "a.example") && !admits(&before.snapshot, "net", "b.example")
        );
        scene.write("mcp-servers.json", &ONE.replace("a.example", "b.example"));
        scene.write("policy/compiled-policy.json", "{}");
        let ReadResult { now, rejected } = scene.reread(&before);
        assert!(!admits(&now.snapshot, "net", "a.example") && admits(&now.snapshot, "net", "b.example"));
        assert_eq!(now.snapshot.policy, before.snapshot.policy);
        assert_ne!(now.snapshot.hash, before.snapshot.hash);
        assert!(rejected.snapshot.unwrap().contains("compiled-policy.json"));
        assert_eq!((rejected.config, rejected.servers), (None, None));
    }

    #[test]
    fn a_removed_server_keeps_its_hosts_for_open_sessions() {
        let scene = Scene::new();
        scene.write("mcp-servers.json", ONE);
        let before = Current::read(&scene.home).unwrap();
        scene.write("mcp-servers.json", r#"{ "other": { "command": "c" } }"#);
        let now = scene.reread(&before).now;
        assert!(now.servers.1.find(Some("net")).is_none());
        assert!(admits(&now.snapshot, "net", "a.example") && !admits(&now.snapshot, "net", "b.example"));
        // A server without a host list requires no approval for hosts.
        scene.write("mcp-servers.json", r#"{ "net": { "command": "c", "sandbox": false } }"#);
        assert!(admits(&scene.reread(&before).now.snapshot, "net", "b.example"));
    }

    #[test]
    fn an_unreadable_or_removed_file_keeps_the_previous_version() {
        let scene = Scene::new();
        scene.write("config.json", r#"{ "questionDeadlineSeconds": 7 }"#);
        scene.write("policy/compiled-policy.json", r#"{ "rules": [] }"#);
        let before = Current::read(&scene.home).unwrap();
        std::fs::remove_file(scene.home.policy().join("compiled-policy.json")).unwrap();
        std::fs::remove_file(scene.home.config.join("config.json")).unwrap();
        std::fs::write(scene.home.config.join("mcp-servers.json"), [0xff, 0xfe]).unwrap();
        let ReadResult { now, rejected } = scene.reread(&before);
        assert!(Arc::ptr_eq(&now.snapshot, &before.snapshot));
        assert_eq!(now.settings(), before.settings());
        assert!(rejected.snapshot.unwrap().contains("compiled-policy.json` was removed; restore it"));
        assert!(rejected.config.unwrap().contains("config.json` was removed; restore it"));
        let servers = rejected.servers.unwrap();
        assert!(servers.contains("failed to read `") && servers.contains("mcp-servers.json`: "), "{servers}");
        std::fs::remove_dir_all(scene.home.policy()).unwrap();
        std::os::unix::fs::symlink(&scene.base, scene.home.policy()).unwrap();
        let elsewhere = scene.reread(&before);
        assert!(elsewhere.rejected.snapshot.unwrap().contains("it is not a directory"));
        assert!(Arc::ptr_eq(&elsewhere.now.snapshot, &before.snapshot));
    }
}
