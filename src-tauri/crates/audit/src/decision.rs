//! Values that the log uses for decisions and their outcomes.
//!
//! - INVARIANT: unknown values are kept verbatim. Logs written by other versions therefore stay readable, and their
//!   values are not mistaken for known ones.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Defines an enum whose variants are written to the log as strings.
macro_rules! string_enum {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident => $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$of])* $variant,)*
            /// Value written by a different version.
            Other(String),
        }

        impl $name {
            /// Returns the value as written to the log.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $word,)*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                match word.as_str() {
                    $($word => Self::$variant,)*
                    _ => Self::Other(word),
                }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                word.as_str().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

string_enum! {
    /// Decision on a call, request or connection.
    Status {
        /// Allowed.
        Allow => "allow",
        /// Requires the user's approval.
        Escalate => "escalate",
        /// Denied.
        Deny => "deny",
    }
}

string_enum! {
    /// Basis of a decision.
    DecidedBy {
        /// A rule of the policy.
        Rule => "rule",
        /// The user's approval of this call.
        Answer => "answer",
        /// A standing grant.
        Grant => "grant",
        /// All of the call's paths are in the session's sandbox directory.
        SessionFolder => "session-folder",
        /// The call lists the allowed folders. Such calls are always permitted.
        Introspection => "introspection",
        /// A request to which the policy does not apply.
        PassedOn => "passed-on",
        /// The server's list of allowed hosts.
        HostList => "host-list",
        /// No rule, grant or approval covers the call.
        NoRule => "no-rule",
        /// The call accesses a protected path or changes a read-only one.
        ProtectedPath => "protected-path",
        /// An argument is unknown, has an invalid type, or cannot be resolved.
        InvalidArgument => "invalid-argument",
        /// The tool is unannotated.
        UnknownTool => "unknown-tool",
        /// The message is malformed or not permitted.
        Malformed => "malformed",
        /// The request is for a resource that is, or could be, a file.
        Resource => "resource",
        /// The sandbox's proxy refuses the host, address or protocol.
        Network => "network",
        /// The server could not access the path even with approval.
        OutOfReach => "out-of-reach",
        /// Lockdown is active, so nothing can be approved.
        Lockdown => "lockdown",
        /// The user has paused the agent.
        Paused => "paused",
        /// The server changed the tool, or the user removed the tool after such a change.
        ToolChanged => "tool-changed",
        /// The user denied the same call earlier, or denied everything for the rest of the session.
        EarlierAnswer => "earlier-answer",
        /// The client has too many unanswered questions.
        TooManyQuestions => "too-many-questions",
    }
}

string_enum! {
    /// Outcome of a question to the user.
    EscalationResult {
        /// The user allowed the call.
        Approved => "approved",
        /// The user denied the call.
        Denied => "denied",
        /// The question timed out.
        TimedOut => "timeout",
        /// The dialog was closed without an answer.
        Closed => "closed",
        /// The question no longer needed an answer.
        Settled => "settled",
        /// The question could not be shown.
        Unavailable => "unavailable",
        /// A lockdown, a pause or a session-long denial ended the question.
        Stopped => "stopped",
    }
}

string_enum! {
    /// Outcome of an allowed call or connection. A failed connection is recorded as [`Self::Other`] with its failure
    /// code.
    CallResult {
        /// The server responded.
        Ok => "ok",
        /// The server responded with a tool error.
        Error => "error",
        /// The server responded with a protocol error.
        RefusedByServer => "refused by the server",
        /// The sandbox blocked an operation of the server.
        BlockedBySandbox => "blocked by the sandbox",
        /// The server did not respond.
        NoAnswer => "no answer",
        /// The client stopped waiting for the response.
        GivenUp => "given up",
        /// The session was refused.
        Refused => "refused",
    }
}

/// Decision of the policy, with the deciding rule and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecision {
    /// Decision on the call or request.
    pub status: Status,
    /// Name of the deciding rule.
    pub rule: String,
    /// Reason shown to the agent and the user.
    pub reason: String,
    /// Basis of the decision. `None` for questions and in entries written by earlier versions.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<DecidedBy>,
}

impl PolicyDecision {
    /// Creates the decision for an allowed call.
    #[must_use]
    pub fn allow(by: DecidedBy, rule: &str, reason: &str) -> Self {
        Self { by: Some(by), ..Self::new(Status::Allow, rule, reason) }
    }

    /// Creates the decision for a denied call.
    #[must_use]
    pub fn deny(by: DecidedBy, rule: &str, reason: &str) -> Self {
        Self { by: Some(by), ..Self::new(Status::Deny, rule, reason) }
    }

    /// Creates the decision for a call that requires approval.
    #[must_use]
    pub fn escalate(rule: &str, reason: &str) -> Self {
        Self::new(Status::Escalate, rule, reason)
    }

    fn new(status: Status, rule: &str, reason: &str) -> Self {
        Self { status, rule: rule.to_owned(), reason: reason.to_owned(), by: None }
    }

    /// Returns the basis of the decision. If the basis is not recorded, derives it from reserved rule names. Never
    /// derives it from the reason, because the rule's author chooses that text.
    #[must_use]
    pub fn basis(&self) -> Option<DecidedBy> {
        let derived = || match (&self.status, self.rule.as_str()) {
            (Status::Allow, "grant") => Some(DecidedBy::Grant),
            (Status::Allow, "structural-sandbox-allow") => Some(DecidedBy::SessionFolder),
            (Status::Allow | Status::Escalate | Status::Deny | Status::Other(_), _) => None,
        };
        self.by.clone().or_else(derived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_kept_verbatim() {
        let read = |word: &str| serde_json::from_str::<Status>(word).unwrap();
        assert_eq!([read("\"deny\""), read("\"perhaps\"")], [Status::Deny, Status::Other("perhaps".into())]);
        assert_eq!(serde_json::to_string(&read("\"perhaps\"")).unwrap(), "\"perhaps\"");
        assert_eq!(serde_json::to_string(&CallResult::RefusedByServer).unwrap(), "\"refused by the server\"");
    }

    #[test]
    fn the_ground_is_recorded_or_derived_from_a_reserved_name() {
        let decision = |rule, reason| PolicyDecision::new(Status::Allow, rule, reason);
        assert_eq!(decision("grant", "grant `x`").basis(), Some(DecidedBy::Grant));
        assert_eq!(decision("structural-sandbox-allow", "").basis(), Some(DecidedBy::SessionFolder));
        assert_eq!(decision("docs", "approved: by the team").basis(), None);
        let by_rule = PolicyDecision::allow(DecidedBy::Rule, "docs", "approved: by the team");
        assert_eq!(by_rule.basis(), Some(DecidedBy::Rule));
    }
}
