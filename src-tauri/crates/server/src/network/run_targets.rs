//! Hosts that a run has connected to, and the rules or grants that currently allow each of them.
//!
//! - A connection is judged like a call with a URL. A deny rule overrides grants and the run's host list. The host
//!   list overrides a rule that requires approval.
//! - INVARIANT: the published rules follow from the current policy and grants, for every host that the run has
//!   connected to.

use super::basis::Basis;
use super::reach::ReachableHosts;
use ironcurtain_config::PolicySnapshot;
use ironcurtain_consent::Principal;
use ironcurtain_egress::{GrantedHost, HostDecision, HostPort, HostRules, PermittedBy, RuleError};
use ironcurtain_grants::StandingGrant;
use ironcurtain_judging::JudgingContext;
use ironcurtain_paths::Resolver;
use ironcurtain_policy::{AllowedBy, Denial, Escalation, HostConnection, ServerReach, Unannotated, Verdict};
use ironcurtain_services::Services;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of distinct hosts per run. Further hosts are denied. The limit bounds the work of judging all hosts
/// again after each change.
const MAX_TARGETS: usize = 4096;

/// Host list of a run, and the hosts that the run has connected to.
pub struct RunTargets {
    resolver: Resolver,
    /// Rules from the run's host list. Connections to these hosts are allowed without asking the user.
    listed: HostRules,
    patterns: Vec<String>,
    known_targets: Mutex<HashSet<HostPort>>,
}

/// Verdict on a connection.
#[derive(Debug)]
pub(super) enum TargetVerdict {
    /// A rule or the host list allows the connection. Contains the id of the matching [`Basis`].
    Allow(String),
    /// A grant allows the connection.
    Granted,
    /// The user must be asked.
    Ask(Box<Escalation>),
    /// A rule denies the connection.
    Deny(Denial),
}

impl RunTargets {
    /// Creates the state for a new run. `patterns` is its host list.
    ///
    /// # Errors
    /// Returns [`RuleError`] if a pattern is invalid.
    pub fn new(resolver: Resolver, patterns: Vec<String>) -> Result<Self, RuleError> {
        let listed = HostRules::new(&patterns, [""; 0], false)?;
        Ok(Self { resolver, listed, patterns, known_targets: Mutex::default() })
    }

    /// Returns the host list, followed by the `hosts` that the list does not cover.
    pub(super) fn with_patterns(&self, hosts: Vec<String>) -> Vec<String> {
        let is_covered = |host: &String| {
            let target = HostPort::parse(host, Some(443));
            target.is_ok_and(|target| matches!(self.listed.judge(&target), HostDecision::Allow { .. }))
        };
        self.patterns.iter().cloned().chain(hosts.into_iter().filter(|host| !is_covered(host))).collect()
    }

    /// Stores a host, so that it is judged again after each change. Returns `false` if there are already too many
    /// hosts.
    pub(super) fn remember(&self, target: &HostPort) -> bool {
        // Every update leaves the set consistent, so a poisoned lock is safe to use.
        let mut known_targets = self.known_targets.lock().unwrap_or_else(PoisonError::into_inner);
        known_targets.contains(target)
            || (known_targets.len() < MAX_TARGETS && known_targets.insert(target.clone()))
    }

    /// Judges a connection by the current policy and grants.
    pub(super) fn judge(
        &self,
        services: &Services,
        principal: &Principal,
        target: &HostPort,
    ) -> TargetVerdict {
        let (snapshot, table) = (services.snapshot(), services.grants.now());
        let grants = usable(principal, &table.grants);
        self.judge_in(&principal.server, (&snapshot, &grants), target)
    }

    /// Judges all known hosts and publishes the result to the proxy.
    pub(super) fn publish(&self, services: &Services, principal: &Principal, reach: &ReachableHosts) {
        // The lock is held until the end, so that an older state is never published after a newer one.
        let known_targets = self.known_targets.lock().unwrap_or_else(PoisonError::into_inner);
        let (snapshot, table) = (services.snapshot(), services.grants.now());
        let grants = usable(principal, &table.grants);
        // The proxy does not connect to this computer, so local ports are omitted.
        let granted = grants.iter().filter_map(|grant| grant.for_proxy());
        let mut open: Vec<GrantedHost> = granted.filter(|grant| !grant.target.host.is_local()).collect();
        let known: HashSet<HostPort> =
            known_targets.iter().cloned().chain(open.iter().map(|grant| grant.target.clone())).collect();
        let mut denied = Vec::new();
        for target in known {
            match self.judge_in(&principal.server, (&snapshot, &grants), &target) {
                TargetVerdict::Allow(id) => open.push(GrantedHost { id, target }),
                TargetVerdict::Deny(_) => denied.push(target.to_string()),
                TargetVerdict::Granted | TargetVerdict::Ask(_) => {}
            }
        }
        // If a pattern is invalid, the published rules allow nothing.
        reach.replace(HostRules::new([""; 0], denied, true).unwrap_or_default(), open);
    }

    fn judge_in(
        &self,
        server: &str,
        (snapshot, grants): (&Arc<PolicySnapshot>, &[&StandingGrant]),
        target: &HostPort,
    ) -> TargetVerdict {
        let context = JudgingContext {
            snapshot: snapshot.clone(),
            server: server.to_owned(),
            contained: None,
            denied: Arc::default(),
            unannotated: Unannotated::Deny,
            sandbox: None,
            resolver: self.resolver.clone(),
            grants: Vec::new(),
            hosts: grants.iter().filter_map(|grant| grant.for_gate()).collect(),
            tools: Vec::new(),
            approved: Vec::new(),
            reach: ServerReach::Something,
            confined: false,
            reading_hints: Arc::default(),
        };
        let arguments = arguments(target);
        let located = context.plan_connection(&arguments).and_then(|planned| planned.locate(&context));
        match located.map(|located| context.judge(located).verdict) {
            Err(denial) | Ok(Verdict::Deny(denial)) => TargetVerdict::Deny(denial),
            Ok(Verdict::Allow(permit)) => match permit.allowed_by() {
                AllowedBy::Grant => TargetVerdict::Granted,
                AllowedBy::Rule
                | AllowedBy::Answer
                | AllowedBy::SessionFolder
                | AllowedBy::Introspection
                | AllowedBy::Confined => TargetVerdict::Allow(Basis::Rule(&permit.reason().rule).id()),
            },
            // The run's host list does not override an organization's rule that requires approval.
            Ok(Verdict::Escalate(escalation)) if escalation.is_managed() => {
                TargetVerdict::Ask(Box::new(escalation))
            }
            Ok(Verdict::Escalate(escalation)) => match self.listed.judge(target) {
                HostDecision::Allow { by: PermittedBy::Rule(pattern) } => {
                    TargetVerdict::Allow(Basis::List(&pattern).id())
                }
                HostDecision::Allow { .. } | HostDecision::Ask { .. } | HostDecision::Deny { .. } => {
                    TargetVerdict::Ask(Box::new(escalation))
                }
            },
        }
    }
}

/// Returns the grants that apply to this principal.
pub(super) fn usable<'a>(principal: &Principal, grants: &'a [StandingGrant]) -> Vec<&'a StandingGrant> {
    grants.iter().filter(|grant| principal.is_covered_by(&grant.subject)).collect()
}

/// Builds the arguments for judging a connection: a URL with the host.
fn arguments(target: &HostPort) -> Arc<Map<String, Value>> {
    let scheme = if target.port == 80 { "http" } else { "https" };
    let url = (HostConnection::URL.to_owned(), Value::String(format!("{scheme}://{target}/")));
    Arc::new(Map::from_iter([url]))
}
