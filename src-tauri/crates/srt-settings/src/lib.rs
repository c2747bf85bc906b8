//! Settings file and command line of `srt`, as `ironcurtain-sandbox` supports them: parsed completely or refused.
//!
//! - Never creates a sandbox and never takes part in a call: it only parses the user's command.

#![cfg(unix)]
#![expect(missing_docs, reason = "documented by the schema of `srt`, the help and the error messages")]

mod arguments;
mod entry_paths;
mod pattern;
mod settings;

pub use arguments::{CommandArguments, CommandLine, CommandTask, HELP, PassedVariables, UsageError};
pub use entry_paths::{Base, ListKind, PathEntryError};
pub use pattern::{PathPatternError, is_pattern};
pub use settings::{PathEntry, SettingsError, SrtSettingsFile};
