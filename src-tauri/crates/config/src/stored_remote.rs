//! Parses a remote server's entry in `mcp-servers.json`.

use super::entry_error::EntryError;
use super::remote::RemoteServer;
use super::sandbox::{PassEnv, Sandbox};
use super::server::{Sampling, Server, ServerAccess, ToolPinning};
use super::stored::{StoredUnannotated, check_name, ignored};
use ironcurtain_policy::FileWrites;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// One entry of the file, for a remote server.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "RemoteServer"))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct StoredRemote {
    /// Address: `https://`, or `http://` on this machine and its network.
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: String,
    /// Headers sent with every message. A value may name a secret: `keyring:NAME`, `Bearer keyring:NAME`.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// Non-public addresses that the host, or its authorization server, may have, such as `10.1.2.3`.
    #[serde(default)]
    allowed_addresses: Vec<String>,
    /// Treatment of the server's requests for the agent client's model (`sampling/createMessage`).
    #[serde(default)]
    sampling: Sampling,
    /// Treatment of a tool whose definition changed: `enforce` (default) suspends it until the user decides, `warn` notifies.
    #[serde(default)]
    pin: ToolPinning,
    /// Treatment of unannotated tools: `deny` (default) refuses their calls, `ask` asks the user about each call.
    #[serde(default)]
    unannotated: StoredUnannotated,
    /// Description for the user.
    #[serde(default)]
    description: Option<String>,
    /// Transport, in the form that agent clients use: streamable HTTP.
    #[serde(default, rename = "type")]
    _kind: Option<StoredRemoteKind>,
    /// True to keep the entry without connecting to the server.
    #[serde(default, rename = "disabled")]
    _disabled: bool,
    /// Accepted and ignored: the policy and the user decide which calls are allowed.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    #[serde(default)]
    always_allow: Option<Value>,
    /// Accepted and ignored, like `alwaysAllow`.
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    #[serde(default)]
    auto_approve: Option<Value>,
    /// Comment, ignored.
    #[serde(default, rename = "_comment")]
    _comment: Option<Value>,
}

impl StoredRemote {
    /// Returns the keys in the entry that agent clients use and IronCurtain ignores.
    pub(super) fn ignored(&self) -> impl Iterator<Item = &'static str> + use<> {
        ignored(self.always_allow.is_some(), self.auto_approve.is_some())
    }

    /// Validates the entry and returns the server.
    pub(super) fn into_server(self, name: &str) -> Result<Server, EntryError> {
        check_name(name)?;
        Ok(Server {
            name: name.to_owned(),
            description: self.description,
            remote: Some(RemoteServer::new(&self.url, self.headers, self.allowed_addresses)?),
            command: String::new(),
            args: Vec::new(),
            env: BTreeMap::new(),
            pass_env: PassEnv::default(),
            works_with: Vec::new(),
            access: ServerAccess::Grants,
            sandbox: Sandbox::OptedOut,
            file_writes: FileWrites::default(),
            unannotated: self.unannotated.into(),
            sampling: self.sampling,
            pin: self.pin,
            refused: None,
        })
    }
}

#[derive(Clone, Copy, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(rename = "RemoteKind"))]
#[serde(rename_all = "kebab-case")]
enum StoredRemoteKind {
    Http,
    StreamableHttp,
    #[serde(rename = "streamableHttp")]
    StreamableHttpInOneWord,
}
