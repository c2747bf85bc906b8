//! Settings file of `srt` (`@anthropic-ai/sandbox-runtime` 0.0.83), parsed strictly.
//!
//! - INVARIANT: each key in `srt`'s schema is implemented, accepted because it has no effect here, or rejected with a
//!   reason (`unsupported_setting`). Any other key is an error.
//! - A file with an unsupported key is rejected as a whole.

mod entry;
mod unsupported;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use entry::PathEntry;

/// Settings file. By default, nothing is writable, the network is unreachable, and the usual paths are hidden.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(dead_code, reason = "keys without effect are still validated")]
pub struct SrtSettingsFile {
    pub network: NetworkKeys,
    pub filesystem: FilesystemKeys,
    #[serde(default)]
    pub credentials: Credentials,
    #[serde(default)]
    pub git: GitKeys,
    #[serde(default, deserialize_with = "present")]
    pub bwrap_path: Option<String>,
    #[serde(default)]
    ignore_violations: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    enable_weaker_nested_sandbox: bool,
    #[serde(default)]
    allow_nested_user_namespaces: bool,
    #[serde(default)]
    enable_weaker_network_isolation: bool,
    #[serde(default)]
    allow_apple_events: bool,
    #[serde(default, deserialize_with = "present")]
    ripgrep: Option<Ripgrep>,
    #[serde(default, deserialize_with = "present")]
    mandatory_deny_search_depth: Option<u8>,
    #[serde(default)]
    allow_pty: bool,
    #[serde(default)]
    seccomp: Seccomp,
    #[serde(default, deserialize_with = "present")]
    socat_path: Option<String>,
    #[serde(default, deserialize_with = "present")]
    java_agent_jar_path: Option<String>,
    #[serde(default)]
    windows: BTreeMap<String, Value>,
}

/// Hosts and sockets that the command can reach.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(dead_code, reason = "keys without effect are still validated")]
pub struct NetworkKeys {
    pub allowed_domains: Vec<String>,
    pub denied_domains: Vec<String>,
    #[serde(default)]
    pub denied_resolved_addresses: Vec<String>,
    #[serde(default)]
    pub allow_all_unix_sockets: bool,
    #[serde(default)]
    denied_domain_reasons: BTreeMap<String, String>,
    #[serde(default)]
    strict_allowlist: bool,
    #[serde(default)]
    allow_unix_sockets: Vec<String>,
    #[serde(default)]
    allow_local_binding: bool,
    #[serde(default)]
    allow_mach_lookup: Vec<String>,
    #[serde(default, deserialize_with = "present")]
    http_proxy_port: Option<u16>,
    #[serde(default, deserialize_with = "present")]
    socks_proxy_port: Option<u16>,
    #[serde(default, deserialize_with = "present")]
    mitm_proxy: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    filter_request: Option<Value>,
    #[serde(default)]
    allow_plaintext_header_set: bool,
    #[serde(default)]
    strip_response_headers: Vec<String>,
    #[serde(default)]
    refuse_opaque_tunnels: bool,
    #[serde(default)]
    require_host_match: bool,
    #[serde(default, deserialize_with = "present")]
    ambiguous_request_target: Option<AmbiguousTarget>,
    #[serde(default, deserialize_with = "present")]
    tls_terminate: Option<Value>,
    #[serde(default, deserialize_with = "present")]
    parent_proxy: Option<Value>,
}

/// Paths that the command can read and write.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FilesystemKeys {
    pub deny_read: Vec<PathEntry>,
    #[serde(default)]
    pub allow_read: Vec<PathEntry>,
    pub allow_write: Vec<PathEntry>,
    pub deny_write: Vec<PathEntry>,
    #[serde(default)]
    pub allow_git_config: bool,
    #[serde(default)]
    disabled: bool,
}

/// Files and variables hidden from the command.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Credentials {
    pub files: Vec<CredentialFile>,
    pub env_vars: Vec<CredentialVariable>,
    allow_plaintext_inject: bool,
    aws_pairs: Vec<Value>,
    #[serde(deserialize_with = "present")]
    sigv4: Option<Value>,
}

/// One hidden file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(dead_code, reason = "keys for masking are still validated")]
pub struct CredentialFile {
    pub path: PathEntry,
    mode: CredentialMode,
    #[serde(default)]
    extract: String,
    #[serde(default, deserialize_with = "present")]
    on_extract_no_match: Option<NoMatch>,
    #[serde(default, deserialize_with = "present")]
    decode: Option<Decode>,
    #[serde(default)]
    mask_claims: Vec<String>,
    #[serde(default)]
    mask_duplicates: bool,
    #[serde(default)]
    inject_hosts: Vec<String>,
}

/// One hidden variable.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(dead_code, reason = "keys for masking are still validated")]
pub struct CredentialVariable {
    pub name: String,
    mode: CredentialMode,
    #[serde(default)]
    extract: String,
    #[serde(default, deserialize_with = "present")]
    on_extract_no_match: Option<NoMatch>,
    #[serde(default, deserialize_with = "present")]
    decode: Option<Decode>,
    #[serde(default)]
    mask_claims: Vec<String>,
    #[serde(default)]
    inject_hosts: Vec<String>,
}

/// Form in which a credential appears to the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum CredentialMode {
    Deny,
    Mask,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum NoMatch {
    Warn,
    Deny,
    Error,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Decode {
    Jwt,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum AmbiguousTarget {
    Refuse,
    AsSpelled,
    Normalize,
}

/// Settings for git.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GitKeys {
    pub safe_directories: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[expect(dead_code, reason = "keys without effect are still validated")]
struct Ripgrep {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    argv0: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Seccomp {
    apply_path: String,
    argv0: String,
}

/// Reason a settings file is rejected.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    #[error("`{}` does not exist", .0.display())]
    Missing(PathBuf),
    #[error("failed to read `{}`: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("`{}` is empty; delete it, or write settings into it", .0.display())]
    Empty(PathBuf),
    #[error("`{}`: `{key}`: {problem}", path.display())]
    Key { path: PathBuf, key: String, problem: String },
}

impl SrtSettingsFile {
    /// Reads a settings file. `bwrap` is the path of the installed bubblewrap, if any.
    ///
    /// # Errors
    /// Returns [`SettingsError`] if the file is unreadable or contains an unsupported setting. No setting may
    /// then be applied.
    pub fn read(path: &Path, bwrap: Option<&Path>) -> Result<Self, SettingsError> {
        let text = fs::read_to_string(path).map_err(|source| {
            if source.kind() == ErrorKind::NotFound {
                SettingsError::Missing(path.to_owned())
            } else {
                SettingsError::Unreadable { path: path.to_owned(), source }
            }
        })?;
        if text.trim().is_empty() {
            return Err(SettingsError::Empty(path.to_owned()));
        }
        let at = |(key, problem)| SettingsError::Key { path: path.to_owned(), key, problem };
        Self::parse(&text, bwrap).map_err(at)
    }

    /// Parses settings. An error consists of the key and a message.
    fn parse(text: &str, bwrap: Option<&Path>) -> Result<Self, (String, String)> {
        let mut json = serde_json::Deserializer::from_str(text);
        let settings: Self = serde_path_to_error::deserialize(&mut json)
            .map_err(|error| (error.path().to_string(), error.into_inner().to_string()))?;
        json.end().map_err(|error| (".".to_owned(), error.to_string()))?;
        match settings.unsupported_setting(bwrap) {
            Some(unsupported) => Err(unsupported),
            None => Ok(settings),
        }
    }
}

/// Deserializes an optional value. An absent key is `None`; an explicit `null` is an error, unless the type
/// accepts it.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use schemars::schema_for;

    use super::*;

    #[test]
    fn the_shipped_schema_matches_these_types() {
        let schema_path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("../../../docs/schemas/sandbox-settings.schema.json");
        let schema = serde_json::to_string_pretty(&schema_for!(SrtSettingsFile)).unwrap() + "\n";
        if std::env::var_os("IRONCURTAIN_WRITE_SCHEMAS").is_some() {
            fs::write(&schema_path, &schema).unwrap();
        }
        assert_eq!(
            fs::read_to_string(schema_path).unwrap(),
            schema,
            "run `IRONCURTAIN_WRITE_SCHEMAS=1 cargo test -p ironcurtain-srt-settings schema`"
        );
    }
}
