//! Messages in the channel, one JSON object per line.
//!
//! - A message's content alone is never trusted: each side first checks the peer's key.

use crate::pairing::{Commitment, Nonce};
use crate::pending::QuestionDigest;
use ironcurtain_consent::Answer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Version of these messages. Both sides must have the same version.
pub const VERSION: u32 = 2;

/// Maximum length of a message in bytes: the largest question that can be shown (2 MiB), plus its envelope.
pub const MAX_MESSAGE_BYTES: usize = 2 * 1024 * 1024 + 64 * 1024;

/// Purpose of a desktop's connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum DesktopRequest {
    /// Answers questions. Requires a pairing.
    Attach,
    /// Pairs, and then answers questions.
    Pair {
        /// Commitment to the desktop's nonce.
        commitment: Commitment,
    },
}

/// Message from the desktop.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromDesktop {
    /// First message.
    Hello {
        /// [`VERSION`] of the desktop.
        version: u32,
        /// Name of the desktop. Unverified.
        name: String,
        /// Purpose of the connection.
        want: DesktopRequest,
    },
    /// The nonce that the desktop committed to.
    Reveal {
        /// The nonce.
        nonce: Nonce,
    },
    /// The desktop's user typed the remote machine's code.
    Confirm,
    /// Answer to a question.
    Answer {
        /// Id of the question.
        id: String,
        /// Digest of the question that the desktop received.
        digest: QuestionDigest,
        /// The answer; `None` if the dialog was closed without one.
        answer: Option<Answer>,
    },
    /// The user is active in the question's dialog.
    Working {
        /// Id of the question.
        id: String,
    },
    /// Shows that the connection is alive.
    Ping,
}

impl FromDesktop {
    /// Returns the version from a first message, even if the rest of the message cannot be parsed by this version.
    #[must_use]
    pub fn version(message: &[u8]) -> Option<u32> {
        #[derive(Deserialize)]
        #[serde(rename_all = "kebab-case")]
        enum First {
            Hello { version: u32 },
        }
        let First::Hello { version } = serde_json::from_slice(message).ok()?;
        Some(version)
    }
}

/// Message from the remote machine.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FromRemote {
    /// The remote machine refuses the pairing or attachment, and closes the connection.
    Refused {
        /// Machine-readable reason.
        refusal: PairingRefusal,
        /// Human-readable reason.
        why: String,
    },
    /// The remote machine's nonce.
    Nonce {
        /// The nonce.
        nonce: Nonce,
    },
    /// The pairing is stored.
    Paired,
    /// The desktop is attached; questions follow.
    Attached,
    /// Question for the user.
    Question {
        /// Id of the question, which the answer repeats.
        id: String,
        /// The question as JSON. Its digest is computed from exactly this text.
        question: Box<RawValue>,
    },
    /// The question is no longer pending.
    Withdraw {
        /// Id of the question.
        id: String,
    },
    /// The answer to a question was not accepted, so the call is denied.
    NotAccepted {
        /// Id of the question.
        id: String,
        /// Human-readable reason.
        why: String,
    },
    /// Message for the user that needs no answer.
    Notice {
        /// Text of the message.
        text: String,
    },
    /// Shows that the connection is alive.
    Ping,
}

/// Reason a remote machine refuses a desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairingRefusal {
    /// Retrying cannot help until the user has done something.
    Final,
    /// Another desktop is attached, or the machine is busy.
    Busy,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_known_even_if_the_message_has_a_later_form() {
        let later = br#"{"hello":{"version":7,"name":"laptop","want":"later","more":true}}"#;
        let refused = serde_json::from_slice::<FromDesktop>(later).unwrap_err().to_string();
        assert!(refused.contains("unknown variant `later`"), "{refused}");
        assert_eq!(FromDesktop::version(later), Some(7));
        assert_eq!(FromDesktop::version(br#""ping""#), None);
    }
}
