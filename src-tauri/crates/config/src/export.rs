//! The collector to which the audit log is exported.
//!
//! - The user chooses the collector, so its host may be this computer or on the local network.

use super::entry_error::RemoteEntryError;
use super::remote::{checked_header, is_local};
use ironcurtain_egress::Host;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;
use url::Url;

/// Default size of the backlog in MiB.
const DEFAULT_BACKLOG_MIB: u64 = 64;

/// Allowed sizes of the backlog in MiB.
const BACKLOG: RangeInclusive<u64> = 1..=65_536;

/// Export of the audit log to a collector.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExportConfig {
    /// Base address of an OpenTelemetry collector that accepts OTLP over HTTP. `https`, or `http` to this machine and its network.
    pub url: String,
    /// HTTP headers of every request. A value, or the part after its first word, may be `keyring:NAME`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Form in which paths are exported.
    #[serde(default)]
    pub paths: ExportedPaths,
    /// Maximum size of the part of the log that is not sent yet, in MiB. Beyond it, the oldest entries are not exported.
    #[cfg_attr(test, schemars(range(min = 1, max = 65_536)))]
    #[serde(default = "backlog_mib")]
    pub backlog_mib: u64,
}

/// Form in which paths are exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ExportedPaths {
    /// As recorded.
    Full,
    /// As hashes with a key that stays on this machine.
    #[default]
    Hashed,
    /// Not at all.
    None,
}

impl ExportedPaths {
    /// Returns the form as in the settings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Hashed => "hashed",
            Self::None => "none",
        }
    }
}

/// Reason a collector's address is rejected, as a phrase that follows the setting's name.
#[derive(Debug, thiserror::Error)]
pub(super) enum CollectorUrlError {
    /// The address is invalid.
    #[error("is not the address of a collector, such as `https://otel.example.com:4318`")]
    Invalid,
    /// The address contains a login.
    #[error("contains a login; use `headers` with `keyring:NAME`")]
    Login,
    /// The address uses `http`, which is not encrypted.
    #[error("uses `http`, which is allowed only for this machine and its network; use `https`")]
    Unencrypted,
}

/// Reason a collector is rejected.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportConfigError {
    /// The address is invalid.
    #[error("`url` {0}")]
    Url(#[from] CollectorUrlError),
    /// The backlog is out of range.
    #[error("`backlogMib` is {0}; it must be from {least} to {most}", least = BACKLOG.start(), most = BACKLOG.end())]
    Backlog(u64),
    /// A header is invalid.
    #[error(transparent)]
    Header(#[from] RemoteEntryError),
}

impl ExportConfig {
    /// Checks the values.
    pub(super) fn check(&self) -> Result<(), ExportConfigError> {
        checked_url(&self.url)?;
        if !BACKLOG.contains(&self.backlog_mib) {
            return Err(ExportConfigError::Backlog(self.backlog_mib));
        }
        self.headers.iter().try_for_each(|(name, value)| Ok(checked_header(name, value)?))
    }
}

/// Checks a collector's address.
pub(super) fn checked_url(url: &str) -> Result<(), CollectorUrlError> {
    let url = Url::parse(url).map_err(|_| CollectorUrlError::Invalid)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(CollectorUrlError::Login);
    }
    let host = url.host_str().ok_or(CollectorUrlError::Invalid)?;
    match url.scheme() {
        "https" => Ok(()),
        "http" if Host::parse(host).is_ok_and(|host| is_local(&host)) => Ok(()),
        "http" => Err(CollectorUrlError::Unencrypted),
        _ => Err(CollectorUrlError::Invalid),
    }
}

/// Omits the header values, because they can be credentials.
impl fmt::Debug for ExportConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url, headers, paths, backlog_mib } = self;
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let names: Vec<&String> = headers.keys().collect();
        f.debug_struct("ExportConfig")
            .field("url", &url)
            .field("headers", &names)
            .field("paths", paths)
            .field("backlog_mib", backlog_mib)
            .finish()
    }
}

fn backlog_mib() -> u64 {
    DEFAULT_BACKLOG_MIB
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> Result<ExportConfig, String> {
        let config: ExportConfig = serde_json::from_str(text).map_err(|problem| problem.to_string())?;
        config.check().map_err(|problem| problem.to_string())?;
        Ok(config)
    }

    #[test]
    fn collector_may_be_local_and_is_encrypted_elsewhere() {
        let url = |url: &str| checked(&format!("{{\"url\":\"{url}\"}}"));
        for taken in [
            "https://otel.example.com/otlp",
            "http://localhost:4318",
            "http://127.0.0.1:4318",
            "http://192.168.1.7:4318",
            "https://collector:4318",
        ] {
            assert!(url(taken).is_ok(), "{taken}: {:?}", url(taken));
        }
        for (refused, why) in [
            ("http://otel.example.com", "use `https`"),
            ("http://8.8.8.8", "use `https`"),
            ("https://me:pw@otel.example.com", "contains a login"),
            ("otel.example.com", "is not the address of a collector"),
            ("file:///etc/passwd", "is not the address of a collector"),
        ] {
            assert!(url(refused).unwrap_err().contains(why), "{refused}: {:?}", url(refused));
        }
    }

    #[test]
    fn defaults_are_private_and_invalid_values_are_named() {
        let config = checked(r#"{"url":"https://a.example"}"#).unwrap();
        assert_eq!((config.paths, config.backlog_mib), (ExportedPaths::Hashed, 64));
        assert!(
            checked(r#"{"url":"https://a.example","backlogMib":0}"#).unwrap_err().contains("from 1 to 65536")
        );
        let header = r#"{"url":"https://a.example","headers":{"Authorization":"Bearer keyring:otel"}}"#;
        assert!(checked(header).is_ok());
        let ours = r#"{"url":"https://a.example","headers":{"Content-Type":"x"}}"#;
        assert!(checked(ours).unwrap_err().contains("is set by IronCurtain"));
        let plain = r#"{"url":"https://a.example/?key=k3y","headers":{"X-Key":"s3cret"}}"#;
        let shown = format!("{:?}", checked(plain).unwrap());
        assert!(!shown.contains("s3cret") && !shown.contains("k3y"), "{shown}");
    }
}
