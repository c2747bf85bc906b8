//! Finds, watches and masks named pipes and sockets in the user's folders that sandboxes show.
//!
//! - Even on a read-only mount, a process can write to a pipe, drain it, or connect to a socket, so these are masked.
//!   Devices need no mask, because `nodev` disables them.
//! - One thread of the launching process watches the folders of all sandboxes, because the kernel limits inotify
//!   instances per user. Each supervisor has a link to it, over which it requests a watch before mounting a folder and
//!   receives the paths to mask.
//! - INVARIANT: a folder is watched before it is listed, so no file is missed.
//! - INVARIANT: a folder that cannot be watched completely is not mounted. A sandbox is terminated when its link
//!   closes.

mod folders;
mod link;
mod service;
mod watcher;

use serde::{Deserialize, Serialize};

pub(crate) use folders::{is_folder, is_special};
pub(crate) use link::{NotWatched, SpecialLink};
pub(crate) use service::{serve, serve_in_child};

/// Maximum number of masked pipes and sockets per sandbox. Each mask is a mount.
pub(crate) const MOST_MASKED: usize = 512;

/// Request from a supervisor to the watcher, sent as one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialRequest {
    /// Watch the folder, except for the parts that the sandbox does not show.
    Watch { root: String, hidden: Vec<String> },
    /// Stop watching the folder, because it is no longer mounted.
    Forget { root: String },
}

/// Message from the watcher to a supervisor, sent as one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialNews {
    /// The folder is watched, and these paths in it must be masked.
    Watched { root: String, found: Vec<String> },
    /// The folder cannot be watched.
    Refused { root: String, reason: String },
    /// A path has appeared that must be masked too.
    Appeared { path: String },
}
