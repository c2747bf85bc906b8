//! What is open because a person said yes: for one call alone, or by a grant from then on.
//!
//! - INVARIANT: a grant is kept only once it is on record; what is open for one call alone is on the list or closed.

use super::Call;
use crate::consent::{Lifetime, Offer, grants_of};
use crate::grants::{GrantSubject, Granted};
use crate::judging::LookedAt;
use crate::network::Loan;
use crate::server::MountLease;
use crate::session::Session;
use crate::session::authorize::Authorization;
use crate::session::one_time::{OneTimeGrant, opened};
use ironcurtain_audit::Event;

/// What is shown and opened for one call alone.
#[derive(Default)]
pub(super) struct CallResources {
    pub(super) lease: Option<MountLease>,
    pub(super) loan: Option<Loan>,
    /// The place where the person said yes to it. It is dropped after what it is about.
    pub(super) one_time: Option<OneTimeGrant>,
}

impl CallResources {
    pub(super) fn is_some(&self) -> bool {
        self.lease.is_some() || self.loan.is_some()
    }

    /// Completes when it is not to be open any more.
    pub(super) async fn over(once: Option<&mut OneTimeGrant>) {
        match once {
            Some(once) => once.over().await,
            None => std::future::pending().await,
        }
    }
}

impl Session {
    /// Puts on the list what is open for a call because the person said yes to it. What cannot be listed is closed.
    pub(super) fn listed(&self, authorization: &Authorization, resources: CallResources) -> CallResources {
        if authorization.approved.is_empty() || !resources.is_some() {
            return resources;
        }
        let wanted = authorization.looked.paths.wanted(&authorization.approved, self.config.file_writes);
        let mut open: Vec<Granted> = wanted.iter().map(opened).collect();
        if resources.loan.is_some() {
            open.extend(self.hosts_of(&authorization.approved).into_iter().map(Granted::Host));
        }
        match self.open_one_time(open) {
            Ok(once) => CallResources { one_time: Some(once), ..resources },
            Err(problem) => {
                tracing::error!(%problem, "what was allowed once cannot be listed, and is closed");
                CallResources::default()
            }
        }
    }

    /// Keeps what the person said yes to, once it is on record.
    pub(super) async fn grant(
        &self,
        call: &Call,
        offer: &Offer,
        lifetime: Lifetime,
        opened: Vec<Granted>,
        question: &str,
    ) -> Result<(), String> {
        let subject = GrantSubject {
            client: self.client.key.clone(),
            client_name: self.client.view.name.clone(),
            server: self.config.name.clone(),
            session: Some(self.id.clone()),
        };
        let provenance = format!("question {question}");
        let when = (lifetime, crate::clock::now_ms());
        let grants = grants_of(opened, &subject, when, &provenance, crate::clock::random_name)
            .map_err(|e| format!("DENIED: no grant could be made: {e}"))?;
        let looked = LookedAt::as_written(&call.tool.arguments);
        for grant in &grants {
            let summary = format!("{}, {}", offer.sentence, lifetime.words());
            let mut entry = self.about(call, &looked, Event::Grant, summary);
            grant.what.note_in(&mut entry);
            entry.grant_id = Some(grant.id.clone());
            entry.question_id = Some(question.to_owned());
            self.services.audit.record(entry).await.map_err(|e| format!("DENIED: {e}"))?;
        }
        self.services
            .grants
            .add(grants)
            .await
            .map_err(|e| format!("DENIED: the grant could not be kept: {e}"))?;
        self.services.changed();
        Ok(())
    }
}
