//! Determines the sandbox of a local server: resolves the server's `sandbox` entry, creates the settings and command
//! line for `srt`, and marks errors that the sandbox probably caused.
//!
//! - A server runs in the sandbox that its entry describes. If the machine cannot create sandboxes, the server starts
//!   only if its entry opts out or `sandboxPolicy` is `warn`.
//! - All servers are denied the policy's default paths and IronCurtain's own folders. An entry can only add to these.

mod blocked;
mod command;
mod denied_reads;
mod environment;
mod package_folder;
mod profile;
mod programs;
mod resolve;
mod served;
mod settings;
mod srt;
mod view_error;

pub use blocked::annotate;
pub use command::{Launch, QuoteError, launch};
pub use denied_reads::DeniedReads;
pub use environment::environment;
pub use profile::{SandboxContext, default_git_config, limits, view_of};
pub use programs::{
    ProgramError, RefusesProgram, ServerPrograms, check_trusted, find_program, named_program,
};
pub use resolve::{Exemption, Profile, Resolved, Unavailable, absolute, expand_home, resolve};
pub use served::{HiddenPaths, served_view};
pub use settings::{ServerFiles, SrtSettings, SrtSettingsError};
pub use srt::check as check_srt;
pub use view_error::ViewError;
