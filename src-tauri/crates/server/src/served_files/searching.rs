//! Combines reads of many files into one question about their folder.

use super::ServedFiles;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Minimum number of concurrently waiting files for their reads to be combined. A lower limit on questions reduces it.
const MANY: usize = 20;

/// Reads of a run that are waiting for an answer.
#[derive(Debug)]
pub(super) struct Searches {
    many: usize,
    state: Mutex<State>,
    /// Number of searches that have started so far.
    begun: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<u64, String>,
    last: u64,
    current: Option<(PathBuf, watch::Receiver<Option<SearchAnswer>>)>,
    /// Folders that the user cannot be asked about.
    unaskable: HashSet<PathBuf>,
}

/// Answer for all reads that are waiting in a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SearchAnswer {
    /// Each read is judged again.
    Again,
    Once,
    Denied,
}

/// Role of a waiting read.
pub(super) enum Part<'a> {
    /// The read needs its own question.
    Alone(WaitingRead<'a>),
    /// The read waits for the answer about the folder.
    Joins(watch::Receiver<Option<SearchAnswer>>),
    /// The read must ask about the folder, on behalf of all reads in it.
    Asks(Search),
}

/// Question about a folder. If it is dropped without an answer, all its reads are judged again.
pub(super) struct Search {
    pub(super) folder: String,
    /// Number of files that are waiting.
    pub(super) count: usize,
    answer: watch::Sender<Option<SearchAnswer>>,
}

/// Guard that counts a read as waiting until it is dropped.
pub(super) struct WaitingRead<'a> {
    searches: &'a Searches,
    id: u64,
    /// Changes when a search starts that may include the read.
    pub(super) begun: watch::Receiver<u64>,
}

impl Search {
    pub(super) fn answer(self, answer: SearchAnswer) {
        // Waiting reads, if any, receive the answer through the channel.
        self.answer.send_replace(Some(answer));
    }
}

impl Searches {
    /// Creates the state. `limit` is the number of questions per minute above which questions are denied automatically.
    pub(super) fn new(limit: usize) -> Self {
        let many = MANY.min(limit.saturating_sub(1)).max(2);
        Self { many, state: Mutex::default(), begun: watch::Sender::new(0) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a read that needs an answer, and returns its role.
    pub(super) fn enter(&self, path: &str) -> Part<'_> {
        let mut state = self.lock();
        // A question is open until it is answered or dropped.
        let is_open = |answer: &watch::Receiver<Option<SearchAnswer>>| {
            answer.has_changed().is_ok() && answer.borrow().is_none()
        };
        if let Some((folder, answer)) = &state.current
            && is_open(answer)
            && Path::new(path).starts_with(folder)
        {
            return Part::Joins(answer.clone());
        }
        let mut paths: HashSet<&str> = state.waiting.values().map(String::as_str).collect();
        paths.insert(path);
        let folder = common(&paths);
        let is_one_open = state.current.as_ref().is_some_and(|(_, answer)| is_open(answer));
        if paths.len() >= self.many
            && !is_one_open
            && !state.unaskable.contains(&folder)
            && let Some(text) = folder.to_str().map(str::to_owned)
        {
            let count = paths.len();
            let (answer, answered) = watch::channel(None);
            state.current = Some((folder, answered));
            self.begun.send_modify(|begun| *begun += 1);
            return Part::Asks(Search { folder: text, count, answer });
        }
        state.last += 1;
        let id = state.last;
        state.waiting.insert(id, path.to_owned());
        Part::Alone(WaitingRead { searches: self, id, begun: self.begun.subscribe() })
    }

    /// Records that the user cannot be asked about this folder.
    pub(super) fn is_unaskable(&self, folder: &str) {
        self.lock().unaskable.insert(folder.into());
    }
}

impl Drop for WaitingRead<'_> {
    fn drop(&mut self) {
        self.searches.lock().waiting.remove(&self.id);
    }
}

/// Returns the deepest folder that contains all paths.
fn common(paths: &HashSet<&str>) -> PathBuf {
    let mut folders = paths.iter().map(|path| Path::new(*path).parent().unwrap_or(Path::new("/")));
    let mut common = folders.next().unwrap_or(Path::new("/"));
    for folder in folders {
        while !folder.starts_with(common) {
            common = common.parent().unwrap_or(Path::new("/"));
        }
    }
    common.to_owned()
}

impl ServedFiles {
    /// Waits for the answer about a folder.
    pub(super) async fn searched(&self, mut answer: watch::Receiver<Option<SearchAnswer>>) -> SearchAnswer {
        let answered = answer.wait_for(Option::is_some).await;
        // If the question was dropped, judge each read again.
        answered.ok().and_then(|answer| *answer).unwrap_or(SearchAnswer::Again)
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
                let Part::Alone(one) = searches.enter(&format!("/h/d/{number}/x")) else {
                    panic!("{number}")
                };
                waiting.push(one);
            }
        }
        let Part::Asks(search) = searches.enter("/h/d/y") else { panic!() };
        assert_eq!((search.folder.as_str(), search.count), ("/h/d", 20));
        let Part::Joins(answer) = searches.enter("/h/d/z") else { panic!() };
        // A file in another folder needs its own question.
        assert!(matches!(searches.enter("/other"), Part::Alone(_)));
        search.answer(SearchAnswer::Once);
        assert_eq!(*answer.borrow(), Some(SearchAnswer::Once));
        // The next question is about the folder again, unless such a question is not possible.
        let Part::Asks(search) = searches.enter("/h/d/y") else { panic!() };
        drop(search);
        searches.is_unaskable("/h/d");
        assert!(matches!(searches.enter("/h/d/y"), Part::Alone(_)));
        drop(waiting);
        assert_eq!(searches.lock().waiting.len(), 0);
    }

    #[test]
    fn few_questions_are_enough_if_more_would_be_denied() {
        let searches = Searches::new(5);
        let waiting: Vec<Part<'_>> = (0..3).map(|number| searches.enter(&format!("/d/{number}"))).collect();
        assert!(waiting.iter().all(|part| matches!(part, Part::Alone(_))));
        assert!(matches!(searches.enter("/d/more"), Part::Asks(_)));
    }

    #[test]
    fn the_common_folder_is_the_deepest_one() {
        let of = |paths: &[&str]| common(&paths.iter().copied().collect());
        assert_eq!(of(&["/a/b/c", "/a/b/d"]), Path::new("/a/b"));
        assert_eq!(of(&["/a/b/c", "/a/bc/d"]), Path::new("/a"));
        assert_eq!(of(&["/a", "/b/c"]), Path::new("/"));
    }
}
