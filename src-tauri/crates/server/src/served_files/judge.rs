//! Judges an access to a file by the same rules as a call.

use super::ServedFiles;
use ironcurtain_autostart::runs_later;
use ironcurtain_config::PolicySnapshot;
use ironcurtain_consent::found_paths::FoundPaths;
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_judging::{InspectedCall, JudgingContext};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    AllowedBy, Denial, FileOperation, PendingApproval, ServerReach, Unannotated, Verdict,
};
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use serde_json::{Map, Value};
use std::sync::Arc;

/// Verdict on an access, with the policy and grants that led to it.
pub(super) struct JudgedAccess {
    pub(super) verdict: Verdict,
    pub(super) inspected: InspectedCall,
    pub(super) snapshot: Arc<PolicySnapshot>,
    pub(super) grants_version: u64,
    /// `true` if other programs run the file automatically. Each change to such a file requires its own approval.
    pub(super) runs_later: bool,
}

impl ServedFiles {
    /// Judges an access on a blocking thread. Returns `None` only while the daemon is exiting.
    pub(super) async fn judged(
        self: &Arc<Self>,
        wanted: &PermittedAccess,
        approved: &[PendingApproval],
    ) -> Option<JudgedAccess> {
        let (files, wanted, approved) = (self.clone(), wanted.clone(), approved.to_vec());
        tokio::task::spawn_blocking(move || files.judge(&wanted, &approved)).await.ok()
    }

    /// Judges an access. Blocks while the path is resolved.
    pub(super) fn judge(&self, wanted: &PermittedAccess, approved: &[PendingApproval]) -> JudgedAccess {
        let table = self.services.grants.now();
        let snapshot = self.services.snapshot();
        let own_file = self.profile.settings_file(&wanted.path, &table);
        let context = JudgingContext { approved: approved.to_vec(), ..self.judging(&snapshot, &table) };
        let arguments = arguments(own_file.map_or(wanted.path.as_str(), CanonicalPath::as_str));
        let home = &snapshot.home;
        // The agent may change its own settings, even if other programs run them.
        let is_changed = wanted.access != FileAccess::Read && own_file.is_none();
        let path = CanonicalPath::assume_canonical(&wanted.path);
        let runs_later = is_changed && path.is_ok_and(|path| runs_later(&path, home));
        let (verdict, inspected) = match judged(&context, (wanted, own_file), &arguments) {
            Ok(judged) => judged,
            Err(denial) => (Verdict::Deny(denial), InspectedCall { arguments, paths: FoundPaths::default() }),
        };
        let verdict = if runs_later { asked_each_time(verdict) } else { verdict };
        JudgedAccess { verdict, inspected, snapshot, grants_version: table.version, runs_later }
    }

    /// Returns `true` if everything in a folder may be read, changed and deleted without a question. Blocks while the
    /// path is resolved.
    pub(super) fn may_change_all(&self, folder: &CanonicalPath, table: &GrantTable) -> bool {
        let context = self.judging(&self.services.snapshot(), table);
        if context.snapshot.protected.would_be_exposed_by(folder, true) {
            return false;
        }
        let arguments = arguments(folder.as_str());
        [FileOperation::Change, FileOperation::Delete].into_iter().all(|operation| {
            let located = context.plan_folder(operation, &arguments).and_then(|plan| plan.locate(&context));
            located.is_ok_and(|located| {
                let is_same = located.paths.iter().all(|found| found.path == *folder);
                is_same && matches!(context.judge(located).verdict, Verdict::Allow(_))
            })
        })
    }

    /// Returns the context for judging without approvals.
    fn judging(&self, snapshot: &Arc<PolicySnapshot>, table: &GrantTable) -> JudgingContext {
        let grants = table.grants.iter().filter(|grant| self.may_use(&grant.subject));
        JudgingContext {
            snapshot: self.profile.snapshot(snapshot, table),
            server: self.principal.server.clone(),
            // Only the file itself is opened, so nothing around it becomes accessible.
            contained: None,
            unannotated: Unannotated::Deny,
            sandbox: None,
            resolver: self.resolver.clone(),
            grants: grants.filter_map(StandingGrant::for_judging).collect(),
            hosts: Vec::new(),
            tools: Vec::new(),
            approved: Vec::new(),
            reach: ServerReach::Something,
            confined: false,
            reading_hints: Arc::default(),
        }
    }
}

fn judged(
    context: &JudgingContext,
    (wanted, own_file): (&PermittedAccess, Option<&CanonicalPath>),
    arguments: &Arc<Map<String, Value>>,
) -> Result<(Verdict, InspectedCall), Denial> {
    let located = context.plan_file(operation(wanted.access), arguments)?.locate(context)?;
    // The view has resolved all symlinks, so a remaining one was created later.
    let path = own_file.map_or(wanted.path.as_str(), CanonicalPath::as_str);
    if located.paths.iter().any(|found| found.path.as_str() != path) {
        return Err(Denial::invalid("the path now leads to another file"));
    }
    let judgement = context.judge(located);
    Ok((judgement.verdict, judgement.inspected))
}

/// Denies the access if it is allowed by a rule or grant instead of the user's answer. Only the working folder is
/// watched for autostart files, so changing one elsewhere always requires its own approval.
fn asked_each_time(verdict: Verdict) -> Verdict {
    match verdict {
        Verdict::Allow(permit) if permit.allowed_by() != AllowedBy::Answer => {
            Verdict::Deny(Denial::protected("other programs run this file; no rule or grant covers it here"))
        }
        Verdict::Allow(_) | Verdict::Escalate(_) | Verdict::Deny(_) => verdict,
    }
}

/// Returns the file operation that an access is judged as.
pub(super) fn operation(access: FileAccess) -> FileOperation {
    match access {
        FileAccess::Read => FileOperation::Read,
        FileAccess::Write => FileOperation::Write,
        FileAccess::ReadWrite => FileOperation::Change,
        FileAccess::Delete => FileOperation::Delete,
    }
}

fn arguments(path: &str) -> Arc<Map<String, Value>> {
    let path = (FileOperation::PATH.to_owned(), Value::String(path.to_owned()));
    Arc::new(Map::from_iter([path]))
}
