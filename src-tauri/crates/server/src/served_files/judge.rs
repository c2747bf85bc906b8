//! Judges an access to a file by the same rules as a call.

use super::ServedFiles;
use ironcurtain_config::PolicySnapshot;
use ironcurtain_consent::found_paths::{FoundPath, FoundPaths};
use ironcurtain_grants::{GrantTable, StandingGrant};
use ironcurtain_judging::{InspectedCall, JudgingContext};
use ironcurtain_paths::{CanonicalPath, PathKind, Resolver};
use ironcurtain_policy::{
    AllowedBy, Denial, DeniedBy, FileOperation, GrantKind, PendingApproval, Permit, ServerReach, Unannotated,
    Verdict,
};
use ironcurtain_sandbox::autostart::{self, AutostartCondition};
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;

/// Verdict on an access, with the policy and grants that led to it.
pub(super) struct JudgedAccess {
    pub(super) verdict: Verdict,
    pub(super) inspected: InspectedCall,
    pub(super) snapshot: Arc<PolicySnapshot>,
    pub(super) grants_version: u64,
    /// Condition under which other programs run the file automatically. Each change to such a file requires its own
    /// approval.
    pub(super) runs_later: Option<AutostartCondition>,
}

impl JudgedAccess {
    /// Returns a sentence that says when other programs run the file. Returns `None` if no program runs it
    /// automatically or if its name already reveals this.
    pub(super) fn warning(&self, path: &str) -> Option<String> {
        let when = self.runs_later.as_ref()?.when;
        let is_known = autostart::autostart_condition(path, Some(self.snapshot.home.as_str())).is_some();
        (!is_known).then(|| format!("This is a program that runs {when}."))
    }
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

    /// Returns the folder around a file that was read, if a grant for it allows a run to read all of its files. Returns
    /// `None` if the view knows the folder, and for a server, whose programs keep running while it is paused.
    pub(super) async fn readable_folder(
        self: &Arc<Self>,
        wanted: &PermittedAccess,
        permit: &Permit,
    ) -> Option<CanonicalPath> {
        if !self.is_frozen_when_paused || wanted.access != FileAccess::Read {
            return None;
        }
        let table = self.services.grants.now();
        let is_used = |grant: &&StandingGrant| permit.grants().contains(&grant.id);
        let granted = table.grants.iter().filter(is_used).find_map(StandingGrant::files)?;
        if granted.kind != GrantKind::Tree || self.permissions.readable().contains(&granted.path) {
            return None;
        }
        let (files, folder) = (self.clone(), granted.path.clone());
        let is_readable = move || files.may_read_all(&folder, &table).then_some(folder);
        tokio::task::spawn_blocking(is_readable).await.ok().flatten()
    }

    /// Judges an access. Blocks while the path is resolved.
    pub(super) fn judge(&self, wanted: &PermittedAccess, approved: &[PendingApproval]) -> JudgedAccess {
        let table = self.services.grants.now();
        let snapshot = self.services.snapshot();
        let own_file = self.profile.settings_file(&wanted.path, &table);
        let context = JudgingContext { approved: approved.to_vec(), ..self.judging(&snapshot, &table) };
        let arguments = arguments(own_file.map_or(wanted.path.as_str(), CanonicalPath::as_str));
        // The agent may change its own settings, even if other programs run them.
        let is_changed = wanted.access != FileAccess::Read && own_file.is_none();
        let runs_later = if is_changed { self.startup.autostart_condition(&wanted.path) } else { None };
        let (verdict, inspected) = match judged(&context, (wanted, own_file), &arguments) {
            Ok(judged) => judged,
            Err(denial) => (Verdict::Deny(denial), InspectedCall { arguments, paths: FoundPaths::default() }),
        };
        let verdict = match verdict {
            // The denial of the path itself has the more specific reason.
            Verdict::Deny(_) => verdict,
            Verdict::Allow(_) | Verdict::Escalate(_) => {
                match self.denial_by_path(wanted, own_file.is_some(), &context, &inspected.paths) {
                    Some(denial) => Verdict::Deny(denial),
                    None if runs_later.is_some() => asked_each_time(verdict),
                    None => verdict,
                }
            }
        };
        JudgedAccess { verdict, inspected, snapshot, grants_version: table.version, runs_later }
    }

    /// Returns a denial if the server's entry makes the path inaccessible, or if changing the folder would affect a
    /// path in it that must not change. A missing path counts as a folder, because a folder with files can be moved
    /// there.
    fn denial_by_path(
        &self,
        wanted: &PermittedAccess,
        is_own: bool,
        context: &JudgingContext,
        found: &FoundPaths,
    ) -> Option<Denial> {
        let path = Path::new(&wanted.path);
        if self.closed.covers(path) {
            return Some(Denial::protected(
                "the server's entry in `mcp-servers.json` denies access to this path",
            ));
        }
        let operations: &[FileOperation] = match wanted.access {
            FileAccess::Read => &[],
            FileAccess::Write | FileAccess::ReadWrite => &[FileOperation::Write],
            // The files can be moved to a place where they are readable.
            FileAccess::Delete => &[FileOperation::Read, FileOperation::Delete],
        };
        let is_file = |found: &FoundPath| match found.target {
            PathKind::File { .. } | PathKind::Special => true,
            PathKind::Folder | PathKind::Missing => false,
        };
        if operations.is_empty() || is_own || found.iter().all(is_file) {
            return None;
        }
        let folder = CanonicalPath::assume_canonical(&wanted.path).ok()?;
        if let Some(inside) = self.overlapping(&folder, &context.snapshot) {
            let reason = format!("`{folder}` contains `{inside}`, which must not be changed");
            return Some(Denial::protected(reason));
        }
        let arguments = arguments(&wanted.path);
        let denial = |operation: &FileOperation| {
            let located = context.plan_folder(*operation, &arguments).and_then(|plan| plan.locate(context));
            match located.map(|located| context.judge(located).verdict) {
                Ok(Verdict::Deny(denial)) | Err(denial) => Some(denial),
                Ok(Verdict::Allow(_) | Verdict::Escalate(_)) => None,
            }
        };
        let is_about_contents =
            |denial: &Denial| matches!(denial.by, DeniedBy::Rule | DeniedBy::ProtectedPath);
        operations.iter().filter_map(denial).find(is_about_contents)
    }

    /// Returns `true` if everything in a folder may be read, changed and deleted without asking the user. Blocks while
    /// the path is resolved.
    pub(super) fn may_change_all(&self, folder: &CanonicalPath, table: &GrantTable) -> bool {
        self.allows_all(folder, &[FileOperation::Change, FileOperation::Delete], table)
    }

    /// Returns `true` if everything in a folder may be read without asking the user. Blocks while the path is resolved.
    pub(super) fn may_read_all(&self, folder: &CanonicalPath, table: &GrantTable) -> bool {
        self.allows_all(folder, &[FileOperation::Read], table)
    }

    fn allows_all(&self, folder: &CanonicalPath, operations: &[FileOperation], table: &GrantTable) -> bool {
        let context = self.judging(&self.services.snapshot(), table);
        // The view hides inaccessible paths, and a mount would show them.
        if self.overlapping(folder, &context.snapshot).is_some() {
            return false;
        }
        let arguments = arguments(folder.as_str());
        operations.iter().all(|operation| {
            let located = context.plan_folder(*operation, &arguments).and_then(|plan| plan.locate(&context));
            located.is_ok_and(|located| {
                let is_same = located.paths.iter().all(|found| found.path == *folder);
                is_same && matches!(context.judge(located).verdict, Verdict::Allow(_))
            })
        })
    }

    /// Returns a path that is inaccessible or must not change, and that contains the folder or is inside it.
    fn overlapping<'a>(&'a self, folder: &CanonicalPath, snapshot: &'a PolicySnapshot) -> Option<&'a str> {
        let exposed = || snapshot.protected.exposed_by(folder, true).map(CanonicalPath::as_str);
        self.closed.overlapping(folder.as_path()).or_else(exposed)
    }

    /// Returns the context for judging without approvals.
    fn judging(&self, snapshot: &Arc<PolicySnapshot>, table: &GrantTable) -> JudgingContext {
        let grants = table.grants.iter().filter(|grant| self.may_use(&grant.subject));
        let grants = grants.filter_map(StandingGrant::for_judging);
        JudgingContext {
            snapshot: self.profile.snapshot(snapshot, table),
            // The user did not approve the profile's grants, so they satisfy no managed rule.
            grants: grants.map(|grant| self.profile.without_approval_time(grant)).collect(),
            ..context(snapshot, &self.principal.server, &self.resolver)
        }
    }
}

/// Returns `true` if no rule of the user's organization denies access to a folder or a part of it, or requires approval
/// for it. Blocks while the path is resolved.
pub fn is_unrestricted(
    snapshot: &Arc<PolicySnapshot>,
    (server, resolver): (&str, &Resolver),
    folder: &CanonicalPath,
    operations: &[FileOperation],
) -> bool {
    if !snapshot.policy.is_managed() {
        return true;
    }
    let context = context(snapshot, server, resolver);
    let arguments = arguments(folder.as_str());
    operations.iter().all(|operation| {
        let located = context.plan_folder(*operation, &arguments).and_then(|plan| plan.locate(&context));
        located.is_ok_and(|located| context.restriction(&located.call).is_none())
    })
}

/// Returns the context for judging without grants and approvals.
fn context(snapshot: &Arc<PolicySnapshot>, server: &str, resolver: &Resolver) -> JudgingContext {
    JudgingContext {
        snapshot: snapshot.clone(),
        server: server.to_owned(),
        // Only the file itself is opened, so nothing around it becomes accessible.
        contained: None,
        denied: Arc::default(),
        unannotated: Unannotated::Deny,
        sandbox: None,
        resolver: resolver.clone(),
        grants: Vec::new(),
        hosts: Vec::new(),
        tools: Vec::new(),
        approved: Vec::new(),
        reach: ServerReach::Something,
        confined: false,
        reading_hints: Arc::default(),
    }
}

fn judged(
    context: &JudgingContext,
    (wanted, own_file): (&PermittedAccess, Option<&CanonicalPath>),
    arguments: &Arc<Map<String, Value>>,
) -> Result<(Verdict, InspectedCall), Denial> {
    let located = context.plan_file(operation(wanted.access), arguments)?.locate(context)?;
    // The view has resolved all symlinks, so any symlink found here was created afterwards.
    let path = own_file.map_or(wanted.path.as_str(), CanonicalPath::as_str);
    if located.paths.iter().any(|found| found.path.as_str() != path) {
        return Err(Denial::invalid("the path now points to a different file"));
    }
    let judgement = context.judge(located);
    Ok((judgement.verdict, judgement.inspected))
}

/// Denies the access if it is allowed by a rule or grant instead of the user's answer. Only the working folder is
/// watched for autostart files, so changing an autostart file elsewhere always requires its own approval.
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

/// Returns the arguments of an access to a path.
pub(super) fn arguments(path: &str) -> Arc<Map<String, Value>> {
    let path = (FileOperation::PATH.to_owned(), Value::String(path.to_owned()));
    Arc::new(Map::from_iter([path]))
}
