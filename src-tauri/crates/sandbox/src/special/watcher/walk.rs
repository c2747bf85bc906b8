//! Searches folder trees for named pipes and sockets, in steps.
//!
//! - Starts watching every folder before listing it, so a file that appears during the search is found or reported.
//! - Ends with an error if the tree exceeds a limit.

use std::time::{Duration, Instant};

use super::{FolderBounds, LinkNumber, SpecialWatcher};
use crate::special::{MAX_MASKED, folders::FolderError};

/// Reason a search failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum WalkError {
    #[error("`{0}` was moved or removed during the search")]
    Moved(String),
    #[error("`{0}` cannot be listed, so it cannot be searched for named pipes and sockets")]
    Closed(String),
    #[error("`{root}` {bound}; allow a smaller folder inside it")]
    LimitExceeded { root: String, bound: Exceeded },
    /// Another error, as a message for the user.
    #[error("{0}")]
    Failed(String),
}

/// Limit that a folder exceeds.
#[derive(Debug, thiserror::Error)]
pub(super) enum Exceeded {
    #[error("has more than {0} folders, too many to watch for named pipes and sockets")]
    Folders(usize),
    #[error("has more than {0} names, too many to search for named pipes and sockets")]
    Names(usize),
    #[error("has more than {MAX_MASKED} named pipes and sockets, too many to mask")]
    Masks,
    #[error("took more than {} s to search for named pipes and sockets", .0.as_secs())]
    Time(Duration),
}

/// Search of a folder tree. It starts watching each folder.
#[derive(Debug)]
pub(super) struct Walk {
    /// Sandbox that is waiting for the result, or `None` for a folder that was created after the mount.
    pub(super) requester: Option<LinkNumber>,
    pub(super) root: String,
    waiting: Vec<String>,
    pub(super) found: Vec<String>,
    folders: usize,
    names: usize,
    /// Deadline of the search, or `None` before it starts.
    deadline: Option<Instant>,
}

impl SpecialWatcher {
    /// Continues a search until `deadline`. Returns `true` if the search is complete.
    pub(super) fn step(&mut self, walk: &mut Walk, deadline: Instant) -> Result<bool, WalkError> {
        let walk_deadline = *walk.deadline.get_or_insert_with(|| Instant::now() + self.bounds.time);
        if walk.requester.is_none() {
            self.queued.remove(&walk.root);
        }
        let root = &walk.root;
        while let Some(path) = walk.waiting.pop() {
            if self.is_hidden(walk.requester, &path) {
                continue;
            }
            match self.folders.watch(&path) {
                Ok(listing) => {
                    walk.folders += 1;
                    walk.names += listing.names;
                    walk.found.extend(listing.special);
                    walk.waiting.extend(listing.folders);
                }
                Err(FolderError::Inaccessible) if walk.requester.is_some() && path == *root => {
                    return Err(WalkError::Moved(root.clone()));
                }
                Err(FolderError::Inaccessible) => self.folders.unwatch_below(&path, |_| false),
                Err(FolderError::NotListable) if path == *root => {
                    return Err(WalkError::Closed(root.clone()));
                }
                Err(FolderError::NotListable) => walk.found.push(path),
                Err(FolderError::Failed(reason)) => return Err(WalkError::Failed(reason)),
            }
            let FolderBounds { folders, names, time } = self.bounds;
            let exceeded = if walk.folders + walk.waiting.len() > folders {
                Some(Exceeded::Folders(folders))
            } else if walk.names > names {
                Some(Exceeded::Names(names))
            } else if walk.found.len() > MAX_MASKED {
                Some(Exceeded::Masks)
            } else {
                (Instant::now() > walk_deadline).then_some(Exceeded::Time(time))
            };
            if let Some(bound) = exceeded {
                return Err(WalkError::LimitExceeded { root: root.clone(), bound });
            }
            if Instant::now() > deadline {
                return Ok(walk.waiting.is_empty());
            }
        }
        Ok(true)
    }

    pub(super) fn start_walk(&mut self, requester: Option<LinkNumber>, root: String, from: String) {
        let (waiting, found) = (vec![from], vec![]);
        self.walks.push_back(Walk { requester, root, waiting, found, folders: 0, names: 0, deadline: None });
    }
}
