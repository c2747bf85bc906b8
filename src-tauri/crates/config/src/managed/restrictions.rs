//! Applies an organization's settings to the user's settings and servers. The result is never less strict than the
//! user's settings.

use super::{Managed, ManagedNetwork, ManagedSettings};
use crate::sandbox::{NetworkSettings, Sandbox};
use crate::{Config, ExportConfig, SandboxPolicy, Server};
use url::Url;

impl Managed {
    /// Returns `true` if the organization does not allow a server to start.
    #[must_use]
    pub fn refuses(&self, server: &Server) -> bool {
        self.settings.refusal(server).is_some()
    }

    /// Returns the reason nothing is allowed to start with this audit log export, or `None` if the export meets the
    /// organization's requirements.
    #[must_use]
    pub fn refusal_without_export(&self, export: Option<&ExportConfig>) -> Option<String> {
        let Self { organization, settings, .. } = self;
        match (&settings.export_url, export) {
            (Some(url), Some(export)) if is_same(url, &export.url) => None,
            (Some(url), _) => Some(format!(
                "{organization} requires the export of the audit log to `{url}`; run `ironcurtain export enable {url}`"
            )),
            (None, None) if settings.require_export => Some(format!(
                "{organization} requires the export of the audit log; run `ironcurtain export enable`"
            )),
            (None, _) => None,
        }
    }
}

fn is_same(url: &str, other: &str) -> bool {
    Url::parse(url).is_ok_and(|url| Url::parse(other).is_ok_and(|other| url == other))
}

impl ManagedSettings {
    /// Returns `true` if servers do not start on a machine that cannot create sandboxes.
    #[must_use]
    pub fn enforces_sandbox(&self) -> bool {
        // A server without a sandbox has unrestricted network access.
        self.enforce_sandbox || self.requires_sandbox()
    }

    pub(crate) fn restrict_config(&self, config: &mut Config) {
        if self.enforces_sandbox() {
            config.sandbox_policy = SandboxPolicy::Enforce;
        }
    }

    pub(crate) fn restrict_server(&self, server: &mut Server, organization: &str) {
        server.refused = self.refusal(server).map(|why| format!("{organization} {why}"));
        if let (Sandbox::Sandboxed(settings), Some(network)) = (&mut server.sandbox, self.network) {
            let open = settings.network.take().filter(|settings| !settings.is_closed());
            settings.network = open.and_then(|settings| match network {
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
        if self.denied_servers.iter().any(|pattern| pattern.denies(server)) {
            return Some("denies this server");
        }
        let allowed = self.allowed_servers.as_ref();
        if allowed.is_some_and(|allowed| !allowed.iter().any(|pattern| pattern.allows(server))) {
            return Some("does not allow this server");
        }
        if server.remote.is_some() {
            let is_offline = self.network == Some(ManagedNetwork::Never);
            return is_offline.then_some("allows no network, so remote servers cannot be used");
        }
        let is_free = self.requires_sandbox() && server.sandbox == Sandbox::OptedOut;
        is_free.then_some("requires a sandbox, and the server's entry has `\"sandbox\": false`")
    }

    fn requires_sandbox(&self) -> bool {
        self.forbid_unsandboxed || self.network.is_some()
    }
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
    fn the_export_must_go_to_the_collector_in_any_spelling() {
        let managed =
            r#"{"schemaVersion":1,"organization":"E","settings":{"exportUrl":"https://A.example:443"}}"#;
        let managed: Managed = serde_json::from_str(managed).unwrap();
        let is_refused = |url: &str| {
            let export = serde_json::from_value(serde_json::json!({ "url": url })).unwrap();
            managed.refusal_without_export(Some(&export)).is_some()
        };
        assert!(!is_refused("https://A.example:443") && !is_refused("https://a.example/"));
        assert!(is_refused("https://a.example/x") && is_refused("https://b.example/"));
        assert!(is_refused("http://a.example/") && managed.refusal_without_export(None).is_some());
    }

    #[test]
    fn settings_only_become_stricter() {
        assert_eq!(refused(r#"{"forbidUnsandboxed":true}"#), ["other"]);
        assert_eq!(refused(r#"{"network":"never"}"#), ["other", "web"]);
        assert_eq!(refused(r#"{"network":"ask"}"#), ["other"]);
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
        let closed = r#"{ "git": { "command": "c", "sandbox": { "network": { "allowedDomains": [] } } } }"#;
        let mut closed =
            Servers::parse(closed, Path::new("s"), Path::new("/home/u")).unwrap().find(None).unwrap().clone();
        let asks = ManagedSettings { network: Some(ManagedNetwork::Ask), ..ManagedSettings::default() };
        asks.restrict_server(&mut closed, "Example");
        assert!(closed.has_no_network(), "an entry without hosts must not become one that asks");
        let mut config = Config { sandbox_policy: SandboxPolicy::Warn, ..Config::default() };
        ManagedSettings::default().restrict_config(&mut config);
        assert_eq!(config.sandbox_policy, SandboxPolicy::Warn);
        let default = ManagedSettings::default;
        for settings in [
            ManagedSettings { enforce_sandbox: true, ..default() },
            ManagedSettings { forbid_unsandboxed: true, ..default() },
            ManagedSettings { network: Some(ManagedNetwork::Ask), ..default() },
        ] {
            let mut config = Config { sandbox_policy: SandboxPolicy::Warn, ..Config::default() };
            settings.restrict_config(&mut config);
            assert_eq!(config.sandbox_policy, SandboxPolicy::Enforce);
        }
    }
}
