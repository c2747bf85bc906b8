//! Interface to the code that permits file accesses or asks the user.

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
    /// Read the file.
    Read,
    /// Create, change or replace the file.
    Write,
    /// Read and change the file.
    ReadWrite,
    /// Remove or move the file.
    Delete,
}

/// Access that a request requires.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct WantedAccess {
    /// Absolute path of the file, without symlinks.
    pub path: PathBuf,
    /// Kind of access.
    pub kind: AccessKind,
}

/// Access that the user must permit, and the file found at its path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AskedAccess {
    /// Access that requires permission.
    pub access: WantedAccess,
    /// The file at the path, or `None` if the path does not exist.
    pub file: Option<AskedFile>,
}

/// Identity of the file in a question. Includes the creation time, because inode numbers are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AskedFile {
    file: FileId,
    created: Option<SystemTime>,
}

impl AskedFile {
    pub(crate) fn new(stat: &Metadata) -> Self {
        Self { file: FileId::new(stat), created: stat.created().ok() }
    }
}

/// Decides on accesses. Called by several threads.
pub trait Gate: Send + Sync + 'static {
    /// Returns `true` if the access is currently permitted. Never waits for the user.
    fn permits(&self, access: &WantedAccess) -> bool;

    /// Returns `true` if a file that was opened with this permission may stay open.
    fn keeps(&self, access: &WantedAccess) -> bool {
        self.permits(access)
    }

    /// Asks the user for permission without waiting for the answer. `process` is the id of the requesting thread, for
    /// display only.
    ///
    /// An answer applies only to requests that found the same file.
    fn ask(&self, asked: &AskedAccess, process: u32, ticket: Ticket);

    /// Returns `true` if other programs run the file at this path because of its name, such as a git hook.
    fn starts_programs(&self, path: &Path) -> bool;

    /// Returns `true` if [`starts_programs`](Self::starts_programs) is true for the path, or would be true for files
    /// below the path if it were a folder.
    fn leads_to_programs(&self, path: &Path) -> bool;

    /// Withdraws the question of an interrupted request. `ticket` is the request's [`Ticket::id`].
    fn withdraw(&self, ticket: u64);
}

/// Handle for answering a waiting request. Dropping it denies the access.
#[derive(Debug)]
#[must_use = "dropping the ticket denies the access"]
pub struct Ticket {
    id: u64,
    answers: Option<Sender<TicketAnswer>>,
}

/// Answer to the waiting request with this id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TicketAnswer {
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}

/// The user's decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Denied,
    /// Allows the access for this request only.
    Once,
    /// Handles the request again with the permissions in force at that time.
    Retry,
}

impl Ticket {
    pub(crate) fn new(id: u64, answers: Sender<TicketAnswer>) -> Self {
        Self { id, answers: Some(answers) }
    }

    /// Returns the request's id, unique within its view.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Allows the access for this request only.
    pub fn allow(mut self) {
        self.send(Answer::Once);
    }

    /// Handles the request again, because the gate now permits the access. If the permission has been revoked by then,
    /// the user is asked again.
    pub fn retry(mut self) {
        self.send(Answer::Retry);
    }

    /// Denies the access.
    pub fn deny(mut self) {
        self.send(Answer::Denied);
    }

    fn send(&mut self, answer: Answer) {
        if let Some(answers) = self.answers.take() {
            // Ignores the error: the view has closed, so its requests are cancelled anyway.
            let _ = answers.send(TicketAnswer { id: self.id, answer });
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.send(Answer::Denied);
    }
}
