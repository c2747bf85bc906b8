//! Judges calls against the current policy and grants. Used for real calls and for checks that the user makes in
//! advance.
//!
//! - Judges exactly the values that the server would receive. Denies an access that would expose a protected path, or a
//!   path that the server's entry makes unreadable, to a sandboxed server, even if a rule allows the access.
//! - Queries git only if none of the call's paths is denied, and only in folders that would not be denied.
//! - Never asks the user and never records anything.
//!
//! ```
//! use ironcurtain_judging::{JudgingContext, locate};
//! use ironcurtain_policy::{Denial, Verdict};
//! use std::sync::Arc;
//!
//! async fn verdict(context: Arc<JudgingContext>) -> Result<Verdict, Denial> {
//!     let arguments = Arc::new(serde_json::from_str(r#"{"path": "~/report.txt"}"#).unwrap_or_default());
//!     let located = locate(&context, "read_text_file", &arguments).await?;
//!     Ok(context.judge(located).verdict)
//! }
//! ```

mod folder;

use ironcurtain_audit::DecidedBy;
use ironcurtain_config::home::Home;
use ironcurtain_config::{FileView, PolicySnapshot, Server, ServerAccess, Servers};
use ironcurtain_consent::found_paths::{self, FoundPaths, ResolvedValues};
use ironcurtain_consent::located_call::LocatedCall;
use ironcurtain_containment::{DeniedReads, Profile, view_of};
use ironcurtain_git_facts::{GitContext, RemoteQuery};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{
    AllowedBy, CallPlan, Context, Denial, DeniedBy, Explanation, Fact, FileOperation, FileWrites, GrantKind,
    HostConnection, HostGrant, PathGrant, PendingApproval, ResolvedCall, RuleReason, ServerReach, ToolGrant,
    Unannotated, Verdict, explain, judge, restriction,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Data needed for the policy decision on one call.
#[derive(Debug, Clone)]
pub struct JudgingContext {
    /// The policy, the annotations and the protected paths.
    pub snapshot: Arc<PolicySnapshot>,
    /// Name of the server.
    pub server: String,
    /// Method with which the server writes files in its sandbox, or `None` if it is not sandboxed.
    pub contained: Option<FileWrites>,
    /// Paths that the server's entry makes unreadable. They count only if the server is sandboxed.
    pub denied: Arc<DeniedReads>,
    /// Treatment of tools that have no annotation.
    pub unannotated: Unannotated,
    /// Session folder, or `None` if there is no session.
    pub sandbox: Option<CanonicalPath>,
    /// Resolver for paths, including `~` and relative paths.
    pub resolver: Resolver,
    /// Active file grants for this client and server.
    pub grants: Vec<PathGrant>,
    /// Active host grants for this client and server.
    pub hosts: Vec<HostGrant>,
    /// Active tool grants for this client and server.
    pub tools: Vec<ToolGrant>,
    /// Approvals that the user gave for this call only.
    pub approved: Vec<PendingApproval>,
    /// Access that the server currently has beyond its own folders.
    pub reach: ServerReach,
    /// `true` if the server has no network and can access only its own folders and granted paths.
    pub confined: bool,
    /// Names of the tools that the server declares as read-only, if that declaration currently counts.
    pub reading_hints: Arc<HashSet<String>>,
}

/// Verdict on a call, with the details that the audit log records.
#[derive(Debug)]
pub struct CallJudgement {
    /// Decision of the policy.
    pub verdict: Verdict,
    /// Arguments and paths of the call.
    pub inspected: InspectedCall,
}

/// Arguments and paths of a judged call.
#[derive(Debug)]
pub struct InspectedCall {
    /// Arguments with canonical paths, or the original arguments if the call is invalid.
    pub arguments: Arc<Map<String, Value>>,
    /// Resolved paths of the call, with their file types.
    pub paths: FoundPaths,
}

impl CallJudgement {
    /// Creates the judgement that denies an invalid call.
    pub fn deny_invalid(denial: Denial, arguments: &Arc<Map<String, Value>>) -> Self {
        let inspected = InspectedCall { arguments: Arc::clone(arguments), paths: FoundPaths::default() };
        Self { verdict: Verdict::Deny(denial), inspected }
    }
}

/// Parsed call with resolved paths. Its git facts may still be missing.
#[derive(Debug)]
pub struct PlannedCall<'a> {
    plan: CallPlan<'a>,
    found: ResolvedValues,
    remotes: Option<RemoteQuery>,
}

impl JudgingContext {
    /// Returns the method with which a server writes files in its sandbox, or `None` if its entry opts out of the
    /// sandbox.
    #[must_use]
    pub fn contained(server: &Server) -> Option<FileWrites> {
        server.sandbox.settings().map(|_| server.file_writes)
    }

    /// Like [`JudgingContext::contained`], but takes a server name. A server without an entry counts as sandboxed.
    #[must_use]
    pub fn contained_by_name(servers: &Servers, name: &str) -> Option<FileWrites> {
        servers.find(Some(name)).map_or(Some(FileWrites::default()), Self::contained)
    }

    /// Returns the paths that a server's entry makes unreadable. `sandbox` is the session folder, if there is a session.
    #[must_use]
    pub fn denied_by_entry(
        home: &Home,
        servers: &Servers,
        snapshot: &PolicySnapshot,
        name: &str,
        sandbox: Option<&CanonicalPath>,
    ) -> Arc<DeniedReads> {
        let settings = servers.find(Some(name)).and_then(|server| server.sandbox.settings());
        // Any folder can stand for the session folder, because the paths in the entry are relative to it.
        let session_dir = sandbox.map_or_else(|| home.sessions(), |sandbox| sandbox.as_path().to_owned());
        let denied = settings.map(|settings| DeniedReads::new(settings, &session_dir, &snapshot.home));
        Arc::new(denied.unwrap_or_default())
    }

    /// Returns how unannotated tools are treated: the setting in the server's entry, or the default if the server has
    /// no entry.
    #[must_use]
    pub fn unannotated_by_name(servers: &Servers, name: &str) -> Unannotated {
        servers.find(Some(name)).map(|server| server.unannotated).unwrap_or_default()
    }

    /// Returns the access that a server will have according to its entry, the policy and these grants. Its other mounts
    /// are known only while it is running.
    #[must_use]
    pub fn reach_by_entry(
        home: &Home,
        servers: &Servers,
        snapshot: &PolicySnapshot,
        name: &str,
        grants: &[PathGrant],
    ) -> ServerReach {
        let is_confined = Self::confined_by_entry(home, servers, snapshot, name)
            && grants.is_empty()
            && snapshot.open_folders(name).is_empty();
        if is_confined { ServerReach::Nothing } else { ServerReach::Something }
    }

    /// Returns `true` if, according to its entry, a server has no network and can access only its own folders and
    /// granted paths.
    #[must_use]
    pub fn confined_by_entry(home: &Home, servers: &Servers, snapshot: &PolicySnapshot, name: &str) -> bool {
        let server = servers.find(Some(name)).filter(|server| server.access == ServerAccess::Grants);
        let Some(settings) = server.and_then(|server| server.sandbox.settings()) else {
            return false;
        };
        // Any folder can stand for the session folder, because the paths in the entry are relative to it.
        let session_dir = home.sessions();
        let profile = Profile::new(settings, &session_dir, snapshot.home.as_path());
        view_of(settings) == FileView::Roots && profile.opens_nothing(&session_dir, &home.server_data(name))
    }

    /// Parses a call and resolves its paths.
    ///
    /// # Errors
    /// Returns a denial if an argument is invalid or a path cannot be resolved.
    pub fn plan<'a>(
        &'a self,
        tool: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<PlannedCall<'a>, Denial> {
        let plan = self.snapshot.annotations.plan_or_ask(&self.server, tool, arguments, self.unannotated)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        let remotes = RemoteQuery::new(&plan, found.paths.iter().map(|found| &found.path));
        Ok(PlannedCall { plan, found, remotes })
    }

    /// Plans the judgement of a file operation by a sandboxed program.
    ///
    /// # Errors
    /// Returns a denial if the path cannot be resolved.
    pub fn plan_file<'a>(
        &'a self,
        operation: FileOperation,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<PlannedCall<'a>, Denial> {
        let plan = operation.plan(&self.server, arguments)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        Ok(PlannedCall { plan, found, remotes: None })
    }

    /// Plans the judgement of a sandboxed program's access to everything in a folder.
    ///
    /// # Errors
    /// Returns a denial if the path cannot be resolved.
    pub fn plan_folder<'a>(
        &'a self,
        operation: FileOperation,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<PlannedCall<'a>, Denial> {
        let plan = operation.plan_recursive(&self.server, arguments)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        Ok(PlannedCall { plan, found, remotes: None })
    }

    /// Plans the judgement of a sandboxed program's connection to a host.
    ///
    /// # Errors
    /// Returns a denial if the arguments are invalid.
    pub fn plan_connection<'a>(
        &'a self,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<PlannedCall<'a>, Denial> {
        let plan = HostConnection.plan(&self.server, arguments)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        Ok(PlannedCall { plan, found, remotes: None })
    }

    /// Returns the verdict on a call, and the details for the audit log.
    #[must_use]
    pub fn judge(&self, located: LocatedCall) -> CallJudgement {
        let denial = self.deny_exposure(&located);
        let LocatedCall { call, paths } = located;
        let arguments = call.shared_arguments();
        let verdict = match denial {
            Some(denial) => Verdict::Deny(denial),
            None => self.judge_call(&self.grants_where(|path| paths.has_folder(path)), call),
        };
        CallJudgement { verdict, inspected: InspectedCall { arguments, paths } }
    }

    /// Returns the rule of the user's organization that restricts a call, regardless of the user's rules and grants.
    pub fn restriction(&self, call: &ResolvedCall) -> Option<RuleReason> {
        self.with_context(&self.grants, |context| restriction(&self.snapshot.policy, context, call))
    }

    /// Judges a call and returns the verdict with the steps that led to it.
    #[must_use]
    pub fn explain(&self, located: LocatedCall) -> Explanation {
        if let Some(denial) = self.deny_exposure(&located) {
            return Explanation { steps: Vec::new(), verdict: Verdict::Deny(denial) };
        }
        let LocatedCall { call, paths } = located;
        let grants = self.grants_where(|path| paths.has_folder(path));
        self.with_context(&grants, |context| explain(&self.snapshot.policy, context, call))
    }

    fn judge_call(&self, grants: &[PathGrant], call: ResolvedCall) -> Verdict {
        self.with_context(grants, |context| judge(&self.snapshot.policy, context, call))
    }

    /// Returns the grants that apply to the current files. A grant for a file does not apply once a folder has
    /// replaced the file.
    fn grants_where(&self, is_folder: impl Fn(&CanonicalPath) -> bool) -> Cow<'_, [PathGrant]> {
        let is_replaced_by_folder =
            |grant: &PathGrant| grant.kind == GrantKind::File && is_folder(&grant.path);
        if !self.grants.iter().any(is_replaced_by_folder) {
            return Cow::Borrowed(&self.grants);
        }
        self.grants.iter().filter(|grant| !is_replaced_by_folder(grant)).cloned().collect()
    }

    fn deny_exposure(&self, located: &LocatedCall) -> Option<Denial> {
        let writes = self.contained?;
        let unreadable = located.paths.iter().map(|found| &found.path).find(|path| self.denied.covers(path));
        let unreadable = unreadable.map(|path| {
            Denial::protected(format!(
                "the entry of the server `{}` makes `{path}` unreadable (`sandbox.filesystem.denyRead`)",
                self.server
            ))
        });
        unreadable.or_else(|| located.deny_exposure(self.sandbox.as_ref(), writes, &self.snapshot.protected))
    }

    fn with_context<T>(&self, grants: &[PathGrant], judge_with: impl FnOnce(&Context<'_>) -> T) -> T {
        judge_with(&Context {
            sandbox: self.sandbox.as_ref(),
            sandbox_servers: std::slice::from_ref(&self.server),
            protected: &self.snapshot.protected,
            allowed_hosts: &self.snapshot.allowed_hosts,
            grants,
            hosts: &self.hosts,
            tools: &self.tools,
            approved: &self.approved,
            reach: self.reach,
            confined: self.confined,
        })
    }
}

impl PlannedCall<'_> {
    /// Returns `true` if git must be queried for a remote's URLs.
    #[must_use]
    pub fn needs_git(&self) -> bool {
        self.remotes.is_some()
    }

    /// Prepares the call for judging. Blocks if git must be queried.
    ///
    /// # Errors
    /// Returns a denial if git fails.
    pub fn locate(mut self, context: &JudgingContext) -> Result<LocatedCall, Denial> {
        if let Some(question) = self.remotes.take() {
            for (index, fact) in self.remotes(&question, context) {
                if let Some(slot) = self.found.facts.get_mut(index) {
                    *slot = fact;
                }
            }
        }
        let call = self.plan.resolve(self.found.facts)?;
        let is_hinted = context.reading_hints.contains(call.tool());
        Ok(LocatedCall { call: call.with_read_only_hint(is_hinted), paths: self.found.paths })
    }

    fn remotes(&self, question: &RemoteQuery, context: &JudgingContext) -> Vec<(usize, Fact)> {
        let (plan, facts) = found_paths::without_remotes(&self.plan, &self.found.facts);
        // Git only reads the folder.
        let is_open = |facts: Vec<Fact>, folder: Option<&CanonicalPath>| {
            let is_folder = |path: &CanonicalPath| folder == Some(path) || self.found.paths.has_folder(path);
            let (grants, call) = (context.grants_where(is_folder), plan.resolve(facts));
            call.is_ok_and(|call| !matches!(context.judge_call(&grants, call), Verdict::Deny(_)))
        };
        if !self.found.paths.is_empty() && !is_open(facts.clone(), None) {
            return question.all_unknown();
        }
        // Judges the call as if it named that folder.
        let may_query = |folder: &CanonicalPath| {
            let mut facts = facts.clone();
            for fact in &mut facts {
                if let Fact::Path(path) = fact
                    && question.repositories().contains(path)
                {
                    *path = folder.clone();
                }
            }
            is_open(facts, Some(folder))
        };
        let git = GitContext { home: context.snapshot.home.clone(), in_sandbox: context.contained.is_some() };
        question.resolve_addresses(&git, &may_query)
    }
}

/// Prepares a call for judging. If git must be queried, the call is parsed again on a blocking thread.
///
/// # Errors
/// Returns a denial if the call is invalid or git fails.
pub async fn locate(
    context: &Arc<JudgingContext>,
    tool: &str,
    arguments: &Arc<Map<String, Value>>,
) -> Result<LocatedCall, Denial> {
    let planned = context.plan(tool, arguments)?;
    if !planned.needs_git() {
        return planned.locate(context);
    }
    let (context, tool, arguments) = (context.clone(), tool.to_owned(), arguments.clone());
    let locate = move || context.plan(&tool, &arguments)?.locate(&context);
    tokio::task::spawn_blocking(locate).await.unwrap_or_else(|_| Err(git_failed()))
}

fn git_failed() -> Denial {
    Denial::invalid("failed to query git about the remote")
}

/// Returns the name that the audit log uses for the reason for an approval.
pub fn allowed_by(by: AllowedBy) -> DecidedBy {
    match by {
        AllowedBy::Rule => DecidedBy::Rule,
        AllowedBy::Answer => DecidedBy::Answer,
        AllowedBy::SessionFolder => DecidedBy::SessionFolder,
        AllowedBy::Grant => DecidedBy::Grant,
        AllowedBy::Introspection => DecidedBy::Introspection,
        AllowedBy::Confined => DecidedBy::PassedOn,
    }
}

/// Returns the name that the audit log uses for the reason for a denial.
pub fn denied_by(by: DeniedBy) -> DecidedBy {
    match by {
        DeniedBy::Rule => DecidedBy::Rule,
        DeniedBy::NoRule => DecidedBy::NoRule,
        DeniedBy::ProtectedPath => DecidedBy::ProtectedPath,
        DeniedBy::InvalidArgument => DecidedBy::InvalidArgument,
        DeniedBy::UnknownTool => DecidedBy::UnknownTool,
    }
}

#[cfg(test)]
mod tests;
