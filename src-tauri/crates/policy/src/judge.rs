//! The judge.
//!
//! - Structure first (protected paths, introspection, session sandbox), then grants, then rules, value by value.
//! - The strictest answer wins: deny, then escalate, then allow. What nothing covers is denied.
//! - A deny rule is never overruled: not by a grant, not by a person's answer, not by a URL gate.

pub(crate) mod cover;
mod examples;
mod explain;
mod protect;
mod tally;

pub use explain::{Explanation, Miss, Settled, Step};

use crate::rules::RulesFor;
use crate::{
    Access, AllowedBy, Asked, Gates, Given, Grant, HostGrant, Policy, Protected, Reason, ResolvedCall,
    Resource, Role, Rule, SharedStr, Spoken, Verdict,
};
use cover::Scope;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_paths::protected::Known;
use std::cell::OnceCell;
use tally::{Finding, Settled as By, Tally};

static INTROSPECTION: Spoken = Spoken {
    rule: SharedStr::fixed("structural-introspection-allow"),
    reason: SharedStr::fixed("asking which folders are open is always allowed"),
};
static SANDBOX: Spoken = Spoken {
    rule: SharedStr::fixed("structural-sandbox-allow"),
    reason: SharedStr::fixed("the path is inside the session sandbox"),
};

/// What the judge knows besides the policy. All of it belongs to the caller and to this moment.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The session sandbox directory, if there is one.
    pub sandbox: Option<&'a CanonicalPath>,
    /// The servers whose paths the session sandbox settles.
    pub sandbox_servers: &'a [String],
    /// Paths that no call touches. A session sandbox below one of them is not protected by it.
    pub protected: &'a Protected,
    /// Hosts each server may reach without a question.
    pub gates: &'a Gates,
    /// Live grants for this client and this server.
    pub grants: &'a [Grant],
    /// Live grants of hosts for this client and this server.
    pub hosts: &'a [HostGrant],
    /// What a person said yes to for this very call.
    pub approved: &'a [Asked],
}

/// Judges a call.
pub fn judge(policy: &Policy, context: &Context<'_>, call: &ResolvedCall) -> Verdict {
    if let Some(verdict) = structure(context, call) {
        return verdict;
    }
    let mut tally = Tally::default();
    Judging::new(policy, context, call).fill(&mut tally);
    tally.conclude(call, context.approved)
}

/// Judges a call and tells which rule settled each of its values, and why the rules before that one did not.
pub fn explain(policy: &Policy, context: &Context<'_>, call: &ResolvedCall) -> Explanation {
    let steps = match structure(context, call) {
        Some(_) => Vec::new(),
        None => Judging::new(policy, context, call).steps(),
    };
    Explanation { steps, verdict: judge(policy, context, call) }
}

/// What is decided whatever the rules say.
fn structure(context: &Context<'_>, call: &ResolvedCall) -> Option<Verdict> {
    if let Some(denial) = protect::refuse(context, call) {
        return Some(Verdict::Deny(denial));
    }
    is_introspection(call).then(|| tally::permit(AllowedBy::Introspection, Reason::fixed(&INTROSPECTION)))
}

fn is_introspection(call: &ResolvedCall) -> bool {
    call.server() == "filesystem"
        && call.tool() == "list_allowed_directories"
        && call.transport_arguments().is_empty()
}

/// One call being judged by the rules about its tool.
struct Judging<'a> {
    policy: &'a Policy,
    context: &'a Context<'a>,
    call: &'a ResolvedCall,
    /// The session sandbox, when it settles the paths of this server.
    sandbox: Option<&'a CanonicalPath>,
    /// Looked for when the first value needs a rule: what is in the session sandbox needs none.
    rules: OnceCell<RulesFor<'a>>,
}

impl<'a> Judging<'a> {
    fn new(policy: &'a Policy, context: &'a Context<'a>, call: &'a ResolvedCall) -> Self {
        let settles = context.sandbox_servers.iter().any(|server| *server == *call.server());
        let sandbox = context.sandbox.filter(|_| settles);
        Self { policy, context, call, sandbox, rules: OnceCell::new() }
    }

    /// The rules about the tool, in order.
    fn rules(&self) -> RulesFor<'a> {
        *self.rules.get_or_init(|| self.policy.rules_for(self.call.server(), self.call.tool()))
    }

    fn fill(&self, tally: &mut Tally<'a>) {
        if self.call.roles().is_empty() {
            self.judge_whole(tally);
        }
        self.call.roles().iter().for_each(|role| self.judge_role(*role, tally));
    }

    /// A tool that names no resource is judged as a whole.
    fn judge_whole(&self, tally: &mut Tally<'a>) {
        let rule = cover::first(self.rules(), |rule| cover::cover_call(rule, self.call));
        tally.add(Finding::WHOLE, rule);
    }

    /// The session sandbox settles a role whose values are all in it. Values in it next to others are judged like
    /// those, unless all the others are granted.
    fn judge_role(&self, role: Role, tally: &mut Tally<'a>) {
        let mut values = self.call.values(role).peekable();
        if values.peek().is_none() {
            return self.judge_value(&Scope { role, given: None }, tally);
        }
        let open = self.is_open(role);
        for given in values {
            if open && self.is_in_sandbox(given) {
                tally.settle(By::Sandbox);
            } else {
                self.judge_value(&Scope { role, given: Some(given) }, tally);
            }
        }
    }

    /// Whether every value of a role is in the session sandbox or granted.
    fn is_open(&self, role: Role) -> bool {
        self.call.values(role).all(|given| {
            self.is_in_sandbox(given) || self.grant_for(&Scope { role, given: Some(given) }).is_some()
        })
    }

    fn judge_value(&self, scope: &Scope<'a>, tally: &mut Tally<'a>) {
        if let Some(known) = self.started_by(scope) {
            tally.ask_about_start(scope.finding(), known);
        }
        if let Some(grant) = self.grant_for(scope) {
            return tally.settle(By::Grant(grant));
        }
        if let Some(grant) = self.host_grant_for(scope) {
            return tally.settle(By::Host(grant));
        }
        let rule = self.rule_for(scope);
        let gated = self.is_outside_gate(scope, rule);
        if gated {
            tally.gate(scope.finding(), self.is_understood(scope));
        }
        // A yes at the gate is a yes to the address, where no rule speaks about it.
        if !gated || rule.is_some() {
            tally.add(scope.finding(), rule);
        }
    }

    /// The line about a name by which a client is told what to start, where the value is written there. In the session
    /// sandbox nobody opens a client.
    fn started_by(&self, scope: &Scope<'_>) -> Option<&'static Known> {
        let given = scope.given.filter(|given| !self.is_in_sandbox(given))?;
        let Resource::Path(path) = &given.value else { return None };
        let writes = scope.role.access() == Some(Access::Write);
        let brings_folder = || self.call.roles().iter().any(|role| role.descends());
        writes.then(|| self.context.protected.starts(path, brings_folder()))?
    }

    /// Whether the gate asks about an address, whatever the rules say. One that the call does not give, since git knows
    /// it, is nobody's wish, and of one that nobody understands nobody could say what it opens: without a rule that
    /// covers it there is nothing to ask.
    fn is_outside_gate(&self, scope: &Scope<'_>, rule: Option<&Rule>) -> bool {
        let Some(given @ Given { value: Resource::Url(destination), .. }) = scope.given else { return false };
        let asks =
            rule.is_some() || (self.call.gives(self.call.argument(given)) && self.is_understood(scope));
        let admitted = self.context.gates.admits(self.call.server(), destination);
        // A granted host leaves a repository there to the rules; without one, the gate is all there is.
        let opened = rule.is_some() && self.context.hosts.iter().any(|grant| grant.covers(destination));
        asks && !admitted && !opened
    }

    /// Whether a value is an address that is certainly not meant to be open.
    fn is_understood(&self, scope: &Scope<'_>) -> bool {
        let Some(Given { value: Resource::Url(destination), .. }) = scope.given else { return false };
        self.context.gates.understand(self.call.server(), destination)
    }

    /// The rule that decides about a value.
    fn rule_for(&self, scope: &Scope<'_>) -> Option<&'a Rule> {
        cover::first(self.rules().speaking(scope.role), |rule| scope.cover(rule, self.call).ok())
    }

    /// A grant that covers a value, unless a rule denies it.
    fn grant_for(&self, scope: &Scope<'_>) -> Option<&'a Grant> {
        let Resource::Path(path) = &scope.given?.value else { return None };
        let grant = self.context.grants.iter().find(|grant| grant.covers(scope.role, path))?;
        (!self.rule_for(scope).is_some_and(Rule::denies)).then_some(grant)
    }

    /// A grant of a host that covers what is fetched, unless a rule denies it.
    fn host_grant_for(&self, scope: &Scope<'_>) -> Option<&'a HostGrant> {
        let Resource::Url(destination) = &scope.given?.value else { return None };
        let grant = self.context.hosts.iter().find(|grant| grant.covers(destination))?;
        let settles = scope.role == Role::FetchUrl && !self.rule_for(scope).is_some_and(Rule::denies);
        settles.then_some(grant)
    }

    fn is_in_sandbox(&self, given: &Given) -> bool {
        let (Some(sandbox), Resource::Path(path)) = (self.sandbox, &given.value) else { return false };
        sandbox.contains(path)
    }
}
