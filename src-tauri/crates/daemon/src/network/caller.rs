//! Identifies who connects to a host: for questions, audit entries and grants.

use super::reach::ReachableHosts;
use crate::services::Services;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_config::{PolicySnapshot, Server};
use ironcurtain_consent::Principal;
use ironcurtain_egress::{HostPort, HostRules};
use ironcurtain_grants::StandingGrant;
use std::sync::Arc;

/// One server of one session.
pub struct Caller {
    /// Shared services.
    pub services: Services,
    /// Principal that owns the session.
    pub principal: Arc<Principal>,
    /// Configuration of the server.
    pub server: Server,
}

impl Caller {
    /// Returns the rules of the entry and the current policy. Invalid rules allow nothing.
    fn rules(&self, snapshot: &PolicySnapshot) -> HostRules {
        if let Some(remote) = &self.server.remote {
            return remote.rules().unwrap_or_default();
        }
        let settings = self.server.sandbox.settings().and_then(|settings| settings.network.as_ref());
        let (denied, ask): (&[String], bool) =
            settings.map_or((&[], false), |network| (&network.denied_domains, network.ask_unknown));
        HostRules::new(snapshot.hosts_of(&self.server.name), denied, ask).unwrap_or_default()
    }

    /// Returns an audit entry about a host.
    pub(super) fn entry(&self, event: Event, summary: impl Into<String>, target: &HostPort) -> Entry {
        let mut entry = self.principal.entry(event, summary);
        entry.about_host(&target.host, target.port);
        entry
    }

    /// Publishes the current rules and grants.
    pub(super) fn publish_rules(&self, reach: &ReachableHosts) {
        let snapshot = self.services.snapshot();
        reach.set_entry_rules(snapshot.version, || self.rules(&snapshot));
        let table = self.services.grants.now();
        // Grants of hosts do not apply to a remote server, whose requests do not pass through our proxy.
        let covers = |grant: &&StandingGrant| {
            self.server.remote.is_none() && self.principal.is_covered_by(&grant.subject)
        };
        let granted = table.grants.iter().filter(covers).filter_map(StandingGrant::for_proxy);
        reach.follow(table.version, granted.collect());
    }
}
