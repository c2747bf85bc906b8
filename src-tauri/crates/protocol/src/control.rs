//! Requests a person's own programs make, and the replies.

use crate::questions::{QuestionsView, WaitingChoice};
use crate::view::{
    ActivityView, AuditCheckView, GrantView, LeftChoice, SessionRecordView, SessionView, StatusView,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// One request, numbered by the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFrame {
    /// Repeated in the reply.
    pub id: u64,
    /// The request itself.
    pub request: Request,
}

/// A request. All of them show, take away, keep what is there as it is, put back what was moved to quarantine, or end what was
/// stopped, after which the person is asked as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// State of the daemon.
    Status,
    /// Live sessions.
    Sessions,
    /// One session, live or ended, with the files it left that run later.
    Session {
        /// Its id.
        session: String,
    },
    /// The ended sessions that left files about which the person has not said anything, the newest first.
    LeftBehind,
    /// The sessions of which files are in quarantine, with just those files, the newest first.
    Quarantine,
    /// Keeps a file that a session left, moves it to quarantine, puts it back from there, or deletes it.
    DecideLeft {
        /// Id of the session.
        session: String,
        /// The file, as the session's list names it.
        path: String,
        /// The person's choice.
        choice: LeftChoice,
    },
    /// The sandboxes whose folders are being looked at for the last time.
    LastLooks,
    /// Standing grants and those of live sessions.
    Grants,
    /// Takes one grant back; the reply comes when that is proved.
    Revoke {
        /// Id of the grant.
        grant: String,
    },
    /// Ends one session: its servers are killed and its grants dropped.
    EndSession {
        /// Id of the session.
        session: String,
    },
    /// The questions that wait for the person, those that nobody answered in time, and what is denied for a session.
    Questions,
    /// Forgets a question that nobody answered in time, with a yes that came late, or takes a no for the rest of a session
    /// back.
    Forget {
        /// Its id.
        question: String,
    },
    /// Denies questions that wait for the person, each for itself.
    Deny {
        /// Which of them.
        which: WaitingChoice,
        /// The person's words for the agent.
        #[serde(default)]
        note: Option<String>,
    },
    /// Denies everything of one session until it is resumed.
    Pause {
        /// Id of the session.
        session: String,
    },
    /// Ends the pause of one session.
    Resume {
        /// Id of the session.
        session: String,
    },
    /// Begins or ends lockdown: whatever needs the person's word is denied at once.
    Lockdown {
        /// It is to be on.
        on: bool,
        /// Every session is ended with it.
        end_servers: bool,
    },
    /// The newest entries of the audit log, oldest first.
    Activity {
        /// The greatest number.
        limit: usize,
    },
    /// Checks the whole audit log's hash chain.
    VerifyAudit,
    /// Figures of what happens, for Prometheus.
    Metrics,
    /// Opens the encrypted file of secrets for servers that start from now on.
    UnlockSecrets {
        /// Its passphrase.
        passphrase: Passphrase,
    },
    /// Forgets what the passphrase opened. Servers that run keep what they were started with.
    LockSecrets,
    /// Ends the daemon and every session.
    Shutdown,
}

/// A passphrase on its way to the trusted process: never shown, and overwritten when it is dropped.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// The text is one.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// The text, for whoever opens something with it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase")
    }
}

/// One reply, with the number of its request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyFrame {
    /// As in the request; 0 when that could not be read.
    pub id: u64,
    /// The reply itself.
    pub reply: Reply,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// For [`Request::Status`].
    Status(StatusView),
    /// For [`Request::Sessions`].
    Sessions(Vec<SessionView>),
    /// For [`Request::Session`] and [`Request::DecideLeft`].
    Session(SessionRecordView),
    /// For [`Request::LeftBehind`].
    LeftBehind(Vec<SessionRecordView>),
    /// For [`Request::Quarantine`].
    Quarantine(Vec<SessionRecordView>),
    /// For [`Request::LastLooks`]: for each a few words that name it.
    LastLooks(Vec<String>),
    /// For [`Request::Grants`].
    Grants(Vec<GrantView>),
    /// For [`Request::Revoke`]: gone from policy, roots and the kernel's view.
    Revoked {
        /// The grant that was taken back.
        grant: String,
        /// Servers that had to be restarted, because they still held a file of it open.
        restarted: Vec<String>,
        /// Why that is noted and not stored yet, if so.
        #[serde(default)]
        unstored: Option<String>,
    },
    /// For [`Request::Questions`].
    Questions(QuestionsView),
    /// For [`Request::Deny`]: the ids of those that were denied. The others were over.
    Denied(Vec<String>),
    /// For everything that is done and needs no more words.
    Done,
    /// For [`Request::Activity`].
    Activity(Vec<ActivityView>),
    /// For [`Request::VerifyAudit`].
    Audit(AuditCheckView),
    /// For [`Request::Metrics`]: text in the format of Prometheus.
    Metrics(String),
    /// It could not be done.
    Failed {
        /// For programs.
        code: ErrorCode,
        /// For people.
        message: String,
    },
}

/// The closed list of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// No grant or session has that id.
    NotFound,
    /// The request was not understood.
    Malformed,
    /// A file, the database or the audit log failed.
    Storage,
    /// The daemon is ending.
    Ending,
}
