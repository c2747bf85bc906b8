//! Judges a call against the current policy and grants, and later checks that its authorization is still valid.

use super::Session;
use super::tool_call::ToolCall;
use ironcurtain_autostart::is_autostart_file;
use ironcurtain_config::{PolicySnapshot, ServerAccess};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_grants::{Files, StandingGrant};
use ironcurtain_judging::{CallJudgement, InspectedCall, JudgingContext, locate};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{Access, GrantKind, PendingApproval, Permit, ServerReach, Verdict};
use ironcurtain_server::{Applied, Versions};
use std::collections::HashSet;
use std::sync::Arc;

/// Verdict on a call, with the policy and grants that led to it.
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) inspected: InspectedCall,
    pub(super) basis: JudgingBasis,
}

/// Policy and grants against which a call was judged.
#[derive(Clone)]
pub(super) struct JudgingBasis {
    pub(super) snapshot: Arc<PolicySnapshot>,
    grants: Vec<StandingGrant>,
    grants_version: u64,
    reach: ServerReach,
}

impl JudgingBasis {
    fn versions(&self) -> Versions {
        Versions { grants: self.grants_version, policy: self.snapshot.version }
    }
}

/// Permit for a call, with the call's resolved paths and required mounts.
pub(super) struct Authorization {
    pub(super) permit: Permit,
    pub(super) inspected: InspectedCall,
    /// Paths that must be mounted for the call in addition to the server's permanent mounts.
    pub(super) needs: Vec<MountRequest>,
    /// Paths in `needs` that standing grants already mount.
    granted: Vec<MountRequest>,
    /// Approvals that the user gave for this call only.
    pub(super) approved: Vec<PendingApproval>,
    /// Approved paths that are autostart files.
    pub(super) approved_autostart_files: Vec<CanonicalPath>,
    pub(super) snapshot: Arc<PolicySnapshot>,
    /// Versions of the grants and the policy against which the call was judged.
    pub(super) versions: Versions,
    /// The server's reach when the call was judged.
    reach: ServerReach,
}

impl Authorization {
    /// Returns `true` if the call needs no mounts.
    pub(super) fn needs_no_mounts(&self) -> bool {
        self.needs.is_empty()
    }

    /// Returns the paths that the call changes.
    pub(super) fn written(&self) -> impl Iterator<Item = &CanonicalPath> {
        let changes = |access: Option<Access>| matches!(access, Some(Access::Write | Access::Delete));
        self.permit.call().paths().filter(move |(role, ..)| changes(role.access())).map(|(_, _, path)| path)
    }

    /// Returns the paths that must be mounted for this call only, because no standing grant mounts them.
    pub(super) fn mounts_to_lease(&self, applied: &Applied) -> Vec<MountRequest> {
        // A grant for the folder around an autostart file mounts that file read-only, so writing to it needs a lease.
        let is_approved_autostart_file =
            |need: &MountRequest| need.writable && self.approved_autostart_files.contains(&need.path);
        let is_mounted = |need: &MountRequest| {
            !is_approved_autostart_file(need) && self.granted.contains(need)
                || applied.is_opened_by_rule(need)
        };
        self.needs.iter().filter(|need| !is_mounted(need)).cloned().collect()
    }
}

impl Session {
    /// Returns the context for judging a call against this policy and these grants.
    fn judging_context(&self, basis: &JudgingBasis, approved: &[PendingApproval]) -> Arc<JudgingContext> {
        Arc::new(JudgingContext {
            snapshot: basis.snapshot.clone(),
            server: self.config.name.clone(),
            contained: JudgingContext::contained(&self.config),
            denied: self.denied.clone(),
            unannotated: self.config.unannotated,
            sandbox: Some(self.sandbox.clone()),
            resolver: self.resolver.clone(),
            grants: basis.grants.iter().filter_map(StandingGrant::for_judging).collect(),
            hosts: basis.grants.iter().filter_map(StandingGrant::for_gate).collect(),
            tools: basis.grants.iter().filter_map(StandingGrant::for_tool).collect(),
            approved: approved.to_vec(),
            reach: basis.reach,
            confined: self.own_folders.is_some(),
            reading_hints: self.reading_hints(),
        })
    }

    /// Returns the current policy and the grants that apply to this session.
    fn current_basis(&self) -> JudgingBasis {
        let table = self.services.grants.now();
        let grants: Vec<StandingGrant> =
            table.grants.iter().filter(|g| self.may_use(&g.subject)).cloned().collect();
        JudgingBasis {
            snapshot: self.services.snapshot(),
            grants,
            grants_version: table.version,
            reach: self.reach(),
        }
    }

    /// Returns the current context for judging requests other than calls.
    pub(super) fn current_context(&self) -> Arc<JudgingContext> {
        self.judging_context(&self.current_basis(), &[])
    }

    pub(super) async fn judge(&self, tool: &ToolCall, approved: &[PendingApproval]) -> Judged {
        let mut basis = self.current_basis();
        let context = self.judging_context(&basis, approved);
        let judgement = match locate(&context, &tool.tool, &tool.arguments).await {
            Ok(located) => context.judge(located),
            Err(denial) => CallJudgement::deny_invalid(denial, &tool.arguments),
        };
        let CallJudgement { verdict, inspected } = judgement;
        let is_replaced_by_folder =
            |f: &Files| f.kind == GrantKind::File && inspected.paths.has_folder(&f.path);
        basis.grants.retain(|grant| !grant.files().is_some_and(is_replaced_by_folder));
        Judged { verdict, inspected, basis }
    }

    /// Creates the authorization of a permitted call. Determines the mounts that the call needs, and which of them
    /// standing grants provide.
    pub(super) fn authorize(
        &self,
        permit: Permit,
        inspected: InspectedCall,
        basis: &JudgingBasis,
        approved: Vec<PendingApproval>,
    ) -> Authorization {
        let writes = self.config.file_writes;
        let mut needs = inspected.paths.mount_requests(permit.call(), Some(&self.sandbox), writes);
        // A grant is not mounted if it would now expose a protected path or if a managed rule overrides a part of it.
        let is_withheld = |grant: &StandingGrant| {
            let is_written = |f: &Files| f.access.write || f.access.delete;
            grant
                .files()
                .is_some_and(|f| basis.snapshot.protected.exposed_by(&f.path, is_written(f)).is_some())
                || basis.snapshot.suspends(&self.config.name, grant)
        };
        let is_granted =
            |need: &MountRequest| basis.grants.iter().any(|grant| grant.shows(need) && !is_withheld(grant));
        let granted: Vec<MountRequest> = needs.iter().filter(|need| is_granted(need)).cloned().collect();
        // An unsandboxed server can already access all files, and a remote server cannot access any. For a server with
        // `ServerAccess::Ask`, a call opens no files: the user is asked when the server opens a file.
        let is_remote = self.config.remote.is_some() || self.config.access == ServerAccess::Ask;
        needs.retain(|need| !is_remote && (self.sandboxed || !granted.contains(need)));
        let requested = inspected.paths.requested(&approved, writes).into_iter();
        let approved_autostart_files = requested
            .filter(|requested| requested.access == Access::Write && requested.target != PathKind::Folder);
        let approved_autostart_files = approved_autostart_files
            .map(|requested| requested.path)
            .filter(|path| is_autostart_file(path, &basis.snapshot.home))
            .collect();
        Authorization {
            permit,
            inspected,
            needs,
            granted,
            approved,
            approved_autostart_files,
            snapshot: basis.snapshot.clone(),
            versions: basis.versions(),
            reach: basis.reach,
        }
    }

    /// Returns `true` unless the server's reach has grown since the call was judged. If the reach has grown, the call
    /// must be judged again.
    pub(super) fn reach_not_grown(&self, authorization: &Authorization) -> bool {
        authorization.reach != ServerReach::Nothing || self.reach() == ServerReach::Nothing
    }

    /// Returns `true` if all paths that the call needs are mounted, and no mount shows an outdated file.
    pub(super) fn has_mounts_for(&self, authorization: &Authorization) -> bool {
        let applied = self.server.applied();
        if !authorization.permit.call().paths().all(|(_, _, path)| applied.is_current(path)) {
            return false;
        }
        if applied.find_read_only(authorization.written()).is_some() {
            return false;
        }
        if authorization.needs_no_mounts() {
            return true;
        }
        applied.versions.have_reached(authorization.versions)
            && authorization.mounts_to_lease(&applied).is_empty()
            && authorization.needs.iter().all(|need| applied.is_mounted(need))
            && authorization.inspected.paths.find_affected(&applied.failed).is_none()
    }

    /// Returns the server's current access beyond its own folders.
    fn reach(&self) -> ServerReach {
        self.own_folders.as_ref().map_or(ServerReach::Something, |own| self.server.access_beyond(own))
    }

    /// Returns the tools that the server declares as read-only. The declaration counts only while the server is
    /// confined and can write only to its own folders, so a false declaration has no effect outside the session.
    fn reading_hints(&self) -> Arc<HashSet<String>> {
        match &self.own_folders {
            Some(own) if self.server.writes_only_to(own) => self.pinned_tools.reading_hints(),
            Some(_) | None => Arc::default(),
        }
    }

    /// Completes when a policy change denies the call.
    pub(super) async fn wait_until_denied(&self, tool: &ToolCall, authorization: &Authorization) {
        let mut snapshots = self.services.snapshots.clone();
        let mut version = authorization.versions.policy;
        loop {
            let newer = snapshots
                .wait_for(|snapshot| snapshot.version != version)
                .await
                .map(|snapshot| snapshot.version);
            let Ok(newer) = newer else { return std::future::pending().await };
            version = newer;
            let rejudged = self.judge(tool, &authorization.approved).await;
            match rejudged.verdict {
                Verdict::Allow(permit) if permit.call() == authorization.permit.call() => {}
                Verdict::Allow(_) | Verdict::Escalate(_) | Verdict::Deny(_) => return,
            }
        }
    }

    /// Completes when a new grant or policy decides on the call so that the user does not have to be asked.
    pub(super) async fn wait_until_decided(&self, tool: &ToolCall) {
        let (mut table, mut snapshots) = (self.services.grants.watch(), self.services.snapshots.clone());
        // Judges first, because the grants may have changed between the verdict that led to the question and the
        // subscription.
        while matches!(self.judge(tool, &[]).await.verdict, Verdict::Escalate(_)) {
            let changed = tokio::select! {
                changed = table.changed() => changed,
                changed = snapshots.changed() => changed,
            };
            if changed.is_err() {
                return std::future::pending().await;
            }
        }
    }
}
