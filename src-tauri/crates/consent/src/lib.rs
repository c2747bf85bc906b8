//! Interface between the trusted process and a front end that asks the user: the app's dialog, a terminal or a test.
//!
//! - Only [`Answer::Allow`] allows a call. A dropped [`Slot`], a timeout and a crash all deny it.
//! - [`Question`] contains everything that is shown, as plain text. A front end adds nothing and resolves nothing.
//! - The policy decides whether a call needs approval; this crate only asks.
//!
//! ```
//! use ironcurtain_consent::{Answer, Consent, DenialReach, Question, Slot, Withdrawn};
//!
//! struct DenyAll;
//!
//! impl Consent for DenyAll {
//!     fn ask(&self, _question: Question, slot: Slot) {
//!         slot.answer(Answer::Deny { note: None, reach: DenialReach::Call });
//!     }
//!
//!     fn withdraw(&self, _question: &str, _why: Withdrawn) {}
//! }
//! ```

mod binary;
mod broker;
mod comparison;
mod consequence;
pub mod definition;
mod exchange;
pub mod found_paths;
mod grantable;
mod identical;
mod late;
pub mod located_call;
mod missed;
mod not_approved;
mod offers;
mod preview;
mod principal;
mod question;
mod question_metrics;
mod rate;
mod showable;
mod side_effects;
mod stops;
mod terminal;
mod words;

pub use broker::{Broker, OpenQuestion, QuestionOutcome};
pub use comparison::{FileComparison, file_state};
pub use exchange::{Approval, Exchange, ExchangeError};
pub use grantable::{Grantable, RequestedAccess};
pub use identical::{AskedFirst, QuestionKey};
pub use ironcurtain_grants::Lifetime;
pub use late::{LateAsking, LateError};
pub use missed::{Inquiry, MissedError, MissedQuestion, MissedQuestions, MissedState};
pub use not_approved::{NotApproved, PAUSED};
pub use offers::{grants_of, may_last, offers};
pub use principal::{Principal, shown_client};
pub use question::{
    CHANGED_TOOL_RULE, CallQuestion, ChangedToolQuestion, ConnectionQuestion, HOST_RULE, HostQuestion,
    SAMPLING_RULE, SamplingQuestion, WORKSPACE_RULE, WorkspaceQuestion, WorkspaceSource,
};
pub use question_metrics::QuestionMetrics;
pub use rate::{DeniedKey, QuestionLimits};
pub use showable::TooLongToShow;
pub use stops::{DenialScope, SessionDenial, Stop, StopState, Stops};
pub use terminal::{NobodyToAsk, Terminal, pieces};
pub use words::size;

pub use ironcurtain_policy::Verb;
use ironcurtain_protocol::{AskedOn, ClientView};
use serde::Serialize;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A front end that can put a question to the user.
pub trait Consent: Send + Sync + 'static {
    /// Shows the question and returns immediately. The front end answers through `slot` once, from any thread.
    fn ask(&self, question: Question, slot: Slot);

    /// Removes a question that ended without this front end, for the given reason.
    fn withdraw(&self, question: &str, why: Withdrawn);

    /// Shows the user a message that needs no answer, if possible.
    fn notify(&self, _notice: &str) {}

    /// Returns the kind of front end. The app may replace a process that returns [`AskedOn::Nobody`].
    fn asked_on(&self) -> AskedOn {
        AskedOn::App
    }
}

/// Sender for the answer to one question. Dropping it without an answer denies the call.
#[derive(Debug)]
#[must_use = "dropping the slot denies the call"]
pub struct Slot {
    answer: oneshot::Sender<Answer>,
    working: mpsc::Sender<()>,
}

impl Slot {
    /// Sends the user's answer. Does nothing if the question has already ended.
    pub fn answer(self, answer: Answer) {
        // Sending fails only if the question has ended, which has denied the call.
        let _ = self.answer.send(answer);
    }

    /// Returns `true` if the question has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    /// Reports that the user is active in the dialog, which restarts the deadline.
    pub fn working(&self) {
        // If the channel is full, a report is already pending.
        let _ = self.working.try_send(());
    }
}

/// The user's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Allows the offer for the lifetime.
    Allow {
        /// Index into [`Question::offers`].
        offer: usize,
        /// A lifetime of that offer.
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
        /// Calls that the denial covers beyond this one.
        reach: DenialReach,
    },
}

/// Calls that a denial covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenialReach {
    /// Only this call.
    Call,
    /// This call and all calls of the same agent that are pending when the user answers.
    Waiting,
    /// This call and all calls that match [`Question::denial`], until the session ends.
    Session,
    /// This call and all calls of the session, until the user resumes it.
    Pause,
}

impl DenialReach {
    /// Returns the clause that describes the denial in the audit log.
    fn on_record(self, note: Option<&str>) -> String {
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

/// Reason that a question is removed from the screen without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawn {
    /// The question's deadline passed.
    Deadline,
    /// The client cancelled the call.
    Cancelled,
    /// The session was closed.
    SessionEnded,
    /// Another event made the question unnecessary.
    Settled,
    /// A stop covers the question.
    Stopped,
}

/// One question as plain text, ready to show. Control and bidirectional characters are already escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Question id.
    pub id: String,
    /// Session id.
    pub session: String,
    /// Client that asks.
    pub client: ClientView,
    /// The server that would act.
    pub server: String,
    /// Its command line, for the details.
    pub server_command: String,
    /// `true` if the server runs in an OS sandbox.
    pub sandboxed: bool,
    /// `true` if the server is remote: it is not sandboxed, and receives the sent data.
    pub remote: bool,
    /// Name of the tool, or `None` if the server asks without a tool call.
    pub tool: Option<String>,
    /// All effects of the call, the worst first. The first one is the headline. Never empty.
    pub consequences: Vec<Consequence>,
    /// Arguments that no effect mentions: name and full value.
    pub with: Vec<(String, String)>,
    /// Further effects of allowing, one sentence each, such as the folder opened to create a file. Never cut.
    pub also: Vec<String>,
    /// Name of the rule that requires approval.
    pub rule: String,
    /// That rule's reason.
    pub reason: String,
    /// Every argument as text, in order and in full, as it would be sent. Binary content is described.
    pub arguments: Vec<(String, String)>,
    /// The content that would be written, if any.
    pub preview: Option<Preview>,
    /// Offers that the user can choose from, the narrowest first. Never empty.
    pub offers: Vec<Offer>,
    /// Calls that a denial for the rest of the session covers: "read_file in ~/docs".
    pub denial: String,
    /// `true` if the question can be allowed in a batch: the call is sandboxed, only reads or changes existing files, and
    /// needs no other access.
    pub fits_a_batch: bool,
    /// Time until the question is denied; restarts while the user works in it.
    pub deadline: Duration,
    /// Warning about this IronCurtain itself: it uses settings other than those of the user's account. Set by the
    /// broker.
    pub notice: Option<String>,
}

impl Question {
    /// Returns `true` if the same agent process asks, through any server.
    #[must_use]
    pub fn is_of_same_agent(&self, other: &Self) -> bool {
        let chain = &self.client.chain;
        self.session == other.session || !chain.is_empty() && *chain == other.client.chain
    }

    /// Returns `true` if this question can be allowed together with all of `batch`. Two questions that change the same
    /// file cannot: both diffs are against the current file.
    #[must_use]
    pub fn joins<'a>(&self, mut batch: impl Iterator<Item = &'a Self>) -> bool {
        let changes_the_same =
            |other: &Self| other.changed().any(|path| self.changed().any(|own| own == path));
        self.fits_a_batch
            && batch
                .all(|other| other.fits_a_batch && self.is_of_same_agent(other) && !changes_the_same(other))
    }

    fn changed(&self) -> impl Iterator<Item = &Piece> {
        self.consequences
            .iter()
            .filter(|effect| effect.verb == Verb::Change)
            .flat_map(|effect| &effect.object)
    }
}

/// One effect of a call: "**push** main to `https://evil.example/x`".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Consequence {
    /// First word of the line.
    pub verb: Verb,
    /// Object of the verb. A renderer never cuts it.
    pub object: Vec<Piece>,
    /// Description of the target now or afterwards: "new file", "replaces 12 kB".
    pub note: Option<String>,
    /// The agent's own spelling, if a link or a remote's name led to the object.
    pub asked_for: Option<String>,
    /// Folder that a link on the way leaves.
    pub out_of: Option<String>,
    /// `true` if the call may do this without the user's approval.
    pub allowed: bool,
}

impl Consequence {
    /// Creates an effect without notes that needs the user's approval.
    #[must_use]
    pub fn new(verb: Verb, object: Vec<Piece>) -> Self {
        Self { verb, object, note: None, asked_for: None, out_of: None, allowed: false }
    }
}

/// Part of a line. Only [`Piece::Ours`] is IronCurtain's own text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "text")]
pub enum Piece {
    /// IronCurtain's own words, with surrounding spaces.
    Ours(&'static str),
    /// Canonical path, in full.
    Path(String),
    /// Text from the agent: an address, a name, a title.
    Foreign(String),
}

/// Content that would be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "text")]
pub enum Preview {
    /// New content, in full.
    Content(String),
    /// Diff: removed lines start with `-`, added ones with `+`.
    Diff(String),
}

/// One choice that the user can allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// Extent of the offer.
    pub reach: Reach,
    /// Label of the choice ("this file", "~/Documents/tax and below").
    pub label: String,
    /// Effect in one sentence, without the lifetime ("Claude Code may read everything in ~/Documents/tax").
    pub sentence: String,
    /// Available lifetimes, the shortest first. Never empty.
    pub lifetimes: Vec<Lifetime>,
}

/// Extent of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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
    /// The surrounding folder that is already open for reading, for changing.
    OpenFolderToChange,
    /// A host with a port.
    Host,
    /// A tool, with its meaningful values fixed.
    Tool,
    /// A tool, with any arguments.
    AnyUse,
    /// Every tool of the server that only reads.
    ReadingTools,
    /// Every tool of the server.
    AllTools,
    /// Exactly this request of the server.
    Request,
    /// The new definition of a tool that its server changed.
    NewDefinition,
    /// The definition that the tool had before.
    OldDefinition,
    /// No definition: the tool is removed.
    NoDefinition,
}

impl Reach {
    /// Returns whether an offer of this extent is a decision that holds until the user changes it, rather than a permission.
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

    /// Returns the scope of a call without paths and addresses.
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
                says_it_is: None,
                label: None,
            },
            server: "filesystem".into(),
            server_command: "ironcurtain-filesystem".into(),
            sandboxed: true,
            remote: false,
            tool: Some("read_file".into()),
            consequences: vec![Consequence::new(Verb::Read, vec![Piece::Path("/home/u/a.txt".into())])],
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
        }
    }
}
