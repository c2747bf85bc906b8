//! Resolves a server's `sandbox` entry, given the session, the machine and the policy.

use super::package_folder::is_package_folder;
use ironcurtain_config::{
    AutostartSettings, GitConfigSettings, LimitSettings, NetworkSettings, Sandbox, SandboxPolicy,
    SandboxSettings,
};
use ironcurtain_sandbox::Availability;
use std::path::{Component, Path, PathBuf};

/// Resolved `sandbox` entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// The server runs in this sandbox.
    Sandboxed(Box<Profile>),
    /// The server runs without a sandbox. Contains the reason.
    Unsandboxed(Exemption),
}

/// Reason a server runs without a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exemption {
    /// The server's entry opts out.
    OptOut,
    /// The machine cannot create a sandbox, and `sandboxPolicy` is `warn`.
    PlatformUnavailable,
}

/// A server's access in its sandbox. Paths are as written, and may contain symlinks. By default, no access is granted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Writable absolute paths, starting with the session's sandbox directory.
    pub allow_write: Vec<String>,
    /// Readable paths.
    pub allow_read: Vec<String>,
    /// Paths that this server must not read, in addition to the defaults for all servers. Written as in the entry;
    /// `None` if the entry lists none.
    pub deny_read: Option<Vec<String>>,
    /// Read-only paths, as written in the entry.
    pub deny_write: Vec<String>,
    /// Autostart files that the server may write, as exceptions to the default rules.
    pub allow_persistence: Vec<String>,
    /// Handling of autostart files that the server creates.
    pub autostart: AutostartSettings,
    /// Access to git repositories' `config` files. If `None`, the tools' annotations decide.
    pub git_config: Option<GitConfigSettings>,
    /// Hosts that the server is allowed to reach, or `None` for no network.
    pub network: Option<NetworkSettings>,
    /// `true` if the server may use Unix sockets.
    pub unix_sockets: bool,
    /// Resource limits from the entry. Limits that the entry does not set get their defaults.
    pub limits: LimitSettings,
}

/// The machine cannot create the sandbox that the server requires.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the server requires a sandbox, but this machine cannot create one: {missing}{fix}; {}",
    required_by(.organization.as_deref())
)]
pub struct Unavailable {
    missing: String,
    fix: String,
    organization: Option<String>,
}

impl Unavailable {
    /// Sets the organization whose settings require the sandbox. Otherwise, the message names the user's own setting.
    #[must_use]
    pub fn required_by(mut self, organization: Option<String>) -> Self {
        self.organization = organization;
        self
    }
}

fn required_by(organization: Option<&str>) -> String {
    match organization {
        Some(organization) => format!("{organization} does not let servers start without one"),
        None => "`sandboxPolicy` is `enforce`".to_owned(),
    }
}

impl Profile {
    /// Creates the profile for an entry.
    #[must_use]
    pub fn new(settings: &SandboxSettings, session_dir: &Path, home: &Path) -> Self {
        let files = &settings.filesystem;
        let session = session_dir.display().to_string();
        let writable = files.allow_write.iter().map(|path| absolute(&expand_home(path, home), session_dir));
        Self {
            allow_write: std::iter::once(session).chain(writable).collect(),
            allow_read: files.allow_read.iter().map(|path| expand_home(path, home)).collect(),
            deny_read: files.deny_read.clone(),
            deny_write: files.deny_write.clone(),
            allow_persistence: files.allow_persistence.clone(),
            autostart: settings.autostart,
            git_config: settings.git_config,
            network: settings.network.clone(),
            unix_sockets: settings.unix_sockets,
            limits: settings.limits.clone(),
        }
    }
}

impl Profile {
    /// Returns `true` if the server has no network and can access only the session's sandbox directory, its own data
    /// folder `data` and installed packages.
    #[must_use]
    pub fn opens_nothing(&self, session_dir: &Path, data: &Path) -> bool {
        // Exhaustive, so that a new field cannot be forgotten.
        let Self {
            allow_write,
            allow_read,
            network,
            deny_read: _,
            deny_write: _,
            allow_persistence: _,
            autostart: _,
            git_config: _,
            // Without other access, a server can reach only its own sockets.
            unix_sockets: _,
            limits: _,
        } = self;
        let is_own = |path: &String| {
            let path = PathBuf::from(normalize(path, session_dir));
            path.starts_with(session_dir) || path.starts_with(data)
        };
        allow_read.iter().all(|path| is_package_folder(Path::new(path)))
            && allow_write.iter().all(is_own)
            && network.as_ref().is_none_or(NetworkSettings::is_closed)
    }
}

/// Determines whether a server runs in a sandbox, and with which profile.
///
/// # Errors
/// Returns [`Unavailable`] with the missing requirements and the command that installs them.
pub fn resolve(
    sandbox: &Sandbox,
    session_dir: &Path,
    machine: &Availability,
    policy: SandboxPolicy,
    home: &Path,
) -> Result<Resolved, Unavailable> {
    let Sandbox::Sandboxed(settings) = sandbox else {
        return Ok(Resolved::Unsandboxed(Exemption::OptOut));
    };
    match (machine.usable, policy) {
        (true, _) => Ok(Resolved::Sandboxed(Box::new(Profile::new(settings, session_dir, home)))),
        (false, SandboxPolicy::Warn) => Ok(Resolved::Unsandboxed(Exemption::PlatformUnavailable)),
        (false, SandboxPolicy::Enforce) => Err(Unavailable {
            missing: machine.missing.join("; "),
            fix: machine.fix_command.as_ref().map(|c| format!("; run `{c}`")).unwrap_or_default(),
            organization: None,
        }),
    }
}

/// Replaces the tilde in `~` and `~/x` with the home directory.
#[must_use]
pub fn expand_home(path: &str, home: &Path) -> String {
    match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", home.display()),
        Some(_) | None => path.to_owned(),
    }
}

/// Makes a path absolute relative to `dir`, without accessing the file system. Absolute paths are returned unchanged.
#[must_use]
pub fn absolute(path: &str, dir: &Path) -> String {
    if path.starts_with('/') { path.to_owned() } else { normalize(path, dir) }
}

/// Joins a path to `dir` and removes `.`, `..` and doubled slashes, without accessing the file system.
pub(super) fn normalize(path: &str, dir: &Path) -> String {
    let mut found = PathBuf::new();
    for part in dir.join(path).components() {
        match part {
            Component::ParentDir => drop(found.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => found.push(part),
        }
    }
    found.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::FilesystemSettings;

    const SESSION: &str = "/state/sessions/a/sandbox";

    fn resolved(sandbox: &str, usable: bool, policy: SandboxPolicy) -> Result<Resolved, String> {
        let machine = Availability {
            usable,
            missing: if usable { vec![] } else { vec!["bubblewrap is not installed".into()] },
            fix_command: (!usable).then(|| "sudo apt install bubblewrap".into()),
            warnings: vec![],
        };
        let sandbox: Sandbox = serde_json::from_str(sandbox).unwrap();
        resolve(&sandbox, Path::new(SESSION), &machine, policy, Path::new("/home/u"))
            .map_err(|e| e.to_string())
    }

    fn plain() -> Profile {
        Profile { allow_write: vec![SESSION.into()], ..Profile::default() }
    }

    #[test]
    fn an_omitted_entry_means_the_restrictive_defaults() {
        let expected = Ok(Resolved::Sandboxed(Box::new(plain())));
        assert_eq!(resolved("{}", true, SandboxPolicy::Enforce), expected);
        assert_eq!(resolved("{}", true, SandboxPolicy::Warn), expected);
        assert_eq!(Sandbox::default(), serde_json::from_str("{}").unwrap());
        assert_eq!(resolved(r#"{"network":false}"#, true, SandboxPolicy::Enforce), expected);
    }

    #[test]
    fn an_entry_that_opens_more_than_the_servers_own_folders_is_detected() {
        let opens_nothing = |entry: &str| {
            let settings: SandboxSettings = serde_json::from_str(entry).unwrap();
            let profile = Profile::new(&settings, Path::new(SESSION), Path::new("/home/u"));
            profile.opens_nothing(Path::new(SESSION), Path::new("/data/servers/memory"))
        };
        for shut in [
            "{}",
            r#"{ "network": false, "limits": { "processes": 8 } }"#,
            r#"{ "network": { "allowedDomains": [], "deniedDomains": ["*"] } }"#,
            r#"{ "filesystem": { "allowRead": ["/opt/mcp/node_modules"] } }"#,
            r#"{ "filesystem": { "allowWrite": ["work", "/data/servers/memory/kept"], "denyRead": ["/x"] } }"#,
        ] {
            assert!(opens_nothing(shut), "{shut}");
        }
        for open in [
            r#"{ "network": { "allowedDomains": ["a.example"] } }"#,
            r#"{ "network": { "allowedDomains": [], "askUnknown": true } }"#,
            r#"{ "filesystem": { "allowRead": ["/opt/notes"] } }"#,
            r#"{ "filesystem": { "allowWrite": ["~/notes"] } }"#,
            r#"{ "filesystem": { "allowWrite": [".."] } }"#,
            r#"{ "filesystem": { "allowWrite": ["/data/servers/memory/../git"] } }"#,
            r#"{ "filesystem": { "allowWrite": ["/data/servers/memory2"] } }"#,
        ] {
            assert!(!opens_nothing(open), "{open}");
        }
    }

    #[test]
    fn opting_out_does_not_depend_on_the_machine() {
        for (usable, policy) in [(true, SandboxPolicy::Enforce), (false, SandboxPolicy::Enforce)] {
            let expected = Ok(Resolved::Unsandboxed(Exemption::OptOut));
            assert_eq!(resolved("false", usable, policy), expected);
        }
    }

    #[test]
    fn a_server_runs_without_a_sandbox_only_if_the_user_allows_it() {
        let warned = Ok(Resolved::Unsandboxed(Exemption::PlatformUnavailable));
        assert_eq!(resolved("{}", false, SandboxPolicy::Warn), warned);
        let refused = "the server requires a sandbox, but this machine cannot create one: bubblewrap is not installed; run `sudo apt install bubblewrap`; `sandboxPolicy` is `enforce`";
        assert_eq!(resolved("{}", false, SandboxPolicy::Enforce), Err(refused.into()));
    }

    #[test]
    fn relative_paths_are_resolved_from_the_right_folder() {
        let entry = r#"{ "filesystem": { "allowWrite": [".git", "../up", "a/./b/", "/tmp/x/", "~/w"],
            "allowRead": ["~", "~/.nvm", "/opt"], "denyRead": ["~/.gnupg"], "denyWrite": ["/tmp/x/n"] },
            "network": { "allowedDomains": ["*.example"] } }"#;
        let settings: SandboxSettings = serde_json::from_str(entry).unwrap();
        assert_ne!(settings.filesystem, FilesystemSettings::default());
        let texts = |all: &[&str]| all.iter().map(|t| (*t).to_owned()).collect::<Vec<_>>();
        let expected = Profile {
            allow_write: texts(&[
                SESSION,
                "/state/sessions/a/sandbox/.git",
                "/state/sessions/a/up",
                "/state/sessions/a/sandbox/a/b",
                "/tmp/x/",
                "/home/u/w",
            ]),
            allow_read: texts(&["/home/u", "/home/u/.nvm", "/opt"]),
            deny_read: Some(texts(&["~/.gnupg"])),
            deny_write: texts(&["/tmp/x/n"]),
            allow_persistence: vec![],
            autostart: AutostartSettings::Listed,
            git_config: None,
            network: Some(NetworkSettings {
                allowed_domains: texts(&["*.example"]),
                ..NetworkSettings::default()
            }),
            unix_sockets: false,
            limits: LimitSettings::default(),
        };
        assert_eq!(
            resolved(entry, true, SandboxPolicy::Enforce),
            Ok(Resolved::Sandboxed(Box::new(expected)))
        );
    }
}
