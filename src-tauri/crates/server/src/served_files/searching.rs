//! Combines reads of many files into one question about their folder.

use super::ServedFiles;
use ironcurtain_visible as visible;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Minimum number of files with waiting reads before the reads are combined. A lower limit on questions reduces this
/// minimum.
const COMBINE_THRESHOLD: usize = 20;

/// Maximum number of remembered folders that the user cannot be asked about.
const MAX_UNASKABLE: usize = 1_000;

/// Maximum total length of the paths that a question about a folder names, in bytes.
const MAX_NAMES_LEN: usize = 4096;

/// Reads of a run that are waiting for an answer.
#[derive(Debug)]
pub(super) struct Searches {
    many: usize,
    state: Mutex<SearchState>,
    /// Number of searches that have started so far.
    started: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct SearchState {
    waiting: BTreeMap<u64, String>,
    last: u64,
    current: Option<FolderQuestion>,
    /// Folders that the user cannot be asked about.
    unaskable: HashSet<PathBuf>,
}

/// Latest question about a folder.
#[derive(Debug)]
struct FolderQuestion {
    folder: PathBuf,
    /// Files that the question names.
    named: HashSet<String>,
    answer: watch::Receiver<Option<SearchAnswer>>,
}

/// Answer for all reads that are waiting in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchAnswer {
    /// Each read is judged again.
    Again,
    /// Allows the reads that the question names.
    Once,
    Denied,
}

/// Role of a waiting read.
pub(super) enum ReadRole<'a> {
    /// The read needs its own question.
    Alone(WaitingRead<'a>),
    /// The read waits for the answer about the folder. `is_named` is `true` if the question names the file.
    Joins { answer: watch::Receiver<Option<SearchAnswer>>, is_named: bool },
    /// The read must ask about the folder, on behalf of all reads in it.
    Asks(Search),
}

/// Question about a folder. If the question is dropped without an answer, all its reads are judged again.
pub(super) struct Search {
    pub(super) folder: String,
    /// Files that are waiting.
    pub(super) files: Vec<String>,
    answer: watch::Sender<Option<SearchAnswer>>,
}

/// Guard that counts a read as waiting until it is dropped.
pub(super) struct WaitingRead<'a> {
    searches: &'a Searches,
    id: u64,
    /// Incremented when a search that may include this read starts.
    pub(super) started: watch::Receiver<u64>,
}

impl Search {
    /// Returns a sentence that names the waiting files.
    pub(super) fn waiting(&self) -> String {
        let name = |file: &String| {
            let name = Path::new(file).strip_prefix(&self.folder).ok().and_then(Path::to_str);
            visible::quoted(&visible::isolated_path(name.unwrap_or(file)))
        };
        let names: Vec<String> = self.files.iter().map(name).collect();
        let count = names.len();
        format!(
            "{count} files in this folder are waiting: {}. The program may be searching the folder.",
            names.join(", ")
        )
    }

    pub(super) fn answer(self, answer: SearchAnswer) {
        // Waiting reads, if any, receive the answer through the channel.
        self.answer.send_replace(Some(answer));
    }
}

impl Searches {
    /// Creates the state. `limit` is the number of questions per minute above which questions are denied automatically.
    pub(super) fn new(limit: usize) -> Self {
        let many = COMBINE_THRESHOLD.min(limit.saturating_sub(1)).max(2);
        Self { many, state: Mutex::default(), started: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, SearchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a read that needs an answer and returns its role.
    pub(super) fn register(&self, path: &str) -> ReadRole<'_> {
        let mut state = self.lock();
        // A question is open until it is answered or dropped.
        let is_open = |answer: &watch::Receiver<Option<SearchAnswer>>| {
            answer.has_changed().is_ok() && answer.borrow().is_none()
        };
        if let Some(FolderQuestion { folder, named, answer }) = &state.current
            && is_open(answer)
            && Path::new(path).starts_with(folder)
        {
            return ReadRole::Joins { answer: answer.clone(), is_named: named.contains(path) };
        }
        let mut paths: HashSet<&str> = state.waiting.values().map(String::as_str).collect();
        paths.insert(path);
        let folder = common_folder(&paths);
        let is_one_open = state.current.as_ref().is_some_and(|current| is_open(&current.answer));
        if paths.len() >= self.many
            && paths.iter().map(|path| path.len()).sum::<usize>() <= MAX_NAMES_LEN
            && !is_one_open
            && !state.unaskable.contains(&folder)
            && let Some(text) = folder.to_str().map(str::to_owned)
        {
            let named: HashSet<String> = paths.into_iter().map(str::to_owned).collect();
            let mut files: Vec<String> = named.iter().cloned().collect();
            files.sort();
            let (answer, answered) = watch::channel(None);
            state.current = Some(FolderQuestion { folder, named, answer: answered });
            self.started.send_modify(|started| *started += 1);
            return ReadRole::Asks(Search { folder: text, files, answer });
        }
        state.last += 1;
        let id = state.last;
        state.waiting.insert(id, path.to_owned());
        ReadRole::Alone(WaitingRead { searches: self, id, started: self.started.subscribe() })
    }

    /// Records that the user cannot be asked about this folder.
    pub(super) fn is_unaskable(&self, folder: &str) {
        let unaskable = &mut self.lock().unaskable;
        if unaskable.len() >= MAX_UNASKABLE {
            // A forgotten folder is checked again.
            unaskable.clear();
        }
        unaskable.insert(folder.into());
    }
}

impl Drop for WaitingRead<'_> {
    fn drop(&mut self) {
        self.searches.lock().waiting.remove(&self.id);
    }
}

/// Returns the deepest folder that contains all paths.
fn common_folder(paths: &HashSet<&str>) -> PathBuf {
    let mut folders = paths.iter().map(|path| Path::new(*path).parent().unwrap_or(Path::new("/")));
    let mut common_folder = folders.next().unwrap_or(Path::new("/"));
    for folder in folders {
        while !folder.starts_with(common_folder) {
            common_folder = common_folder.parent().unwrap_or(Path::new("/"));
        }
    }
    common_folder.to_owned()
}

impl ServedFiles {
    /// Waits for the answer about a folder.
    pub(super) async fn searched(
        &self,
        mut answer: watch::Receiver<Option<SearchAnswer>>,
        is_named: bool,
    ) -> SearchAnswer {
        let answered = answer.wait_for(Option::is_some).await;
        match answered.ok().and_then(|answer| *answer) {
            Some(SearchAnswer::Once) if !is_named => SearchAnswer::Again,
            Some(answer) => answer,
            // The question was dropped.
            None => SearchAnswer::Again,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twentieth_file_asks_about_the_folder_and_others_join() {
        let searches = Searches::new(100);
        let mut waiting = Vec::new();
        for number in 0..19 {
            // Repeated reads of the same file count once.
            for _ in 0..2 {
                let ReadRole::Alone(one) = searches.register(&format!("/h/d/{number}/x")) else {
                    panic!("{number}")
                };
                waiting.push(one);
            }
        }
        let ReadRole::Asks(search) = searches.register("/h/d/y") else { panic!() };
        assert_eq!((search.folder.as_str(), search.files.len()), ("/h/d", 20));
        let waiting_files = search.waiting();
        assert!(
            waiting_files.starts_with("20 files in this folder are waiting: 0/x, 1/x, 10/x,"),
            "{waiting_files}"
        );
        // A one-time answer does not cover a file that the question does not name.
        let ReadRole::Joins { is_named: true, .. } = searches.register("/h/d/7/x") else { panic!() };
        let ReadRole::Joins { answer, is_named: false } = searches.register("/h/d/z") else { panic!() };
        // A file in another folder needs its own question.
        assert!(matches!(searches.register("/other"), ReadRole::Alone(_)));
        search.answer(SearchAnswer::Once);
        assert_eq!(*answer.borrow(), Some(SearchAnswer::Once));
        // The next question is about the folder again, unless such a question is not possible.
        let ReadRole::Asks(search) = searches.register("/h/d/y") else { panic!() };
        drop(search);
        searches.is_unaskable("/h/d");
        assert!(matches!(searches.register("/h/d/y"), ReadRole::Alone(_)));
        drop(waiting);
        assert_eq!(searches.lock().waiting.len(), 0);
    }

    #[test]
    fn few_questions_are_enough_if_more_would_be_denied() {
        let searches = Searches::new(5);
        let waiting: Vec<ReadRole<'_>> =
            (0..3).map(|number| searches.register(&format!("/d/{number}"))).collect();
        assert!(waiting.iter().all(|part| matches!(part, ReadRole::Alone(_))));
        assert!(matches!(searches.register("/d/more"), ReadRole::Asks(_)));
    }

    #[test]
    fn files_with_very_long_names_need_their_own_questions() {
        let searches = Searches::new(5);
        let long = |number: usize| format!("/d/{number}{}", "x".repeat(2000));
        let waiting: Vec<ReadRole<'_>> = (0..9).map(|number| searches.register(&long(number))).collect();
        assert!(waiting.iter().all(|part| matches!(part, ReadRole::Alone(_))));
    }

    #[test]
    fn the_common_folder_is_the_deepest_one() {
        let of = |paths: &[&str]| common_folder(&paths.iter().copied().collect());
        assert_eq!(of(&["/a/b/c", "/a/b/d"]), Path::new("/a/b"));
        assert_eq!(of(&["/a/b/c", "/a/bc/d"]), Path::new("/a"));
        assert_eq!(of(&["/a", "/b/c"]), Path::new("/"));
    }
}
