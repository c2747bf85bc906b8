//! Termination of a grant, from its removal until the termination is recorded in the audit log and the database.

use super::StandingGrant;
use ironcurtain_audit::{Entry, Event};
use serde::{Deserialize, Serialize};

/// Reason a grant ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// The user revoked the grant.
    #[serde(rename = "taken-back")]
    Revoked,
    /// The grant expired.
    #[serde(rename = "clock")]
    Expired,
    /// The grant was recorded in the audit log but could not be stored.
    #[serde(rename = "not-kept")]
    NotStored,
}

impl EndReason {
    /// Returns the summary for the audit log.
    fn sentence(self) -> &'static str {
        match self {
            Self::Revoked => "a grant was revoked",
            Self::Expired => "a grant expired",
            Self::NotStored => "a grant could not be stored, and is not in force",
        }
    }

    /// Returns the name that the database stores for the reason.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Revoked => "taken-back",
            Self::Expired => "clock",
            Self::NotStored => "not-kept",
        }
    }

    /// Parses a name from the database. Returns `None` if it is unknown.
    pub(super) fn parse(name: &str) -> Option<Self> {
        [Self::Revoked, Self::Expired, Self::NotStored].into_iter().find(|why| why.name() == name)
    }
}

/// Termination that is not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingTermination {
    /// Id of the grant.
    pub id: String,
    /// The grant, or `None` if the database no longer contains it.
    pub grant: Option<StandingGrant>,
    /// Reason the grant ended.
    pub why: EndReason,
    /// Time at which the grant ended, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Error from the last attempt to store the termination; `None` before the first attempt.
    pub trouble: Option<String>,
    /// Audit log entry about the termination.
    pub(super) entry: Box<Entry>,
}

impl PendingTermination {
    /// Creates the termination of a grant. `at_ms` is in milliseconds since the Unix epoch.
    pub fn new(grant: StandingGrant, why: EndReason, at_ms: u64) -> Self {
        let entry = Box::new(grant.entry(Event::Revoked, why.sentence()));
        Self { id: grant.id.clone(), grant: Some(grant), why, at_ms, trouble: None, entry }
    }

    /// Creates a termination from a line that the previous process left in the journal.
    pub(super) fn from_journal(entry_line: JournalEntry, grant: Option<StandingGrant>) -> Self {
        let JournalEntry { id, why, at_ms, mut entry } = entry_line;
        entry.summary.push_str("; IronCurtain exited before this was stored");
        Self { id, grant, why, at_ms, trouble: None, entry }
    }
}

/// Line of the journal: a termination that must be stored. For a grant that is still being created, it is the
/// termination to record if the grant cannot be stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct JournalEntry {
    pub(super) id: String,
    pub(super) why: EndReason,
    pub(super) at_ms: u64,
    pub(super) entry: Box<Entry>,
}

impl JournalEntry {
    pub(super) fn of(ending: &PendingTermination) -> Self {
        let PendingTermination { id, why, at_ms, entry, .. } = ending.clone();
        Self { id, why, at_ms, entry }
    }
}

/// Termination of a grant as stored in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredTermination {
    /// Reason the grant ended.
    pub why: EndReason,
    /// Time at which the grant ended, in milliseconds since the Unix epoch.
    pub at_ms: u64,
}
