//! Hosts that a call names: which a person can grant, and what is open for the call alone.

use super::Session;
use crate::network::HostLease;
use ironcurtain_config::NetworkSettings;
use ironcurtain_egress::HostPort;
use ironcurtain_mcp::wire::Id;
use ironcurtain_policy::{Escalation, PendingApproval, Role};

impl Session {
    /// The hosts that a call is asked about, when it is about fetching from hosts and nothing else, and the server's proxy
    /// could let each through.
    pub(super) fn grantable_hosts(&self, escalation: &Escalation) -> Vec<HostPort> {
        let Some(network) = &self.network else { return Vec::new() };
        let host = |asked: &PendingApproval| {
            let fetched = asked.role == Some(Role::FetchUrl);
            target(asked).filter(|target| fetched && network.could_reach(target))
        };
        let mut hosts: Vec<HostPort> =
            escalation.values.iter().map(host).collect::<Option<_>>().unwrap_or_default();
        hosts.dedup();
        hosts
    }

    /// The first host that a call would fetch from and that no yes could let it reach: its sandbox has no network at all.
    pub(super) fn out_of_reach(&self, escalation: &Escalation) -> Option<HostPort> {
        let settings = self.config.sandbox.settings().filter(|_| self.sandboxed)?;
        let is_shut = settings.network.as_ref().is_none_or(NetworkSettings::is_closed);
        let fetched = escalation.values.iter().filter(|asked| asked.role == Some(Role::FetchUrl));
        fetched.filter(|_| is_shut).find_map(target)
    }

    /// Opens what the person said yes to for a call, for as long as that is under way.
    pub(super) fn lease_hosts(&self, call: &Id, approved: &[PendingApproval]) -> Option<HostLease> {
        let network = self.network.as_ref()?;
        let targets = self.hosts_of(approved);
        (!targets.is_empty()).then(|| network.lend(call.as_json(), targets))
    }

    /// The hosts that the person said yes to for a call, and that the server's proxy could let through.
    pub(super) fn hosts_of(&self, approved: &[PendingApproval]) -> Vec<HostPort> {
        let Some(network) = &self.network else { return Vec::new() };
        approved.iter().filter_map(target).filter(|target| network.could_reach(target)).collect()
    }
}

/// The host that an address leads to, as the proxy spells it.
fn target(asked: &PendingApproval) -> Option<HostPort> {
    let (host, port) = asked.host_and_port()?;
    HostPort::parse(&format!("{host}:{port}"), None).ok()
}
