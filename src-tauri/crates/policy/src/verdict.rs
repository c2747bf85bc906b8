//! What the judge says.
//!
//! - Only the judge makes a [`Permit`]; it carries why, and which grants it rests on.
//! - An [`Escalation`] names every value that needs a person's word: approving exactly those lets the call through.

use crate::judge::{DEFAULT_DENY, INVALID_ARGUMENT, PROTECTED_PATH, STARTS_PROGRAMS, UNKNOWN_TOOL};
use crate::{AllowedBy, DeniedBy, Destination, Few, Role, Shared, SharedStr};
use ironcurtain_paths::CanonicalPath;
use std::fmt;

/// The judge's answer.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// The call may happen.
    Allow(Permit),
    /// A person must say.
    Escalate(Escalation),
    /// The call does not happen.
    Deny(Denial),
}

/// Leave for one call.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a permit is what forwarding a call takes"]
pub struct Permit {
    by: AllowedBy,
    reasons: Few<Reason>,
    grants: Vec<String>,
}

/// A call that a person must decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// The first rule that asks.
    pub by: Reason,
    /// Every value that needs the person's word. Never empty.
    pub values: Few<Asked>,
    /// Every rule that spoke besides those that ask.
    pub others: Few<Reason>,
}

/// A call that is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The ground on which it is refused.
    pub by: DeniedBy,
    /// Name of the rule that refuses, or of the structural answer.
    pub rule: SharedStr,
    /// Its reason.
    pub reason: SharedStr,
    /// Every other rule that refuses.
    pub others: Few<Reason>,
}

/// A rule that spoke, and why. Shared, since it goes into every verdict.
pub type Reason = Shared<Spoken>;

/// What a [`Reason`] holds.
#[derive(Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Its name, or the name of a structural answer.
    pub rule: SharedStr,
    /// Why.
    pub reason: SharedStr,
}

/// One thing that needs a person's word, and was given it when passed back as approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// In which role; nothing when the call itself is asked about.
    pub role: Option<Role>,
    /// The argument it came in; empty when the call itself is asked about.
    pub argument: SharedStr,
    /// What it is.
    pub subject: Subject,
    /// The rule that asks.
    pub by: Reason,
}

/// What a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A path.
    Path(CanonicalPath),
    /// A URL or a name.
    Text(SharedStr),
    /// A role of the tool for which the call gives no value.
    Absent,
    /// The call as a whole: its tool names no resource.
    Call,
}

impl Permit {
    pub(crate) fn new(by: AllowedBy, reasons: Few<Reason>, grants: Vec<String>) -> Self {
        Self { by, reasons, grants }
    }

    /// The ground on which the call is allowed: that of the first reason.
    #[must_use]
    pub fn allowed_by(&self) -> AllowedBy {
        self.by
    }

    /// Every rule that spoke, the first one first.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// The grants it rests on, each once.
    #[must_use]
    pub fn grants(&self) -> &[String] {
        &self.grants
    }
}

impl Denial {
    fn structural(by: DeniedBy, rule: SharedStr, reason: impl Into<SharedStr>) -> Self {
        Self { by, rule, reason: reason.into(), others: Few::new() }
    }

    /// Refuses a call whose arguments cannot be understood.
    #[must_use]
    pub fn invalid(reason: impl Into<SharedStr>) -> Self {
        Self::structural(DeniedBy::InvalidArgument, INVALID_ARGUMENT, reason)
    }

    /// Refuses a call that would touch a protected path, or uncover one.
    #[must_use]
    pub fn protected(reason: impl Into<SharedStr>) -> Self {
        Self::structural(DeniedBy::ProtectedPath, PROTECTED_PATH, reason)
    }

    /// Refuses a call of a tool that is not annotated.
    pub(crate) fn unknown_tool(reason: String) -> Self {
        Self::structural(DeniedBy::UnknownTool, UNKNOWN_TOOL, reason)
    }

    /// Refuses a call that nothing allows.
    pub(crate) fn uncovered(reason: String) -> Self {
        Self::structural(DeniedBy::NoRule, DEFAULT_DENY, reason)
    }

    /// Refuses a call that a rule denies, and perhaps others.
    pub(crate) fn by_rules(first: &Spoken, others: Few<Reason>) -> Self {
        Self { by: DeniedBy::Rule, rule: first.rule.clone(), reason: first.reason.clone(), others }
    }

    /// Refuses a call because a value of it could not be turned into a fact (a path with a loop, a remote that git
    /// does not know).
    #[must_use]
    pub fn unresolvable(argument: &str, why: &dyn fmt::Display) -> Self {
        Self::invalid(format!("argument `{argument}`: {why}"))
    }
}

impl Asked {
    /// Whether `approved` is a yes to this: the same thing in the same role and argument.
    #[must_use]
    pub fn is_answered_by(&self, approved: &Self) -> bool {
        self.role == approved.role && self.argument == approved.argument && self.subject == approved.subject
    }
}

impl Asked {
    /// Whether it is about what a client is told to start: that is asked about every time.
    #[must_use]
    pub fn is_about_a_start(&self) -> bool {
        self.by.rule == STARTS_PROGRAMS
    }

    /// The host and the port it leads to, when it is an address.
    #[must_use]
    pub fn host_and_port(&self) -> Option<(String, u16)> {
        let (Subject::Text(text), Some(role @ (Role::FetchUrl | Role::GitRemoteUrl))) =
            (&self.subject, self.role)
        else {
            return None;
        };
        let destination = Destination::parse(role, text);
        destination.host_and_port().map(|(host, port)| (host.to_owned(), port))
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(formatter),
            Self::Text(text) => formatter.write_str(text),
            Self::Absent => formatter.write_str("(not given)"),
            Self::Call => formatter.write_str("(the call)"),
        }
    }
}
