//! Judges one call in the current state, for every call in the trusted process and for users who ask how a call would be
//! judged.
//!
//! - Only what the server would be given and sent is judged. Access that cannot be given to a sandboxed server without exposing
//!   something protected is denied, regardless of the rules.
//! - Git is queried only for a call whose paths are not denied, and only about folders that would not be denied either.

mod folder;

use ironcurtain_audit::DecidedBy;
use ironcurtain_config::home::Home;
use ironcurtain_config::{FileView, PolicySnapshot, Server, Servers};
use ironcurtain_consent::found_paths::{self, FoundPaths, ResolvedValues};
use ironcurtain_consent::located_call::LocatedCall;
use ironcurtain_containment::{Profile, view_of};
use ironcurtain_git_facts::{GitContext, RemoteQuestion};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{
    AllowedBy, CallPlan, Context, Denial, DeniedBy, Explanation, Fact, FileOperation, FileWrites, GrantKind,
    HostConnection, HostGrant, PathGrant, PendingApproval, ResolvedCall, ServerReach, ToolGrant, Unannotated,
    Verdict, explain, judge,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Everything that one call is judged with.
#[derive(Debug, Clone)]
pub struct JudgingContext {
    /// Policy, annotations, protected paths and gates.
    pub snapshot: Arc<PolicySnapshot>,
    /// Name of the server.
    pub server: String,
    /// Way in which the server writes files in its sandbox. `None` without a sandbox.
    pub contained: Option<FileWrites>,
    /// Treatment of the server's unannotated tools.
    pub unannotated: Unannotated,
    /// Session sandbox directory, if there is one.
    pub sandbox: Option<CanonicalPath>,
    /// Resolves paths, including `~` and relative ones.
    pub resolver: Resolver,
    /// Live path grants for this client and server.
    pub grants: Vec<PathGrant>,
    /// Live host grants for this client and server.
    pub hosts: Vec<HostGrant>,
    /// Live tool grants for this client and server.
    pub tools: Vec<ToolGrant>,
    /// Approvals that the user gave for this call.
    pub approved: Vec<PendingApproval>,
    /// Current reach of the server.
    pub reach: ServerReach,
    /// Set if the server has no network and sees only its own folders and what is granted to it.
    pub confined: bool,
    /// Tools that only read according to a hint of the server that counts now.
    pub reading_hints: Arc<HashSet<String>>,
}

/// Verdict, with the call it was reached for.
#[derive(Debug)]
pub struct CallJudgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The inspected call, for the audit record.
    pub inspected: InspectedCall,
}

/// Inspected call, or the client's original if it could not be parsed.
#[derive(Debug)]
pub struct InspectedCall {
    /// Arguments, with paths in canonical form.
    pub arguments: Arc<Map<String, Value>>,
    /// Files found at its paths.
    pub paths: FoundPaths,
}

impl CallJudgement {
    /// Returns the denial of a call that could not be parsed.
    pub(crate) fn not_understood(denial: Denial, arguments: &Arc<Map<String, Value>>) -> Self {
        let inspected = InspectedCall { arguments: Arc::clone(arguments), paths: FoundPaths::default() };
        Self { verdict: Verdict::Deny(denial), inspected }
    }
}

/// Parsed call with its resolved values.
#[derive(Debug)]
pub struct Planned<'a> {
    plan: CallPlan<'a>,
    found: ResolvedValues,
    remotes: Option<RemoteQuestion>,
}

impl JudgingContext {
    /// Returns how a server writes files in its sandbox, or `None` if it opted out of the sandbox.
    #[must_use]
    pub fn contained(server: &Server) -> Option<FileWrites> {
        server.sandbox.settings().map(|_| server.file_writes)
    }

    /// Same as [`JudgingContext::contained`] for a server name. A server that is not configured counts as sandboxed.
    #[must_use]
    pub fn contained_by_name(servers: &Servers, name: &str) -> Option<FileWrites> {
        servers.find(Some(name)).map_or(Some(FileWrites::default()), Self::contained)
    }

    /// Returns the treatment of a server's unannotated tools from its entry, or the default for a server that is not
    /// configured.
    #[must_use]
    pub fn unannotated_by_name(servers: &Servers, name: &str) -> Unannotated {
        servers.find(Some(name)).map(|server| server.unannotated).unwrap_or_default()
    }

    /// Returns the reach that a server will have from its entry, the policy and these grants. Further mounts are known only
    /// while it runs.
    #[must_use]
    pub fn reach_by_entry(
        home: &Home,
        servers: &Servers,
        snapshot: &PolicySnapshot,
        name: &str,
        grants: &[PathGrant],
    ) -> ServerReach {
        let is_shut = Self::confined_by_entry(home, servers, snapshot, name)
            && grants.is_empty()
            && snapshot.open_folders(name).is_empty();
        if is_shut { ServerReach::Nothing } else { ServerReach::Something }
    }

    /// Returns `true` if, according to its entry, a server has no network and sees only its own folders and what is granted to
    /// it.
    #[must_use]
    pub fn confined_by_entry(home: &Home, servers: &Servers, snapshot: &PolicySnapshot, name: &str) -> bool {
        let Some(settings) = servers.find(Some(name)).and_then(|server| server.sandbox.settings()) else {
            return false;
        };
        // Any folder works here, because the entry's paths are relative to the session directory.
        let session_dir = home.sessions();
        let profile = Profile::new(settings, &session_dir, snapshot.home.as_path());
        view_of(settings) == FileView::Roots && profile.opens_nothing(&session_dir, &home.server_data(name))
    }

    /// Parses a call and resolves its paths.
    ///
    /// # Errors
    /// Returns a denial if the call is invalid.
    pub fn plan<'a>(
        &'a self,
        tool: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<Planned<'a>, Denial> {
        let plan = self.snapshot.annotations.plan_or_ask(&self.server, tool, arguments, self.unannotated)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        let remotes = RemoteQuestion::of(&plan, found.paths.iter().map(|found| &found.path));
        Ok(Planned { plan, found, remotes })
    }

    /// Plans what a sandboxed program does with a file.
    ///
    /// # Errors
    /// Returns a denial if the path cannot be resolved.
    pub fn plan_file<'a>(
        &'a self,
        operation: FileOperation,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<Planned<'a>, Denial> {
        let plan = operation.plan(&self.server, arguments)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        Ok(Planned { plan, found, remotes: None })
    }

    /// Plans a sandboxed program's connection to a host.
    ///
    /// # Errors
    /// Returns a denial if the arguments are invalid.
    pub fn plan_connection<'a>(
        &'a self,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<Planned<'a>, Denial> {
        let plan = HostConnection.plan(&self.server, arguments)?;
        let found = found_paths::paths(&plan, &Fact::Plain, |raw| self.resolver.resolve(raw))?;
        Ok(Planned { plan, found, remotes: None })
    }

    /// Judges a call.
    #[must_use]
    pub fn judge(&self, located: LocatedCall) -> CallJudgement {
        let denial = self.exposed_protected(&located);
        let LocatedCall { call, paths } = located;
        let arguments = call.shared_arguments();
        let verdict = match denial {
            Some(denial) => Verdict::Deny(denial),
            None => self.judge_call(&self.grants_where(|path| paths.has_folder(path)), call),
        };
        CallJudgement { verdict, inspected: InspectedCall { arguments, paths } }
    }

    /// Judges a call and returns the steps to the verdict.
    #[must_use]
    pub fn explain(&self, located: LocatedCall) -> Explanation {
        if let Some(denial) = self.exposed_protected(&located) {
            return Explanation { steps: Vec::new(), verdict: Verdict::Deny(denial) };
        }
        let LocatedCall { call, paths } = located;
        let grants = self.grants_where(|path| paths.has_folder(path));
        self.with_context(&grants, |context| explain(&self.snapshot.policy, context, call))
    }

    fn judge_call(&self, grants: &[PathGrant], call: ResolvedCall) -> Verdict {
        self.with_context(grants, |context| judge(&self.snapshot.policy, context, call))
    }

    /// Returns the grants that match the current files: a grant for a file does not apply to a folder in its place.
    fn grants_where(&self, is_folder: impl Fn(&CanonicalPath) -> bool) -> Cow<'_, [PathGrant]> {
        let is_outgrown = |grant: &PathGrant| grant.kind == GrantKind::File && is_folder(&grant.path);
        if !self.grants.iter().any(is_outgrown) {
            return Cow::Borrowed(&self.grants);
        }
        self.grants.iter().filter(|grant| !is_outgrown(grant)).cloned().collect()
    }

    fn exposed_protected(&self, located: &LocatedCall) -> Option<Denial> {
        located.exposed_protected(self.sandbox.as_ref(), self.contained?, &self.snapshot.protected)
    }

    fn with_context<T>(&self, grants: &[PathGrant], then: impl FnOnce(&Context<'_>) -> T) -> T {
        then(&Context {
            sandbox: self.sandbox.as_ref(),
            sandbox_servers: std::slice::from_ref(&self.server),
            protected: &self.snapshot.protected,
            gates: &self.snapshot.gates,
            grants,
            hosts: &self.hosts,
            tools: &self.tools,
            approved: &self.approved,
            reach: self.reach,
            confined: self.confined,
        })
    }
}

impl Planned<'_> {
    /// Returns `true` if git must be queried for the target of a remote.
    #[must_use]
    pub fn asks_git(&self) -> bool {
        self.remotes.is_some()
    }

    /// Prepares the call for judging. Blocking if git is queried.
    ///
    /// # Errors
    /// Returns a denial if git cannot answer.
    pub fn locate(mut self, setting: &JudgingContext) -> Result<LocatedCall, Denial> {
        if let Some(question) = self.remotes.take() {
            for (at, fact) in self.remotes(&question, setting) {
                if let Some(place) = self.found.facts.get_mut(at) {
                    *place = fact;
                }
            }
        }
        let call = self.plan.resolve(self.found.facts)?;
        let is_hinted = setting.reading_hints.contains(call.tool());
        Ok(LocatedCall { call: call.with_reading_hint(is_hinted), paths: self.found.paths })
    }

    fn remotes(&self, question: &RemoteQuestion, setting: &JudgingContext) -> Vec<(usize, Fact)> {
        let (plan, facts) = found_paths::without_remotes(&self.plan, &self.found.facts);
        // Git only looks at folders.
        let is_open = |facts: Vec<Fact>, place: Option<&CanonicalPath>| {
            let is_folder = |path: &CanonicalPath| place == Some(path) || self.found.paths.has_folder(path);
            let (grants, call) = (setting.grants_where(is_folder), plan.resolve(facts));
            call.is_ok_and(|call| !matches!(setting.judge_call(&grants, call), Verdict::Deny(_)))
        };
        if !self.found.paths.is_empty() && !is_open(facts.clone(), None) {
            return question.refused();
        }
        // Judges as if the call named that folder.
        let may_look = |place: &CanonicalPath| {
            let mut facts = facts.clone();
            for fact in &mut facts {
                if let Fact::Path(path) = fact
                    && question.repositories().contains(path)
                {
                    *path = place.clone();
                }
            }
            is_open(facts, Some(place))
        };
        let git = GitContext { home: setting.snapshot.home.clone(), in_sandbox: setting.contained.is_some() };
        question.answer(&git, &may_look)
    }
}

/// Prepares a call for judging. A call that needs git is parsed again on a blocking thread.
///
/// # Errors
/// Returns a denial if the call is invalid or git cannot answer.
pub async fn locate(
    setting: &Arc<JudgingContext>,
    tool: &str,
    arguments: &Arc<Map<String, Value>>,
) -> Result<LocatedCall, Denial> {
    let planned = setting.plan(tool, arguments)?;
    if !planned.asks_git() {
        return planned.locate(setting);
    }
    let (setting, tool, arguments) = (setting.clone(), tool.to_owned(), arguments.clone());
    let locate = move || setting.plan(&tool, &arguments)?.locate(&setting);
    tokio::task::spawn_blocking(locate).await.unwrap_or_else(|_| Err(git_failed()))
}

fn git_failed() -> Denial {
    Denial::invalid("failed to query git about the remote")
}

/// Converts the judge's reason for allowing a call to its audit form.
pub(crate) fn allowed_by(by: AllowedBy) -> DecidedBy {
    match by {
        AllowedBy::Rule => DecidedBy::Rule,
        AllowedBy::Answer => DecidedBy::Answer,
        AllowedBy::SessionFolder => DecidedBy::SessionFolder,
        AllowedBy::Grant => DecidedBy::Grant,
        AllowedBy::Introspection => DecidedBy::Introspection,
        AllowedBy::Confined => DecidedBy::PassedOn,
    }
}

/// Converts the judge's reason for denying a call to its audit form.
pub(crate) fn denied_by(by: DeniedBy) -> DecidedBy {
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
