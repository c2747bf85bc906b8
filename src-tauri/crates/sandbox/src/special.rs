//! Named pipes and sockets of the user's in the folders that sandboxes are shown: found, watched for, and masked.
//!
//! - A read-only mount does not keep a process from writing into a pipe, emptying it, or connecting to a socket. Devices need no
//!   mask: `nodev` closes them.
//! - One thread of the launching process watches the folders of all its sandboxes, since the kernel gives a user few inotify
//!   instances. Each supervisor has a link to it, asks for a folder to be watched before mounting it, and hears what to mask.
//! - INVARIANT: a folder is watched before it is listed, so nothing appears unnoticed in between.
//! - INVARIANT: a folder that cannot be watched whole is not mounted. A sandbox whose link ends is ended.

mod folders;
mod link;
mod service;
mod watcher;

use serde::{Deserialize, Serialize};

pub(crate) use folders::{is_folder, is_special};
pub(crate) use link::{NotWatched, SpecialLink};
pub(crate) use service::{serve, serve_beside};

/// The largest number of pipes and sockets that are masked in a sandbox. Each mask is a mount.
pub(crate) const MOST_MASKED: usize = 512;

/// A supervisor's line to the watcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialRequest {
    /// Watch the folder, but for the parts of it that the sandbox does not see.
    Watch { root: String, hidden: Vec<String> },
    /// The folder is no longer mounted.
    Forget { root: String },
}

/// The watcher's line to a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialNews {
    /// The folder is watched, and these paths in it are to be masked.
    Watched { root: String, found: Vec<String> },
    /// The folder is not watched, and why.
    Refused { root: String, reason: String },
    /// This path is to be masked, too.
    Appeared { path: String },
}
