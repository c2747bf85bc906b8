//! Asks the user whether an agent may work in a folder or with a file, and stores the answer.

use super::PROVENANCE;
use crate::session::Session;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_consent::{
    DenialScope, DeniedKey, ExchangeError, Inquiry, Lifetime, NotApproved, QuestionKey, Reach,
    WORKSPACE_RULE, WorkspaceQuestion, WorkspaceSource, grants_of,
};
use ironcurtain_grants::{Files, Granted, StandingGrant};
use ironcurtain_paths::{CanonicalPath, random_name};
use ironcurtain_policy::{Access, AccessSet, GrantKind};
use serde_json::{Map, Value};

impl Session {
    /// Asks the user about a path and creates the grant that the user selects.
    pub(super) async fn ask_about_path(
        &self,
        (path, kind): &(CanonicalPath, GrantKind),
        source: WorkspaceSource,
        offered: &[Reach],
    ) -> Result<(), ExchangeError> {
        let exchange = self.services.exchange(&self.principal);
        let snapshot = self.services.snapshot();
        let question = WorkspaceQuestion {
            id: exchange.new_question_id()?,
            principal: &self.principal,
            path,
            kind: *kind,
            home: &snapshot.home,
            source,
            offered,
            deadline: self.services.config.question_deadline(),
        }
        .build();
        let (id, rule, reason) = (question.id.clone(), question.rule.clone(), question.reason.clone());
        let mut entry = self.entry(Event::Question, source.on_record());
        entry.paths = vec![path.as_str().to_owned()];
        entry.policy_decision = Some(PolicyDecision::escalate(&rule, &reason));
        let arguments = Map::from_iter([("folder".to_owned(), Value::from(path.as_str()))]);
        let inquiry = Inquiry {
            identity: QuestionKey::of(&question, &[]),
            call: DeniedKey::of(&self.principal, WORKSPACE_RULE, &arguments),
            scope: DenialScope::of_request(WORKSPACE_RULE),
            question,
            entry,
        };
        let approval = match exchange.ask(inquiry, std::future::pending()).await {
            Ok(Some(approval)) => approval,
            Ok(None) => return Ok(()),
            Err(problem) => {
                if let ExchangeError::NotApproved(NotApproved::Denied | NotApproved::DeniedWithNote(_)) =
                    &problem
                {
                    self.decline(path);
                }
                return Err(problem);
            }
        };
        let read = AccessSet::only(Access::Read);
        let access =
            if approval.offer.reach == Reach::ProjectToChange { read.with(Access::Write) } else { read };
        let files = Files { path: path.clone(), kind: *kind, access };
        let lifetime_and_time: (Lifetime, u64) = (approval.lifetime, now_ms());
        let grants = grants_of(
            vec![Granted::Files(files)],
            &self.principal.subject(),
            lifetime_and_time,
            PROVENANCE,
            random_name,
        )
        .map_err(ExchangeError::GrantId)?;
        let with_entry = |grant: StandingGrant| {
            let mut entry = self.entry(Event::Grant, approval.offer.sentence.clone());
            entry.question_id = Some(id.clone());
            grant.what.add_to_entry(&mut entry);
            entry.grant_id = Some(grant.id.clone());
            (grant, entry)
        };
        self.services.grants.create(grants.into_iter().map(with_entry).collect()).await?;
        self.services.changed();
        Ok(())
    }

    fn decline(&self, path: &CanonicalPath) {
        let client = &self.principal.client;
        let declined =
            self.services.workspaces.decline((&client.key, &client.view.name), &self.config.name, path);
        if let Err(problem) = declined {
            tracing::error!(%problem, "failed to store the denial of a proposal; it will be proposed again");
        }
        self.services.changed();
    }
}
