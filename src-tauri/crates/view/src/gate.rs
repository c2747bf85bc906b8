//! Decides which files may be opened: the interface to the code that asks the user.

use std::{
    fs::Metadata,
    path::{Path, PathBuf},
    sync::mpsc::Sender,
    time::SystemTime,
};

use crate::nodes::FileId;

/// Kind of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKind {
    /// Reads the file.
    Read,
    /// Creates, changes or replaces the file.
    Write,
    /// Reads and changes the file.
    ReadWrite,
    /// Removes or moves the file.
    Delete,
}

/// Access to one path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WantedAccess {
    /// Absolute path of a file, without symlinks.
    pub path: PathBuf,
    /// Kind of access.
    pub kind: AccessKind,
}

/// Access that needs permission, and the file that was found at its path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AskedAccess {
    /// The access.
    pub access: WantedAccess,
    /// The file, or `None` if the path does not exist.
    pub file: Option<AskedFile>,
}

/// Identity of a file that a question is about. The time of creation tells it from a later file with the same inode number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AskedFile {
    file: FileId,
    created: Option<SystemTime>,
}

impl AskedFile {
    pub(crate) fn of(facts: &Metadata) -> Self {
        Self { file: FileId::of(facts), created: facts.created().ok() }
    }
}

/// Permission for accesses. Called from several threads.
pub trait Gate: Send + Sync + 'static {
    /// Returns whether the access is permitted at this moment, without waiting.
    fn permits(&self, access: &WantedAccess) -> bool;

    /// Starts to ask for permission, and returns at once. `process` is the thread that waits, for display only.
    ///
    /// An answer is only for requests that have found the same file.
    fn ask(&self, asked: &AskedAccess, process: u32, ticket: Ticket);

    /// Returns whether other programs run the file at a path by its name.
    fn starts_programs(&self, path: &Path) -> bool;

    /// Returns whether a folder of this name would contain such files, or the path is one.
    fn leads_to_programs(&self, path: &Path) -> bool;

    /// Reports that the request with this [`Ticket::id`] no longer waits.
    fn withdraw(&self, ticket: u64);
}

/// Ticket of one waiting request, for its answer. Dropping it denies.
#[derive(Debug)]
#[must_use = "dropping the ticket denies the access"]
pub struct Ticket {
    id: u64,
    answers: Option<Sender<Answered>>,
}

/// Answer for a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answered {
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}

/// Outcome of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Denied,
    /// Allowed for this request alone.
    Once,
    /// The request is tried again, with the permissions of that moment.
    Again,
}

impl Ticket {
    pub(crate) fn new(id: u64, answers: Sender<Answered>) -> Self {
        Self { id, answers: Some(answers) }
    }

    /// Returns the id of the request, unique within its view.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Allows the access for this request.
    pub fn allow(mut self) {
        self.send(Answer::Once);
    }

    /// Tries the request again, because the gate permits its access now. If it does not any more, it is asked again.
    pub fn retry(mut self) {
        self.send(Answer::Again);
    }

    /// Denies the access.
    pub fn deny(mut self) {
        self.send(Answer::Denied);
    }

    fn send(&mut self, answer: Answer) {
        if let Some(answers) = self.answers.take() {
            // Fails only if the view has ended, and its requests with it.
            let _ = answers.send(Answered { id: self.id, answer });
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.send(Answer::Denied);
    }
}
