//! Tamper-evident log of all decisions, in JSON Lines format. A hash links each line to the previous one.
//!
//! - [`Audit::record`] returns after the entry is written (`write(2)`), so a decision is recorded before it
//!   takes effect. If the write fails, the caller gets an error and denies the call.
//! - This crate makes no decisions and does not depend on sessions and servers, so a log can be verified and
//!   searched without the trusted process.
//! - Written entries are never changed. Only an incomplete last line after a crash and the oldest files after the
//!   retention time are removed, and both removals are recorded.

mod chain;
pub mod clock;
mod decision;
mod decision_cache;
mod entry;
mod error;
mod files;
mod follower;
mod head;
mod log;
mod options;
mod pending;
mod read;
mod redaction;
mod retention;
mod search;
mod shorten;
mod tail;
#[cfg(test)]
mod testing;
mod unfinished;
mod verify;
mod volumes;
mod writer;

pub use chain::{ChainPosition, hash_of};
pub use decision::{CallResult, DecidedBy, EscalationResult, PolicyDecision, Status};
pub use entry::{Entry, Event, PolicyChange, PolicyEffect, Removed};
pub use error::AuditError;
pub use files::{FileChange, FileDecision, FileFinding};
pub use follower::{FollowedEntry, Follower, LogPosition, LostRange};
pub use head::KnownHead;
pub use log::Audit;
pub use options::LogOptions;
pub use pending::Pending;
pub use read::{LogLine, all, newest};
pub use redaction::{is_marked, names_a_secret, redacted, redacted_text};
pub use search::{
    DecisionCounts, Filter, FoundCall, decisions_by_period, decisions_by_rule, entries_of_call, search,
    search_calls,
};
pub use unfinished::{UnfinishedSession, unfinished_sessions};
pub use verify::{LogCheck, check, check_all_written, check_written};
pub use volumes::LOG_NAME;
