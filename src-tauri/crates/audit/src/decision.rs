//! The words by which an entry says what was decided, and what came of it.
//!
//! - INVARIANT: a word that this version does not know is kept as it stands, so that the log of another version is still
//!   read, and judged by nobody as one of ours.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An enum whose variants are words of the log.
macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $variant:ident => $word:literal,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$of])* $variant,)*
            /// A word that this version does not write.
            Other(String),
        }

        impl $name {
            /// The word.
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

words! {
    /// The decision about a call, a request or a connection.
    Status {
        /// It may happen.
        Allow => "allow",
        /// A person must say.
        Escalate => "escalate",
        /// It does not happen.
        Deny => "deny",
    }
}

words! {
    /// The ground on which it was decided.
    DecidedBy {
        /// A rule of the policy.
        Rule => "rule",
        /// The person's answer to a question about this very thing.
        Answer => "answer",
        /// A grant that the person gave before.
        Grant => "grant",
        /// The session's own folder, in which the paths lie.
        SessionFolder => "session-folder",
        /// Asking which folders are open, which is always allowed.
        Introspection => "introspection",
        /// A request that is not judged.
        PassedOn => "passed-on",
        /// The list of hosts of the server.
        HostList => "host-list",
        /// No rule, grant or answer, for something that needs one.
        NoRule => "no-rule",
        /// A path that no call touches, or that no call changes.
        ProtectedPath => "protected-path",
        /// An argument that is unknown, of the wrong shape, or cannot be resolved.
        InvalidArgument => "invalid-argument",
        /// A tool that is not annotated.
        UnknownTool => "unknown-tool",
        /// A message that is not understood, or not taken.
        Malformed => "malformed",
        /// A resource that is, or could be, a file.
        Resource => "resource",
        /// A host, an address or a way of asking that the sandbox's proxy refuses.
        Network => "network",
        /// A path that no yes could open to the server.
        OutOfReach => "out-of-reach",
        /// The person has locked everything down that needs their word.
        Lockdown => "lockdown",
        /// The person has paused the agent.
        Paused => "paused",
        /// The person's no to the same, or for the rest of the session.
        EarlierAnswer => "earlier-answer",
        /// The client asks more than a person can answer.
        TooManyQuestions => "too-many-questions",
    }
}

words! {
    /// The end of a question.
    EscalationResult {
        /// The person allowed it.
        Approved => "approved",
        /// The person denied it.
        Denied => "denied",
        /// Nobody answered in time.
        TimedOut => "timeout",
        /// The dialog went away without an answer.
        Closed => "closed",
        /// Something else settled it.
        Settled => "settled",
        /// Nobody could be asked.
        Unavailable => "unavailable",
        /// The person stopped it, with more than this question.
        Stopped => "stopped",
    }
}

words! {
    /// The end of what was allowed. Of a connection that failed it is the code of the failure, as another word.
    CallResult {
        /// The server answered.
        Ok => "ok",
        /// The server answered that it could not.
        Error => "error",
        /// The server answered with an error of the protocol.
        RefusedByServer => "refused by the server",
        /// The sandbox held something back.
        BlockedBySandbox => "blocked by the sandbox",
        /// The server did not answer.
        NoAnswer => "no answer",
        /// Nobody waited for the answer any more.
        GivenUp => "given up",
        /// A session that was refused.
        Refused => "refused",
    }
}

/// The policy's decision, with its rule and reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecision {
    /// The decision.
    pub status: Status,
    /// The rule that decided.
    pub rule: String,
    /// Its reason.
    pub reason: String,
    /// The ground, except of what is asked about. Versions before this one did not write it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub by: Option<DecidedBy>,
}

impl PolicyDecision {
    /// It was allowed.
    #[must_use]
    pub fn allow(by: DecidedBy, rule: &str, reason: &str) -> Self {
        Self { by: Some(by), ..Self::new(Status::Allow, rule, reason) }
    }

    /// It was denied.
    #[must_use]
    pub fn deny(by: DecidedBy, rule: &str, reason: &str) -> Self {
        Self { by: Some(by), ..Self::new(Status::Deny, rule, reason) }
    }

    /// It was put to a person.
    #[must_use]
    pub fn escalate(rule: &str, reason: &str) -> Self {
        Self::new(Status::Escalate, rule, reason)
    }

    fn new(status: Status, rule: &str, reason: &str) -> Self {
        Self { status, rule: rule.to_owned(), reason: reason.to_owned(), by: None }
    }

    /// The ground. Of a decision without one it is told by the names that no rule can have, and by nothing else: what a
    /// rule gives as its reason is its own.
    #[must_use]
    pub fn ground(&self) -> Option<DecidedBy> {
        let told = || match (&self.status, self.rule.as_str()) {
            (Status::Allow, "grant") => Some(DecidedBy::Grant),
            (Status::Allow, "structural-sandbox-allow") => Some(DecidedBy::SessionFolder),
            (Status::Allow | Status::Escalate | Status::Deny | Status::Other(_), _) => None,
        };
        self.by.clone().or_else(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_another_version_stays_as_it_is() {
        let read = |word: &str| serde_json::from_str::<Status>(word).unwrap();
        assert_eq!([read("\"deny\""), read("\"perhaps\"")], [Status::Deny, Status::Other("perhaps".into())]);
        assert_eq!(serde_json::to_string(&read("\"perhaps\"")).unwrap(), "\"perhaps\"");
        assert_eq!(serde_json::to_string(&CallResult::RefusedByServer).unwrap(), "\"refused by the server\"");
    }

    #[test]
    fn the_ground_is_the_value_on_record_or_a_name_that_no_rule_has() {
        let decision = |rule, reason| PolicyDecision::new(Status::Allow, rule, reason);
        assert_eq!(decision("grant", "grant `x`").ground(), Some(DecidedBy::Grant));
        assert_eq!(decision("structural-sandbox-allow", "").ground(), Some(DecidedBy::SessionFolder));
        assert_eq!(decision("docs", "approved: by the team").ground(), None);
        let by_rule = PolicyDecision::allow(DecidedBy::Rule, "docs", "approved: by the team");
        assert_eq!(by_rule.ground(), Some(DecidedBy::Rule));
    }
}
