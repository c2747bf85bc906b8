//! JSON-lines protocol between the process that serves a run's files (the view) and the trusted process.
//!
//! - The view sends one question per path and access, even if several programs are waiting for the answer.
//! - The trusted process sends the run's complete permissions. Each such message replaces the previous one.

use serde::{Deserialize, Serialize};

/// Kind of access to a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    /// Reading the file.
    Read,
    /// Creating, changing or replacing the file.
    Write,
    /// Reading and changing the file.
    ReadWrite,
    /// Removing or moving the file.
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
        /// Absolute path, without symlinks, that the program wants to access.
        path: String,
        /// Requested access.
        access: FileAccess,
        /// Names of the requesting program's ancestors in the sandbox and, last, of the program itself. For display.
        programs: Vec<String>,
    },
    /// No program is waiting for the answer any more.
    Withdraw {
        /// Id of the question.
        id: u64,
    },
    /// The permissions of this version are in force, and no operation still uses earlier ones.
    Applied {
        /// Version of the permissions, from [`ToView::Permissions`].
        version: u64,
        /// `false` if the kernel did not drop a file's cached pages in time.
        complete: bool,
    },
    /// A program is about to read this file for the first time, below a folder from [`ToView::PermitReading`].
    Read {
        /// Absolute path, without symlinks.
        path: String,
    },
    /// The folder can be mounted. Until [`ToView::Mounted`], no request waits in a way that would block the mount.
    Reserved {
        /// Number of the reservation.
        number: u64,
    },
}

/// Message from the trusted process to the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "view", rename_all = "kebab-case")]
pub enum ToView {
    /// Answer to [`FromView::Ask`].
    Answer {
        /// Id from [`FromView::Ask`].
        id: u64,
        /// Decision about the access.
        answer: AccessAnswer,
    },
    /// Permits one more access without asking the user.
    Permit(PermittedAccess),
    /// Permits reading all files in one more folder without asking the user.
    PermitReading {
        /// Absolute path of the folder, without symlinks.
        folder: String,
    },
    /// Replaces all accesses that are permitted without asking the user.
    Permissions {
        /// Version number, repeated in [`FromView::Applied`].
        version: u64,
        /// All permitted accesses.
        permitted: Vec<PermittedAccess>,
        /// Folders whose files may all be opened for reading.
        #[serde(default)]
        readable: Vec<String>,
        /// Folders in `readable`, and those whose files may still be read if they are open.
        #[serde(default)]
        kept: Vec<String>,
    },
    /// Reserves a folder for mounting, once no waiting request would block the mount. Replaces an earlier reservation.
    Reserve {
        /// Absolute path.
        path: String,
        /// Number repeated in [`FromView::Reserved`].
        number: u64,
    },
    /// Lists the folders mounted over the view and ends the reservation.
    Mounted {
        /// Absolute paths.
        paths: Vec<String>,
    },
}

/// Answer to a question about file access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessAnswer {
    /// The access is refused.
    Denied,
    /// The access is allowed once, for each program that is waiting for it.
    Once,
    /// A permission that was sent earlier covers the access. If it has been revoked since, the view asks again.
    Permitted,
}

/// Access to one path that is permitted without asking the user.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PermittedAccess {
    /// Absolute path without symlinks.
    pub path: String,
    /// Permitted access.
    pub access: FileAccess,
}

impl FileAccess {
    /// Returns the kinds of permission that include this access.
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
