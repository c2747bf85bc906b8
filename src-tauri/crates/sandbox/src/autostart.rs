//! Detects autostart files (files that other programs run later) in writable roots, and prevents
//! programs from running them.
//!
//! A process that launches sandboxes has one [`Watcher`] for all of them. A root is opened before it becomes writable
//! and closed when it stops being writable. The watcher checks new and changed files during that time and at the end.
//!
//! - INVARIANT: nothing is created in the user's tree. The only changes there are moving files to
//!   quarantine, and restoring keys of a repository's configuration under git's own lock.
//! - INVARIANT: no symlink is followed. Folders are opened by descriptor.
//! - The creator of a file is unknown. A file that runs automatically and appears while a sandbox could have created it is
//!   quarantined and reported, even if another program of the user's created it.
//! - Work is bounded, and files that were not checked are reported.

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
mod reopened_folders;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod watcher;

use serde::{Deserialize, Serialize};

pub use name_table::{leads_to_programs, runs_later, strict_names};
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

/// Treatment of new autostart files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutostartMode {
    /// Files that run automatically are quarantined; the others stay and are listed.
    #[default]
    Listed,
    /// All files in the strict list are quarantined.
    Strict,
}

/// Treatment of the configuration of existing repositories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitConfig {
    /// Read-only.
    #[default]
    Closed,
    /// Writable; keys that make git run a program are restored.
    Guarded,
}

/// Rules of one sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutostartRules {
    /// Treatment of new files.
    #[serde(default)]
    pub mode: AutostartMode,
    /// Treatment of repositories' configuration.
    #[serde(default)]
    pub git_config: GitConfig,
    /// Files and folders to exclude from closing and checking.
    #[serde(default)]
    pub allow: Vec<String>,
    /// The user's home, where startup files of shells and desktops count.
    #[serde(default)]
    pub home: Option<String>,
    /// Paths that must not exist: files created at or below them are quarantined.
    #[serde(default)]
    pub denied: Vec<String>,
}

/// Condition under which a file's content is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsLater {
    /// Words that complete the sentence "this runs ...".
    pub when: &'static str,
    /// Runs without an action of the user. Such a file is quarantined when it appears.
    pub unasked: bool,
}

/// Kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The file is new.
    New,
    /// The content has changed.
    Changed,
}

/// Measure against a sandbox that keeps recreating a file after it is moved away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Countermeasure {
    /// Make this root read-only.
    ReadOnly {
        /// The root.
        root: String,
        /// The file.
        path: String,
    },
    /// Terminate the sandbox and start no other for its session.
    End {
        /// Words that complete the sentence "the server was stopped because ...".
        reason: String,
    },
}

/// Finding to report to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Finding {
    /// A file was moved to quarantine.
    Quarantined {
        /// Original path.
        path: String,
        /// Path in quarantine.
        moved_to: String,
        /// Words that complete the sentence "this runs ...".
        when: String,
    },
    /// Keys of a repository's configuration were restored to their previous values.
    Restored {
        /// Path of the configuration.
        path: String,
        /// The keys.
        keys: Vec<String>,
    },
    /// A new or changed file can run later, and stays.
    Left {
        /// Path of the file.
        path: String,
        /// Words that complete the sentence "this runs ...".
        when: String,
        /// Kind of change.
        change: ChangeKind,
        /// Diff of its text, at most 4 KiB, if known.
        diff: Option<String>,
    },
    /// Some files could not be checked or moved.
    Unfinished {
        /// The reason, as a sentence.
        reason: String,
    },
}
