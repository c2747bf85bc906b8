//! A configured server whose entry has been validated.

use super::remote::RemoteServer;
use super::sandbox::{NetworkSettings, PassEnv, Sandbox};
use ironcurtain_policy::{FileWrites, Unannotated};
use ironcurtain_secrets::{self as secrets, SecretName};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A configured server whose entry has been validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Unique name.
    pub name: String,
    /// The user's description of the server.
    pub description: Option<String>,
    /// Address of a remote server, or `None` for a local one. A remote server has no program, variables or sandbox.
    pub remote: Option<RemoteServer>,
    /// Program of a local server: a name to find on `PATH`, or an absolute path.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables that the entry sets.
    pub env: BTreeMap<String, String>,
    /// Variables from IronCurtain's environment that the server receives.
    pub pass_env: PassEnv,
    /// Files and folders that the server works with. The user must approve each of them for each agent.
    pub works_with: Vec<String>,
    /// The server's access to files beyond its sandbox settings.
    pub access: ServerAccess,
    /// Containment of the server.
    pub sandbox: Sandbox,
    /// Method by which the server writes files.
    pub file_writes: FileWrites,
    /// Treatment of calls to unannotated tools. An unsandboxed local server cannot have `Ask`.
    pub unannotated: Unannotated,
    /// Treatment of the server's `sampling/createMessage` requests.
    pub sampling: Sampling,
    /// Treatment of a tool whose definition has changed.
    pub pin: ToolPinning,
    /// Reason the user's organization does not allow the server to start, or `None` if it does.
    pub refused: Option<String>,
}

/// Access of a server to files beyond its sandbox settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ServerAccess {
    /// Files that the user grants, which are mounted.
    #[default]
    Grants,
    /// Any file that the user allows: the user is asked when the server opens it.
    Ask,
}

/// Treatment of a tool whose definition differs from the one that the server listed first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ToolPinning {
    /// Suspends the tool until the user decides.
    #[default]
    Enforce,
    /// Notifies the user and uses the new definition.
    Warn,
}

/// Treatment of a server's requests for the client's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Forwards the requests.
    Allow,
    /// Asks the user about each request.
    #[default]
    Ask,
    /// Hides the model from the server.
    Deny,
}

/// Placeholder for a withheld secret. Some servers only check that the variable is set.
const WITHHELD: &str = "withheld";

impl Server {
    /// Name of the embedded filesystem server's program.
    pub const EMBEDDED: &str = "ironcurtain-filesystem";

    /// Returns the names of the secrets that the entry uses.
    #[must_use]
    pub fn secret_names(&self) -> BTreeSet<SecretName> {
        let headers = self.remote.iter().flat_map(|remote| remote.headers().values());
        let of_headers =
            headers.filter_map(|value| Some(secrets::secret_reference_in_header(value).ok()??.1));
        let of_env = self.env.values().filter_map(|value| secrets::secret_reference(value).ok()?);
        of_env.chain(of_headers).collect()
    }

    /// Returns a copy of the server for a trial run before the user has allowed it to receive secrets. Variables that
    /// refer to a secret contain a placeholder, and headers that refer to a secret are removed.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut server = self.clone();
        for value in server.env.values_mut().filter(|value| secrets::secret_reference(value) != Ok(None)) {
            WITHHELD.clone_into(value);
        }
        server.remote = server.remote.map(RemoteServer::without_secrets);
        server
    }

    /// Returns a copy of the server without this folder in its sandbox's `allowRead` and `allowWrite`.
    #[must_use]
    pub fn without_folder(&self, folder: &Path) -> Self {
        let mut server = self.clone();
        if let Sandbox::Sandboxed(settings) = &mut server.sandbox {
            let files = &mut settings.filesystem;
            files.allow_read.retain(|path| !Path::new(path).starts_with(folder));
            files.allow_write.retain(|path| !Path::new(path).starts_with(folder));
        }
        server
    }

    /// Returns a hash of the server's name, program, arguments and address, as lowercase hex.
    #[must_use]
    pub fn identity(&self) -> String {
        let what = serde_json::json!([
            self.name,
            self.remote.as_ref().map(ToString::to_string),
            self.command,
            self.args
        ]);
        Sha256::digest(what.to_string()).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Returns the host patterns that the server may reach. Returns `None` for a server without a sandbox.
    #[must_use]
    pub fn allowed_domains(&self) -> Option<&[String]> {
        let network = self.sandbox.settings()?.network.as_ref();
        Some(network.map_or(&[], |network| &network.allowed_domains))
    }

    /// Returns `true` if the server's sandbox has no network access.
    #[must_use]
    pub fn has_no_network(&self) -> bool {
        let network = self.sandbox.settings().map(|settings| settings.network.as_ref());
        network.is_some_and(|network| network.is_none_or(NetworkSettings::is_closed))
    }

    /// Returns the command line or the address, for display.
    #[must_use]
    pub fn command_line(&self) -> String {
        if let Some(remote) = &self.remote {
            return remote.to_string();
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}
