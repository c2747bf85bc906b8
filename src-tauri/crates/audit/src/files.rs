//! Files that run later, as they are on record.

use serde::{Deserialize, Serialize};

/// Something that was found of such a file, without what the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "finding", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileFinding {
    /// It was moved to where nothing runs it.
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
    /// It is there, and is new or changed.
    Left {
        /// Its path.
        path: String,
        /// Words that end the sentence "this runs ...".
        when: String,
        /// The difference to what was there before.
        change: FileChange,
        /// Always empty: what a file says is in the record of its session alone.
        diff: Option<String>,
    },
    /// Not all could be looked at, or done.
    Unfinished {
        /// The reason, as a sentence.
        reason: String,
    },
}

/// The difference to what was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileChange {
    /// There was no file.
    New,
    /// There was another content.
    Changed,
}

/// The person's word to such a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "choice", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum FileDecision {
    /// It stays.
    Kept,
    /// It was moved.
    Quarantined {
        /// Its path now.
        moved_to: String,
    },
    /// It was put back.
    Returned,
    /// It was put back, and what stood there meanwhile was moved.
    Exchanged {
        /// The path of what stood there.
        moved_to: String,
    },
    /// It was deleted where it had been moved to.
    Deleted,
}
