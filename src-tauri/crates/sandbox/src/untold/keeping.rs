//! Writing what one sandbox tells, where whoever runs next finds it.
//!
//! - INVARIANT: a file of these is locked for as long as its supervisor lives, and is there for as long as something of it may
//!   be on no record.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::{control::Event, state::StateDir};

/// What one supervisor keeps.
#[derive(Debug)]
pub(crate) struct Keeping {
    file: File,
    path: PathBuf,
    /// Whether anything was told.
    has_news: bool,
}

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Line {
    /// What is told.
    Event(Event),
    /// A place that is to be searched at the end.
    Writable {
        /// The file or directory.
        writable: String,
    },
}

impl Keeping {
    /// A new one of that name.
    pub(crate) fn begin(state: &StateDir, name: &str) -> io::Result<Self> {
        let path = state.below(NAME)?.join(name);
        let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        Ok(Self { file, path, has_news: false })
    }

    /// Notes what will have to be searched, before the sandbox can write there.
    pub(crate) fn writable<'a>(&mut self, paths: impl IntoIterator<Item = &'a String>) -> io::Result<()> {
        let lines = paths.into_iter().map(|path| Line::Writable { writable: path.clone() });
        self.write(lines)
    }

    /// Keeps what is told. What follows the last word is not read.
    pub(crate) fn add(&mut self, event: &Event) -> io::Result<()> {
        self.has_news |= event.is_finding();
        self.write([Line::Event(event.clone())])
    }

    /// After the last word: nobody has to be told, unless there were news.
    pub(crate) fn conclude(self) {
        if !self.has_news {
            self.discard();
        }
    }

    /// Nothing of the server's has run.
    pub(crate) fn discard(self) {
        // What stays is told once more than is needed.
        let _ = fs::remove_file(&self.path);
    }

    fn write(&mut self, lines: impl IntoIterator<Item = Line>) -> io::Result<()> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, &line)?;
            text.push(b'\n');
        }
        let before = self.file.metadata()?.len();
        self.file.write_all(&text).inspect_err(|_| {
            // Half a line would take the next one along. Where that cannot be cut off either, the entry is damaged, and says so.
            let _ = self.file.set_len(before);
        })
    }
}
