//! The tamper-evident record of everything decided: JSON Lines, each linked to the one before by its hash.
//!
//! - An entry is written (`write(2)`) before the answer to [`Audit::record`] comes, so a decision is on record
//!   before it takes effect. If it cannot be written, the error says so and the caller denies.
//! - Never decides, never asks, and knows neither sessions nor servers: whoever has a log can check and search it, without
//!   a trusted process.
//! - Never changes what is written: a line that a crash tore is the one thing that is cut off, and the oldest files are what is
//!   removed by age. Both are on record.

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
pub use search::{Filter, search};
pub use unfinished::{Unfinished, unfinished};
pub use verify::{Checked, check, check_written};
pub use volumes::LOG_NAME;
