//! Hosts that a server or run can currently reach.
//!
//! - Publishes each change as a whole, so no connection is judged by a partial update.

use super::basis::Basis;
use ironcurtain_egress::{GrantedHost, HostDecision, HostPort, HostRules};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Rules in a server's entry, combined with grants and with leases for calls.
pub struct ReachableHosts {
    sources: Mutex<HostSources>,
    rules: watch::Sender<Arc<HostRules>>,
}

#[derive(Default)]
struct HostSources {
    /// Policy version from which `entry` was computed.
    snapshot: u64,
    entry: HostRules,
    /// Version of the grant table from which `granted` was computed.
    version: u64,
    granted: Vec<GrantedHost>,
    next: u64,
    leased: BTreeMap<u64, Vec<GrantedHost>>,
}

/// Lease that makes hosts reachable for one call. Dropping it makes them unreachable again.
pub struct HostLease {
    number: u64,
    hosts: Arc<ReachableHosts>,
}

impl ReachableHosts {
    pub(super) fn new(entry: HostRules) -> Self {
        let rules = watch::Sender::new(Arc::new(entry.clone()));
        Self { rules, sources: Mutex::new(HostSources { entry, ..HostSources::default() }) }
    }

    /// Returns a receiver that holds the current rules and is notified of changes.
    pub(super) fn rules(&self) -> watch::Receiver<Arc<HostRules>> {
        self.rules.subscribe()
    }

    /// Sets the entry's rules as of this policy version. Does nothing if the version is older than the current one.
    pub(super) fn set_entry_rules(&self, snapshot: u64, rules: impl FnOnce() -> HostRules) {
        self.change(|sources| {
            if snapshot > sources.snapshot {
                (sources.snapshot, sources.entry) = (snapshot, rules());
            }
        });
    }

    /// Sets the granted hosts as of this version of the grant table. Does nothing if the version is older than the
    /// current one.
    pub(super) fn set_granted_hosts(&self, version: u64, granted: Vec<GrantedHost>) {
        self.change(|sources| {
            if version > sources.version {
                (sources.version, sources.granted) = (version, granted);
            }
        });
    }

    /// Sets the rules and the granted hosts. Callers must not pass an older state after a newer one.
    pub(super) fn replace(&self, entry: HostRules, granted: Vec<GrantedHost>) {
        self.change(|sources| (sources.entry, sources.granted) = (entry, granted));
    }

    /// Returns `true` if a grant would make the target reachable: it is not a local host, and no rule denies it.
    pub(super) fn could_reach(&self, target: &HostPort) -> bool {
        let grant = GrantedHost { id: String::new(), target: target.clone() };
        let sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        !target.host.is_local()
            && matches!(sources.entry.with_grants(vec![grant]).judge(target), HostDecision::Allow { .. })
    }

    /// Makes hosts reachable for a call.
    pub(super) fn lease(this: &Arc<Self>, call: &str, targets: Vec<HostPort>) -> HostLease {
        let id = Basis::Call(call).id();
        let leased = targets.into_iter().map(|target| GrantedHost { id: id.clone(), target }).collect();
        let number = this.change(|sources| {
            sources.next += 1;
            sources.leased.insert(sources.next, leased);
            sources.next
        });
        HostLease { number, hosts: this.clone() }
    }

    fn change<T>(&self, with: impl FnOnce(&mut HostSources) -> T) -> T {
        // Every update leaves the state consistent, so a poisoned lock is safe to use.
        let mut sources = self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = with(&mut sources);
        let open = sources.granted.iter().chain(sources.leased.values().flatten()).cloned().collect();
        let rules = sources.entry.with_grants(open);
        // Publishes while the lock is held, so that updates stay in order.
        self.rules.send_if_modified(|published| {
            let differs = **published != rules;
            if differs {
                *published = Arc::new(rules);
            }
            differs
        });
        answer
    }
}

impl Drop for HostLease {
    fn drop(&mut self) {
        self.hosts.change(|sources| drop(sources.leased.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> HostPort {
        HostPort::parse(text, None).unwrap()
    }

    fn allows(reach: &ReachableHosts, text: &str) -> bool {
        matches!(reach.rules().borrow().judge(&target(text)), HostDecision::Allow { .. })
    }

    #[test]
    fn reach_combines_entry_grants_and_leases() {
        let reach = Arc::new(ReachableHosts::new(HostRules::new(["a.test"], ["*.bad.test"], true).unwrap()));
        assert!(allows(&reach, "a.test:443") && !allows(&reach, "b.test:443"));
        let grant = |text| GrantedHost { id: "g".into(), target: target(text) };
        reach.set_granted_hosts(2, vec![grant("b.test:443"), grant("x.bad.test:443")]);
        let loan = ReachableHosts::lease(&reach, "7", vec![target("c.test:80")]);
        assert!(["a.test:443", "b.test:443", "c.test:80"].iter().all(|text| allows(&reach, text)));
        assert!(!allows(&reach, "x.bad.test:443"), "denied comes first");
        reach.set_granted_hosts(1, vec![]);
        assert!(allows(&reach, "b.test:443"), "an older table changes nothing");
        let mut rules = reach.rules();
        drop(loan);
        assert!(rules.has_changed().unwrap() && !allows(&reach, "c.test:80"));
        rules.mark_unchanged();
        reach.set_granted_hosts(3, vec![grant("b.test:443"), grant("x.bad.test:443")]);
        assert!(!rules.has_changed().unwrap(), "nothing is told twice");
        reach.set_granted_hosts(4, vec![]);
        assert!(!allows(&reach, "b.test:443"));
        reach.set_entry_rules(2, || HostRules::new(["b.test"], [""; 0], true).unwrap());
        reach.set_entry_rules(1, HostRules::default);
        assert!(allows(&reach, "b.test:443") && !allows(&reach, "a.test:443"));
    }

    #[test]
    fn denied_and_local_hosts_cannot_be_opened() {
        let reach = ReachableHosts::new(HostRules::new(["a.test"], ["*.bad.test"], false).unwrap());
        assert!(reach.could_reach(&target("new.test:443")));
        for text in ["x.bad.test:443", "localhost:80", "printer.local:80", "router:80"] {
            assert!(!reach.could_reach(&target(text)), "{text}");
        }
    }
}
