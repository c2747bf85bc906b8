//! Tracks open connections so that a revocation can wait until no affected connection remains.
//!
//! - A connection is counted before the final check of the rules, so no open connection is missed.

use crate::host::HostPort;
use crate::rules::{HostRules, PermittedBy};
use std::collections::BTreeMap;
use tokio::sync::watch;

/// Open connections of one proxy. Clones share the same set.
#[derive(Debug, Clone, Default)]
pub struct Connections(watch::Sender<OpenSet>);

#[derive(Debug, Default)]
struct OpenSet {
    next: u64,
    open: BTreeMap<u64, (HostPort, PermittedBy)>,
}

/// Entry for an open connection, removed from the set on drop.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    number: u64,
    all: Connections,
}

impl Connections {
    /// Waits until `rules` allow every open connection.
    pub async fn wait_until_allowed(&self, rules: &HostRules) {
        let mut counted = self.0.subscribe();
        let only_allowed =
            |counted: &OpenSet| counted.open.values().all(|(to, by)| rules.still_allows(to, by));
        // `self` holds the sender, so the channel cannot close.
        let _ = counted.wait_for(only_allowed).await.is_ok();
    }

    pub(crate) fn count(&self, target: HostPort, by: PermittedBy) -> CountedConnection {
        let mut number = 0;
        self.0.send_modify(|counted| {
            number = counted.next;
            counted.next += 1;
            counted.open.insert(number, (target, by));
        });
        CountedConnection { number, all: self.clone() }
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.all.0.send_modify(|counted| drop(counted.open.remove(&self.number)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn waits_only_for_connections_that_are_no_longer_allowed() {
        let all = Connections::default();
        let target = |text| HostPort::parse(text, None).unwrap();
        let allowed = all.count(target("a.test:443"), PermittedBy::Rule("a.test".into()));
        let granted = all.count(target("b.test:443"), PermittedBy::Grant("g".into()));
        let once = all.count(target("b.test:443"), PermittedBy::Once);
        let rules = HostRules::new(["a.test"], [""; 0], true).unwrap();
        assert!(all.wait_until_allowed(&rules).now_or_never().is_none());
        drop(granted);
        assert!(all.wait_until_allowed(&rules).now_or_never().is_some(), "what was allowed once stays");
        assert!(all.wait_until_allowed(&HostRules::default()).now_or_never().is_none());
        drop((allowed, once));
        assert!(all.wait_until_allowed(&HostRules::default()).now_or_never().is_some());
    }
}
