//! Watches folders for each sandbox and determines the messages to send.
//!
//! - Works in time slices, so a large folder does not delay messages about other folders.
//! - A folder that is created after the mount and cannot be watched is masked as a whole.

mod walk;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    path::Path,
    time::{Duration, Instant},
};

use walk::Walk;

use super::{
    SpecialFileEvent, SpecialRequest,
    folders::{FolderEvent, WatchedFolders, is_folder, is_special},
};
use crate::{
    autostart::name_text::to_os_str,
    nofollow::{FileId, is_at_or_below, is_below},
};

/// Maximum time spent on searches per call to [`work`](SpecialWatcher::work).
const TIME_SLICE: Duration = Duration::from_millis(10);

/// Limits for watching one mounted folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct FolderBounds {
    pub(super) folders: usize,
    pub(super) names: usize,
    pub(super) time: Duration,
}

/// Limits of a search. Each watched folder takes about a kilobyte of kernel memory and some microseconds.
pub(super) const BOUNDS: FolderBounds =
    FolderBounds { folders: 65_536, names: 1_000_000, time: Duration::from_secs(6) };

/// Identifier of a sandbox's link.
pub(super) type LinkNumber = u64;

/// State of the watcher for pipes and sockets, without its thread and streams.
#[derive(Debug)]
pub(super) struct SpecialWatcher {
    bounds: FolderBounds,
    folders: WatchedFolders,
    /// Mounted folders, by sandbox and path.
    roots: BTreeMap<LinkNumber, BTreeMap<String, Root>>,
    walks: VecDeque<Walk>,
    /// Folders that were created after the mount and have not been searched yet.
    queued: BTreeSet<String>,
}

/// Mounted folder of a sandbox.
#[derive(Debug)]
struct Root {
    /// Hidden paths in the folder.
    hidden: Vec<String>,
    /// Identity of the folder. A folder that is moved stays mounted, but its path changes.
    identity: Option<FileId>,
}

impl SpecialWatcher {
    pub(super) fn new(bounds: FolderBounds) -> io::Result<Self> {
        let (roots, walks, queued) = (BTreeMap::new(), VecDeque::new(), BTreeSet::new());
        Ok(Self { bounds, folders: WatchedFolders::new()?, roots, walks, queued })
    }

    /// Returns the watched folders, which deliver the events.
    pub(super) fn folders(&self) -> &WatchedFolders {
        &self.folders
    }

    /// Returns `true` if there is work to do without waiting for an event.
    pub(super) fn is_busy(&self) -> bool {
        !self.walks.is_empty()
    }

    pub(super) fn request(&mut self, link: LinkNumber, request: SpecialRequest) {
        match request {
            SpecialRequest::Watch { root, hidden } => {
                let identity = identity(&root);
                self.roots.entry(link).or_default().insert(root.clone(), Root { hidden, identity });
                self.start_walk(Some(link), root.clone(), root);
            }
            SpecialRequest::Unwatch { root } => {
                self.roots.entry(link).or_default().remove(&root);
                self.unwatch(&root);
            }
        }
    }

    /// Drops the folders of a sandbox that has exited.
    pub(super) fn remove_link(&mut self, link: LinkNumber) {
        self.walks.retain(|walk| walk.requester != Some(link));
        let roots = self.roots.remove(&link).unwrap_or_default();
        roots.keys().for_each(|root| self.unwatch(root));
    }

    /// Processes events and continues searches. Returns messages for the sandboxes.
    pub(super) fn work(&mut self) -> Vec<(LinkNumber, SpecialFileEvent)> {
        let mut events = Vec::new();
        for event in self.folders.read() {
            match event {
                FolderEvent::File(path) if is_special(&path) => self.report_path(&path, &mut events),
                FolderEvent::File(path) if identity(&path).is_none() => {
                    self.report_moved_roots(&path, &mut events)
                }
                FolderEvent::File(_) => {}
                FolderEvent::Folder(path) => {
                    if !is_folder(&path) {
                        self.report_moved_roots(&path, &mut events);
                    }
                    self.check_folder(path);
                }
                FolderEvent::EventsDropped => self.check_everything(),
            }
        }
        let deadline = Instant::now() + TIME_SLICE;
        while Instant::now() < deadline {
            let Some(mut walk) = self.walks.pop_front() else { break };
            let outcome = self.step(&mut walk, deadline).map_err(|error| error.to_string());
            match (outcome, walk.requester) {
                (Ok(false), _) => self.walks.push_back(walk),
                (Ok(true), Some(link)) => {
                    events.push((link, SpecialFileEvent::Watched { root: walk.root, found: walk.found }));
                }
                (Ok(true), None) => walk.found.iter().for_each(|path| self.report_path(path, &mut events)),
                (Err(reason), Some(link)) => {
                    events.push((link, SpecialFileEvent::Refused { root: walk.root, reason }));
                }
                // A folder that cannot be watched is masked. A root cannot be masked, so its sandbox gets an error.
                (Err(reason), None) => {
                    walk.found.push(walk.root.clone());
                    walk.found.iter().for_each(|path| self.report_path(path, &mut events));
                    let lost = self.roots.iter().filter(|(_, roots)| roots.contains_key(&walk.root));
                    events.extend(lost.map(|(link, _)| {
                        (*link, SpecialFileEvent::Refused { root: walk.root.clone(), reason: reason.clone() })
                    }));
                }
            }
        }
        events
    }

    /// Checks a folder after an event.
    fn check_folder(&mut self, path: String) {
        if !is_folder(&path) {
            self.folders.unwatch_below(&path, |_| false);
        } else if self.is_needed(&path) && self.queued.insert(path.clone()) {
            self.start_walk(None, path.clone(), path);
        }
    }

    /// Checks all folders again after the kernel dropped events.
    fn check_everything(&mut self) {
        let roots: Vec<String> = self.roots.values().flat_map(|roots| roots.keys().cloned()).collect();
        roots.into_iter().for_each(|root| self.check_folder(root));
    }

    /// Handles an event for a path that does not exist. If a mounted folder was moved, the paths in it are no longer
    /// known.
    fn report_moved_roots(&self, path: &str, events: &mut Vec<(LinkNumber, SpecialFileEvent)>) {
        for (link, roots) in &self.roots {
            let moved = roots.iter().filter(|(root, _)| is_below(path, root));
            for (root, _) in moved.filter(|(root, shown)| identity(root) != shown.identity) {
                let reason = format!("`{root}` was moved while it was mounted in a sandbox");
                events.push((*link, SpecialFileEvent::Refused { root: root.clone(), reason }));
            }
        }
    }

    /// Reports a path to every sandbox that can see it.
    fn report_path(&self, path: &str, events: &mut Vec<(LinkNumber, SpecialFileEvent)>) {
        for (link, roots) in &self.roots {
            if roots.iter().any(|(root, shown)| is_below(path, root) && !covers(&shown.hidden, path)) {
                events.push((*link, SpecialFileEvent::Appeared { path: path.to_owned() }));
            }
        }
    }

    /// Returns `true` if a path is hidden in the given sandbox or, if `None`, in every sandbox.
    fn is_hidden(&self, link: Option<LinkNumber>, path: &str) -> bool {
        let shows = |roots: &BTreeMap<String, Root>| {
            roots.iter().any(|(root, shown)| is_at_or_below(path, root) && !covers(&shown.hidden, path))
        };
        match link {
            Some(link) => !self.roots.get(&link).is_some_and(shows),
            None => !self.roots.values().any(shows),
        }
    }

    fn is_needed(&self, path: &str) -> bool {
        !self.is_hidden(None, path)
    }

    fn unwatch(&mut self, root: &str) {
        let roots = &self.roots;
        let is_needed = |path: &str| {
            let mut all = roots.values().flatten();
            all.any(|(root, shown)| is_at_or_below(path, root) && !covers(&shown.hidden, path))
        };
        self.folders.unwatch_below(root, is_needed);
    }
}

fn identity(path: &str) -> Option<FileId> {
    FileId::at(Path::new(&*to_os_str(path)))
}

fn covers(hidden: &[String], path: &str) -> bool {
    hidden.iter().any(|hidden| is_at_or_below(path, hidden))
}

#[cfg(test)]
mod tests;
