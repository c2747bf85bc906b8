//! The tamper-evident record of everything decided: JSON Lines, each linked to the one before by its hash.
//!
//! - An entry is written (`write(2)`) before the answer to [`Audit::record`] comes, so a decision is on record
//!   before it takes effect. If it cannot be written, the error says so and the caller denies.
//! - Never decides, never asks, and knows neither sessions nor servers: whoever has a log can check and search it, without
//!   a trusted process.
//! - Never changes what is written: a line that a crash tore is the one thing that is cut off, and that is on record.

mod chain;
mod decision;
mod entry;
mod files;
mod log;
mod redaction;
mod search;
mod shorten;
mod unfinished;
mod verify;
mod writer;

pub use chain::hash_of;
pub use decision::{CallResult, DecidedBy, EscalationResult, PolicyDecision, Status};
pub use entry::{Entry, Event, PolicyChange, PolicyEffect};
pub use files::{FileChange, FileDecision, FileFinding};
pub use log::Audit;
pub use redaction::{is_marked, redacted};
pub use search::{Found, all, newest};
pub use unfinished::{Unfinished, unfinished};
pub use verify::{Checked, Written, check, check_written};
pub use writer::{AuditError, LOG_NAME};
