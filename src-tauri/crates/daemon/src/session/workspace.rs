//! The project that an agent works in, proposed to the person when its session begins: the repository around the client's
//! working directory, which the kernel tells.
//!
//! - Nothing waits for the answer: until then the session has what it has without one.
//! - INVARIANT: nothing but a folder below the home that may be granted is proposed, and nothing is granted without a yes.
//! - A yes is a grant like any other; a no is remembered until it is taken back.

use super::Session;
use crate::clock::{now_ms, random_name};
use crate::consent::{
    DenialScope, DeniedKey, ExchangeError, Inquiry, Lifetime, NotApproved, QuestionKey, Reach,
    WORKSPACE_RULE, WorkspaceQuestion, grants_of,
};
use crate::grants::{Files, Granted, StandingGrant};
use crate::resolve::project_around;
use ironcurtain_audit::{Event, PolicyDecision};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Access, AccessSet, GrantKind};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// The origin of grants that come from here.
const PROVENANCE: &str = "proposed workspace";

/// Proposes the project of a session that has begun.
pub(super) async fn propose(session: Arc<Session>) {
    if !session.services.broker.reaches_person() || !session.works_with_files() {
        return;
    }
    let Some(cwd) = session.principal.client.view.cwd.clone() else { return };
    let Ok(Some(folder)) = tokio::task::spawn_blocking(move || project(&cwd)).await else { return };
    let snapshot = session.services.snapshot();
    let may_be = snapshot.home.strictly_contains(&folder) && snapshot.limits().may_be_granted(&folder);
    if !may_be || session.is_settled(&folder) {
        return;
    }
    let asked = tokio::select! {
        asked = session.propose_folder(&folder) => asked,
        () = session.end.cancelled() => return,
    };
    if let Err(problem) = asked {
        session.log.write(format!("the project {folder} is not open to the agent: {problem}"));
    }
}

impl Session {
    /// Returns `true` if a tool of the server is annotated with a path, and the server is where the files are.
    fn works_with_files(&self) -> bool {
        if self.principal.remote {
            return false;
        }
        let snapshot = self.services.snapshot();
        let none = Map::new();
        let mut tools = snapshot.annotations.tools(&self.config.name);
        tools.any(|(_, tool)| {
            tool.roles(&none).any(|(_, roles)| roles.iter().any(|role| role.access().is_some()))
        })
    }

    /// Returns `true` if the folder is open already, or the person does not want it to be.
    fn is_settled(&self, folder: &CanonicalPath) -> bool {
        let grants = self.services.grants.now();
        let is_open = grants.grants.iter().any(|grant| {
            let opens = |files: &Files| {
                files.kind == GrantKind::Tree && files.access.write && files.path.contains(folder)
            };
            self.may_use(&grant.subject) && grant.files().is_some_and(opens)
        });
        let client = &self.principal.client.key;
        is_open || self.services.workspaces.is_declined(client, &self.config.name, folder.as_str())
    }

    async fn propose_folder(&self, folder: &CanonicalPath) -> Result<(), ExchangeError> {
        let exchange = self.services.exchange(&self.principal);
        let snapshot = self.services.snapshot();
        let question = WorkspaceQuestion {
            id: exchange.name()?,
            principal: &self.principal,
            folder,
            home: &snapshot.home,
            why: "the agent was started in this project",
            deadline: self.services.config.question_deadline(),
        }
        .build();
        let (id, rule, reason) = (question.id.clone(), question.rule.clone(), question.reason.clone());
        let mut entry =
            self.entry(Event::Question, "a folder that the agent works in was proposed to the person");
        entry.paths = vec![folder.as_str().to_owned()];
        entry.policy_decision = Some(PolicyDecision::escalate(&rule, &reason));
        let words = Map::from_iter([("folder".to_owned(), Value::from(folder.as_str()))]);
        let inquiry = Inquiry {
            identity: QuestionKey::alone(&question),
            call: DeniedKey::of(&self.principal, WORKSPACE_RULE, &words),
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
                    self.decline(folder);
                }
                return Err(problem);
            }
        };
        let read = AccessSet::only(Access::Read);
        let access =
            if approval.offer.reach == Reach::ProjectToChange { read.with(Access::Write) } else { read };
        let files = Files { path: folder.clone(), kind: GrantKind::Tree, access };
        let when: (Lifetime, u64) = (approval.lifetime, now_ms());
        let grants =
            grants_of(vec![Granted::Files(files)], &self.principal.subject(), when, PROVENANCE, random_name)
                .map_err(ExchangeError::NoGrant)?;
        let gift = |grant: StandingGrant| {
            let mut entry = self.entry(Event::Grant, approval.offer.sentence.clone());
            entry.question_id = Some(id.clone());
            grant.what.note_in(&mut entry);
            entry.grant_id = Some(grant.id.clone());
            (grant, entry)
        };
        self.services.grants.give(grants.into_iter().map(gift).collect()).await?;
        self.services.changed();
        Ok(())
    }

    fn decline(&self, folder: &CanonicalPath) {
        let client = &self.principal.client;
        let declined = self.services.workspaces.decline(
            (&client.key, &client.view.name),
            &self.config.name,
            folder.as_str(),
        );
        if let Err(problem) = declined {
            tracing::error!(%problem, "a no to a folder is not remembered, and will be asked again");
        }
        self.services.changed();
    }
}

/// The repository around a working directory. Blocking.
fn project(cwd: &str) -> Option<CanonicalPath> {
    let real = Path::new(cwd).canonicalize().ok()?;
    let cwd = CanonicalPath::assume_canonical(real.to_str()?).ok()?;
    project_around(std::iter::once(&cwd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_the_repository_around_the_working_directory() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("app/.git")).unwrap();
        std::fs::create_dir_all(base.join("app/src")).unwrap();
        std::fs::create_dir(base.join("notes")).unwrap();
        let project = |name: &str| project(base.join(name).to_str().unwrap());
        assert_eq!(project("app/src").unwrap().as_str(), base.join("app").to_str().unwrap());
        assert_eq!((project("notes"), project("gone")), (None, None));
    }
}
