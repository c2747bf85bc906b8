//! Checks of the organization's rules, and of the export that it may require.

use super::{DaemonStatus, Diagnosis};
use crate::collector_export::probe_collector;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Config, Managed, ManagedBundle, ManagedPolicy};
use ironcurtain_export::ExportState;
use ironcurtain_secrets::SecretStore;

const ORGANIZATION: &str = "organization";

/// Checks the organization's rules, if this machine is managed.
pub(super) fn managed(home: &Home, running: &DaemonStatus) -> Option<Diagnosis> {
    match ManagedPolicy::load(home) {
        Ok(policy) => Some(organization(&policy?, running)),
        Err(problem) => {
            Some(Diagnosis::problem(ORGANIZATION, problem.to_string()).with_fix("ask your administrator"))
        }
    }
}

fn organization(policy: &ManagedPolicy, running: &DaemonStatus) -> Diagnosis {
    let name = &policy.managed.organization;
    let trouble = match running {
        DaemonStatus::Yes { managed_trouble, .. } => managed_trouble.as_ref(),
        DaemonStatus::No | DaemonStatus::Unresponsive(_) => None,
    };
    let problem = |message: String| Diagnosis::problem(ORGANIZATION, message);
    match (&policy.bundle, &policy.managed.bundle) {
        (Some(ManagedBundle { revision, sequence }), _) => {
            let message = format!("{name} manages the rules: revision `{revision}`, number {sequence}");
            match trouble {
                Some(trouble) => problem(format!("{message}. {trouble}")),
                None => Diagnosis::ok(ORGANIZATION, message),
            }
        }
        (None, Some(settings)) => {
            let effect = settings.without.effect();
            match (trouble, &policy.problem) {
                (Some(trouble), _) => problem(trouble.clone()),
                (None, Some(why)) => problem(format!("{why}; {effect}"))
                    .with_fix("IronCurtain downloads the bundle again when it runs"),
                (None, None) => problem(format!("the rules of {name} were never downloaded, so {effect}"))
                    .with_fix("start IronCurtain; `ironcurtain status` shows why a download fails"),
            }
        }
        (None, None) => Diagnosis::ok(ORGANIZATION, format!("{name} manages the settings")),
    }
}

/// Checks the export: whether a required export is on, whether the collector responds, and whether entries were dropped
/// or refused.
pub(super) async fn export(home: &Home, secrets: &SecretStore) -> Option<Diagnosis> {
    let component = "export";
    // Invalid settings are reported by an earlier check.
    let config = Config::load(home).ok()?.export;
    let managed = Managed::load().ok()?;
    let url = config.as_ref().map(|config| config.url.as_str());
    if let Some(missing) = managed.as_ref().and_then(|managed| managed.refusal_without_export(url)) {
        return Some(Diagnosis::problem(component, format!("no server and no run starts: {missing}")));
    }
    let config = config?;
    let is_required = managed.is_some_and(|managed| managed.refusal_to_disable_export(&config.url).is_some());
    let fix = if is_required {
        "check the collector"
    } else {
        "check the collector, or `ironcurtain export disable`"
    };
    if let Err(problem) = probe_collector(secrets, &config).await {
        let fix = format!("{fix}; entries are sent once it answers");
        return Some(Diagnosis::problem(component, problem.to_string()).with_fix(fix));
    }
    Some(match ExportState::read(&home.export_state()) {
        Ok(Some(ExportState { failure: Some(failure), dropped, refused, .. })) => {
            let message = format!("{failure}; {dropped} entries were not sent and {refused} were refused");
            Diagnosis::problem(component, message).with_fix(fix)
        }
        Ok(Some(ExportState { dropped, refused, .. })) if dropped + refused > 0 => {
            let message =
                format!("the collector answers; {dropped} entries were not sent and {refused} were refused");
            Diagnosis::warning(component, message).with_fix("`ironcurtain export status` shows more")
        }
        Ok(_) => Diagnosis::ok(component, "the collector answers"),
        Err(problem) => Diagnosis::warning(component, problem.to_string())
            .with_fix("restart IronCurtain, which sends recent entries again with the same ids"),
    })
}
