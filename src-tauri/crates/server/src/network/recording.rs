//! Records the decisions of a server's proxy in the audit log.
//!
//! - Records a connection before it is opened. Delays connections above a steady rate, so that a server cannot fill the
//!   disk.

use super::basis::Basis;
use super::caller::{Caller, HostSource};
use super::reach::ReachableHosts;
use ironcurtain_audit::{CallResult, DecidedBy, Entry, Event, PolicyDecision};
use ironcurtain_egress::{BoxFuture, ConnectionVerdict, Host, HostPort, PermittedBy, Record, RecordError};
use ironcurtain_services::RateLimiter;
use ironcurtain_visible as visible;
use std::sync::Arc;

/// Maximum number of refusals that are recorded without delay.
const REFUSALS: u32 = 100;

/// Maximum number of allowed connections that are recorded without delay. Package managers open many.
const CONNECTIONS: u32 = 5_000;

/// Recorder for the decisions of one proxy.
pub(super) struct ConnectionRecorder {
    caller: Arc<Caller>,
    reach: Arc<ReachableHosts>,
    refusals: RateLimiter,
    connections: RateLimiter,
}

impl ConnectionRecorder {
    pub(super) fn new(caller: Arc<Caller>, reach: Arc<ReachableHosts>) -> Self {
        Self {
            caller,
            reach,
            refusals: RateLimiter::new(REFUSALS),
            connections: RateLimiter::new(CONNECTIONS),
        }
    }
}

impl Record for ConnectionRecorder {
    fn record(&self, event: ironcurtain_egress::ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(async move {
            let services = &self.caller.services;
            let entry = entry(&self.caller, &event);
            match event.verdict {
                ConnectionVerdict::Allowed(_) => self.connections.acquire().await,
                ConnectionVerdict::Refused { .. } | ConnectionVerdict::Failed { .. } => {
                    self.refusals.acquire().await;
                }
            }
            services.audit.record(entry).await.map_err(RecordError::new)?;
            if let ConnectionVerdict::Allowed(PermittedBy::Grant(id)) = event.verdict
                && matches!(Basis::of(&id), Basis::Grant(_))
            {
                // The proxy checks the rules again after this function returns.
                if !services.grants.are_active(std::slice::from_ref(&id)) {
                    self.caller.publish_rules(&self.reach);
                }
                services.grants.count_use(&[id]);
            }
            services.changed();
            Ok(())
        })
    }
}

fn entry(caller: &Caller, event: &ironcurtain_egress::ConnectionEvent) -> Entry {
    // An invalid host is recorded as it was sent, with invisible characters escaped.
    let host = Host::parse(&event.host).unwrap_or_else(|_| Host::Name(visible::line(&event.host)));
    let target = HostPort { host, port: event.port };
    let mut entry = caller.entry(Event::Network, summary(caller, &target, &event.verdict), &target);
    entry.addresses = event.addresses.iter().map(ToString::to_string).collect();
    match &event.verdict {
        ConnectionVerdict::Allowed(by) => allowed(&mut entry, by),
        ConnectionVerdict::Refused { code, reason } => {
            entry.policy_decision = Some(PolicyDecision::deny(DecidedBy::Network, code, reason))
        }
        ConnectionVerdict::Failed { code, .. } => entry.result = Some(CallResult::Other((*code).to_owned())),
    }
    entry
}

fn summary(caller: &Caller, target: &HostPort, verdict: &ConnectionVerdict) -> String {
    let name = &caller.principal.server;
    let who = match caller.source {
        HostSource::Server(_) => format!("the server {name}"),
        HostSource::Run(_) => name.clone(),
    };
    match verdict {
        ConnectionVerdict::Allowed(_) => format!("{who} reached {target}"),
        ConnectionVerdict::Refused { reason, .. } => {
            format!("{who} was refused access to {target}: {}", visible::line(reason))
        }
        ConnectionVerdict::Failed { reason, .. } => {
            format!("{who} could not reach {target}: {}", visible::line(reason))
        }
    }
}

fn allowed(entry: &mut Entry, by: &PermittedBy) {
    entry.policy_decision = Some(match by {
        PermittedBy::Rule(rule) => {
            PolicyDecision::allow(DecidedBy::HostList, rule, "the host is on the list of its server")
        }
        PermittedBy::Once => PolicyDecision::allow(DecidedBy::Answer, "once", "approved: once"),
        PermittedBy::Grant(id) => match Basis::of(id) {
            Basis::Call(call) => {
                entry.request_id = Some(call.to_owned());
                PolicyDecision::allow(DecidedBy::Answer, "call", "approved: for the call that names the host")
            }
            Basis::Grant(id) => {
                entry.grant_id = Some(id.to_owned());
                PolicyDecision::allow(DecidedBy::Grant, "grant", &format!("grant `{id}`"))
            }
            Basis::Rule(rule) => PolicyDecision::allow(DecidedBy::Rule, rule, "a rule allows the host"),
            Basis::List(pattern) => PolicyDecision::allow(
                DecidedBy::HostList,
                pattern,
                "the host is on the list of the server or run",
            ),
        },
    });
}
