//! Hosts in a call: those that the user can grant, and those that are reachable only during the call.

use super::Session;
use ironcurtain_config::NetworkSettings;
use ironcurtain_egress::HostPort;
use ironcurtain_mcp::wire::Id;
use ironcurtain_policy::{Escalation, PendingApproval, Role};
use ironcurtain_server::network::HostLease;

impl Session {
    /// Returns the hosts that the question is about. Returns no hosts if the question is also about anything else, or
    /// if the server's proxy cannot allow all of the hosts.
    pub(super) fn grantable_hosts(&self, escalation: &Escalation) -> Vec<HostPort> {
        let Some(network) = &self.network else { return Vec::new() };
        let host = |approval: &PendingApproval| {
            let fetched = approval.role == Some(Role::FetchUrl);
            target(approval).filter(|target| fetched && network.could_reach(target))
        };
        let mut hosts: Vec<HostPort> =
            escalation.values.iter().map(host).collect::<Option<_>>().unwrap_or_default();
        hosts.dedup();
        hosts
    }

    /// Returns the first host that would remain unreachable even with an approval, because the server's sandbox has no
    /// network.
    pub(super) fn blocked_host(&self, escalation: &Escalation) -> Option<HostPort> {
        let settings = self.config.sandbox.settings().filter(|_| self.sandboxed)?;
        let is_closed = settings.network.as_ref().is_none_or(NetworkSettings::is_closed);
        let fetched = escalation.values.iter().filter(|approval| approval.role == Some(Role::FetchUrl));
        fetched.filter(|_| is_closed).find_map(target)
    }

    /// Makes the approved hosts reachable until the returned lease is dropped.
    pub(super) fn lease_hosts(&self, call: &Id, approved: &[PendingApproval]) -> Option<HostLease> {
        let network = self.network.as_ref()?;
        let targets = self.allowed_hosts(approved);
        (!targets.is_empty()).then(|| network.lease(call.as_json(), targets))
    }

    /// Returns the approved hosts that the server's proxy can allow.
    pub(super) fn allowed_hosts(&self, approved: &[PendingApproval]) -> Vec<HostPort> {
        let Some(network) = &self.network else { return Vec::new() };
        approved.iter().filter_map(target).filter(|target| network.could_reach(target)).collect()
    }
}

/// Returns the host and port in a URL, in the form that the proxy uses.
fn target(approval: &PendingApproval) -> Option<HostPort> {
    let (host, port) = approval.host_and_port()?;
    HostPort::parse(&format!("{host}:{port}"), None).ok()
}
