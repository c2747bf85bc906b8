//! The server or run on whose behalf a proxy connects, as identified in questions, audit entries and grants.

use super::reach::ReachableHosts;
use super::run_targets::{RunTargets, usable};
use ironcurtain_audit::{Entry, Event};
use ironcurtain_config::{PolicySnapshot, Server};
use ironcurtain_consent::Principal;
use ironcurtain_egress::{HostPort, HostRules};
use ironcurtain_grants::StandingGrant;
use ironcurtain_services::Services;
use std::sync::Arc;

/// The server of a session, or the run, that connects to hosts.
pub struct Caller {
    /// The daemon's services.
    pub services: Services,
    /// Client and server, or the run's program, as shown in questions and grants.
    pub principal: Arc<Principal>,
    /// Source of the rules for reachable hosts.
    pub source: HostSource,
}

/// Source of the rules for reachable hosts. Grants apply in addition.
pub enum HostSource {
    /// The server's entry in `mcp-servers.json`, together with policy rules.
    Server(Box<Server>),
    /// Policy rules and a run's host list. They are applied to each host when the run connects to it.
    Run(Arc<RunTargets>),
}

impl Caller {
    /// Creates an audit entry about a host.
    pub(super) fn entry(&self, event: Event, summary: impl Into<String>, target: &HostPort) -> Entry {
        let mut entry = self.principal.entry(event, summary);
        entry.set_host(&target.host, target.port);
        entry
    }

    /// Publishes the current rules and grants to the proxy.
    pub(super) fn publish_rules(&self, reach: &ReachableHosts) {
        let server = match &self.source {
            HostSource::Run(targets) => return targets.publish(&self.services, &self.principal, reach),
            HostSource::Server(server) => server,
        };
        let snapshot = self.services.snapshot();
        reach.set_entry_rules(snapshot.version, || rules(server, &snapshot));
        let table = self.services.grants.now();
        // Host grants do not apply to a remote server, because its requests do not use the proxy.
        let usable =
            if server.remote.is_none() { usable(&self.principal, &table.grants) } else { Vec::new() };
        reach.set_granted_hosts(
            table.version,
            usable.into_iter().filter_map(StandingGrant::for_proxy).collect(),
        );
    }
}

/// Combines the rules in a server's entry with the current policy. Returns rules that allow nothing if a pattern is
/// invalid.
fn rules(server: &Server, snapshot: &PolicySnapshot) -> HostRules {
    if let Some(remote) = &server.remote {
        return remote.rules().unwrap_or_default();
    }
    let settings = server.sandbox.settings().and_then(|settings| settings.network.as_ref());
    let (denied, ask): (&[String], bool) =
        settings.map_or((&[], false), |network| (&network.denied_domains, network.ask_unknown));
    let rules = HostRules::new(snapshot.hosts_of(&server.name), denied, ask).unwrap_or_default();
    rules.with_local_services()
}
