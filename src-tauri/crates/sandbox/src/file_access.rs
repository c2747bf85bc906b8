//! Messages between the process that serves a run's files and the trusted process, as JSON lines.
//!
//! - The view asks about one path and access at a time, however many programs wait for it.
//! - The trusted process sends everything that the run may do without a question. Each such message replaces the one before.

use serde::{Deserialize, Serialize};

/// Access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    /// Reads the file.
    Read,
    /// Creates, changes or replaces the file.
    Write,
    /// Reads and changes the file.
    ReadWrite,
    /// Removes or moves the file.
    Delete,
}

/// Message from the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case")]
pub enum FromView {
    /// A program waits for permission.
    Ask {
        /// Id of the question, unique within the view.
        id: u64,
        /// Absolute path without symlinks.
        path: String,
        /// The access.
        access: FileAccess,
        /// Programs that wait, for display: the one that opens the file last, its ancestors in the sandbox before it.
        programs: Vec<String>,
    },
    /// No program waits for the answer any more.
    Withdraw {
        /// Id of the question.
        id: u64,
    },
    /// The permissions of this version are in force, and nothing uses earlier ones.
    Applied {
        /// Version of the permissions.
        version: u64,
        /// False if the kernel did not drop the pages of a file in time.
        complete: bool,
    },
    /// A folder can be mounted now: until [`ToView::Mounted`], no request waits that would block the mount.
    Reserved {
        /// Number of the reservation.
        number: u64,
    },
}

/// Message to the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case")]
pub enum ToView {
    /// Answer to a question.
    Answer {
        /// Id of the question.
        id: u64,
        /// The answer.
        answer: AccessAnswer,
    },
    /// An access that needs no question from now on.
    Permit(PermittedAccess),
    /// Everything that needs no question from now on, instead of earlier permits.
    Permissions {
        /// Version, which the view repeats when it is in force.
        version: u64,
        /// Permitted accesses.
        permitted: Vec<PermittedAccess>,
    },
    /// A folder is to be mounted, as soon as no request waits that would block that. Replaces an earlier reservation.
    Reserve {
        /// Absolute path.
        path: String,
        /// Number, which the view repeats.
        number: u64,
    },
    /// Folders that are mounted over the view. Ends the reservation.
    Mounted {
        /// Absolute paths.
        paths: Vec<String>,
    },
}

/// Answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessAnswer {
    /// The access is refused.
    Denied,
    /// It is allowed once for each program that waits.
    Once,
    /// It was permitted before this answer. If the permission has ended since, the view asks again.
    Permitted,
}

/// Access to a path that needs no question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PermittedAccess {
    /// Absolute path without symlinks.
    pub path: String,
    /// The access.
    pub access: FileAccess,
}

impl FileAccess {
    /// Returns the accesses that include this one.
    #[must_use]
    pub fn included_in(self) -> &'static [Self] {
        match self {
            Self::Read => &[Self::Read, Self::ReadWrite],
            Self::Write => &[Self::Write, Self::ReadWrite],
            Self::ReadWrite => &[Self::ReadWrite],
            Self::Delete => &[Self::Delete],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_stable() {
        let ask = FromView::Ask {
            id: 1,
            path: "/a".into(),
            access: FileAccess::ReadWrite,
            programs: vec!["cat".into()],
        };
        let line = r#"{"view":"ask","id":1,"path":"/a","access":"read-write","programs":["cat"]}"#;
        assert_eq!(serde_json::to_string(&ask).unwrap(), line);
        assert_eq!(serde_json::from_str::<FromView>(line).unwrap(), ask);
        let permit = ToView::Permit(PermittedAccess { path: "/a".into(), access: FileAccess::Read });
        let line = r#"{"view":"permit","path":"/a","access":"read"}"#;
        assert_eq!(serde_json::to_string(&permit).unwrap(), line);
        assert_eq!(serde_json::from_str::<ToView>(line).unwrap(), permit);
    }
}
