//! Parses `/etc/ironcurtain/managed.json`, which an organization uses to manage IronCurtain on this machine.
//!
//! - The file, the files that it names, and all of their parent folders must be owned by root and writable only by
//!   root. Otherwise nothing starts.
//! - No environment variable, option or user file can change the file's path.

mod policy;
mod restrictions;
mod root_file;
mod rules;
mod server_address;
mod server_pattern;

pub use policy::{ManagedBundle, ManagedPolicy};
pub use restrictions::ExportPathsError;
pub use root_file::{UntrustedFileError, read_root_file};

use crate::export::checked_url;
use crate::{ConfigError, ExportedPaths};
use ironcurtain_bundle::{BundleLocation, PollInterval, VerifyingKey};
use ironcurtain_paths::{CanonicalPath, bounded_read};
use ironcurtain_policy::strict;
use ironcurtain_secrets as secrets;
use serde::Deserialize;
use std::io;
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

/// Maximum value of `maxGrantMinutes`: one year.
const MAX_GRANT_MINUTES: u64 = 365 * 24 * 60;

/// Error returned when the organization's settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManagedError {
    /// Reading a file failed.
    #[error("failed to read `{path}`: {source}")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// A user other than root can modify a file.
    #[error("`{path}` is refused: {problem}")]
    Untrusted {
        /// Path of the file or folder.
        path: PathBuf,
        /// Reason the file is refused.
        problem: UntrustedFileError,
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
    /// URL of the bundle, or `oci://HOST/REPOSITORY:TAG`. Uses `https`, except for a server on this computer.
    pub url: String,
    /// Absolute path of the public key that verifies the bundle: P-256, in PEM format.
    pub public_key_file: PathBuf,
    /// Absolute path of a file that contains the bearer token for the bundle server. For an OCI registry, it can also
    /// contain `USER:PASSWORD`.
    #[serde(default)]
    #[cfg_attr(test, schemars(with = "Option<PathBuf>"))]
    pub token_file: Option<CanonicalPath>,
    /// Bearer token for the bundle server as `keyring:NAME`: the name of a secret of the user.
    #[serde(default)]
    pub token: Option<String>,
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

impl WithoutBundle {
    /// Returns the effect on calls, as a clause for the user.
    #[must_use]
    pub const fn effect(self) -> &'static str {
        match self {
            Self::Deny => "every call is denied",
            Self::Ask => "every call requires your approval",
        }
    }
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
    /// If true, no server and no run starts until the export of the audit log is configured.
    pub require_export: bool,
    /// URL of the collector to which the audit log must be exported. Nothing starts until the export to it is
    /// configured.
    pub export_url: Option<String>,
    /// Form in which paths are exported. Overrides the user's choice, and does not turn on the export.
    pub export_paths: Option<ExportedPaths>,
    /// Maximum lifetime of every grant, in minutes.
    #[cfg_attr(test, schemars(range(min = 1, max = 525600)))]
    pub max_grant_minutes: Option<u64>,
    /// Restriction of the network access of servers and runs.
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
    /// Servers and runs have no network access, and remote servers do not start.
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
    /// Package without a version, such as `@modelcontextprotocol/server-git`, or absolute path of a program.
    #[serde(default)]
    pub package: Option<String>,
    /// URL of a remote server, or a URL prefix followed by `*`. The host can start with `*.`.
    #[serde(default)]
    pub url: Option<String>,
}

const fn default_min() -> u64 {
    PollInterval::DEFAULT.min.as_secs()
}

const fn default_max() -> u64 {
    PollInterval::DEFAULT.max.as_secs()
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
            if bundle.token.is_some() && bundle.token_file.is_some() {
                return invalid("`token` and `tokenFile` exclude each other".to_owned());
            }
            let is_secret = |token: &String| matches!(secrets::secret_reference(token), Ok(Some(_)));
            if !bundle.token.as_ref().is_none_or(is_secret) {
                return invalid(
                    "`token` must be `keyring:NAME`; put a token itself into a `tokenFile`".to_owned(),
                );
            }
        }
        let grants = managed.settings.max_grant_minutes;
        if grants.is_some_and(|minutes| !(1..=MAX_GRANT_MINUTES).contains(&minutes)) {
            return invalid(format!("`maxGrantMinutes` must be from 1 to {MAX_GRANT_MINUTES}"));
        }
        if let Some(Err(problem)) = managed.settings.export_url.as_deref().map(checked_url) {
            return invalid(format!("`exportUrl` {problem}"));
        }
        let patterns = managed.settings.allowed_servers.iter().flatten();
        let mut patterns = patterns.chain(&managed.settings.denied_servers);
        if let Some(problem) = patterns.find_map(ServerPattern::problem) {
            return invalid(problem);
        }
        Ok(managed)
    }
}

impl BundleSettings {
    /// Returns the bundle's URL.
    ///
    /// # Errors
    /// Returns [`ManagedError::Invalid`] if the URL is not allowed.
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

    /// Reads the bearer token from its file. Returns `None` if no token file is configured.
    ///
    /// # Errors
    /// Returns [`ManagedError`] if the file cannot be read or a user other than root can modify it.
    pub fn token(&self) -> Result<Option<String>, ManagedError> {
        self.token_file.as_ref().map(|file| read_root_file(file.as_path())).transpose()
    }

    /// Returns the polling interval.
    #[must_use]
    pub fn interval(&self) -> PollInterval {
        let [min, max, long_poll] =
            [self.min_seconds, self.max_seconds, self.long_poll_seconds].map(Duration::from_secs);
        PollInterval { min, max, long_poll: Some(long_poll).filter(|wait| !wait.is_zero()) }
    }
}

fn io_error(path: &Path, source: io::Error) -> ConfigError {
    ConfigError::Io { path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
        assert!(bundle(r#""url":"oci://a.example/b:1""#).is_ok());
        for (fields, expected) in [
            (r#""url":"http://a.example/b""#, "plain `http` is allowed only for this computer"),
            (r#""url":"oci://a.example/b""#, "expected `oci://HOST/REPOSITORY:TAG`"),
            (r#""url":"https://a.example","minSeconds":0"#, "must be from 1 to 86400"),
            (r#""url":"https://a.example","minSeconds":60,"maxSeconds":30"#, "is greater than"),
            (r#""url":"https://a.example","longPollSeconds":601"#, "must be at most 600"),
            (r#""url":"https://a.example","token":"plain""#, "`token` must be `keyring:NAME`"),
            (r#""url":"https://a.example","token":"keyring:b","tokenFile":"/t""#, "exclude each other"),
            (r#""url":"https://a.example","key":"x""#, "unknown field `key`"),
            (r#""url":"https://a.example","tokenFile":"/etc/x/../t""#, "is not in canonical form"),
            (r#""url":"https://a.example","tokenFile":"t""#, "`t` is not an absolute path"),
        ] {
            let refused = bundle(fields).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
        let empty = parsed(r#"{"schemaVersion":1,"organization":"E","settings":{"deniedServers":[{}]}}"#);
        assert!(empty.unwrap_err().ends_with("a server needs a `name`, `package` or `url`"));
        let grants = |minutes: u64| {
            let settings = format!(
                r#"{{"schemaVersion":1,"organization":"E","settings":{{"maxGrantMinutes":{minutes}}}}}"#
            );
            parsed(&settings)
        };
        assert_eq!(grants(60).unwrap().settings.max_grant_minutes, Some(60));
        assert!(grants(0).unwrap_err().contains("`maxGrantMinutes` must be from 1 to 525600"));
        assert!(grants(525_601).is_err());
        let export = |url: &str| {
            let settings =
                json!({ "schemaVersion": 1, "organization": "E", "settings": { "exportUrl": url } });
            parsed(&settings.to_string()).map(drop)
        };
        assert_eq!(export("https://otel.example.com"), Ok(()));
        for url in ["otel.example.com", "http://otel.example.com", "https://me:pw@otel.example.com"] {
            assert!(export(url).unwrap_err().contains("`exportUrl` "), "{url}");
        }
        let paths = |form: &str| {
            let settings =
                json!({ "schemaVersion": 1, "organization": "E", "settings": { "exportPaths": form } });
            parsed(&settings.to_string()).map(|managed| managed.settings.export_paths)
        };
        assert_eq!(paths("none"), Ok(Some(ExportedPaths::None)));
        assert!(
            paths("off")
                .unwrap_err()
                .contains("unknown variant `off`, expected one of `full`, `hashed`, `none`")
        );
        assert!(parsed(r#"{"schemaVersion":2,"organization":"E"}"#).unwrap_err().contains("expected 1"));
    }
}
