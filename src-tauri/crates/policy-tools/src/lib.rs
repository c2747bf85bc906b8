//! Tools for whoever writes a policy: what is proposed for the arguments of tools, how two policies differ, what is
//! questionable about one, where its rules stand in their file, whether it decides as scenarios expect, and which calls on
//! record it decides otherwise.
//!
//! - Not in the trusted path: no call is allowed or denied by anything here.
//! - Pure, as the judge is: no IO, no clock, no randomness.

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
