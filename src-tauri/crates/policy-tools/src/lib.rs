//! Tools for whoever writes a policy: what is proposed for the arguments of tools, how two policies differ, what is
//! questionable about one, and where its rules stand in their file.
//!
//! - Not in the trusted path: no call is allowed or denied by anything here.
//! - Pure, as the judge is: no IO, no clock, no randomness.

pub mod diff;
pub mod lint;
pub mod propose;
mod rule_lines;

pub use rule_lines::RuleLines;
