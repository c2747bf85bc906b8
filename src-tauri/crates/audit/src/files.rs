//! Autostart files in the log: findings, and the user's decisions about them.

use serde::{Deserialize, Serialize};

/// Finding about an autostart file, without the file's contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileFinding {
    /// The file was moved to quarantine, where no program runs it.
    Quarantined {
        /// Original path of the file.
        path: String,
        /// Path of the file in quarantine.
        moved_to: String,
        /// Phrase that says when a program would run the file. Completes the sentence "this runs ...".
        when: String,
    },
    /// Keys of a repository's git configuration were restored.
    Restored {
        /// Path of the configuration file.
        path: String,
        /// Names of the restored keys.
        keys: Vec<String>,
    },
    /// The file is new or was changed, and is still in place.
    #[serde(rename = "left")]
    InPlace {
        /// Path of the file.
        path: String,
        /// Phrase that says when a program runs the file. Completes the sentence "this runs ...".
        when: String,
        /// Kind of change during the session.
        change: FileChange,
        /// Always `None`, because only the session record contains the contents of files.
        diff: Option<String>,
    },
    /// Some files could not be checked or quarantined.
    #[serde(rename = "unfinished")]
    ScanIncomplete {
        /// Reason as a sentence.
        reason: String,
    },
}

/// Kind of change to an autostart file during the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// The file did not exist before.
    New,
    /// The contents of the file changed.
    Changed,
}

/// The user's decision about an autostart file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileDecision {
    /// The user kept the file.
    Kept,
    /// The user moved the file to quarantine.
    Quarantined {
        /// Path of the file in quarantine.
        moved_to: String,
    },
    /// The user restored the file from quarantine.
    Returned,
    /// The user restored the file, and the file that had replaced it was moved to quarantine.
    Exchanged {
        /// Quarantine path of the file that had replaced it.
        moved_to: String,
    },
    /// The user deleted the file from quarantine.
    Deleted,
}
