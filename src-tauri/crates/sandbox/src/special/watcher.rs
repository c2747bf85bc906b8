//! Watches folders for each sandbox and determines the messages to send.
//!
//! - Works in time slices, so a large folder does not delay messages about other folders.
//! - A folder that is created after the mount and cannot be watched is masked as a whole.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    io,
    path::Path,
    time::{Duration, Instant},
};

use super::{
    MAX_MASKED, SpecialFileEvent, SpecialRequest,
    folders::{FolderError, FolderEvent, WatchedFolders, is_folder, is_special},
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

/// Reason a search failed.
#[derive(Debug, thiserror::Error)]
enum WalkError {
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
enum Exceeded {
    #[error("has more than {0} folders, too many to watch for named pipes and sockets")]
    Folders(usize),
    #[error("has more than {0} names, too many to search for named pipes and sockets")]
    Names(usize),
    #[error("has more than {MAX_MASKED} named pipes and sockets, too many to mask")]
    Masks,
    #[error("took more than {} s to search for named pipes and sockets", .0.as_secs())]
    Time(Duration),
}

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

/// Search of a folder tree. It starts watching each folder.
#[derive(Debug)]
struct Walk {
    /// Sandbox that is waiting for the result, or `None` for a folder that was created after the mount.
    requester: Option<LinkNumber>,
    root: String,
    waiting: Vec<String>,
    found: Vec<String>,
    folders: usize,
    names: usize,
    /// Deadline of the search, or `None` before it starts.
    deadline: Option<Instant>,
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

    /// Continues a search until `deadline`. Returns `true` if the search is complete.
    fn step(&mut self, walk: &mut Walk, deadline: Instant) -> Result<bool, WalkError> {
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

    fn start_walk(&mut self, requester: Option<LinkNumber>, root: String, from: String) {
        let (waiting, found) = (vec![from], vec![]);
        self.walks.push_back(Walk { requester, root, waiting, found, folders: 0, names: 0, deadline: None });
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
mod tests {
    use std::{fs, process::Command};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn pipe(path: &str) {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }

    fn temp_folder() -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let text = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
        (dir, text)
    }

    /// Runs the watcher until it has messages and no work left. Returns the messages.
    fn events(watcher: &mut SpecialWatcher) -> Vec<(LinkNumber, SpecialFileEvent)> {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut events = Vec::new();
        while events.is_empty() || watcher.is_busy() {
            assert!(Instant::now() < deadline, "timed out waiting for news");
            events.extend(watcher.work());
        }
        events
    }

    fn watch(
        watcher: &mut SpecialWatcher,
        link: LinkNumber,
        root: &str,
        hidden: &[&str],
    ) -> SpecialFileEvent {
        let hidden = hidden.iter().map(|path| (*path).to_owned()).collect();
        watcher.request(link, SpecialRequest::Watch { root: root.to_owned(), hidden });
        let events = events(watcher);
        assert_eq!(events.len(), 1, "{events:?}");
        events.into_iter().next().unwrap().1
    }

    fn appeared(link: LinkNumber, path: &str) -> (LinkNumber, SpecialFileEvent) {
        (link, SpecialFileEvent::Appeared { path: path.to_owned() })
    }

    #[test]
    fn finds_existing_special_files_outside_hidden_paths() {
        let (_dir, root) = temp_folder();
        fs::create_dir_all(format!("{root}/a/b")).unwrap();
        fs::create_dir(format!("{root}/hidden")).unwrap();
        fs::write(format!("{root}/a/file"), "").unwrap();
        let (deep, secret) = (format!("{root}/a/b/pipe"), format!("{root}/hidden/pipe"));
        pipe(&deep);
        pipe(&secret);
        let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
        let event = watch(&mut watcher, 1, &root, &[&format!("{root}/hidden")]);
        assert_eq!(event, SpecialFileEvent::Watched { root: root.clone(), found: vec![deep] });
        let SpecialFileEvent::Watched { found, .. } = watch(&mut watcher, 2, &root, &[]) else { panic!() };
        assert!(found.contains(&secret), "{found:?}");
    }

    #[test]
    fn reports_new_special_files_in_a_watched_folder() {
        let (_dir, root) = temp_folder();
        let (_other, elsewhere) = temp_folder();
        fs::create_dir(format!("{root}/a")).unwrap();
        let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
        watch(&mut watcher, 1, &root, &[]);
        let at = |name: &str| format!("{root}/{name}");
        pipe(&at("a/made"));
        assert_eq!(events(&mut watcher), [appeared(1, &at("a/made"))]);
        let outside = format!("{elsewhere}/pipe");
        pipe(&outside);
        fs::hard_link(&outside, at("linked")).unwrap();
        assert_eq!(events(&mut watcher), [appeared(1, &at("linked"))]);
        fs::rename(&outside, at("moved")).unwrap();
        assert_eq!(events(&mut watcher), [appeared(1, &at("moved"))]);
        // Both a tree that is moved in and a tree that is created in place are searched.
        fs::create_dir_all(format!("{elsewhere}/tree/deep")).unwrap();
        pipe(&format!("{elsewhere}/tree/deep/pipe"));
        fs::rename(format!("{elsewhere}/tree"), at("tree")).unwrap();
        assert_eq!(events(&mut watcher), [appeared(1, &at("tree/deep/pipe"))]);
        fs::create_dir_all(at("new/deep")).unwrap();
        pipe(&at("new/deep/pipe"));
        assert_eq!(events(&mut watcher).first(), Some(&appeared(1, &at("new/deep/pipe"))));
        // A renamed folder is watched under its new name.
        fs::rename(at("tree"), at("a/tree")).unwrap();
        assert_eq!(events(&mut watcher), [appeared(1, &at("a/tree/deep/pipe"))]);
        pipe(&at("a/tree/deep/second"));
        let event = events(&mut watcher);
        assert_eq!(event, [appeared(1, &at("a/tree/deep/second"))]);
        watcher.request(1, SpecialRequest::Unwatch { root: root.clone() });
        pipe(&at("a/later"));
        assert_eq!(watcher.work(), []);
    }

    #[test]
    fn reports_moved_folder_when_a_name_appears_in_it() {
        let (_dir, base) = temp_folder();
        let (root, moved) = (format!("{base}/above/root"), format!("{base}/elsewhere/root"));
        fs::create_dir_all(&root).unwrap();
        let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
        watch(&mut watcher, 1, &root, &[]);
        fs::rename(format!("{base}/above"), format!("{base}/elsewhere")).unwrap();
        pipe(&format!("{moved}/pipe"));
        let reason = format!("`{root}` was moved while it was mounted in a sandbox");
        assert_eq!(events(&mut watcher), [(1, SpecialFileEvent::Refused { root, reason })]);
    }

    #[test]
    fn folder_over_a_limit_is_refused_with_advice() {
        let (_dir, root) = temp_folder();
        for name in 0..5 {
            fs::create_dir(format!("{root}/{name}")).unwrap();
        }
        let refusal = |bounds: FolderBounds| {
            let mut watcher = SpecialWatcher::new(bounds).unwrap();
            let event = watch(&mut watcher, 1, &root, &[]);
            let SpecialFileEvent::Refused { reason, .. } = event else { panic!("{event:?}") };
            reason
        };
        let reason = refusal(FolderBounds { folders: 5, ..BOUNDS });
        assert_eq!(
            reason,
            format!(
                "`{root}` has more than 5 folders, too many to watch for named pipes and sockets; allow a smaller folder inside it"
            )
        );
        assert_eq!(
            refusal(FolderBounds { names: 4, ..BOUNDS }),
            format!(
                "`{root}` has more than 4 names, too many to search for named pipes and sockets; allow a smaller folder inside it"
            )
        );
        let mut watcher = SpecialWatcher::new(FolderBounds { folders: 6, names: 5, ..BOUNDS }).unwrap();
        assert!(matches!(watch(&mut watcher, 1, &root, &[]), SpecialFileEvent::Watched { .. }));
        (0..=MAX_MASKED).for_each(|number| pipe(&format!("{root}/1/{number}")));
        assert_eq!(
            refusal(BOUNDS),
            format!(
                "`{root}` has more than 512 named pipes and sockets, too many to mask; allow a smaller folder inside it"
            )
        );
    }

    #[test]
    fn masks_folder_that_cannot_be_listed() {
        let (_dir, root) = temp_folder();
        let closed_folder = format!("{root}/shut");
        fs::create_dir(&closed_folder).unwrap();
        let mode = |mode: &str| {
            assert!(Command::new("chmod").args([mode, &closed_folder]).status().unwrap().success())
        };
        mode("111");
        let can_list = fs::read_dir(Path::new(&closed_folder)).is_ok();
        let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
        let SpecialFileEvent::Watched { found, .. } = watch(&mut watcher, 1, &root, &[]) else { panic!() };
        // Root can list every folder.
        assert_eq!(found, if can_list { vec![] } else { vec![closed_folder.clone()] });
        mode("755");
    }
}
