//! Messages in the channel, one JSON object per line.
//!
//! - Nothing in them is trusted because of its content; each side checks the other side's key first.

use crate::pairing::{Commitment, Nonce};
use crate::pending::QuestionDigest;
use ironcurtain_consent::Answer;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Version of these messages. Both sides must have the same.
pub const VERSION: u32 = 2;

/// Maximum length of a message in bytes: the largest question that can be shown (2 MiB), and its envelope.
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
    /// Shows that the connection works.
    Ping,
}

impl FromDesktop {
    /// Returns the version in a first message, even if this version cannot read the rest of it.
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
    /// The remote machine refuses to pair or to be attached, and closes the connection.
    Refused {
        /// Reason for programs.
        refusal: PairingRefusal,
        /// Reason for the user.
        why: String,
    },
    /// The remote machine's nonce.
    Nonce {
        /// The nonce.
        nonce: Nonce,
    },
    /// The pairing is stored.
    Paired,
    /// Questions follow.
    Attached,
    /// Question for the user.
    Question {
        /// Id of the question, which the answer repeats.
        id: String,
        /// The question as JSON. Its digest is computed from exactly this text.
        question: Box<RawValue>,
    },
    /// The question is over.
    Withdraw {
        /// Id of the question.
        id: String,
    },
    /// The answer to a question was not accepted, so its call is denied.
    NotAccepted {
        /// Id of the question.
        id: String,
        /// Reason for the user.
        why: String,
    },
    /// Message that needs no answer.
    Notice {
        /// The text.
        text: String,
    },
    /// Shows that the connection works.
    Ping,
}

/// Reason of a remote machine for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PairingRefusal {
    /// Trying again cannot help: the user has to do something first.
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
