//! Requests from the user's own programs, and the replies.

use crate::questions::{QuestionSelection, QuestionsView};
use crate::view::{
    ActivityView, AuditCheckView, AutostartFileChoice, EndedLoginView, GrantView, SessionRecordView,
    SessionView, StatusView,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::Zeroizing;

/// Request with an id chosen by the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestFrame {
    /// Id chosen by the sender and repeated in the reply.
    pub id: u64,
    /// Operation to perform.
    pub request: Request,
}

/// Request to the daemon.
///
/// - INVARIANT: no request grants access. Requests can display state, revoke access, or decide about files that a
///   session left behind. Requests that lift a pause, lockdown or denial only make the daemon ask the user again.
///   [`Request::Pair`] only confirms a pending pairing, with the code that the desktop shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Returns the daemon's state.
    Status,
    /// Lists active sessions.
    Sessions,
    /// Returns an active or ended session and the autostart files that it left behind.
    Session {
        /// Id of the session.
        session: String,
    },
    /// Lists the ended sessions with autostart files that still require a decision, newest first.
    #[serde(rename = "left-behind")]
    AutostartFiles,
    /// Lists the sessions with quarantined files, newest first. Each session contains only those files.
    Quarantine,
    /// Keeps, quarantines, puts back or deletes a file that a session left behind.
    #[serde(rename = "decide-left")]
    DecideAutostartFile {
        /// Id of the session.
        session: String,
        /// Path of the file, as listed.
        path: String,
        /// Action to take on the file.
        choice: AutostartFileChoice,
    },
    /// Lists the sandboxes whose folders are being scanned before the daemon exits.
    #[serde(rename = "last-looks")]
    FinalChecks,
    /// Lists permanent grants and the grants of active sessions.
    Grants,
    /// Revokes a grant. The daemon replies once the server is proven to have lost the access.
    Revoke {
        /// Id of the grant to revoke.
        grant: String,
    },
    /// Closes a session: kills its servers and drops its grants.
    EndSession {
        /// Id of the session.
        session: String,
    },
    /// Asks the user about a path on behalf of a run, as if the run's program had opened it.
    #[serde(rename = "raise")]
    RequestAccess {
        /// Id of the run.
        session: String,
        /// Absolute path to ask about.
        path: String,
        /// `true` to ask for write access, `false` for read access.
        write: bool,
    },
    /// Lists pending and expired questions, and the denials that last until their session ends.
    Questions,
    /// Removes an expired question and any late approval of it, or lifts a denial that lasts until its session ends.
    Forget {
        /// Id of the expired question, or of the question that the user denied.
        question: String,
    },
    /// Denies pending questions.
    Deny {
        /// Pending questions to deny.
        which: QuestionSelection,
        /// The user's note for the agent, if any.
        #[serde(default)]
        note: Option<String>,
    },
    /// Denies every call of a session until the session is resumed.
    Pause {
        /// Id of the session.
        session: String,
    },
    /// Resumes a paused session.
    Resume {
        /// Id of the session.
        session: String,
    },
    /// Turns lockdown on or off. During lockdown, everything that requires approval is denied at once.
    Lockdown {
        /// `true` to turn lockdown on, `false` to turn it off.
        on: bool,
        /// `true` to also close every session.
        end_servers: bool,
    },
    /// Records that the user restores paths in the folder of a run.
    Undo {
        /// Id of the run.
        session: String,
        /// Folder that contains the paths.
        folder: String,
        /// Number of paths to restore.
        count: usize,
        /// Number of paths that could not be restored; `None` if the paths have not been restored yet.
        failed: Option<usize>,
    },
    /// Returns the newest entries of the audit log, oldest first.
    Activity {
        /// Maximum number of entries.
        limit: usize,
    },
    /// Verifies the hash chain of the whole audit log.
    VerifyAudit,
    /// Returns metrics in the Prometheus text format.
    Metrics,
    /// Unlocks the encrypted secrets file for servers that start from now on.
    UnlockSecrets {
        /// Passphrase of the encrypted file.
        passphrase: Passphrase,
    },
    /// Returns the names of the secrets in the unlocked file. No request returns a secret's value.
    SecretNames,
    /// Stores a secret in the unlocked file.
    StoreSecret {
        /// Name of the secret.
        name: String,
        /// Value of the secret.
        secret: Passphrase,
    },
    /// Removes a secret from the unlocked file.
    RemoveSecret {
        /// Name of the secret.
        name: String,
    },
    /// Confirms the pending pairing with a desktop. A wrong code makes the pairing fail.
    Pair {
        /// Code that the desktop shows.
        code: String,
    },
    /// Stores a login to a remote server in the unlocked file, and revokes the login that it replaces.
    StoreLogin {
        /// Name of the server.
        server: String,
        /// Login in its stored form, with its tokens.
        login: Passphrase,
    },
    /// Ends the login to a remote server and deletes its tokens from the unlocked file.
    EndLogin {
        /// Name of the server.
        server: String,
    },
    /// Locks the encrypted secrets file. Running servers keep the secrets they were started with.
    LockSecrets,
    /// Stops the daemon and every session.
    Shutdown,
}

/// Passphrase or secret sent to the trusted process. Never printed; zeroed on drop.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Passphrase(Zeroizing<String>);

impl Passphrase {
    /// Wraps a passphrase or secret.
    #[must_use]
    pub fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }

    /// Returns the wrapped text.
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

/// Reply with the id of its request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReplyFrame {
    /// Id of the request; 0 if the request could not be parsed.
    pub id: u64,
    /// Result of the request, or the error.
    pub reply: Reply,
}

/// The daemon's reply to one request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// Reply to [`Request::Status`].
    Status(StatusView),
    /// Reply to [`Request::Sessions`].
    Sessions(Vec<SessionView>),
    /// Reply to [`Request::Session`] and [`Request::DecideAutostartFile`].
    Session(SessionRecordView),
    /// Reply to [`Request::AutostartFiles`].
    #[serde(rename = "left-behind")]
    AutostartFiles(Vec<SessionRecordView>),
    /// Reply to [`Request::Quarantine`].
    Quarantine(Vec<SessionRecordView>),
    /// Reply to [`Request::FinalChecks`], with a description of each sandbox.
    #[serde(rename = "last-looks")]
    FinalChecks(Vec<String>),
    /// Reply to [`Request::Grants`].
    Grants(Vec<GrantView>),
    /// Reply to [`Request::Revoke`]: the grant was removed from the policy, the roots and the sandboxes.
    Revoked {
        /// Id of the revoked grant.
        grant: String,
        /// Servers that were restarted because they still had a granted file open.
        restarted: Vec<String>,
        /// Reason the revocation is not saved to disk yet; `None` if it is saved.
        #[serde(default)]
        unstored: Option<String>,
    },
    /// Reply to [`Request::Questions`].
    Questions(QuestionsView),
    /// Reply to [`Request::Deny`]: ids of the denied questions. Other questions were no longer pending.
    Denied(Vec<String>),
    /// The request succeeded and has no result.
    Done,
    /// Reply to [`Request::Activity`].
    Activity(Vec<ActivityView>),
    /// Reply to [`Request::VerifyAudit`].
    Audit(AuditCheckView),
    /// Reply to [`Request::SecretNames`].
    SecretNames(Vec<String>),
    /// Reply to [`Request::Pair`]: the code was correct.
    PairingCode {
        /// Code to type on the desktop.
        code: String,
        /// `true` if the user of the attached desktop must also allow the pairing.
        asks_attached: bool,
    },
    /// Reply to [`Request::EndLogin`]; `None` if there was no login.
    LoginEnded(Option<EndedLoginView>),
    /// Reply to [`Request::Metrics`], in the Prometheus text format.
    Metrics(String),
    /// The request failed.
    Failed {
        /// Machine-readable error code.
        code: ErrorCode,
        /// Error message for the user.
        message: String,
    },
}

/// Reason a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorCode {
    /// The id in the request is unknown.
    NotFound,
    /// The request could not be parsed, or an argument is invalid.
    Malformed,
    /// Reading or writing a file, the database or the audit log failed.
    Storage,
    /// The daemon is shutting down.
    Ending,
}
