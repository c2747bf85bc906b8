//! Containment of a server on this machine: its resolved `sandbox` entry, the settings and command line of `srt` where that is the
//! backend, and what the agent is told when a sandbox blocked something.
//!
//! - A server runs in its resolved sandbox, or not at all.
//! - One list of unreadable paths applies to all servers, from the policy's defaults and our own folders; entries add to it.
//! - Never starts a server and never asks the user.
//!
//! ```
//! use ironcurtain_containment::Profile;
//! use std::path::Path;
//!
//! let profile = Profile::new(&Default::default(), Path::new("/session"), Path::new("/home/u"));
//! assert_eq!(profile.allow_write, ["/session"]);
//! ```

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
