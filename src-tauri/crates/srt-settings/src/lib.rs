//! The settings file and the command line of `srt`, for `ironcurtain-sandbox` in its place: values, read whole or refused.
//!
//! - Never makes a sandbox, and never stands in the way of a call: it says what a person's command asks for.

#![cfg(unix)]
#![expect(
    missing_docs,
    reason = "the schema of `srt`, the help and the texts of the errors say what each is"
)]

mod arguments;
mod entry_paths;
mod pattern;
mod settings;

pub use arguments::{CommandArguments, CommandLine, CommandTask, HELP, PassedVariables, UsageError};
pub use entry_paths::{Base, ListKind, PathEntryError};
pub use pattern::{PathPatternError, is_pattern};
pub use settings::{PathEntry, SettingsError, SrtSettingsFile};
