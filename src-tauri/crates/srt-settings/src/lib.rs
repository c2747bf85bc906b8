//! Parses `srt`'s settings file and command line, as far as `ironcurtain-sandbox` supports them. Unsupported options
//! and keys are errors.
//!
//! - This crate only parses. It neither creates sandboxes nor takes part in tool calls.

#![cfg(unix)]
#![expect(missing_docs, reason = "documented by the schema of `srt`, the help and the error messages")]

mod arguments;
mod entry_paths;
mod pattern;
mod settings;

pub use arguments::{CommandArguments, CommandLine, CommandTask, HELP, PassedVariables, UsageError};
pub use entry_paths::{ListKind, PathBase, PathEntryError};
pub use pattern::{PathPatternError, is_pattern};
pub use settings::{PathEntry, SettingsError, SrtSettingsFile};
