//! Files that run later: found where a sandbox can write, and kept from running by themselves.
//!
//! The process that launches sandboxes has one [`Watcher`] for all of them. A root is opened before it becomes writable,
//! closed when it is writable no longer; in between and at the end the watcher looks at what has appeared.
//!
//! - INVARIANT: nothing is left in the person's tree. What is changed there is a name moved to quarantine, or the keys of
//!   a repository's configuration that are put back, under git's own lock.
//! - INVARIANT: no symlink is followed. Folders are entered by descriptor.
//! - Nobody can tell who made a file. One that runs without being asked and appears while a sandbox could have made it is
//!   quarantined, also when another program of the person's made it, and the person is told.
//! - Work is bounded, and what was not looked at is told of.

#[cfg(target_os = "linux")]
mod baseline;
#[cfg(target_os = "linux")]
mod budget;
#[cfg(target_os = "linux")]
mod config_draft;
#[cfg(target_os = "linux")]
mod config_references;
#[cfg(target_os = "linux")]
mod content;
#[cfg(target_os = "linux")]
mod event_queue;
#[cfg(target_os = "linux")]
mod file_stamp;
#[cfg(target_os = "linux")]
mod folder_walk;
#[cfg(target_os = "linux")]
mod git;
#[cfg(target_os = "linux")]
mod git_folders;
#[cfg(target_os = "linux")]
mod journal;
#[cfg(target_os = "linux")]
mod links;
mod name_table;
#[cfg(target_os = "linux")]
pub(crate) mod name_text;
#[cfg(target_os = "linux")]
mod paths;
#[cfg(target_os = "linux")]
mod put_back;
#[cfg(target_os = "linux")]
mod quarantine;
#[cfg(target_os = "linux")]
mod reopened;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod watcher;

use serde::{Deserialize, Serialize};

pub use name_table::{runs_later, strict_names};
#[cfg(target_os = "linux")]
pub use name_text::real_path;
#[cfg(target_os = "linux")]
pub use put_back::{PutBackError, delete, exchange, put_back};
#[cfg(target_os = "linux")]
pub use quarantine::quarantine;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    FinishedJournal, PutBackError, Watcher, delete, exchange, put_back, quarantine, real_path,
};
#[cfg(target_os = "linux")]
pub use watcher::{FinishedJournal, Watcher};

/// The treatment of names that run later when they appear.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutostartMode {
    /// Those that run without being asked are quarantined; the others stay and are listed.
    #[default]
    Listed,
    /// All of those that the shield has always protected are quarantined.
    Strict,
}

/// The treatment of the configuration of repositories that are there already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitConfig {
    /// Not writable.
    #[default]
    Closed,
    /// Writable; keys that make git run something are put back.
    Guarded,
}

/// The rules of one sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutostartRules {
    /// The treatment of what appears.
    #[serde(default)]
    pub mode: AutostartMode,
    /// The treatment of repositories' configuration.
    #[serde(default)]
    pub git_config: GitConfig,
    /// Names, or folders of such, that are neither closed nor looked at.
    #[serde(default)]
    pub allow: Vec<String>,
    /// The person's home, in which start-up files of shells and desktops count.
    #[serde(default)]
    pub home: Option<String>,
    /// Paths that are not to be there: what appears at one of them, or below it, is quarantined.
    #[serde(default)]
    pub denied: Vec<String>,
}

/// When a file's content is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsLater {
    /// Words that end the sentence "this runs ...".
    pub when: &'static str,
    /// No act of the person's asks for it: it is quarantined when it appears.
    pub unasked: bool,
}

/// The difference to what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// There was none.
    New,
    /// There was another content.
    Changed,
}

/// A measure against a sandbox that recreates a file each time it is moved away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Countermeasure {
    /// Show this root for reading only from now on.
    ReadOnly {
        /// The root.
        root: String,
        /// The file.
        path: String,
    },
    /// End the sandbox, and start no other for its session.
    End {
        /// Words that end the sentence "the server was stopped because ...".
        reason: String,
    },
}

/// Something that the person is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Finding {
    /// A file was moved to where nothing runs it.
    Quarantined {
        /// Its path before.
        path: String,
        /// Its path now.
        moved_to: String,
        /// Words that end the sentence "this runs ...".
        when: String,
    },
    /// Keys of a repository's configuration were put back to what they had been.
    Restored {
        /// The configuration.
        path: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// A file that can run later is there, and is new or changed.
    Left {
        /// Its path.
        path: String,
        /// Words that end the sentence "this runs ...".
        when: String,
        /// The difference.
        change: ChangeKind,
        /// The difference in its text, of at most 4 KiB, where it is known.
        diff: Option<String>,
    },
    /// Not all could be looked at, or done.
    Unfinished {
        /// The reason, as a sentence.
        reason: String,
    },
}
