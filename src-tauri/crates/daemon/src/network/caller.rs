//! On whose behalf a server reaches something: for questions, for the record and for grants.

use super::reach::ReachableHosts;
use crate::config::Server;
use crate::grants::{GrantSubject, StandingGrant};
use crate::identity::Client;
use crate::policy_snapshot::PolicySnapshot;
use crate::services::Services;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_egress::{HostPort, HostRules};
use ironcurtain_protocol::ClientView;
use std::sync::{Arc, Mutex, PoisonError};

/// One server of one session.
pub struct Caller {
    /// What all sessions share.
    pub services: Services,
    /// Session id.
    pub session: String,
    /// Whose session it is.
    pub client: Client,
    /// What the client calls itself, once it has.
    pub says_it_is: Arc<Mutex<Option<String>>>,
    /// The server.
    pub server: Server,
}

impl Caller {
    /// The client, for people.
    pub(super) fn client_view(&self) -> ClientView {
        let says = self.says_it_is.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ClientView { says_it_is: says, ..self.client.view.clone() }
    }

    /// The server's command line.
    pub(super) fn command(&self) -> String {
        let words = std::iter::once(&self.server.command).chain(&self.server.args);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }

    /// Who a grant is given to here.
    pub(super) fn subject(&self) -> GrantSubject {
        GrantSubject {
            client: self.client.key.clone(),
            client_name: self.client.view.name.clone(),
            server: self.server.name.clone(),
            session: Some(self.session.clone()),
        }
    }

    /// The rules of its entry, with the list of the policy in force. Where they are not understood, nothing is allowed.
    fn rules(&self, snapshot: &PolicySnapshot) -> HostRules {
        let settings = self.server.sandbox.settings().and_then(|settings| settings.network.as_ref());
        let (denied, ask): (&[String], bool) =
            settings.map_or((&[], false), |network| (&network.denied_domains, network.ask_unknown));
        HostRules::new(snapshot.hosts_of(&self.server.name), denied, ask).unwrap_or_default()
    }

    /// An entry about a host.
    pub(super) fn entry(&self, event: Event, summary: impl Into<String>, target: &HostPort) -> Entry {
        let mut entry = Entry::new(event, summary);
        entry.session = Some(self.session.clone());
        entry.client = Some(self.client.view.name.clone());
        entry.server_name = Some(self.server.name.clone());
        entry.sandboxed = Some(true);
        entry.about_host(&target.host, target.port);
        entry
    }

    /// Tells what is on its list and what is granted to it now.
    pub(super) fn publish_rules(&self, reach: &ReachableHosts) {
        let snapshot = self.services.snapshot();
        reach.set_entry_rules(snapshot.version, || self.rules(&snapshot));
        let table = self.services.grants.now();
        let covers =
            |grant: &&StandingGrant| grant.subject.covers(&self.client.key, &self.server.name, &self.session);
        let granted = table.grants.iter().filter(covers).filter_map(StandingGrant::for_proxy);
        reach.follow(table.version, granted.collect());
    }
}
