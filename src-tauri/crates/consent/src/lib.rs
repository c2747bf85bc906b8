//! The seam between the trusted process and whoever can ask a person: the app's dialog, a terminal, a test.
//!
//! - Only [`Answer::Allow`] allows. A dropped [`Slot`], a timeout or a crash is a denial.
//! - Everything shown is in [`Question`] as plain text; whoever draws it adds nothing and resolves nothing.
//! - Never decides whether a call needs approval: the policy does.
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

mod beyond;
mod binary;
mod broker;
mod comparison;
mod consequence;
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
mod stops;
mod terminal;
mod words;

pub use broker::{Broker, PutQuestion, QuestionOutcome};
pub use comparison::{FileComparison, file_state};
pub use exchange::{Approval, Exchange, ExchangeError};
pub use grantable::{Grantable, RequestedAccess};
pub use identical::{AskedFirst, QuestionKey};
pub use ironcurtain_grants::Lifetime;
pub use late::{LateAsking, LateError};
pub use missed::{Inquiry, MissedError, MissedQuestion, MissedQuestions, MissedState};
pub use not_approved::{NotApproved, PAUSED};
pub use offers::may_last;
pub use offers::{grants_of, offers, tilde};
pub use principal::Principal;
pub use principal::shown_client;
pub use question::{
    CallQuestion, HOST_RULE, HostQuestion, SAMPLING_RULE, SamplingQuestion, WORKSPACE_RULE,
    WorkspaceQuestion, WorkspaceSource,
};
pub use question_metrics::QuestionMetrics;
pub use rate::{DeniedKey, QuestionLimits};
pub use showable::TooLongToShow;
pub use stops::{DenialScope, SessionDenial, Stop, StopState, Stops};
pub use terminal::pieces;
pub use terminal::{NobodyToAsk, Terminal};
pub use words::size;

pub use ironcurtain_policy::Verb;
use ironcurtain_protocol::{AskedOn, ClientView};
use serde::Serialize;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Whoever can put a question to the person.
pub trait Consent: Send + Sync + 'static {
    /// Shows the question and returns at once; the answer goes into the slot, from any thread, once.
    fn ask(&self, question: Question, slot: Slot);

    /// The question is over without this asker's answer (deadline, cancelled call, ended session): take it away.
    fn withdraw(&self, question: &str, why: Withdrawn);

    /// Tells the person something that needs no answer, where that is possible.
    fn tell(&self, _notice: &str) {}

    /// Returns the place at which the user is asked. Where there is none, the app may take the place of this process.
    fn asked_on(&self) -> AskedOn {
        AskedOn::App
    }
}

/// The receiver of one question's answer. Dropping it unanswered denies, as a closed dialog does.
#[derive(Debug)]
#[must_use = "dropping the slot denies the call"]
pub struct Slot {
    answer: oneshot::Sender<Answer>,
    working: mpsc::Sender<()>,
}

impl Slot {
    /// Gives the person's answer. Ignored when the question is already over.
    pub fn answer(self, answer: Answer) {
        // A question that is over has no listener, and its call is denied already.
        let _ = self.answer.send(answer);
    }

    /// True if the question is over: nobody waits for its answer any more.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.answer.is_closed()
    }

    /// Tells that the person is working in the dialog, which starts the deadline anew.
    pub fn working(&self) {
        // Full means a signal is already waiting, which is as good.
        let _ = self.working.try_send(());
    }
}

/// The person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Yes: the offer at this index of [`Question::offers`], for this long.
    Allow {
        /// Index into [`Question::offers`].
        offer: usize,
        /// One of that offer's lifetimes.
        lifetime: Lifetime,
    },
    /// Nobody can be asked, and why. Denies.
    Unavailable {
        /// A sentence for the agent.
        why: String,
    },
    /// No, with what the agent may be told.
    Deny {
        /// The person's note for the agent.
        note: Option<String>,
        /// The things that are denied with it.
        reach: DenialReach,
    },
}

/// The things that a no is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenialReach {
    /// The call.
    Call,
    /// The call, and whatever else of the same agent stands before the person at that moment.
    Waiting,
    /// All that [`Question::denial`] says, until the session ends.
    Session,
    /// Everything of the session, until the person resumes it.
    Pause,
}

impl DenialReach {
    /// The end of the sentence on record that the question was denied.
    fn on_record(self, note: Option<&str>) -> String {
        let reach = match self {
            Self::Call => "",
            Self::Waiting => ", with all else that the agent had waiting",
            Self::Session => ", for the rest of the session",
            Self::Pause => ", and the agent is paused",
        };
        let note = note.map_or_else(String::new, |note| format!(", with the note: {note}"));
        format!("{reach}{note}")
    }
}

/// Why a question was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawn {
    /// Nobody answered in time.
    Deadline,
    /// The client cancelled the call.
    Cancelled,
    /// The session ended.
    SessionEnded,
    /// The answer to another question settled it.
    Settled,
    /// The person stopped it, with more than this question.
    Stopped,
}

/// One question, as plain text ready to show. Control and bidirectional characters are already made visible.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Question id.
    pub id: String,
    /// Session id.
    pub session: String,
    /// Who asks.
    pub client: ClientView,
    /// The server that would act.
    pub server: String,
    /// Its command line, for the details.
    pub server_command: String,
    /// True if it runs in an OS sandbox.
    pub sandboxed: bool,
    /// True if it runs elsewhere: then it has no sandbox, and sees what it is sent.
    pub remote: bool,
    /// The tool; none when the server asks for something by itself.
    pub tool: Option<String>,
    /// Everything that the call would do, the worst first: the headline is the first. Never empty.
    pub consequences: Vec<Consequence>,
    /// Every argument that no line tells, by its name, in full.
    pub with: Vec<(String, String)>,
    /// Further effects of a yes, a sentence each: the folder that is opened for a new name. Never cut.
    pub also: Vec<String>,
    /// Name of the rule that asks.
    pub rule: String,
    /// That rule's reason.
    pub reason: String,
    /// Every argument as text, in order, in full, as it would be sent. Binary content is described.
    pub arguments: Vec<(String, String)>,
    /// The content that would be written, if any.
    pub preview: Option<Preview>,
    /// The offers that the person can choose from, the narrowest first. Never empty.
    pub offers: Vec<Offer>,
    /// The calls that a no for the rest of the session is for: "read_file in ~/docs".
    pub denial: String,
    /// True if a yes for once may be given together with others: from a sandbox it reads or changes files that are there, and
    /// does and opens nothing else.
    pub fits_a_batch: bool,
    /// The time for which the question waits; starts anew while the person works in it.
    pub deadline: Duration,
    /// A warning about this IronCurtain itself: other settings than those of the user's account are in use. The broker sets it.
    pub notice: Option<String>,
}

impl Question {
    /// Returns `true` if the same process of an agent client asks, through whichever server.
    #[must_use]
    pub fn is_of_same_agent(&self, other: &Self) -> bool {
        let chain = &self.client.chain;
        self.session == other.session || !chain.is_empty() && *chain == other.client.chain
    }

    /// Returns `true` if a yes to it can be given together with a yes to each of these. Of two that change the same file only
    /// one: the lines that the other would change are told by the file as it is now.
    #[must_use]
    pub fn joins<'a>(&self, mut batch: impl Iterator<Item = &'a Self>) -> bool {
        let changes_the_same =
            |other: &Self| other.changed().any(|path| self.changed().any(|own| own == path));
        self.fits_a_batch
            && batch
                .all(|other| other.fits_a_batch && self.is_of_same_agent(other) && !changes_the_same(other))
    }

    fn changed(&self) -> impl Iterator<Item = &Piece> {
        self.consequences.iter().filter(|deed| deed.verb == Verb::Change).flat_map(|deed| &deed.object)
    }
}

/// One thing that a call would do: "**push** main to `https://evil.example/x`".
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Consequence {
    /// Its verb, the first word of the line.
    pub verb: Verb,
    /// The object of the verb. Never cut by whoever draws it.
    pub object: Vec<Piece>,
    /// The thing that is there now, or would be: "new file", "replaces 12 kB".
    pub note: Option<String>,
    /// The agent's own words for it, when a link or the name of a remote leads there.
    pub asked_for: Option<String>,
    /// The folder that a link on the way leads out of.
    pub out_of: Option<String>,
    /// True if the call could do this without the person's word.
    pub allowed: bool,
}

impl Consequence {
    /// A line without notes, about something that needs the user's approval.
    #[must_use]
    pub fn new(verb: Verb, object: Vec<Piece>) -> Self {
        Self { verb, object, note: None, asked_for: None, out_of: None, allowed: false }
    }
}

/// A piece of a line, with what it is: only [`Piece::Ours`] is in our words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "text")]
pub enum Piece {
    /// A word of ours, with its blanks.
    Ours(&'static str),
    /// A canonical path, in full.
    Path(String),
    /// A text of the agent's: an address, a name, a title.
    Foreign(String),
}

/// The content that would be written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "text")]
pub enum Preview {
    /// New content, in full.
    Content(String),
    /// Removed lines start with `-`, added ones with `+`.
    Diff(String),
}

/// One thing the person can allow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    /// The extent to which it reaches.
    pub reach: Reach,
    /// The words on the choice ("this file", "~/Documents/tax and below").
    pub label: String,
    /// The effect, in one sentence without the lifetime ("Claude Code may read everything in ~/Documents/tax").
    pub sentence: String,
    /// The lifetimes it can have, the shortest first. Never empty.
    pub lifetimes: Vec<Lifetime>,
}

/// The extent to which an offer reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Exactly the paths of the call.
    Paths,
    /// The folders they are in, and all below.
    Folders,
    /// The project that they are in, to read.
    ProjectToRead,
    /// The project that they are in, to read and to change.
    ProjectToChange,
    /// The folder that they are in and that is open to be read already, to change.
    OpenFolderToChange,
    /// One port of one host.
    Host,
    /// A tool, with the values that mean something.
    Tool,
    /// This one request of a server.
    Request,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    /// A broker by which nothing is stopped.
    pub(super) fn broker(consent: Arc<impl Consent>) -> Broker {
        Broker::new(consent, Stops::open(Path::new("/proc/self/nothing").to_path_buf()), None)
    }

    /// The scope of a call that names nothing.
    pub(super) fn scope() -> DenialScope {
        DenialScope::of_call("t", &[], &[], |_| false)
    }

    /// A question that can be allowed once.
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
