//! Collects findings about a call's values and derives the verdict from them.

use super::{JudgedValue, confined, session_folder};
use crate::decision::{AUTOSTART_FILE, GRANT, MANAGED_PREFIX, OUTSIDE_ALLOWED_HOSTS, UNANNOTATED};
use crate::{
    AllowedBy, Decision, Denial, Escalation, HostGrant, PathGrant, PendingApproval, Permit, ResolvedCall,
    Resource, Rule, RuleReason, ToolGrant, Verdict,
};
use ironcurtain_paths::protected::KnownPath;

/// Findings about a call, collected value by value.
#[derive(Default)]
pub(super) struct Evaluation<'a> {
    denied: Vec<&'a Rule>,
    uncovered: Option<JudgedValue<'a>>,
    autostart_files: Vec<(JudgedValue<'a>, &'static KnownPath)>,
    outside_hosts: Vec<OutsideHost<'a>>,
    escalated: Vec<(JudgedValue<'a>, &'a Rule)>,
    unannotated: bool,
    allowed: Vec<&'a Rule>,
    exemptions: Vec<RuleExemption<'a>>,
}

/// An address outside the server's allowed hosts.
struct OutsideHost<'a> {
    value: JudgedValue<'a>,
    /// `true` if the address is certainly outside the server's hosts, so an approval has a clear effect.
    is_certain: bool,
}

/// Reason a value needs no rule.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum RuleExemption<'a> {
    /// The value is in the session sandbox.
    SessionFolder,
    /// A path grant covers the value.
    Grant(&'a PathGrant),
    /// A host grant covers the address.
    Host(&'a HostGrant),
    /// A tool grant covers the call.
    Tool(&'a ToolGrant),
    /// The call is a request to a server that can access only granted resources.
    Confined,
}

impl<'a> Evaluation<'a> {
    /// Records the rule that decides on a value. With `None`, records that nothing covers the value.
    pub(super) fn record_rule(&mut self, value: JudgedValue<'a>, rule: Option<&'a Rule>) {
        let Some(rule) = rule else {
            self.uncovered.get_or_insert(value);
            return;
        };
        match rule.then {
            Decision::Allow => self.allowed.push(rule),
            Decision::Escalate => self.escalated.push((value, rule)),
            Decision::Deny => self.denied.push(rule),
        }
    }

    /// Records that a value needs no rule.
    pub(super) fn exempt(&mut self, by: RuleExemption<'a>) {
        if !self.exemptions.contains(&by) {
            self.exemptions.push(by);
        }
    }

    /// Records that approval is required because the tool is unannotated.
    pub(super) fn require_unannotated_approval(&mut self) {
        self.unannotated = true;
    }

    /// Records that a value writes an autostart file, which always requires approval.
    pub(super) fn record_autostart(&mut self, value: JudgedValue<'a>, known: &'static KnownPath) {
        self.autostart_files.push((value, known));
    }

    /// Records that an address is outside the server's allowed hosts.
    pub(super) fn record_outside_host(&mut self, value: JudgedValue<'a>, is_certain: bool) {
        self.outside_hosts.push(OutsideHost { value, is_certain });
    }

    /// Returns the reasons to allow the call, and the missing approvals.
    ///
    /// # Errors
    /// Returns a denial if a rule denies the call or nothing covers a value.
    pub(super) fn conclude<'b>(
        &self,
        call: &ResolvedCall,
        approved: &'b [PendingApproval],
    ) -> Result<Conclusion<'b>, Denial> {
        if let [first, rest @ ..] = self.denied.as_slice() {
            return Err(denial(first, rest));
        }
        let mut conclusion = Conclusion { approved, grants: self.grants(), ..Conclusion::default() };
        self.allowed.iter().for_each(|rule| conclusion.allow(AllowedBy::Rule, rule.reason.clone()));
        for (value, known) in &self.autostart_files {
            conclusion.require_approval(value.pending(call, autostart_reason(value, known)));
        }
        // Requests approvals of hosts before approvals that rules require. If the address is known, the host's approval
        // also replaces a missing rule.
        let mut asks_for_known_host = false;
        for host in &self.outside_hosts {
            let is_missing = conclusion
                .require_approval(host.value.pending(call, outside_hosts_reason(&host.value, call)));
            asks_for_known_host |= is_missing && host.is_certain;
        }
        if self.unannotated {
            conclusion.require_approval(JudgedValue::WHOLE_CALL.pending(call, unannotated_reason()));
        }
        for (value, rule) in &self.escalated {
            conclusion.require_approval(value.pending(call, rule.reason.clone()));
        }
        if let Some(value) = self.uncovered.as_ref().filter(|_| !asks_for_known_host) {
            return Err(Denial::uncovered(format!("no rule covers {value}")));
        }
        self.exemptions.iter().for_each(|by| conclusion.allow(by.allowed_by(), by.reason()));
        Ok(conclusion)
    }

    /// Returns the ids of the grants that were used, without duplicates.
    fn grants(&self) -> Vec<String> {
        self.exemptions.iter().filter_map(RuleExemption::grant).cloned().collect()
    }
}

/// Result of an evaluation without a denial: the reasons to allow the call, and the missing approvals.
#[derive(Default)]
pub(super) struct Conclusion<'a> {
    approved: &'a [PendingApproval],
    pending: Vec<PendingApproval>,
    /// First rule of the user's organization that requires one of the approvals.
    managed: Option<RuleReason>,
    /// First reason to allow the call, with its category.
    first: Option<(AllowedBy, RuleReason)>,
    /// Other reasons to allow the call.
    others: Vec<RuleReason>,
    /// Ids of the grants that the permit relies on.
    grants: Vec<String>,
}

impl Conclusion<'_> {
    fn allow(&mut self, by: AllowedBy, reason: RuleReason) {
        match &self.first {
            None => self.first = Some((by, reason)),
            Some((_, first)) if *first == reason || self.others.contains(&reason) => {}
            Some(_) => self.others.push(reason),
        }
    }

    /// Requires an approval. Returns `true` if the user has not given it yet.
    fn require_approval(&mut self, approval: PendingApproval) -> bool {
        if self.approved.iter().any(|approved| approval.is_approved_by(approved)) {
            let reason = format!("approved: {}", approval.by.reason);
            self.allow(AllowedBy::Answer, RuleReason::new(approval.by.rule, reason));
            return false;
        }
        if approval.by.rule.starts_with(MANAGED_PREFIX) {
            self.managed.get_or_insert_with(|| approval.by.clone());
        }
        if !self.pending.iter().any(|pending| approval.is_approved_by(pending)) {
            self.pending.push(approval);
        }
        true
    }

    /// Converts the conclusion to a verdict on the call.
    pub(super) fn verdict(self, call: ResolvedCall) -> Verdict {
        let Self { pending, managed, first, others, grants, .. } = self;
        match (managed.or_else(|| pending.first().map(|approval| approval.by.clone())), first) {
            (Some(by), first) => {
                let others = first.into_iter().map(|(_, reason)| reason).chain(others).collect();
                Verdict::Escalate(Escalation { call, by, values: pending, others })
            }
            (None, Some(first)) => Verdict::Allow(Permit::new(call, first, others, grants)),
            (None, None) => Verdict::Deny(Denial::uncovered("no rule covers this call".to_owned())),
        }
    }
}

impl RuleExemption<'_> {
    fn allowed_by(&self) -> AllowedBy {
        match self {
            Self::SessionFolder => AllowedBy::SessionFolder,
            Self::Grant(_) | Self::Host(_) | Self::Tool(_) => AllowedBy::Grant,
            Self::Confined => AllowedBy::Confined,
        }
    }

    fn reason(&self) -> RuleReason {
        match self {
            Self::SessionFolder => session_folder(),
            Self::Grant(grant) => {
                RuleReason::new(GRANT, format!("grant `{}` for `{}`", grant.id, grant.path))
            }
            Self::Host(grant) => {
                RuleReason::new(GRANT, format!("grant `{}` for `{}:{}`", grant.id, grant.host, grant.port))
            }
            Self::Tool(grant) => {
                RuleReason::new(GRANT, format!("grant `{}` for `{}`", grant.id, grant.scope))
            }
            Self::Confined => confined(),
        }
    }

    fn grant(&self) -> Option<&String> {
        match self {
            Self::SessionFolder | Self::Confined => None,
            Self::Grant(grant) => Some(&grant.id),
            Self::Host(grant) => Some(&grant.id),
            Self::Tool(grant) => Some(&grant.id),
        }
    }
}

/// Creates the denial of a call from the rules that deny it.
fn denial(first: &Rule, rest: &[&Rule]) -> Denial {
    let mut others: Vec<RuleReason> = Vec::new();
    for rule in rest.iter().filter(|rule| rule.name() != first.name()) {
        if !others.contains(&rule.reason) {
            others.push(rule.reason.clone());
        }
    }
    Denial::by_rules(&first.reason, others)
}

/// Returns the reason for requiring approval of an unannotated tool.
pub(super) fn unannotated_reason() -> RuleReason {
    RuleReason::new(UNANNOTATED, "IronCurtain does not know what this tool does")
}

fn autostart_reason(value: &JudgedValue<'_>, known: &KnownPath) -> RuleReason {
    let reason =
        format!("`{}` runs outside the sandbox when you open this folder in {}", value.subject(), known.what);
    RuleReason::new(AUTOSTART_FILE, reason)
}

fn outside_hosts_reason(value: &JudgedValue<'_>, call: &ResolvedCall) -> RuleReason {
    let host = match value.given.map(|given| &given.value) {
        Some(Resource::Url(destination)) => destination.domain().unwrap_or(destination.text()),
        Some(Resource::Path(_) | Resource::Text(_) | Resource::NonString) | None => "",
    };
    let reason = format!("`{host}` is not among the hosts of the server `{}`", call.server());
    RuleReason::new(OUTSIDE_ALLOWED_HOSTS, reason)
}
