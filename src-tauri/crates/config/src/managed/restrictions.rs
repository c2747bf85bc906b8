//! Applies an organization's settings to the user's settings and servers. The result is never less strict than the
//! user's settings.

use super::{Managed, ManagedNetwork, ManagedSettings};
use crate::sandbox::{NetworkSettings, Sandbox};
use crate::{Config, ExportedPaths, SandboxPolicy, Server};
use url::Url;

/// The user chose another form of exported paths than the one that the organization has set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{organization} has set the form of exported paths to `{}`, so it cannot be `{}`",
    .set.as_str(),
    .chosen.as_str()
)]
pub struct ExportPathsError {
    organization: String,
    set: ExportedPaths,
    chosen: ExportedPaths,
}

impl Managed {
    /// Returns `true` if the organization does not allow a server to start.
    #[must_use]
    pub fn refuses(&self, server: &Server) -> bool {
        self.settings.refusal(server).is_some()
    }

    /// Returns the reason nothing is allowed to start while the audit log is exported to this URL, or not at all.
    /// Returns `None` if the export meets the organization's requirements.
    #[must_use]
    pub fn refusal_without_export(&self, collector: Option<&str>) -> Option<String> {
        let Self { organization, settings, .. } = self;
        match (&settings.export_url, collector) {
            (Some(_), Some(collector)) if self.receives(collector) => None,
            (Some(url), _) => Some(format!(
                "{organization} requires the export of the audit log to `{url}`; run `ironcurtain export enable {url}`"
            )),
            (None, None) if settings.require_export => Some(format!(
                "{organization} requires the export of the audit log; run `ironcurtain export enable`"
            )),
            (None, _) => None,
        }
    }

    /// Returns the reason the export to this URL cannot be turned off, or `None` if the organization does not require
    /// it.
    #[must_use]
    pub fn refusal_to_disable_export(&self, collector: &str) -> Option<String> {
        let is_needed = self.refusal_without_export(Some(collector)).is_none()
            && self.refusal_without_export(None).is_some();
        is_needed.then(|| {
            format!(
                "{} requires the export of the audit log: without it, no server and no run would start",
                self.organization
            )
        })
    }

    /// Returns `true` if this is the URL of the organization's collector.
    #[must_use]
    pub fn receives(&self, collector: &str) -> bool {
        self.settings.export_url.as_ref().is_some_and(|url| is_same(url, collector))
    }

    /// Returns the form in which paths are exported if the user chose this form, or none.
    ///
    /// # Errors
    /// Returns [`ExportPathsError`] if the organization has set another form than the user's.
    pub fn export_paths(
        &self,
        chosen: Option<ExportedPaths>,
    ) -> Result<Option<ExportedPaths>, ExportPathsError> {
        match (self.settings.export_paths, chosen) {
            (Some(set), Some(chosen)) if set != chosen => {
                Err(ExportPathsError { organization: self.organization.clone(), set, chosen })
            }
            (set, chosen) => Ok(set.or(chosen)),
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
        if let (Some(paths), Some(export)) = (self.export_paths, &mut config.export) {
            export.paths = paths;
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
        let is_unsandboxed = self.requires_sandbox() && server.sandbox == Sandbox::OptedOut;
        is_unsandboxed.then_some("requires a sandbox, and the server's entry has `\"sandbox\": false`")
    }

    /// Returns `true` if servers without a sandbox do not start.
    #[must_use]
    pub fn requires_sandbox(&self) -> bool {
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
        let is_refused = |url: &str| managed.refusal_without_export(Some(url)).is_some();
        assert!(!is_refused("https://A.example:443") && !is_refused("https://a.example/"));
        assert!(is_refused("https://a.example/x") && is_refused("https://b.example/"));
        assert!(is_refused("http://a.example/") && managed.refusal_without_export(None).is_some());
    }

    #[test]
    fn only_an_export_that_is_required_cannot_be_turned_off() {
        let refusal = |settings: &str, url: &str| {
            let managed = format!(r#"{{"schemaVersion":1,"organization":"E","settings":{settings}}}"#);
            let managed: Managed = serde_json::from_str(&managed).unwrap();
            managed.refusal_to_disable_export(url)
        };
        let why = "E requires the export of the audit log: without it, no server and no run would start";
        let (to_a, any) = (r#"{"exportUrl":"https://a.example"}"#, r#"{"requireExport":true}"#);
        assert_eq!(refusal(to_a, "https://a.example").as_deref(), Some(why));
        assert_eq!(refusal(any, "https://b.example").as_deref(), Some(why));
        // Nothing starts with this export, so nothing changes without it.
        assert_eq!(refusal(to_a, "https://b.example"), None);
        assert_eq!(refusal(r#"{"exportPaths":"none"}"#, "https://b.example"), None);
    }

    #[test]
    fn form_of_exported_paths_is_the_organizations() {
        let managed = |settings: &str| -> Managed {
            let managed = format!(r#"{{"schemaVersion":1,"organization":"E","settings":{settings}}}"#);
            serde_json::from_str(&managed).unwrap()
        };
        let (full, none) = (Some(ExportedPaths::Full), Some(ExportedPaths::None));
        assert_eq!(
            (managed("{}").export_paths(full), managed("{}").export_paths(None)),
            (Ok(full), Ok(None))
        );
        let sets_none = managed(r#"{"exportPaths":"none"}"#);
        assert_eq!((sets_none.export_paths(None), sets_none.export_paths(none)), (Ok(none), Ok(none)));
        let refused = sets_none.export_paths(full).unwrap_err().to_string();
        assert_eq!(refused, "E has set the form of exported paths to `none`, so it cannot be `full`");
        let user: Config =
            serde_json::from_str(r#"{"export":{"url":"https://a.example","paths":"full"}}"#).unwrap();
        let paths = |managed: &Managed, config: &Config| {
            config.clone().restricted(Some(managed)).export.map(|export| export.paths)
        };
        assert_eq!((paths(&managed("{}"), &user), paths(&sets_none, &user)), (full, none));
        assert_eq!(paths(&sets_none, &Config::default()), None, "the setting alone exports nothing");
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
