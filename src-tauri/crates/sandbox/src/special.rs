//! Finds, watches and masks named pipes and sockets in the user's folders that sandboxes show.
//!
//! - A read-only mount does not keep a process from writing to a pipe, draining it, or connecting to a socket. Devices need no
//!   mask, because `nodev` disables them.
//! - One thread of the launching process watches the folders of all sandboxes, because the kernel limits inotify instances
//!   per user. Each supervisor is linked to it: it requests a watch before mounting a folder, and receives the paths to mask.
//! - INVARIANT: a folder is watched before it is listed, so no file is missed.
//! - INVARIANT: a folder that cannot be watched completely is not mounted. A sandbox whose link closes is terminated.

mod folders;
mod link;
mod service;
mod watcher;

use serde::{Deserialize, Serialize};

pub(crate) use folders::{is_folder, is_special};
pub(crate) use link::{NotWatched, SpecialLink};
pub(crate) use service::{serve, serve_in_child};

/// Maximum number of pipes and sockets masked in a sandbox. Each mask is a mount.
pub(crate) const MOST_MASKED: usize = 512;

/// Request line from a supervisor to the watcher.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialRequest {
    /// Watch the folder, except the parts that the sandbox does not show.
    Watch { root: String, hidden: Vec<String> },
    /// Stop watching: the folder is no longer mounted.
    Forget { root: String },
}

/// Message line from the watcher to a supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialNews {
    /// The folder is watched; mask these paths in it.
    Watched { root: String, found: Vec<String> },
    /// The folder cannot be watched.
    Refused { root: String, reason: String },
    /// This path must be masked too.
    Appeared { path: String },
}
