//! Masks named pipes and sockets in the user's folders that sandboxes show.
//!
//! - A process can write to a pipe, drain it or connect to a socket even on a read-only mount, so these files are
//!   masked. Devices need no mask, because `nodev` disables them.
//! - One thread of the launching process watches the folders of all sandboxes, because the kernel limits inotify
//!   instances per user. Over a link to this thread, each supervisor requests a watch before it mounts a folder, and
//!   receives the paths to mask.
//! - INVARIANT: a folder is watched before it is listed so that no file is missed.
//! - INVARIANT: a folder that cannot be watched completely is not mounted. A sandbox whose link closes is terminated.

mod folders;
mod link;
mod service;
mod watcher;

use serde::{Deserialize, Serialize};

pub(crate) use folders::{is_folder, is_special};
pub(crate) use link::{SpecialFileLink, WatchFolderError};
pub(crate) use service::{serve, serve_in_child};

/// Maximum number of masked pipes and sockets per sandbox. Each mask is a mount.
pub(crate) const MAX_MASKED: usize = 512;

/// Request from a supervisor to the watcher, sent as one JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialRequest {
    /// Watch the folder, except for the parts that the sandbox does not show.
    Watch { root: String, hidden: Vec<String> },
    /// Stop watching a folder that is no longer mounted.
    #[serde(rename = "forget")]
    Unwatch { root: String },
}

/// Message from the watcher to a supervisor, sent as one JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum SpecialFileEvent {
    /// The folder is being watched, and these existing paths must be masked.
    Watched { root: String, found: Vec<String> },
    /// The folder cannot be watched.
    Refused { root: String, reason: String },
    /// A new path must be masked.
    Appeared { path: String },
}
