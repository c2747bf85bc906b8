//! Judging one call as things stand: what the trusted process does for every call, and what a person is told who asks
//! how a call would be judged.
//!
//! - Nothing is judged but what the server would be shown and sent: what cannot be given to a sandboxed server without
//!   uncovering something protected is denied, whatever the rules say.
//! - Git is asked only for a call whose paths are not denied, and only about places that would not be denied either.

mod folder;

use crate::containment::{Profile, view_of};
use crate::policy_snapshot::PolicySnapshot;
use ironcurtain_config::home::Home;
use ironcurtain_config::{FileView, Server, Servers};
use ironcurtain_consent::found_paths::{self, FoundPaths, ResolvedValues};
use ironcurtain_consent::located_call::LocatedCall;
use ironcurtain_git_facts::{GitContext, RemoteQuestion};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::FileWrites;
use ironcurtain_policy::{
    CallPlan, Context, Denial, Explanation, Fact, GrantKind, HostGrant, PathGrant, PendingApproval,
    ResolvedCall, ServerReach, ToolGrant, Unannotated, Verdict, explain, judge,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Everything one call is judged with.
#[derive(Debug, Clone)]
pub struct JudgingContext {
    /// Policy, annotations, protected paths and gates.
    pub snapshot: Arc<PolicySnapshot>,
    /// The server.
    pub server: String,
    /// The way it writes files in its sandbox; nothing when it has none.
    pub contained: Option<FileWrites>,
    /// The answer to its tools that nobody has annotated.
    pub unannotated: Unannotated,
    /// The session sandbox directory, if there is one.
    pub sandbox: Option<CanonicalPath>,
    /// Resolves paths, `~` and relative ones among them.
    pub resolver: Resolver,
    /// Live grants for this client and this server.
    pub grants: Vec<PathGrant>,
    /// Live grants of hosts for this client and this server.
    pub hosts: Vec<HostGrant>,
    /// Live grants of tools for this client and this server.
    pub tools: Vec<ToolGrant>,
    /// Approvals that a person gave for this very call.
    pub approved: Vec<PendingApproval>,
    /// The reach of the server, right now.
    pub reach: ServerReach,
    /// The server has no network and is shown nothing but its own folders and what is granted to it.
    pub confined: bool,
}

/// A verdict, and the call as it was looked at for it.
#[derive(Debug)]
pub struct CallJudgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The call as it was looked at, for the record.
    pub inspected: InspectedCall,
}

/// A call as it was looked at: as the client wrote it, where it was not understood.
#[derive(Debug)]
pub struct InspectedCall {
    /// Its arguments, canonical where they name something.
    pub arguments: Arc<Map<String, Value>>,
    /// The files that were found at its paths.
    pub paths: FoundPaths,
}

impl CallJudgement {
    /// The denial of a call that is not understood, which is inspected as the client wrote it.
    pub(crate) fn not_understood(denial: Denial, arguments: &Arc<Map<String, Value>>) -> Self {
        let inspected = InspectedCall { arguments: Arc::clone(arguments), paths: FoundPaths::default() };
        Self { verdict: Verdict::Deny(denial), inspected }
    }
}

/// A call that is understood, and what the disk says about it.
#[derive(Debug)]
pub struct Planned<'a> {
    plan: CallPlan<'a>,
    found: ResolvedValues,
    remotes: Option<RemoteQuestion>,
}

impl JudgingContext {
    /// The way a server writes files in its sandbox; nothing when it opted out.
    #[must_use]
    pub fn contained(server: &Server) -> Option<FileWrites> {
        server.sandbox.settings().map(|_| server.file_writes)
    }

    /// As [`JudgingContext::contained`], for a server by its name. One that is not configured is taken for a sandboxed one.
    #[must_use]
    pub fn contained_by_name(servers: &Servers, name: &str) -> Option<FileWrites> {
        servers.find(Some(name)).map_or(Some(FileWrites::default()), Self::contained)
    }

    /// The answer to tools of a server that nobody has annotated, by its entry. One that is not configured has none.
    #[must_use]
    pub fn unannotated_by_name(servers: &Servers, name: &str) -> Unannotated {
        servers.find(Some(name)).map(|server| server.unannotated).unwrap_or_default()
    }

    /// The reach that a server will have by its entry, what the policy opens to it for good and these grants. What it is
    /// shown beside that is known only while it runs.
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

    /// Returns `true` if a server has, by its entry, no network and is shown nothing but its own folders and what is granted
    /// to it.
    #[must_use]
    pub fn confined_by_entry(home: &Home, servers: &Servers, snapshot: &PolicySnapshot, name: &str) -> bool {
        let Some(settings) = servers.find(Some(name)).and_then(|server| server.sandbox.settings()) else {
            return false;
        };
        // Any folder will do: what an entry says of the session's own folder is relative to it.
        let session_dir = home.sessions();
        let profile = Profile::new(settings, &session_dir, snapshot.home.as_path());
        view_of(settings) == FileView::Roots && profile.opens_nothing(&session_dir, &home.server_data(name))
    }

    /// Understands a call and resolves its paths.
    ///
    /// # Errors
    /// A denial.
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

    /// Judges a call.
    #[must_use]
    pub fn judge(&self, located: LocatedCall) -> CallJudgement {
        let denial = self.uncovers(&located);
        let LocatedCall { call, paths } = located;
        let arguments = call.shared_arguments();
        let verdict = match denial {
            Some(denial) => Verdict::Deny(denial),
            None => self.judge_call(&self.grants_where(|path| paths.has_folder(path)), call),
        };
        CallJudgement { verdict, inspected: InspectedCall { arguments, paths } }
    }

    /// Judges a call and tells the way to the verdict.
    #[must_use]
    pub fn explain(&self, located: LocatedCall) -> Explanation {
        if let Some(denial) = self.uncovers(&located) {
            return Explanation { steps: Vec::new(), verdict: Verdict::Deny(denial) };
        }
        let LocatedCall { call, paths } = located;
        let grants = self.grants_where(|path| paths.has_folder(path));
        self.with_context(&grants, |context| explain(&self.snapshot.policy, context, call))
    }

    fn judge_call(&self, grants: &[PathGrant], call: ResolvedCall) -> Verdict {
        self.with_context(grants, |context| judge(&self.snapshot.policy, context, call))
    }

    /// The grants that are for what is there now: one for a file is none for a folder in its place.
    fn grants_where(&self, is_folder: impl Fn(&CanonicalPath) -> bool) -> Cow<'_, [PathGrant]> {
        let is_outgrown = |grant: &PathGrant| grant.kind == GrantKind::File && is_folder(&grant.path);
        if !self.grants.iter().any(is_outgrown) {
            return Cow::Borrowed(&self.grants);
        }
        self.grants.iter().filter(|grant| !is_outgrown(grant)).cloned().collect()
    }

    fn uncovers(&self, located: &LocatedCall) -> Option<Denial> {
        located.uncovers(self.sandbox.as_ref(), self.contained?, &self.snapshot.protected)
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
    /// Returns `true` if git must be asked where a remote leads.
    #[must_use]
    pub fn asks_git(&self) -> bool {
        self.remotes.is_some()
    }

    /// Makes it ready to be judged, asking git where that is needed: blocking then.
    ///
    /// # Errors
    /// A denial.
    pub fn locate(mut self, setting: &JudgingContext) -> Result<LocatedCall, Denial> {
        if let Some(question) = self.remotes.take() {
            for (at, fact) in self.remotes(&question, setting) {
                if let Some(place) = self.found.facts.get_mut(at) {
                    *place = fact;
                }
            }
        }
        Ok(LocatedCall { call: self.plan.resolve(self.found.facts)?, paths: self.found.paths })
    }

    fn remotes(&self, question: &RemoteQuestion, setting: &JudgingContext) -> Vec<(usize, Fact)> {
        let (plan, facts) = found_paths::without_remotes(&self.plan, &self.found.facts);
        // A place that git would look at is a folder.
        let is_open = |facts: Vec<Fact>, place: Option<&CanonicalPath>| {
            let is_folder = |path: &CanonicalPath| place == Some(path) || self.found.paths.has_folder(path);
            let (grants, call) = (setting.grants_where(is_folder), plan.resolve(facts));
            call.is_ok_and(|call| !matches!(setting.judge_call(&grants, call), Verdict::Deny(_)))
        };
        if !self.found.paths.is_empty() && !is_open(facts.clone(), None) {
            return question.refused();
        }
        // As if the call named that place.
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
        let git =
            GitContext { person: setting.snapshot.home.clone(), in_sandbox: setting.contained.is_some() };
        question.answer(&git, &may_look)
    }
}

/// Makes a call ready to be judged. One that git is asked about is looked at anew, on a thread that may wait.
///
/// # Errors
/// A denial.
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
    tokio::task::spawn_blocking(locate).await.unwrap_or_else(|_| Err(not_asked()))
}

fn not_asked() -> Denial {
    Denial::invalid("git could not be asked about the remote")
}

#[cfg(test)]
mod tests;
