//! The containment of a server on this machine: the outcome of its `sandbox` entry, the settings and the command line of
//! `srt` where that makes the sandboxes, and what the agent is told when a sandbox held something back.
//!
//! - A server runs in the sandbox it was resolved to, or it does not run: there is no partial state.
//! - What no server may read is one list, of the policy's defaults and our own folders; entries of a server add to it.

mod blocked;
mod command;
mod environment;
mod machine;
mod package_folder;
mod profile;
mod programs;
mod resolve;
mod settings;
mod srt;

pub use blocked::annotate;
pub use command::{Launch, QuoteError, launch};
pub(crate) use environment::environment;
pub use machine::{Machine, MachineOptions};
pub use profile::{Surroundings, ViewError, default_git_config, limits, view_of};
pub use programs::{ProgramError, ServerPrograms, find_program};
pub(crate) use programs::{RefusesProgram, named_program, trusted};
pub use resolve::{Exemption, Profile, Resolved, Unavailable, absolute, expand_home, resolve};
pub use settings::{ServerFiles, SrtSettings, SrtSettingsError};
