//! What an agent is told when a call does not happen: why, in words it can act on.

use crate::consent::Outcome;
use ironcurtain_policy::Denial;
use rmcp::model::ContentBlock;
use serde_json::{Value, json};

/// A tool result that says no, as every revision with a handshake knows it.
pub(super) fn result(text: String) -> Value {
    json!({ "content": [ContentBlock::text(text)], "isError": true })
}

/// The policy refuses.
pub(super) fn denied(denial: &Denial) -> String {
    format!("DENIED: {} (rule `{}`). Asking again will not change this.", denial.reason, denial.rule)
}

/// The person did not allow it.
pub(super) fn unanswered(outcome: &Outcome, seconds: u64) -> String {
    match outcome {
        Outcome::Denied(Some(note)) => format!("DENIED: the user denied this call and says: {note}"),
        Outcome::Denied(None) => "DENIED: the user denied this call.".to_owned(),
        Outcome::Unavailable(why) => format!("DENIED: {why}."),
        Outcome::Closed => {
            "DENIED: the question was closed without an answer. The same call can be tried again.".to_owned()
        }
        Outcome::TimedOut => format!(
            "DENIED: the user did not answer within {seconds} s. The same call can be tried again when they are back."
        ),
        Outcome::Allowed { .. } | Outcome::Settled => {
            "DENIED: the call changed while it was asked about.".to_owned()
        }
    }
}

/// What was allowed is not what it would be now.
pub(super) fn changed() -> String {
    "DENIED: what the call names, or what is granted, changed before the server got it. The same call can be tried again."
        .to_owned()
}
