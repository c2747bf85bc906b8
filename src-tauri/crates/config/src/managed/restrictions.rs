//! Applies an organization's settings to the user's settings and servers. The result is never less strict.

use super::{ManagedNetwork, ManagedSettings, ServerPattern};
use crate::sandbox::{NetworkSettings, Sandbox};
use crate::{Config, SandboxPolicy, Server};

impl ManagedSettings {
    pub(crate) fn restrict_config(&self, config: &mut Config) {
        if self.enforce_sandbox {
            config.sandbox_policy = SandboxPolicy::Enforce;
        }
    }

    pub(crate) fn restrict_server(&self, server: &mut Server, organization: &str) {
        server.refused = self.refusal(server).map(|why| format!("{organization} {why}"));
        if let (Sandbox::Sandboxed(settings), Some(network)) = (&mut server.sandbox, self.network) {
            settings.network = settings.network.take().and_then(|settings| match network {
                ManagedNetwork::Never => None,
                ManagedNetwork::Ask => Some(NetworkSettings {
                    denied_domains: settings.denied_domains,
                    ..NetworkSettings::asking()
                }),
            });
        }
    }

    /// Returns the reason a server is not allowed to start, as a phrase that follows the organization's name.
    fn refusal(&self, server: &Server) -> Option<&'static str> {
        let is_listed = |list: &[ServerPattern]| list.iter().any(|pattern| pattern.matches(server));
        if is_listed(&self.denied_servers) {
            return Some("denies this server");
        }
        if self.allowed_servers.as_ref().is_some_and(|allowed| !is_listed(allowed)) {
            return Some("does not allow this server");
        }
        if server.remote.is_some() {
            let is_offline = self.network == Some(ManagedNetwork::Never);
            return is_offline.then_some("allows no network, so remote servers cannot be used");
        }
        let is_free = self.forbid_unsandboxed && server.sandbox == Sandbox::OptedOut;
        is_free.then_some("requires a sandbox, and the server's entry has `\"sandbox\": false`")
    }
}

impl ServerPattern {
    pub(super) fn is_empty(&self) -> bool {
        self.name.is_none() && self.package.is_none() && self.url.is_none()
    }

    fn matches(&self, server: &Server) -> bool {
        let of_name = self.name.as_ref().is_none_or(|name| *name == server.name);
        let of_package = self.package.as_ref().is_none_or(|package| {
            server.remote.is_none()
                && std::iter::once(&server.command).chain(&server.args).any(|word| is_package(word, package))
        });
        let of_url = self.url.as_ref().is_none_or(|url| {
            let address = server.remote.as_ref().map(ToString::to_string);
            address.is_some_and(|address| match url.strip_suffix('*') {
                Some(start) => address.starts_with(start),
                None => address == *url,
            })
        });
        of_name && of_package && of_url
    }
}

/// Returns `true` if a command-line argument names this package, with or without a version.
fn is_package(word: &str, package: &str) -> bool {
    let rest = word.strip_prefix(package);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('@') || rest.starts_with("=="))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Servers;
    use std::path::Path;

    const SERVERS: &str = r#"{
        "git": { "command": "uvx", "args": ["mcp-server-git==1.2"], "sandbox": { "network": { "allowedDomains": ["a.example"] } } },
        "other": { "command": "npx", "args": ["mcp-server-git-fork"], "sandbox": false },
        "web": { "url": "https://mcp.example.com/sse" } }"#;

    /// Returns each server's name and the reason it is refused under these settings.
    fn refusals(settings: &str) -> Vec<(String, Option<String>)> {
        let settings: ManagedSettings = serde_json::from_str(settings).unwrap();
        let servers = Servers::parse(SERVERS, Path::new("s"), Path::new("/home/u")).unwrap();
        let restricted = servers.iter().cloned().map(|mut server| {
            settings.restrict_server(&mut server, "Example");
            (server.name, server.refused)
        });
        restricted.collect()
    }

    fn refused(settings: &str) -> Vec<String> {
        refusals(settings).into_iter().filter_map(|(name, refused)| refused.map(|_| name)).collect()
    }

    #[test]
    fn servers_are_matched_by_name_package_and_address() {
        assert_eq!(refused("{}"), [""; 0]);
        assert_eq!(refused(r#"{"deniedServers":[{"name":"git"}]}"#), ["git"]);
        assert_eq!(refused(r#"{"deniedServers":[{"package":"mcp-server-git"}]}"#), ["git"]);
        assert_eq!(refused(r#"{"deniedServers":[{"url":"https://mcp.example.com/*"}]}"#), ["web"]);
        assert_eq!(refused(r#"{"deniedServers":[{"url":"https://mcp.example.com/"}]}"#), [""; 0]);
        assert_eq!(refused(r#"{"allowedServers":[{"name":"git"}]}"#), ["other", "web"]);
        assert_eq!(
            refused(r#"{"allowedServers":[{"name":"git","package":"other"}]}"#),
            ["git", "other", "web"]
        );
        let both = r#"{"allowedServers":[{"name":"git"}],"deniedServers":[{"name":"git"}]}"#;
        assert_eq!(refusals(both)[0].1.as_deref(), Some("Example denies this server"));
    }

    #[test]
    fn settings_only_become_stricter() {
        assert_eq!(refused(r#"{"forbidUnsandboxed":true}"#), ["other"]);
        assert_eq!(refused(r#"{"network":"never"}"#), ["web"]);
        let servers = Servers::parse(SERVERS, Path::new("s"), Path::new("/home/u")).unwrap();
        let network = |settings: &str| {
            let settings: ManagedSettings = serde_json::from_str(settings).unwrap();
            let mut server = servers.find(Some("git")).unwrap().clone();
            settings.restrict_server(&mut server, "Example");
            server.sandbox.settings().unwrap().network.clone()
        };
        assert_eq!(network("{}").unwrap().allowed_domains, ["a.example"]);
        assert_eq!(network(r#"{"network":"ask"}"#), Some(NetworkSettings::asking()));
        assert_eq!(network(r#"{"network":"never"}"#), None);
        let mut config = Config { sandbox_policy: SandboxPolicy::Warn, ..Config::default() };
        ManagedSettings::default().restrict_config(&mut config);
        assert_eq!(config.sandbox_policy, SandboxPolicy::Warn);
        let enforced = ManagedSettings { enforce_sandbox: true, ..ManagedSettings::default() };
        enforced.restrict_config(&mut config);
        assert_eq!(config.sandbox_policy, SandboxPolicy::Enforce);
    }
}
