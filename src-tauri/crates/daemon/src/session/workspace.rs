//! Proposes workspaces to the user: paths in the server's entry, the repository that contains the client's working
//! directory (as reported by the kernel), and the client's own roots.
//!
//! - The server's start waits only for answers about paths in its entry, because the server cannot run without those
//!   paths. Other proposals have no effect until they are answered. The user is asked one question at a time.
//! - INVARIANT: proposes only paths that may be granted and for which the policy requires approval, and grants
//!   nothing without approval. A path in an entry or in the client's roots gives no access by itself.
//! - An approval creates a normal grant. A denial is remembered until the user revokes it.

mod asking;
mod client_roots;
mod named_folder;

use super::Session;
pub(super) use client_roots::ClientRoots;
use ironcurtain_consent::found_paths::project_around;
use ironcurtain_consent::{Reach, WorkspaceSource};
use ironcurtain_grants::Files;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Access, Decision, GrantKind};
use named_folder::FolderRefusal;
use serde_json::Map;
use std::path::Path;
use std::sync::Arc;

/// Provenance recorded for grants that result from a proposal.
const PROVENANCE: &str = "proposed workspace";

/// Proposes workspaces until the session closes.
pub(super) async fn propose(session: Arc<Session>) {
    // Dropping the guard lets the server start, on every return path.
    let start_guard = session.may_start.clone().drop_guard();
    if !session.services.broker.can_ask() || session.principal.remote {
        return;
    }
    let proposed = async {
        session.propose_named_by_entry().await;
        drop(start_guard);
        if session.takes_paths() {
            session.propose_project().await;
            session.propose_client_roots().await;
        }
    };
    tokio::select! {
        () = proposed => {}
        () = session.end.cancelled() => {}
    }
}

impl Session {
    /// Returns `true` if any of the server's tools takes a path.
    fn takes_paths(&self) -> bool {
        let snapshot = self.services.snapshot();
        let none = Map::new();
        let mut tools = snapshot.annotations.tools(&self.config.name);
        tools.any(|(_, tool)| {
            tool.roles(&none).any(|(_, roles)| roles.iter().any(|role| role.access().is_some()))
        })
    }

    async fn propose_named_by_entry(&self) {
        for named in &self.config.works_with {
            let (resolver, raw) = (self.resolver.clone(), named.clone());
            let found =
                tokio::task::spawn_blocking(move || named_folder::resolve_existing(&raw, &resolver)).await;
            match found.unwrap_or(Err(FolderRefusal::NotFileOrFolder)) {
                Ok(found) => self.propose_path(&found, WorkspaceSource::Entry).await,
                Err(refusal) => self.log.write(format!("`{named}` is not proposed: {refusal}")),
            }
        }
    }

    async fn propose_project(&self) {
        let Some(cwd) = self.principal.client.view.cwd.clone() else { return };
        let Ok(Some(folder)) = tokio::task::spawn_blocking(move || project(&cwd)).await else { return };
        self.propose_path(&(folder, GrantKind::Tree), WorkspaceSource::StartedIn).await;
    }

    /// Proposes a file or folder, unless it may not be granted, is already accessible, or the user has already
    /// answered.
    async fn propose_path(&self, proposed: &(CanonicalPath, GrantKind), source: WorkspaceSource) {
        let path = &proposed.0;
        let offered = match self.offered(proposed) {
            Ok(offered) if offered.is_empty() => return,
            Ok(offered) => offered,
            Err(refusal) => return self.log.write(format!("{path} is not proposed: {refusal}")),
        };
        if let Err(problem) = self.ask_about_path(proposed, source, &offered).await {
            self.log.write(format!("{path} was not opened to the agent: {problem}"));
        }
    }

    /// Returns the kinds of access for which the policy requires approval and which the user has not decided on.
    fn offered(&self, proposed: &(CanonicalPath, GrantKind)) -> Result<Vec<Reach>, FolderRefusal> {
        let snapshot = self.services.snapshot();
        let path = &proposed.0;
        named_folder::check(path, &snapshot.limits())?;
        let context = self.current_context();
        let decisions = [Access::Read, Access::Write].map(|access| context.decision_in(path, access));
        let offered = match decisions {
            [Decision::Deny, _] => return Err(FolderRefusal::Denied),
            [Decision::Allow, Decision::Allow | Decision::Deny] => Vec::new(),
            [Decision::Escalate, Decision::Deny] => vec![Reach::ProjectToRead],
            [Decision::Allow, Decision::Escalate] => vec![Reach::ProjectToChange],
            [Decision::Escalate, Decision::Allow | Decision::Escalate] => {
                vec![Reach::ProjectToRead, Reach::ProjectToChange]
            }
        };
        Ok(if self.is_answered(proposed) { Vec::new() } else { offered })
    }

    /// Returns `true` if the user has already answered about this path, or has declined a folder that contains it.
    fn is_answered(&self, (path, kind): &(CanonicalPath, GrantKind)) -> bool {
        let grants = self.services.grants.now();
        let is_granted = grants.grants.iter().any(|grant| {
            let is_same = |files: &Files| files.kind == *kind && files.path == *path;
            grant.provenance == PROVENANCE
                && self.may_use(&grant.subject)
                && grant.files().is_some_and(is_same)
        });
        let client = &self.principal.client.key;
        is_granted || self.services.workspaces.is_declined(client, &self.config.name, path)
    }
}

/// Returns the repository that contains a working directory. Blocks on file access.
fn project(cwd: &str) -> Option<CanonicalPath> {
    let real = Path::new(cwd).canonicalize().ok()?;
    let cwd = CanonicalPath::assume_canonical(real.to_str()?).ok()?;
    project_around(std::iter::once(&cwd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_repository_around_the_working_directory() {
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
