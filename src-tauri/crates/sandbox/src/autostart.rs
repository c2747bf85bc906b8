//! Detects autostart files (files that other programs run later) in writable roots and prevents programs from running
//! them.
//!
//! A process that launches sandboxes has one [`Watcher`] for all of them. The launcher opens a root in the watcher
//! before the root becomes writable, and closes it afterwards. The watcher checks new and changed files in the
//! meantime and once more when the root is closed.
//!
//! - INVARIANT: nothing is created in the user's tree. The watcher only moves files to quarantine, and restores keys
//!   of git configurations under git's own lock.
//! - INVARIANT: no symlink is followed. Folders are opened relative to a descriptor.
//! - The creator of a file is unknown. An automatically run file that a sandbox could have created is quarantined,
//!   even if another of the user's programs created it.
//! - The amount of work is bounded, and files that were not checked are reported.

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
mod quarantine;
#[cfg(target_os = "linux")]
mod reopened_folders;
#[cfg(target_os = "linux")]
mod restore;
#[cfg(target_os = "linux")]
mod startup_files;
#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(target_os = "linux")]
mod watcher;

use serde::{Deserialize, Serialize};

pub use name_table::{autostart_condition, leads_to_programs, strict_names};
#[cfg(target_os = "linux")]
pub use name_text::real_path;
#[cfg(target_os = "linux")]
pub use quarantine::quarantine;
#[cfg(target_os = "linux")]
pub use restore::{RestoreError, delete, exchange, restore};
#[cfg(target_os = "linux")]
pub use startup_files::StartupFiles;
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    FinishedJournal, RestoreError, StartupFiles, Watcher, delete, exchange, quarantine, real_path, restore,
};
#[cfg(target_os = "linux")]
pub use watcher::{FinishedJournal, Watcher};

/// Handling of new autostart files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutostartMode {
    /// Quarantines files that run automatically; reports all others and leaves them in place.
    #[default]
    Listed,
    /// Quarantines every file on the strict list.
    Strict,
}

/// Handling of existing repositories' git configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitConfig {
    /// Existing configurations are read-only.
    #[default]
    Closed,
    /// Existing configurations are writable. Changes to keys that make git run a program are reverted.
    Guarded,
}

/// Autostart rules of one sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutostartRules {
    /// Handling of new autostart files.
    #[serde(default)]
    pub mode: AutostartMode,
    /// Handling of existing repositories' git configurations.
    #[serde(default)]
    pub git_config: GitConfig,
    /// Names or paths that the sandbox is allowed to change. They are neither read-only nor checked.
    #[serde(default)]
    pub allow: Vec<String>,
    /// The user's home directory, in which startup files of shells and desktops are recognized.
    #[serde(default)]
    pub home: Option<String>,
    /// Paths at or below which new files are always quarantined.
    #[serde(default)]
    pub denied: Vec<String>,
}

/// Condition under which a program runs a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutostartCondition {
    /// Completes the sentence "this runs ...".
    pub when: &'static str,
    /// `true` if the file runs without any action by the user. Such a file is quarantined when it is created.
    pub automatic: bool,
}

/// Kind of change to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// The file is new.
    New,
    /// The file's content has changed.
    Changed,
}

/// Action the launcher must take against a sandbox that keeps recreating quarantined files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Countermeasure {
    /// Make a root read-only.
    ReadOnly {
        /// Path of the root to make read-only.
        root: String,
        /// Path of the file that keeps reappearing.
        path: String,
    },
    /// Terminate the sandbox, and start no other sandbox for its session.
    End {
        /// Completes the sentence "the server was stopped because ...".
        reason: String,
    },
}

/// Finding to report to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Finding {
    /// A file was moved to quarantine.
    Quarantined {
        /// Path from which the file was moved.
        path: String,
        /// Path of the file in quarantine.
        moved_to: String,
        /// Completes the sentence "this runs ...".
        when: String,
    },
    /// Keys of a repository's configuration were restored to their previous values.
    Restored {
        /// Path of the repository's configuration.
        path: String,
        /// Names of the restored keys.
        keys: Vec<String>,
    },
    /// An autostart file is new or has changed, and was left in place.
    #[serde(rename = "left")]
    AutostartFile {
        /// Path of the autostart file.
        path: String,
        /// Completes the sentence "this runs ...".
        when: String,
        /// Kind of change to the file.
        change: ChangeKind,
        /// Diff of the file's text, at most 4 KiB, or `None` if the previous text is unknown.
        diff: Option<String>,
    },
    /// Some files could not be checked or moved.
    Unfinished {
        /// Reason, as a sentence for the user.
        reason: String,
    },
}
