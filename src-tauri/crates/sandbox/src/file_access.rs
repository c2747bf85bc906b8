//! Messages between the process that serves a run's files (the view) and the trusted process, as JSON lines.
//!
//! - The view asks once for each path and access, even if several programs wait for it.
//! - The trusted process sends all permissions of the run. Each such message replaces the previous one.

use serde::{Deserialize, Serialize};

/// Kind of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    /// Reads the content of the file.
    Read,
    /// Creates, changes or replaces the file.
    Write,
    /// Reads and changes the file.
    ReadWrite,
    /// Removes or moves the file.
    Delete,
}

/// Message from the view to the trusted process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case")]
pub enum FromView {
    /// A program is waiting for permission.
    Ask {
        /// Id of the question, unique within the view.
        id: u64,
        /// Absolute path without symlinks, which the program wants to access.
        path: String,
        /// Access that the program wants.
        access: FileAccess,
        /// Names of the program that wants access and of its ancestors in the sandbox, for display. The program
        /// itself is last.
        programs: Vec<String>,
    },
    /// No program is waiting for the answer to this question any more.
    Withdraw {
        /// Id of the question.
        id: u64,
    },
    /// The permissions of this version are in force, and no program uses earlier ones.
    Applied {
        /// Version of the permissions, from [`ToView::Permissions`].
        version: u64,
        /// `false` if the kernel did not drop the cached pages of a file in time.
        complete: bool,
    },
}

/// Message from the trusted process to the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case")]
pub enum ToView {
    /// Answer to [`FromView::Ask`].
    Answer {
        /// Id of the question that is answered.
        id: u64,
        /// Decision about the access.
        answer: AccessAnswer,
    },
    /// Adds an access that is permitted without a question from now on.
    Permit(PermittedAccess),
    /// Replaces all accesses that are permitted without a question.
    Permissions {
        /// Version number, which the view repeats in [`FromView::Applied`].
        version: u64,
        /// All permitted accesses.
        permitted: Vec<PermittedAccess>,
    },
}

/// Answer to a question about an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessAnswer {
    /// The access is refused.
    Denied,
    /// The access is allowed once for each program that is waiting for it.
    Once,
    /// The access was already permitted before this answer. If the permission has been revoked since, the view asks
    /// again.
    Permitted,
}

/// Access to a path that is permitted without a question.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PermittedAccess {
    /// Permitted absolute path without symlinks.
    pub path: String,
    /// Permitted access.
    pub access: FileAccess,
}

impl FileAccess {
    /// Returns the kinds of permission that cover this access.
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
