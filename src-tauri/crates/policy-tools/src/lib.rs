//! Tools for policy authors: proposing argument roles, comparing and linting policies, finding the lines of rules in
//! a file, checking scenarios, and replaying recorded calls.
//!
//! - Not on the trusted path: nothing here allows or denies a call.
//! - Pure, like the judge: no I/O, no clock, no randomness.

pub mod diff;
pub mod explained;
pub mod lint;
pub mod propose;
pub mod replay;
mod rule_lines;
mod ruling;
pub mod simulate;

pub use rule_lines::RuleLines;
pub use ruling::Ruling;
