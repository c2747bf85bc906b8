//! The tamper-evident record of every decision: JSON Lines, each linked to the previous one by its hash.
//!
//! - An entry is written (`write(2)`) before [`Audit::record`] returns, so a decision is recorded before it takes effect.
//!   If it cannot be written, the caller gets an error and denies.
//! - Makes no decisions, asks no questions, and does not know sessions or servers, so a log can be
//!   checked and searched without the trusted process.
//! - Never changes written entries. Removes only a last line torn by a crash, and the oldest files
//!   by age, and records both.

mod chain;
pub mod clock;
mod decision;
mod entry;
mod error;
mod files;
mod head;
mod keeping;
mod log;
mod pending;
mod read;
mod recall;
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

pub use chain::{Written, hash_of};
pub use decision::{CallResult, DecidedBy, EscalationResult, PolicyDecision, Status};
pub use entry::{Entry, Event, PolicyChange, PolicyEffect, Removed};
pub use error::AuditError;
pub use files::{FileChange, FileDecision, FileFinding};
pub use head::KnownHead;
pub use keeping::Keeping;
pub use log::Audit;
pub use pending::Pending;
pub use read::{Found, all, newest};
pub use redaction::{is_marked, names_a_secret, redacted};
pub use search::{
    DecisionCounts, Filter, FoundCall, call_of, decisions_by_period, decisions_by_rule, search, search_calls,
};
pub use unfinished::{Unfinished, unfinished};
pub use verify::{Checked, check, check_written};
pub use volumes::LOG_NAME;
