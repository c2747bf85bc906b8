//! The rules, settings and exports that the user's organization manages, as shown on the pages.

use super::record_export::PathsChoice;
use ironcurtain_config::{
    Config, Managed, ManagedBundle, ManagedNetwork, ManagedPolicy, ManagedSettings, ServerPattern,
    WithoutBundle,
};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct ManagedView {
    organization: String,
    /// Revision of the rules in effect, or `None` if there is none.
    revision: Option<String>,
    /// Decision on every call until the rules are downloaded. `None` if they are, or if there are none.
    without: Option<&'static str>,
    /// Reason the stored rules are not used.
    problem: Option<String>,
    /// Settings of this page that the user cannot change.
    locked: Vec<&'static str>,
    settings: ManagedSettingsView,
    record: RecordReceiver,
}

/// Settings in effect, including those that another setting includes.
#[derive(Debug, Serialize)]
struct ManagedSettingsView {
    enforce_sandbox: bool,
    forbid_unsandboxed: bool,
    require_export: bool,
    export_url: Option<String>,
    export_paths: Option<PathsChoice>,
    max_grant_minutes: Option<u64>,
    network: Option<&'static str>,
    allowed_servers: Option<Vec<PatternView>>,
    denied_servers: Vec<PatternView>,
}

#[derive(Debug, Serialize)]
struct PatternView {
    name: Option<String>,
    package: Option<String>,
    url: Option<String>,
}

/// Program that receives the exported record.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum RecordReceiver {
    /// The organization's collector.
    Organization,
    /// A collector that the user chose.
    Chosen,
    /// The record is not exported.
    Nobody,
}

impl ManagedView {
    pub(super) fn of(policy: ManagedPolicy, config: &Config) -> Self {
        let ManagedPolicy { managed, bundle, problem, .. } = policy;
        Self::of_parts(managed, bundle, problem, config)
    }

    fn of_parts(
        managed: Managed,
        bundle: Option<ManagedBundle>,
        problem: Option<String>,
        config: &Config,
    ) -> Self {
        let record = match &config.export {
            None => RecordReceiver::Nobody,
            Some(export) if managed.receives(&export.url) => RecordReceiver::Organization,
            Some(_) => RecordReceiver::Chosen,
        };
        let is_missing = bundle.is_none();
        let without = managed.bundle.filter(|_| is_missing).map(|settings| match settings.without {
            WithoutBundle::Deny => "deny",
            WithoutBundle::Ask => "ask",
        });
        Self {
            organization: managed.organization,
            revision: bundle.map(|bundle| bundle.revision),
            without,
            problem,
            locked: managed.settings.enforces_sandbox().then_some("unsandboxed").into_iter().collect(),
            settings: managed.settings.into(),
            record,
        }
    }
}

impl From<ManagedSettings> for ManagedSettingsView {
    fn from(settings: ManagedSettings) -> Self {
        let (enforce_sandbox, forbid_unsandboxed) =
            (settings.enforces_sandbox(), settings.requires_sandbox());
        let ManagedSettings {
            enforce_sandbox: _,
            forbid_unsandboxed: _,
            require_export,
            export_url,
            export_paths,
            max_grant_minutes,
            network,
            allowed_servers,
            denied_servers,
        } = settings;
        let patterns = |patterns: Vec<ServerPattern>| patterns.into_iter().map(PatternView::from).collect();
        Self {
            enforce_sandbox,
            forbid_unsandboxed,
            require_export,
            export_url,
            export_paths: export_paths.map(PathsChoice::from),
            max_grant_minutes,
            network: network.map(|network| match network {
                ManagedNetwork::Never => "never",
                ManagedNetwork::Ask => "ask",
            }),
            allowed_servers: allowed_servers.map(patterns),
            denied_servers: patterns(denied_servers),
        }
    }
}

impl From<ServerPattern> for PatternView {
    fn from(ServerPattern { name, package, url }: ServerPattern) -> Self {
        Self { name, package, url }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns the view for these settings of the organization and this collector of the user.
    fn view(settings: &Value, bundle: Option<ManagedBundle>, collector: Option<&str>) -> Value {
        let source = json!({ "url": "https://a.example/b", "publicKeyFile": "/k", "without": "ask" });
        let managed =
            json!({ "schemaVersion": 1, "organization": "E", "bundle": source, "settings": settings });
        let config = json!({ "export": collector.map(|url| json!({ "url": url })) });
        let (managed, config) =
            (serde_json::from_value(managed).unwrap(), serde_json::from_value(config).unwrap());
        serde_json::to_value(ManagedView::of_parts(managed, bundle, None, &config)).unwrap()
    }

    #[test]
    fn organization_receives_the_record_only_at_its_own_collector() {
        let sets_url = json!({ "exportUrl": "https://otel.example" });
        let record = |settings: &Value, url| view(settings, None, url)["record"].clone();
        assert_eq!(record(&sets_url, Some("https://otel.example:443/")), "organization");
        assert_eq!(record(&sets_url, Some("https://mine.example")), "chosen");
        assert_eq!(record(&json!({ "requireExport": true }), Some("https://mine.example")), "chosen");
        assert_eq!(record(&sets_url, None), "nobody");
    }

    #[test]
    fn missing_rules_and_included_settings_are_shown() {
        let bundle = || Some(ManagedBundle { revision: "r1".to_owned(), sequence: 1 });
        let shown = |view: &Value| [view["revision"].clone(), view["without"].clone()];
        assert_eq!(shown(&view(&json!({}), None, None)), [Value::Null, "ask".into()]);
        assert_eq!(shown(&view(&json!({}), bundle(), None)), ["r1".into(), Value::Null]);
        let settings = json!({ "network": "ask", "exportPaths": "none", "deniedServers": [{ "name": "n" }] });
        let found = view(&settings, bundle(), None);
        assert_eq!(found["locked"], json!(["unsandboxed"]));
        assert_eq!(
            found["settings"],
            json!({
                "enforce_sandbox": true, "forbid_unsandboxed": true, "require_export": false,
                "export_url": null, "export_paths": "none", "max_grant_minutes": null, "network": "ask",
                "allowed_servers": null,
                "denied_servers": [{ "name": "n", "package": null, "url": null }],
            })
        );
    }
}
