//! Parses `/etc/ironcurtain/managed.json`, which an organization uses to manage IronCurtain on this machine.
//!
//! - The file, the files that it names, and all of their parent folders must be owned by root and writable only by
//!   root. Otherwise nothing starts.
//! - No environment variable, option or user file can change the file's path.

mod policy;
mod restrictions;

pub use policy::{ManagedBundle, ManagedPolicy};

use crate::ConfigError;
use ironcurtain_bundle::{BundleLocation, VerifyingKey};
use ironcurtain_paths::bounded_read;
use ironcurtain_policy::strict;
use rustix::fs::FileType;
use serde::Deserialize;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Path of the file.
pub const MANAGED_FILE: &str = "/etc/ironcurtain/managed.json";

/// Minimum interval between two downloads, in seconds.
const MIN_INTERVAL: u64 = 1;

/// Maximum interval between two downloads, in seconds: one day.
const MAX_INTERVAL: u64 = 24 * 60 * 60;

/// Maximum long-polling time, in seconds: ten minutes.
const MAX_WAIT: u64 = 10 * 60;

/// Error returned when the organization's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManagedError {
    /// Reading a file failed.
    #[error("failed to read `{path}`: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error from the operating system.
        source: io::Error,
    },
    /// A user other than root can modify a file.
    #[error("`{path}` is refused: {why}; run `chown root:root` and `chmod go-w` on it")]
    Owner {
        /// Path of the file or folder.
        path: PathBuf,
        /// Description of the problem.
        why: &'static str,
    },
    /// A value is invalid.
    #[error("`{path}`: {0}", path = MANAGED_FILE)]
    Invalid(String),
}

/// Settings of the user's organization.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Managed {
    /// Version of the file format. Must be 1.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub schema_version: u32,
    /// Name of the organization, shown to the user.
    pub organization: String,
    /// Signed bundle that contains the organization's rules.
    #[serde(default)]
    pub bundle: Option<BundleSettings>,
    /// Settings that the user cannot loosen.
    #[serde(default)]
    pub settings: ManagedSettings,
}

/// Signed bundle that contains the organization's rules.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleSettings {
    /// URL of the bundle. Must use `https`, except for a server on this computer.
    pub url: String,
    /// Absolute path of the public key that verifies the bundle: P-256, in PEM format.
    pub public_key_file: PathBuf,
    /// Absolute path of a file that contains the bearer token for the bundle server.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Minimum time between two downloads, in seconds.
    #[serde(default = "default_min")]
    #[cfg_attr(test, schemars(range(min = 1, max = 86400)))]
    pub min_seconds: u64,
    /// Maximum time between two downloads, in seconds.
    #[serde(default = "default_max")]
    #[cfg_attr(test, schemars(range(min = 1, max = 86400)))]
    pub max_seconds: u64,
    /// Maximum time that the server may delay its response until the bundle changes, in seconds. 0 disables this.
    #[serde(default)]
    #[cfg_attr(test, schemars(range(min = 0, max = 600)))]
    pub long_poll_seconds: u64,
    /// Decision on every call until a bundle has been downloaded.
    #[serde(default)]
    pub without: WithoutBundle,
}

/// Decision on every call until a bundle has been downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WithoutBundle {
    /// Denies every call.
    #[default]
    Deny,
    /// Requires the user's approval for every call.
    Ask,
}

/// Settings that the user cannot loosen.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ManagedSettings {
    /// If true, servers do not start on a machine that cannot create sandboxes.
    pub enforce_sandbox: bool,
    /// If true, servers whose entry has `"sandbox": false` do not start.
    pub forbid_unsandboxed: bool,
    /// If true, no server starts until the export of the record is configured.
    pub require_export: bool,
    /// Restriction of the servers' network access.
    pub network: Option<ManagedNetwork>,
    /// Servers that are allowed to start. If absent, all servers are allowed.
    pub allowed_servers: Option<Vec<ServerPattern>>,
    /// Servers that are not allowed to start, even if they match `allowedServers`.
    pub denied_servers: Vec<ServerPattern>,
}

/// Restriction of the servers' network access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ManagedNetwork {
    /// Sandboxed servers have no network access, and remote servers do not start.
    Never,
    /// The user is asked about each host, even if the server's entry allows it.
    Ask,
}

/// Pattern for servers. All fields that are present must match.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ServerPattern {
    /// Name in `mcp-servers.json`. The user can choose any name.
    #[serde(default)]
    pub name: Option<String>,
    /// Program or package: the command, or one of its arguments with or without a version, such as
    /// `@modelcontextprotocol/server-git`.
    #[serde(default)]
    pub package: Option<String>,
    /// URL of a remote server, or a URL prefix followed by `*`.
    #[serde(default)]
    pub url: Option<String>,
}

const fn default_min() -> u64 {
    60
}

const fn default_max() -> u64 {
    120
}

impl Managed {
    /// Loads the file. Returns `None` if it does not exist.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if the file is invalid or a user other than root can modify it.
    pub fn load() -> Result<Option<Self>, ConfigError> {
        let path = Path::new(MANAGED_FILE);
        if bounded_read::is_absent(path).map_err(|source| io_error(path, source))? {
            return Ok(None);
        }
        let text = read_root_file(path)?;
        Self::parse(&text).map(Some)
    }

    fn parse(text: &str) -> Result<Self, ConfigError> {
        let managed: Self = strict::read(text).map_err(|misread| {
            ConfigError::invalid(Path::new(MANAGED_FILE), misread.line, misread.to_string())
        })?;
        let invalid = |problem: String| Err(ManagedError::Invalid(problem).into());
        if managed.schema_version != 1 {
            let found = managed.schema_version;
            return invalid(format!("`schemaVersion` is {found}, which is not supported; expected 1"));
        }
        if let Some(bundle) = &managed.bundle {
            let range = MIN_INTERVAL..=MAX_INTERVAL;
            if !range.contains(&bundle.min_seconds) || !range.contains(&bundle.max_seconds) {
                return invalid(format!(
                    "`minSeconds` and `maxSeconds` must be from {MIN_INTERVAL} to {MAX_INTERVAL}"
                ));
            }
            if bundle.min_seconds > bundle.max_seconds {
                return invalid("`minSeconds` is greater than `maxSeconds`".to_owned());
            }
            if bundle.long_poll_seconds > MAX_WAIT {
                return invalid(format!("`longPollSeconds` must be at most {MAX_WAIT}"));
            }
            bundle.location()?;
        }
        let patterns = managed.settings.allowed_servers.iter().flatten();
        if patterns.chain(&managed.settings.denied_servers).any(ServerPattern::is_empty) {
            return invalid("a server needs a `name`, `package` or `url`".to_owned());
        }
        Ok(managed)
    }
}

impl BundleSettings {
    /// Returns the bundle's URL.
    ///
    /// # Errors
    /// Returns [`ManagedError::Invalid`] if it is not allowed.
    pub fn location(&self) -> Result<BundleLocation, ManagedError> {
        BundleLocation::parse(&self.url).map_err(|problem| ManagedError::Invalid(format!("`url`: {problem}")))
    }

    /// Reads the public key.
    ///
    /// # Errors
    /// Returns [`ManagedError`] if the file is not a P-256 key or a user other than root can modify it.
    pub fn public_key(&self) -> Result<VerifyingKey, ManagedError> {
        let text = read_root_file(&self.public_key_file)?;
        VerifyingKey::from_pem(&text).map_err(|problem| {
            ManagedError::Invalid(format!("`{}`: {problem}", self.public_key_file.display()))
        })
    }

    /// Reads the bearer token. Returns `None` if no token file is configured.
    ///
    /// # Errors
    /// Returns [`ManagedError`] if the file cannot be read or a user other than root can modify it.
    pub fn token(&self) -> Result<Option<String>, ManagedError> {
        self.token_file.as_deref().map(read_root_file).transpose()
    }

    /// Returns the long-polling time, or `None` if long polling is disabled.
    #[must_use]
    pub fn long_poll(&self) -> Option<Duration> {
        (self.long_poll_seconds > 0).then(|| Duration::from_secs(self.long_poll_seconds))
    }
}

/// Reads a file after checking that only root can modify it.
///
/// # Errors
/// Returns [`ManagedError`] if another user can modify the file or a folder above it, or reading failed.
pub fn read_root_file(path: &Path) -> Result<String, ManagedError> {
    if !path.is_absolute() {
        return Err(ManagedError::Invalid(format!("`{}` is not an absolute path", path.display())));
    }
    let io = |source| ManagedError::Io { path: path.to_path_buf(), source };
    for folder in path.ancestors().skip(1) {
        let found = folder
            .symlink_metadata()
            .map_err(|source| ManagedError::Io { path: folder.to_path_buf(), source })?;
        only_of_root(folder, &found, FileType::Directory)?;
    }
    let file = bounded_read::open_unlinked(path).map_err(io)?;
    only_of_root(path, &file.metadata().map_err(io)?, FileType::RegularFile)?;
    text(file).map_err(io)
}

fn only_of_root(path: &Path, found: &std::fs::Metadata, kind: FileType) -> Result<(), ManagedError> {
    let why = if FileType::from_raw_mode(found.mode()) != kind {
        "it is a symbolic link or has the wrong file type"
    } else if found.uid() != 0 {
        "it does not belong to root"
    } else if found.mode() & 0o022 != 0 {
        "other users can write it"
    } else {
        return Ok(());
    };
    Err(ManagedError::Owner { path: path.to_path_buf(), why })
}

fn text(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(bounded_read::MAX_LEN).read_to_string(&mut text)?;
    Ok(text)
}

fn io_error(path: &Path, source: io::Error) -> ConfigError {
    ConfigError::Io { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn parsed(text: &str) -> Result<Managed, String> {
        Managed::parse(text).map_err(|problem| problem.to_string())
    }

    #[test]
    fn values_are_checked() {
        let minimal = parsed(r#"{"schemaVersion":1,"organization":"Example"}"#).unwrap();
        assert_eq!((minimal.bundle, minimal.settings), (None, ManagedSettings::default()));
        let bundle = |fields: &str| {
            parsed(&format!(
                r#"{{"schemaVersion":1,"organization":"E","bundle":{{"publicKeyFile":"/k",{fields}}}}}"#
            ))
        };
        let good = bundle(r#""url":"https://a.example/b""#).unwrap().bundle.unwrap();
        assert_eq!((good.min_seconds, good.max_seconds, good.without), (60, 120, WithoutBundle::Deny));
        for (fields, expected) in [
            (r#""url":"http://a.example/b""#, "plain `http` is allowed only for this computer"),
            (r#""url":"https://a.example","minSeconds":0"#, "must be from 1 to 86400"),
            (r#""url":"https://a.example","minSeconds":60,"maxSeconds":30"#, "is greater than"),
            (r#""url":"https://a.example","longPollSeconds":601"#, "must be at most 600"),
            (r#""url":"https://a.example","key":"x""#, "unknown field `key`"),
        ] {
            let refused = bundle(fields).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
        let empty = parsed(r#"{"schemaVersion":1,"organization":"E","settings":{"deniedServers":[{}]}}"#);
        assert!(empty.unwrap_err().ends_with("a server needs a `name`, `package` or `url`"));
        assert!(parsed(r#"{"schemaVersion":2,"organization":"E"}"#).unwrap_err().contains("expected 1"));
    }

    #[test]
    fn files_that_others_can_change_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("managed.json");
        std::fs::write(&file, "{}").unwrap();
        // The temporary directory is writable by all users.
        let refused = read_root_file(&file).unwrap_err().to_string();
        assert!(refused.contains("` is refused: "), "{refused}");
        let found = |mode: u32| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            only_of_root(&file, &file.symlink_metadata().unwrap(), FileType::RegularFile)
                .map_err(|problem| problem.to_string())
        };
        if rustix::process::geteuid().is_root() {
            assert_eq!(found(0o644), Ok(()));
            assert!(found(0o664).unwrap_err().contains("other users can write it"));
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
        }
        assert!(found(0o644).unwrap_err().contains("it does not belong to root"));
        assert!(read_root_file(Path::new("k")).unwrap_err().to_string().contains("not an absolute path"));
    }
}
