//! Requests a person's own programs make, and the replies.

use crate::view::{ActivityView, AuditCheckView, GrantView, SessionView, StatusView};
use serde::{Deserialize, Serialize};

/// One request, numbered by the asker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Control {
    /// Repeated in the reply.
    pub id: u64,
    /// What is wanted.
    pub request: Request,
}

/// What can be asked. Only things that show, or that take away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// State of the daemon.
    Status,
    /// Live sessions.
    Sessions,
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
    /// The newest entries of the audit log, oldest first.
    Activity {
        /// How many at most.
        limit: usize,
    },
    /// Checks the whole audit log's hash chain.
    VerifyAudit,
    /// Ends the daemon and every session.
    Shutdown,
}

/// One reply, with the number of its request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answered {
    /// As in the request; 0 when that could not be read.
    pub id: u64,
    /// What comes back.
    pub reply: Reply,
}

/// What comes back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reply {
    /// For [`Request::Status`].
    Status(StatusView),
    /// For [`Request::Sessions`].
    Sessions(Vec<SessionView>),
    /// For [`Request::Grants`].
    Grants(Vec<GrantView>),
    /// For [`Request::Revoke`]: gone from policy, roots and the kernel's view.
    Revoked {
        /// The grant that was taken back.
        grant: String,
        /// Servers that had to be restarted, because they still held a file of it open.
        restarted: Vec<String>,
    },
    /// For [`Request::EndSession`] and [`Request::Shutdown`].
    Done,
    /// For [`Request::Activity`].
    Activity(Vec<ActivityView>),
    /// For [`Request::VerifyAudit`].
    Audit(AuditCheckView),
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
