//! Recorded facts about autostart files.

use serde::{Deserialize, Serialize};

/// Finding about an autostart file, without the file's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileFinding {
    /// It was moved to quarantine, where nothing runs it.
    Quarantined {
        /// Previous path.
        path: String,
        /// New path.
        moved_to: String,
        /// End of the sentence "this runs ...".
        when: String,
    },
    /// Keys of a repository's configuration were restored.
    Restored {
        /// Path of the configuration.
        path: String,
        /// Names of the keys.
        keys: Vec<String>,
    },
    /// It is new or was changed, and is still in place.
    Left {
        /// Path of the file.
        path: String,
        /// End of the sentence "this runs ...".
        when: String,
        /// Difference from the previous state.
        change: FileChange,
        /// Always empty, because file content is recorded only in the session's record.
        diff: Option<String>,
    },
    /// Some files could not be checked or handled.
    Unfinished {
        /// Reason, as a sentence.
        reason: String,
    },
}

/// Difference from the previous state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// The file did not exist before.
    New,
    /// The content changed.
    Changed,
}

/// The user's decision about an autostart file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileDecision {
    /// It was kept.
    Kept,
    /// It was moved to quarantine.
    Quarantined {
        /// New path.
        moved_to: String,
    },
    /// It was restored from quarantine.
    Returned,
    /// It was restored, and the file that had taken its place was moved.
    Exchanged {
        /// New path of the file that had taken its place.
        moved_to: String,
    },
    /// It was deleted from quarantine.
    Deleted,
}
