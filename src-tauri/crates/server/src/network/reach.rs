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
    known: Mutex<Known>,
    rules: watch::Sender<Arc<HostRules>>,
}

#[derive(Default)]
struct Known {
    /// Policy version from which `entry` was computed.
    snapshot: u64,
    entry: HostRules,
    /// Version of the grant table from which `granted` was computed.
    version: u64,
    granted: Vec<GrantedHost>,
    next: u64,
    lent: BTreeMap<u64, Vec<GrantedHost>>,
}

/// Lease that makes hosts reachable for one call. Dropping it makes them unreachable again.
pub struct HostLease {
    number: u64,
    of: Arc<ReachableHosts>,
}

impl ReachableHosts {
    pub(super) fn new(entry: HostRules) -> Self {
        let rules = watch::Sender::new(Arc::new(entry.clone()));
        Self { rules, known: Mutex::new(Known { entry, ..Known::default() }) }
    }

    /// Returns a receiver that holds the current rules and is notified of changes.
    pub(super) fn rules(&self) -> watch::Receiver<Arc<HostRules>> {
        self.rules.subscribe()
    }

    /// Sets the entry's rules as of this policy version. Does nothing if the version is older than the current one.
    pub(super) fn set_entry_rules(&self, snapshot: u64, rules: impl FnOnce() -> HostRules) {
        self.change(|known| {
            if snapshot > known.snapshot {
                (known.snapshot, known.entry) = (snapshot, rules());
            }
        });
    }

    /// Sets the granted hosts as of this version of the grant table. Does nothing if the version is older than the
    /// current one.
    pub(super) fn follow(&self, version: u64, granted: Vec<GrantedHost>) {
        self.change(|known| {
            if version > known.version {
                (known.version, known.granted) = (version, granted);
            }
        });
    }

    /// Sets the rules and the granted hosts. Callers must not pass an older state after a newer one.
    pub(super) fn replace(&self, entry: HostRules, granted: Vec<GrantedHost>) {
        self.change(|known| (known.entry, known.granted) = (entry, granted));
    }

    /// Returns `true` if a grant would make the target reachable: it is not a local host, and no rule denies it.
    pub(super) fn could_open(&self, target: &HostPort) -> bool {
        let grant = GrantedHost { id: String::new(), target: target.clone() };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        !target.host.is_local()
            && matches!(known.entry.with_grants(vec![grant]).judge(target), HostDecision::Allow { .. })
    }

    /// Makes hosts reachable for a call.
    pub(super) fn lease(this: &Arc<Self>, call: &str, targets: Vec<HostPort>) -> HostLease {
        let id = Basis::Call(call).id();
        let lent = targets.into_iter().map(|target| GrantedHost { id: id.clone(), target }).collect();
        let number = this.change(|known| {
            known.next += 1;
            known.lent.insert(known.next, lent);
            known.next
        });
        HostLease { number, of: this.clone() }
    }

    fn change<T>(&self, with: impl FnOnce(&mut Known) -> T) -> T {
        // Every update leaves the state consistent, so a poisoned lock is safe to use.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = with(&mut known);
        let open = known.granted.iter().chain(known.lent.values().flatten()).cloned().collect();
        let rules = known.entry.with_grants(open);
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
        self.of.change(|known| drop(known.lent.remove(&self.number)));
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
        reach.follow(2, vec![grant("b.test:443"), grant("x.bad.test:443")]);
        let loan = ReachableHosts::lease(&reach, "7", vec![target("c.test:80")]);
        assert!(["a.test:443", "b.test:443", "c.test:80"].iter().all(|text| allows(&reach, text)));
        assert!(!allows(&reach, "x.bad.test:443"), "denied comes first");
        reach.follow(1, vec![]);
        assert!(allows(&reach, "b.test:443"), "an older table changes nothing");
        let mut rules = reach.rules();
        drop(loan);
        assert!(rules.has_changed().unwrap() && !allows(&reach, "c.test:80"));
        rules.mark_unchanged();
        reach.follow(3, vec![grant("b.test:443"), grant("x.bad.test:443")]);
        assert!(!rules.has_changed().unwrap(), "nothing is told twice");
        reach.follow(4, vec![]);
        assert!(!allows(&reach, "b.test:443"));
        reach.set_entry_rules(2, || HostRules::new(["b.test"], [""; 0], true).unwrap());
        reach.set_entry_rules(1, HostRules::default);
        assert!(allows(&reach, "b.test:443") && !allows(&reach, "a.test:443"));
    }

    #[test]
    fn denied_and_local_hosts_cannot_be_opened() {
        let reach = ReachableHosts::new(HostRules::new(["a.test"], ["*.bad.test"], false).unwrap());
        assert!(reach.could_open(&target("new.test:443")));
        for text in ["x.bad.test:443", "localhost:80", "printer.local:80", "router:80"] {
            assert!(!reach.could_open(&target(text)), "{text}");
        }
    }
}
