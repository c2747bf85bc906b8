//! Interface between the trusted process and a front end that asks the user: the app's dialog, a terminal or a test.
//!
//! - Only [`Answer::Allow`] allows a call. A dropped [`AnswerSlot`], a timeout and a crash all deny it.
//! - [`Question`] contains everything that is shown, as plain text. A front end adds nothing and resolves nothing.
//! - The policy decides whether a call needs approval; this crate only asks.
//!
//! ```
//! use ironcurtain_consent::{Answer, Consent, DenialReach, Question, AnswerSlot, WithdrawalReason};
//!
//! struct DenyAll;
//!
//! impl Consent for DenyAll {
//!     fn ask(&self, _question: Question, slot: AnswerSlot) {
//!         slot.answer(Answer::Deny { note: None, reach: DenialReach::Call });
//!     }
//!
//!     fn withdraw(&self, _question: &str, _why: WithdrawalReason) {}
//! }
//! ```

mod binary;
mod broker;
mod comparison;
mod consequence;
pub mod definition;
mod exchange;
mod expired_questions;
pub mod found_paths;
mod grantable;
mod identical;
pub mod located_call;
mod not_approved;
mod offers;
mod preview;
mod principal;
mod question;
mod question_metrics;
mod rate;
mod received;
mod reopen;
mod showable;
mod side_effects;
mod stops;
mod terminal;
mod words;

pub use broker::{Broker, OpenQuestion, QuestionOutcome};
pub use comparison::{FileComparison, file_state};
pub use exchange::{Approval, Exchange, ExchangeError};
pub use expired_questions::{ExpiredQuestion, ExpiredQuestionError, ExpiredQuestions, ExpiredState, Inquiry};
pub use grantable::{Grantable, RequestedAccess};
pub use identical::{AskGuard, QuestionKey};
pub use ironcurtain_grants::Lifetime;
pub use not_approved::{NotApproved, PAUSED};
pub use offers::{grants_of, may_last, offers};
pub use preview::Preview;
pub use principal::{Principal, shown_client};
pub use question::{
    CHANGED_TOOL_RULE, CallQuestion, ChangedToolQuestion, ConnectionQuestion, HOST_RULE, HostQuestion,
    SAMPLING_RULE, SIGNATURE_RULE, SIGNATURE_TOOL, SamplingQuestion, SignatureQuestion, SignedHost,
    SignedThing, WORKSPACE_RULE, WorkspaceQuestion, WorkspaceSource,
};
pub use question_metrics::QuestionMetrics;
pub use rate::{DeniedKey, QuestionLimits};
pub use received::{QuestionReceiver, ReceivedError};
pub use reopen::{ReopenContext, ReopenError};
pub use showable::TooLongToShow;
pub use stops::{DenialScope, SessionDenial, Stop, StopState, Stops};
pub use terminal::{NoFrontEnd, Terminal, wrap_text};
pub use words::size;

pub use ironcurtain_policy::Verb;
use ironcurtain_protocol::{ClientView, PromptLocation};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Front end that asks the user.
pub trait Consent: Send + Sync + 'static {
    /// Shows the question and returns immediately. The front end later answers once through `slot`, from any thread.
    fn ask(&self, question: Question, slot: AnswerSlot);

    /// Removes a question that this front end has not answered, for the given reason.
    fn withdraw(&self, question: &str, why: WithdrawalReason);

    /// Shows the user a message that needs no answer, if possible.
    fn notify(&self, _notice: &str) {}

    /// Returns the kind of front end. The app may replace a daemon that returns [`PromptLocation::Nobody`].
    fn prompt_location(&self) -> PromptLocation {
        PromptLocation::App
    }
}

/// Sender for the answer to one question. Dropping it without an answer denies the call.
#[derive(Debug)]
#[must_use = "dropping the slot denies the call"]
pub struct AnswerSlot {
    answer: oneshot::Sender<Answer>,
    activity: mpsc::Sender<()>,
}

impl AnswerSlot {
    /// Sends the user's answer. Does nothing if the question is already closed.
    pub fn answer(self, answer: Answer) {
        // Sending fails only if the question is already closed, so the answer has no effect.
        let _ = self.answer.send(answer);
    }

    /// Returns `true` if the question is closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.answer.is_closed()
    }

    /// Restarts the deadline, because the user is active in the dialog.
    pub fn report_activity(&self) {
        // If the channel is full, a report is already pending.
        let _ = self.activity.try_send(());
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Answer {
    /// Accepts an offer for one of its lifetimes.
    Allow {
        /// Index into [`Question::offers`].
        offer: usize,
        /// One of that offer's lifetimes.
        lifetime: Lifetime,
    },
    /// Denies the call because the user cannot be asked.
    Unavailable {
        /// Reason, as a sentence shown to the agent.
        why: String,
    },
    /// Denies the call.
    Deny {
        /// The user's note, which the agent receives.
        note: Option<String>,
        /// Additional calls to which the denial applies.
        reach: DenialReach,
    },
}

/// Calls to which a denial applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenialReach {
    /// Only this call.
    Call,
    /// This call and all calls from the same agent that are pending when the user answers.
    Waiting,
    /// This call and all calls that [`Question::denial`] describes, until the session ends.
    Session,
    /// This call and all calls of the session, until the user resumes it.
    Pause,
}

impl DenialReach {
    /// Returns the clause that describes the denial in the audit log.
    fn audit_clause(self, note: Option<&str>) -> String {
        let reach = match self {
            Self::Call => "",
            Self::Waiting => ", with the agent's other pending questions",
            Self::Session => ", for the rest of the session",
            Self::Pause => ", and the agent is paused",
        };
        let note = note.map_or_else(String::new, |note| format!(", with the note: {note}"));
        format!("{reach}{note}")
    }
}

/// Reason a question is removed from the screen without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithdrawalReason {
    /// The question's deadline passed.
    Deadline,
    /// The client cancelled the call.
    Cancelled,
    /// The session was closed.
    SessionEnded,
    /// The question is no longer needed, for example because of a new grant.
    Settled,
    /// A stop denies the question's call.
    Stopped,
}

/// One question as plain text, ready to show. Control and bidirectional characters are already escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Question id.
    pub id: String,
    /// Name of the remote machine that asks, or `None` if the question is about this computer.
    pub host: Option<String>,
    /// Session id.
    pub session: String,
    /// Client whose call the question is about.
    pub client: ClientView,
    /// Server that would perform the call. Empty if the question is about no server.
    pub server: String,
    /// Command line of the server, shown in the details.
    pub server_command: String,
    /// `true` if the server runs in an OS sandbox.
    pub sandboxed: bool,
    /// `true` if the server is remote. A remote server is not sandboxed, and the call's data leaves this computer.
    pub remote: bool,
    /// Name of the tool, or `None` if the server makes the request itself.
    pub tool: Option<String>,
    /// Effects of the call, the worst first. The first effect is the headline. Never empty.
    pub consequences: Vec<Consequence>,
    /// Names and full values of the arguments that appear in no effect.
    pub with: Vec<(String, String)>,
    /// Additional effects of allowing the call, one sentence each, such as opening a folder to create a file. Never
    /// shortened.
    pub also: Vec<String>,
    /// Name of the rule that requires approval.
    pub rule: String,
    /// Reason that the rule gives.
    pub reason: String,
    /// All arguments as text, in order and in full, as they would be sent. Binary content is described.
    pub arguments: Vec<(String, String)>,
    /// The content that would be written, if any.
    pub preview: Option<Preview>,
    /// Offers that the user can choose from, the narrowest first. Never empty.
    pub offers: Vec<Offer>,
    /// Describes the calls to which a session-long denial would apply, such as "read_file in ~/docs".
    pub denial: String,
    /// `true` if the question can be allowed as part of a batch: the call is sandboxed, only reads or changes
    /// existing files, and needs no other access.
    pub fits_a_batch: bool,
    /// Time until the question is denied. Restarts while the user is active in the dialog.
    pub deadline: Duration,
    /// Warning that this daemon does not use the settings of the user's account, or `None`. Set by the broker.
    pub notice: Option<String>,
}

impl Question {
    /// Returns `true` if the question is about a server, or `false` if it is about a different desktop.
    #[must_use]
    pub fn has_server(&self) -> bool {
        !self.server.is_empty()
    }

    /// Returns `true` if both questions are about the same agent process, possibly with different servers.
    #[must_use]
    pub fn is_of_same_agent(&self, other: &Self) -> bool {
        let chain = &self.client.chain;
        self.session == other.session || !chain.is_empty() && *chain == other.client.chain
    }

    /// Returns `true` if this question can be allowed together with all questions in `batch`. Questions that change the
    /// same file cannot be allowed together, because each diff is against the current file.
    #[must_use]
    pub fn joins<'a>(&self, mut batch: impl Iterator<Item = &'a Self>) -> bool {
        let changes_the_same =
            |other: &Self| other.changed().any(|path| self.changed().any(|own| own == path));
        self.fits_a_batch
            && batch
                .all(|other| other.fits_a_batch && self.is_of_same_agent(other) && !changes_the_same(other))
    }

    fn changed(&self) -> impl Iterator<Item = &TextPart> {
        self.consequences
            .iter()
            .filter(|effect| effect.verb == Verb::Change)
            .flat_map(|effect| &effect.object)
    }
}

/// One effect of a call, such as "**push** main to `https://evil.example/x`".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consequence {
    /// First word of the line.
    pub verb: Verb,
    /// Object of the verb. Must not be shortened for display.
    pub object: Vec<TextPart>,
    /// State of the target before or after the call, such as "new file" or "replaces 12 kB".
    pub note: Option<String>,
    /// Path or name as the agent wrote it, if a symlink or a remote's name led to a different object.
    pub asked_for: Option<String>,
    /// Folder that a symlink in the path leads out of, or `None`.
    pub out_of: Option<String>,
    /// `true` if this effect does not need the user's approval.
    pub allowed: bool,
}

impl Consequence {
    /// Creates an effect without notes that needs the user's approval.
    #[must_use]
    pub fn new(verb: Verb, object: Vec<TextPart>) -> Self {
        Self { verb, object, note: None, asked_for: None, out_of: None, allowed: false }
    }
}

/// Part of a line. Only [`TextPart::Fixed`] is IronCurtain's own text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "text")]
pub enum TextPart {
    /// IronCurtain's own words, with surrounding spaces.
    #[serde(rename = "ours")]
    Fixed(&'static str),
    /// Canonical path, in full.
    Path(String),
    /// Text from the agent, such as an address, a name or a title.
    #[serde(rename = "foreign")]
    Untrusted(String),
}

/// Warning that denying a call does not stop an unsandboxed server from acting on its own.
pub const UNSANDBOXED: &str = "This server is NOT SANDBOXED and has all your rights. Deny stops this call, but not what the server does on its own.";

/// Permission that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Extent of the offer.
    pub reach: Reach,
    /// Label, such as "this file" or "~/Documents/tax and below".
    pub label: String,
    /// Effect in one sentence, without the lifetime, such as "Claude Code may read everything in ~/Documents/tax".
    pub sentence: String,
    /// Available lifetimes, the shortest first. Never empty.
    pub lifetimes: Vec<Lifetime>,
}

/// Extent of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Exactly the call's paths.
    Paths,
    /// The folders that contain the paths, and everything below them.
    Folders,
    /// The surrounding project, for reading.
    ProjectToRead,
    /// The surrounding project, for reading and changing.
    ProjectToChange,
    /// The surrounding folder, for changing. The folder is already open for reading.
    OpenFolderToChange,
    /// A host with a port.
    Host,
    /// A tool with fixed values for its meaningful arguments.
    Tool,
    /// A tool with any arguments.
    AnyUse,
    /// All of the server's tools that only read.
    ReadingTools,
    /// All of the server's tools.
    AllTools,
    /// Exactly this request to the server.
    Request,
    /// The new definition of a tool that its server changed.
    NewDefinition,
    /// The definition that the tool had before.
    OldDefinition,
    /// No definition: the tool is removed.
    NoDefinition,
}

impl Reach {
    /// Returns `true` for a decision about a tool's definition. Such a decision holds until the user changes it, and
    /// grants nothing.
    #[must_use]
    pub fn is_decision(self) -> bool {
        matches!(self, Self::NewDefinition | Self::OldDefinition | Self::NoDefinition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    /// Returns a broker without active stops.
    pub(super) fn broker(consent: Arc<impl Consent>) -> Broker {
        Broker::new(consent, Stops::open(Path::new("/proc/self/nothing").to_path_buf()), None)
    }

    /// Returns the scope of a call that names no paths or addresses.
    pub(super) fn scope() -> DenialScope {
        DenialScope::of_call("t", &[], &[], |_| false)
    }

    /// Returns a question that can be allowed once.
    pub(super) fn question(id: &str) -> Question {
        Question {
            id: id.into(),
            session: "s".into(),
            client: ClientView {
                name: "claude".into(),
                exe: None,
                chain: vec![],
                cwd: None,
                claimed_name: None,
                label: None,
            },
            server: "filesystem".into(),
            server_command: "ironcurtain-filesystem".into(),
            sandboxed: true,
            remote: false,
            tool: Some("read_file".into()),
            consequences: vec![Consequence::new(Verb::Read, vec![TextPart::Path("/home/u/a.txt".into())])],
            with: vec![],
            also: vec![],
            rule: "ask".into(),
            reason: "because".into(),
            arguments: vec![],
            preview: None,
            offers: vec![Offer {
                reach: Reach::Paths,
                label: "this file".into(),
                sentence: "claude may read it".into(),
                lifetimes: vec![Lifetime::Once],
            }],
            denial: "read_file in /home/u".into(),
            fits_a_batch: true,
            deadline: Duration::from_secs(45),
            notice: None,
            host: None,
        }
    }
}
