//! One configured server.

use super::remote::RemoteServer;
use super::sandbox::{NetworkSettings, PassEnv, Sandbox};
use ironcurtain_policy::FileWrites;
use ironcurtain_policy::Unannotated;
use ironcurtain_secrets::{self as secrets, SecretName};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// One configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its description, in the person's words.
    pub description: Option<String>,
    /// The place that it runs in, if that is elsewhere: then it has no program, no variables and no sandbox here.
    pub remote: Option<RemoteServer>,
    /// Its program: a name found on the path, or an absolute path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables it is given.
    pub env: BTreeMap<String, String>,
    /// Variables of ours that it is given.
    pub pass_env: PassEnv,
    /// Files and folders that it works with, each proposed to the person for each agent.
    pub works_with: Vec<String>,
    /// Its containment.
    pub sandbox: Sandbox,
    /// The way it writes files.
    pub file_writes: FileWrites,
    /// The answer to its tools that nobody has annotated. Never to ask for a program that runs here without a sandbox.
    pub unannotated: Unannotated,
    /// Its requests for the client's model.
    pub sampling: Sampling,
}

/// The fate of a server's requests for the client's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// They are passed on.
    Allow,
    /// The person is asked about each.
    #[default]
    Ask,
    /// The server is not told that there is a model.
    Deny,
}

/// The value of a variable whose secret is withheld: some servers only look whether there is one.
const WITHHELD: &str = "withheld";

impl Server {
    /// The program of the embedded filesystem server, which is part of IronCurtain.
    pub const EMBEDDED: &str = "ironcurtain-filesystem";

    /// The secrets that its entry names, each once.
    #[must_use]
    pub fn secret_names(&self) -> BTreeSet<SecretName> {
        let headers = self.remote.iter().flat_map(|remote| remote.headers().values());
        let of_headers = headers.filter_map(|value| Some(secrets::named_in_header(value).ok()??.1));
        let of_env = self.env.values().filter_map(|value| secrets::named(value).ok()?);
        of_env.chain(of_headers).collect()
    }

    /// Returns the server with a placeholder in each variable that names a secret, and without each header that does: what is
    /// tried before the user has said that it may have them.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut server = self.clone();
        for value in server.env.values_mut().filter(|value| secrets::named(value) != Ok(None)) {
            WITHHELD.clone_into(value);
        }
        server.remote = server.remote.map(RemoteServer::without_secrets);
        server
    }

    /// Returns the server without this folder among those that its sandbox opens for good.
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

    /// The identity of what is started: another program, other arguments or another address are another server.
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

    /// The patterns of hosts it may reach; none when it has no network. One that opted out has no such list.
    #[must_use]
    pub fn allowed_domains(&self) -> Option<&[String]> {
        let network = self.sandbox.settings()?.network.as_ref();
        Some(network.map_or(&[], |network| &network.allowed_domains))
    }

    /// Returns `true` if its sandbox has no way to any host.
    #[must_use]
    pub fn has_no_network(&self) -> bool {
        let network = self.sandbox.settings().map(|settings| settings.network.as_ref());
        network.is_some_and(|network| network.is_none_or(NetworkSettings::is_closed))
    }

    /// Its command line, or its address, for people.
    #[must_use]
    pub fn command_line(&self) -> String {
        if let Some(remote) = &self.remote {
            return remote.to_string();
        }
        let words = std::iter::once(&self.command).chain(&self.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}
