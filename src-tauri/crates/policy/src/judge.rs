//! Decides on calls.
//!
//! - Built-in checks run first (protected paths, introspection, session sandbox), then grants, then rules. Each value
//!   is judged separately.
//! - The strictest decision wins: deny, then escalate, then allow. A value that nothing covers is denied.
//! - The organization's settings, its rules and the user's rules are separate layers, and the strictest of their
//!   decisions applies. A managed rule that allows a value decides only if no user rule applies to the value. Managed
//!   rules that deny or require approval also apply to the session sandbox.
//! - Nothing overrides a deny rule: neither a grant, nor the user's approval, nor the server's allowed hosts.
//! - A call to an unannotated tool requires approval if the server's entry says so. The only allow rules that apply to
//!   such a call are those for servers that reach nothing, because the sandbox of such a server limits the call
//!   regardless of its arguments. A deny rule applies if it might cover the call.

pub(crate) mod cover;
mod evaluation;
mod examples;
mod explain;
mod protect;
mod ruling;
mod value;

pub use cover::Mismatch;
pub use explain::{Explanation, ExplanationStep, StepBasis};

use crate::decision::CONFINED;
use crate::rules::{Layer, RulesFor};
use crate::{
    Access, AllowedBy, AllowedHosts, Decision, HostGrant, PathGrant, PendingApproval, Permit, Policy,
    ProtectedPaths, ResolvedCall, ResolvedValue, Resource, Role, Rule, RuleReason, ServerReach, ToolGrant,
    Verdict,
};
use cover::{LayerRules, ValueInRole};
use evaluation::{Evaluation, RuleExemption};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_paths::protected::KnownPath;
use ruling::Ruling;
use std::cell::OnceCell;
use value::JudgedValue;

/// Data that the judge needs in addition to the policy and the call.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Session sandbox directory, or `None` if the session has none.
    pub sandbox: Option<&'a CanonicalPath>,
    /// Servers that may access paths in the session sandbox without a rule.
    pub sandbox_servers: &'a [String],
    /// Paths that no call may access. A session sandbox inside a protected folder remains accessible.
    pub protected: &'a ProtectedPaths,
    /// Hosts that each server may reach without approval.
    pub allowed_hosts: &'a AllowedHosts,
    /// Active path grants for this client and server.
    pub grants: &'a [PathGrant],
    /// Active host grants for this client and server.
    pub hosts: &'a [HostGrant],
    /// Active tool grants for this client and server.
    pub tools: &'a [ToolGrant],
    /// Values in this call that the user has approved.
    pub approved: &'a [PendingApproval],
    /// Current reach of the server that handles the call.
    pub reach: ServerReach,
    /// `true` if the server has no network and can access only its own folders and granted resources.
    pub confined: bool,
}

impl<'a> Context<'a> {
    /// Creates a context without a session sandbox, grants or approvals.
    #[must_use]
    pub fn new(protected: &'a ProtectedPaths, allowed_hosts: &'a AllowedHosts) -> Self {
        Self {
            sandbox: None,
            sandbox_servers: &[],
            protected,
            allowed_hosts,
            grants: &[],
            hosts: &[],
            tools: &[],
            approved: &[],
            reach: ServerReach::Unknown,
            confined: false,
        }
    }
}

/// Judges a call. The verdict contains the call, unless it is denied.
pub fn judge(policy: &Policy, context: &Context<'_>, call: ResolvedCall) -> Verdict {
    if let Some(denial) = protect::check(context, &call) {
        return Verdict::Deny(denial);
    }
    if is_introspection(policy, context, &call) {
        return Verdict::Allow(Permit::new(
            call,
            (AllowedBy::Introspection, introspection()),
            Vec::new(),
            Vec::new(),
        ));
    }
    let conclusion = CallJudge::new(policy, context, &call).evaluate().conclude(&call, context.approved);
    conclusion.map_or_else(Verdict::Deny, |conclusion| conclusion.verdict(call))
}

/// Judges a call like [`judge()`], and also reports which rule decided each value and why earlier rules did not apply.
pub fn explain(policy: &Policy, context: &Context<'_>, call: ResolvedCall) -> Explanation {
    let by_builtin_check =
        is_introspection(policy, context, &call) || protect::check(context, &call).is_some();
    let steps = if by_builtin_check { Vec::new() } else { CallJudge::new(policy, context, &call).steps() };
    Explanation { steps, verdict: judge(policy, context, call) }
}

/// Returns the rule of the user's organization that denies a value of the call or requires approval for it, regardless
/// of the user's rules and grants.
#[must_use]
pub fn restriction(policy: &Policy, context: &Context<'_>, call: &ResolvedCall) -> Option<RuleReason> {
    let call_judge = CallJudge::new(policy, context, call);
    let mut values = call.roles().iter().flat_map(|role| call.values(*role).map(move |given| (*role, given)));
    values.find_map(|(role, given)| call_judge.restriction(role, given)).map(|rule| rule.reason.clone())
}

fn introspection() -> RuleReason {
    RuleReason::new("structural-introspection-allow", "listing the allowed folders is always permitted")
}

fn confined() -> RuleReason {
    RuleReason::new(CONFINED, "the server has no network and sees nothing beyond what was granted to it")
}

fn session_folder() -> RuleReason {
    RuleReason::new("structural-sandbox-allow", "the path is inside the session sandbox")
}

fn is_introspection(policy: &Policy, context: &Context<'_>, call: &ResolvedCall) -> bool {
    !call.is_unannotated()
        && call.server() == "filesystem"
        && call.tool() == "list_allowed_directories"
        && call.transport_arguments().is_empty()
        && CallJudge::new(policy, context, call).ruling_for_call().restriction().is_none()
}

/// Call that is being judged, with the policy and the context.
struct CallJudge<'a> {
    policy: &'a Policy,
    context: &'a Context<'a>,
    call: &'a ResolvedCall,
    /// Session sandbox, or `None` if it does not apply to this server.
    sandbox: Option<&'a CanonicalPath>,
    /// Rules that can apply to the tool. Computed on first use, because values in the session sandbox need no rules.
    rules: OnceCell<RulesFor<'a>>,
}

impl<'a> CallJudge<'a> {
    fn new(policy: &'a Policy, context: &'a Context<'a>, call: &'a ResolvedCall) -> Self {
        let uses_sandbox = context.sandbox_servers.iter().any(|server| *server == *call.server());
        let sandbox = context.sandbox.filter(|_| uses_sandbox);
        Self { policy, context, call, sandbox, rules: OnceCell::new() }
    }

    /// Returns the rules that can apply to the tool, in order.
    fn rules(&self) -> RulesFor<'a> {
        *self.rules.get_or_init(|| self.policy.rules_for(self.call.server(), self.call.tool()))
    }

    fn evaluate(&self) -> Evaluation<'a> {
        let mut evaluation = Evaluation::default();
        if self.call.is_unannotated() {
            self.judge_unannotated(&mut evaluation);
        } else if self.call.roles().is_empty() {
            self.judge_whole_call(&mut evaluation);
        }
        for role in self.call.roles() {
            self.judge_role(*role, &mut evaluation);
        }
        if self.runs_unconfined_command() {
            self.judge_whole_call(&mut evaluation);
        }
        evaluation
    }

    /// Returns `true` if the call names resources and also runs a command that could access other resources.
    ///
    /// A confined server's command can access only granted resources, so judging the named resources is enough.
    fn runs_unconfined_command(&self) -> bool {
        let runs = self.call.values(Role::Command).next().is_some();
        runs && !self.context.confined && !self.call.roles().is_empty()
    }

    /// Judges the call as a whole. Used for tools without resources.
    fn judge_whole_call(&self, evaluation: &mut Evaluation<'a>) {
        let ruling = self.ruling_for_call();
        match self.tool_grant(ruling) {
            Some(grant) => evaluation.exempt(RuleExemption::Tool(grant)),
            None if self.is_allowed_as_confined(ruling) => evaluation.exempt(RuleExemption::Confined),
            None => evaluation.record_rule(JudgedValue::WHOLE_CALL, ruling.decider),
        }
    }

    /// Judges a call to an unannotated tool. The call requires approval unless a rule denies it, or a rule allows it
    /// because the server reaches nothing.
    fn judge_unannotated(&self, evaluation: &mut Evaluation<'a>) {
        let ruling = self.ruling_for_unannotated();
        match (self.tool_grant(ruling), ruling.decider) {
            (Some(grant), _) => evaluation.exempt(RuleExemption::Tool(grant)),
            (None, Some(rule)) if rule.then == Decision::Escalate && !rule.is_managed() => {
                evaluation.require_unannotated_approval();
            }
            (None, rule) => evaluation.record_rule(JudgedValue::WHOLE_CALL, rule),
        }
    }

    /// Judges the values with a role. If every value is in the session sandbox or granted, the values in the sandbox
    /// need no rule. Otherwise, every value is judged.
    fn judge_role(&self, role: Role, evaluation: &mut Evaluation<'a>) {
        let mut values = self.call.values(role).peekable();
        if values.peek().is_none() {
            return self.judge_value(&ValueInRole { role, given: None }, evaluation);
        }
        let open = self.is_covered_without_rules(role);
        for given in values {
            if open && self.is_in_sandbox(given) && self.restriction(role, given).is_none() {
                evaluation.exempt(RuleExemption::SessionFolder);
            } else {
                self.judge_value(&ValueInRole { role, given: Some(given) }, evaluation);
            }
        }
    }

    /// Returns `true` if every value with this role is in the session sandbox or covered by a grant.
    fn is_covered_without_rules(&self, role: Role) -> bool {
        self.call.values(role).all(|given| {
            self.is_in_sandbox(given) || self.grant_for(&ValueInRole { role, given: Some(given) }).is_some()
        })
    }

    fn judge_value(&self, value: &ValueInRole<'a>, evaluation: &mut Evaluation<'a>) {
        if let Some(known) = self.written_autostart_file(value) {
            evaluation.record_autostart(value.judged(), known);
        }
        if let Some(grant) = self.grant_for(value) {
            return evaluation.exempt(RuleExemption::Grant(grant));
        }
        if let Some(grant) = self.host_grant_for(value) {
            return evaluation.exempt(RuleExemption::Host(grant));
        }
        let ruling = self.ruling_for(value);
        if let Some(grant) = self.tool_grant(ruling) {
            return evaluation.exempt(RuleExemption::Tool(grant));
        }
        let rule = ruling.decider;
        let is_outside = self.is_outside_hosts(value, rule);
        if is_outside {
            evaluation.record_outside_host(value.judged(), self.is_certain_host(value));
        }
        // Approval of the host also approves an address that no rule covers.
        if !is_outside || rule.is_some() {
            evaluation.record_rule(value.judged(), rule);
        }
    }

    /// Returns the matching autostart entry if the value writes an autostart file. Files in the session sandbox do not
    /// count, because clients never run them.
    fn written_autostart_file(&self, value: &ValueInRole<'_>) -> Option<&'static KnownPath> {
        let given = value.given.filter(|given| !self.is_in_sandbox(given))?;
        let Resource::Path(path) = &given.value else { return None };
        let writes = value.role.access() == Some(Access::Write);
        let may_create_folder = || self.call.roles().iter().any(|role| role.descends());
        writes.then(|| self.context.protected.autostart_file(path, may_create_folder()))?
    }

    /// Returns `true` if an address requires approval because it is outside the server's allowed hosts. If no rule
    /// covers the address, approval is not requested in two cases: for an address that git added, because the agent did
    /// not ask for it, and for an unknown address, because the effect of an approval would be unclear.
    fn is_outside_hosts(&self, value: &ValueInRole<'_>, rule: Option<&Rule>) -> bool {
        let Some(given @ ResolvedValue { value: Resource::Url(destination), .. }) = value.given else {
            return false;
        };
        let may_ask = rule.is_some()
            || (self.call.has_argument(self.call.argument(given)) && self.is_certain_host(value));
        let is_allowed = self.context.allowed_hosts.allows(self.call.server(), destination);
        // If the host is granted, rules decide about repositories on it. Without a rule, the
        // allowed hosts still apply.
        let is_granted = rule.is_some() && self.context.hosts.iter().any(|grant| grant.covers(destination));
        may_ask && !is_allowed && !is_granted
    }

    /// Returns `true` if the value is an address and it is certain whether the server's allowed hosts include the
    /// address.
    fn is_certain_host(&self, value: &ValueInRole<'_>) -> bool {
        let Some(ResolvedValue { value: Resource::Url(destination), .. }) = value.given else { return false };
        self.context.allowed_hosts.is_certain(self.call.server(), destination)
    }

    /// Returns the rules that apply to a value.
    fn ruling_for(&self, value: &ValueInRole<'_>) -> Ruling<'a> {
        self.ruling(|rules| {
            cover::first_match(rules.for_role(value.role), |rule| {
                value.cover(rule, self.call, self.context.reach).ok()
            })
        })
    }

    /// Combines the rules that `first` returns for each layer.
    fn ruling(&self, first: impl Fn(RulesFor<'a>) -> LayerRules<'a>) -> Ruling<'a> {
        if !self.policy.is_managed() {
            return Ruling::user_only(first(self.rules()));
        }
        let of_layer = |layer| first(self.rules().in_layer(layer));
        Ruling::combine([Layer::Setting, Layer::Managed].map(of_layer), of_layer(Layer::User))
    }

    /// Returns the managed rule that denies the value or requires approval for it, or `None`.
    fn restriction(&self, role: Role, given: &'a ResolvedValue) -> Option<&'a Rule> {
        self.ruling_for(&ValueInRole { role, given: Some(given) }).restriction()
    }

    /// Returns the rules that apply to a call without resources.
    fn ruling_for_call(&self) -> Ruling<'a> {
        self.ruling(|rules| {
            cover::first_match(rules, |rule| cover::cover_call(rule, self.call, self.context.reach).ok())
        })
    }

    /// Returns the rules that apply to a call to an unannotated tool.
    fn ruling_for_unannotated(&self) -> Ruling<'a> {
        self.ruling(|rules| cover::for_unannotated(rules, self.call, self.context.reach))
    }

    /// Returns `true` if a request is allowed without approval, because it names no file and the server can access
    /// only granted resources. A rule that denies or names the request takes precedence.
    fn is_allowed_as_confined(&self, ruling: Ruling<'_>) -> bool {
        let overrides = |rule: &Rule| rule.denies() || rule.condition.tool.is_some();
        let takes_precedence = ruling.decider.is_some_and(overrides) || ruling.restriction().is_some();
        self.call.request().is_some() && self.context.confined && !takes_precedence
    }

    /// Returns the tool grant that covers the call, unless a rule overrides it.
    fn tool_grant(&self, ruling: Ruling<'_>) -> Option<&'a ToolGrant> {
        let mut candidates = self.context.tools.iter().filter(|grant| grant.scope.covers(self.call));
        candidates.find(|grant| !ruling.overrides_grant_of(grant.created_ms))
    }

    /// Returns the path grant that covers a value, unless a rule overrides it.
    fn grant_for(&self, value: &ValueInRole<'_>) -> Option<&'a PathGrant> {
        let Resource::Path(path) = &value.given?.value else { return None };
        let mut candidates =
            self.context.grants.iter().filter(|grant| grant.covers(value.role, path)).peekable();
        candidates.peek()?;
        let ruling = self.ruling_for(value);
        candidates.find(|grant| !ruling.overrides_grant_of(grant.created_ms))
    }

    /// Returns the host grant that covers a URL to fetch, unless a rule overrides it.
    fn host_grant_for(&self, value: &ValueInRole<'_>) -> Option<&'a HostGrant> {
        let Resource::Url(destination) = &value.given?.value else { return None };
        let mut candidates = self.context.hosts.iter().filter(|grant| grant.covers(destination)).peekable();
        if candidates.peek().is_none() || value.role != Role::FetchUrl {
            return None;
        }
        let ruling = self.ruling_for(value);
        candidates.find(|grant| !ruling.overrides_grant_of(grant.created_ms))
    }

    fn is_in_sandbox(&self, given: &ResolvedValue) -> bool {
        let (Some(sandbox), Resource::Path(path)) = (self.sandbox, &given.value) else { return false };
        sandbox.contains(path)
    }
}
