//! Sandbox of a local server: its resolved `sandbox` entry, the settings and command line of the `srt` backend, and the message
//! to the agent when the sandbox blocked something.
//!
//! - A server runs in its resolved sandbox. Without a usable one, it starts only if its entry opts out or `sandboxPolicy` is `warn`.
//! - One list of unreadable paths applies to all servers, from the policy's defaults and our own folders. Entries can only add
//!   to it.

mod blocked;
mod command;
mod environment;
mod package_folder;
mod profile;
mod programs;
mod resolve;
mod settings;
mod srt;

pub use blocked::annotate;
pub use command::{Launch, QuoteError, launch};
pub use environment::environment;
pub use profile::{Surroundings, ViewError, default_git_config, limits, view_of};
pub use programs::{ProgramError, RefusesProgram, ServerPrograms, find_program, named_program, trusted};
pub use resolve::{Exemption, Profile, Resolved, Unavailable, absolute, expand_home, resolve};
pub use settings::{ServerFiles, SrtSettings, SrtSettingsError};
pub use srt::check as check_srt;
