//! The folders that an agent works in, proposed to the person: the repository around the client's working directory, which the
//! kernel tells, and the roots that the client itself names.
//!
//! - Nothing waits for the answers: until then the session has what it has without them. One is asked about at a time.
//! - INVARIANT: nothing is proposed but a folder that may be granted and that the policy asks about, and nothing is granted
//!   without a yes. What a client names opens nothing by itself.
//! - A yes is a grant like any other; a no is remembered until it is taken back.

mod asking;
mod client_roots;
mod named_folder;

use super::Session;
use crate::consent::{Reach, WorkspaceSource};
use crate::grants::Files;
use crate::resolve::project_around;
pub(super) use client_roots::ClientRoots;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Access, Decision, GrantKind};
use named_folder::FolderRefusal;
use serde_json::Map;
use std::path::Path;
use std::sync::Arc;

/// The origin of grants that come from here.
const PROVENANCE: &str = "proposed workspace";

/// Proposes what a session works in, from its beginning to its end.
pub(super) async fn propose(session: Arc<Session>) {
    if !session.services.broker.reaches_person() || !session.works_with_files() {
        return;
    }
    let proposed = async {
        session.propose_project().await;
        session.propose_client_roots().await;
    };
    tokio::select! {
        () = proposed => {}
        () = session.end.cancelled() => {}
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

    async fn propose_project(&self) {
        let Some(cwd) = self.principal.client.view.cwd.clone() else { return };
        let Ok(Some(folder)) = tokio::task::spawn_blocking(move || project(&cwd)).await else { return };
        self.propose_folder(&folder, WorkspaceSource::StartedIn).await;
    }

    /// Proposes a folder, unless it may not be granted, is open already, or the person has answered.
    async fn propose_folder(&self, folder: &CanonicalPath, source: WorkspaceSource) {
        let offered = match self.offered(folder) {
            Ok(offered) if offered.is_empty() => return,
            Ok(offered) => offered,
            Err(refusal) => return self.log.write(format!("{folder} is not proposed: {refusal}")),
        };
        if let Err(problem) = self.ask_about_folder(folder, source, &offered).await {
            self.log.write(format!("{folder} is not open to the agent: {problem}"));
        }
    }

    /// The work in a folder that the policy asks about and that the person has not answered yet; nothing where all is said.
    fn offered(&self, folder: &CanonicalPath) -> Result<Vec<Reach>, FolderRefusal> {
        let snapshot = self.services.snapshot();
        named_folder::check(folder, &snapshot.limits())?;
        let setting = self.setting_now();
        let decisions = [Access::Read, Access::Write].map(|access| setting.decision_in(folder, access));
        let offered = match decisions {
            [Decision::Deny, _] => return Err(FolderRefusal::Denied),
            [Decision::Allow, Decision::Allow | Decision::Deny] => Vec::new(),
            [Decision::Escalate, Decision::Deny] => vec![Reach::ProjectToRead],
            [Decision::Allow, Decision::Escalate] => vec![Reach::ProjectToChange],
            [Decision::Escalate, Decision::Allow | Decision::Escalate] => {
                vec![Reach::ProjectToRead, Reach::ProjectToChange]
            }
        };
        Ok(if self.is_answered(folder) { Vec::new() } else { offered })
    }

    /// Returns `true` if the person has said yes or no to work in this folder, or no to one around it.
    fn is_answered(&self, folder: &CanonicalPath) -> bool {
        let grants = self.services.grants.now();
        let is_granted = grants.grants.iter().any(|grant| {
            let is_it = |files: &Files| files.kind == GrantKind::Tree && files.path == *folder;
            grant.provenance == PROVENANCE && self.may_use(&grant.subject) && grant.files().is_some_and(is_it)
        });
        let client = &self.principal.client.key;
        is_granted || self.services.workspaces.is_declined(client, &self.config.name, folder)
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
