//! What a sandbox is to be: the plain value the trusted process writes down and the supervisor carries out.
//!
//! - A [`Spec`] is complete: nothing is taken from the environment of whoever launches it.
//! - Paths are absolute and normal (no `.`, `..`, doubled or trailing slash); [`Spec::validate`] refuses others.
//!   Whether they exist, and whether a symlink is in the way, is found out when they are mounted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One server's sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Spec {
    /// The program and its arguments; a bare name is looked up in the `PATH` of `env`.
    pub argv: Vec<String>,
    /// The whole environment of the server.
    pub env: BTreeMap<String, String>,
    /// The working directory inside; the session sandbox directory when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the server sees of the file system.
    pub view: View,
    /// Granted paths mounted before the server starts, in this order.
    #[serde(default)]
    pub mounts: Vec<Mount>,
    /// Resource limits of every process in the sandbox.
    #[serde(default)]
    pub limits: Limits,
    /// Run even as uid 0, where the kernel's own files are guarded by masks only.
    #[serde(default)]
    pub allow_root: bool,
}

/// What of the file system is there before any grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum View {
    /// An almost empty tree: system programs and libraries, a private `/tmp`, and what is named here.
    Roots {
        /// The session sandbox directory, writable at its own path.
        session_dir: String,
        /// Further programs (a `node_modules`, a venv, our own servers), read-only at their own paths.
        #[serde(default)]
        programs: Vec<String>,
    },
}

/// One granted path: a directory with all below it, or a single file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Mount {
    /// Where it is on the host and in the sandbox alike.
    pub path: String,
    /// What the sandbox may do with it.
    pub access: Access,
}

/// What a mount lets the sandbox do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Access {
    /// Look, do not touch: writes fail with `EROFS`.
    ReadOnly,
    /// Whatever the person's own rights allow.
    ReadWrite,
}

/// Resource limits, by rlimits; `None` leaves the launcher's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// Processes and threads in the sandbox together, counted per sandbox since it has its own user namespace. The
    /// kernel exempts uid 0.
    pub processes: Option<u64>,
    /// Open descriptors per process.
    pub open_files: Option<u64>,
    /// Largest file that may be written, in bytes.
    pub file_size: Option<u64>,
    /// Size of the private `/tmp`, and of `/dev/shm`, in bytes.
    pub tmp_size: Option<u64>,
}

impl Default for Limits {
    /// Generous enough for node with its worker threads and a compiler or two.
    fn default() -> Self {
        Self { processes: Some(1024), open_files: Some(4096), file_size: None, tmp_size: Some(1 << 30) }
    }
}

/// Why a [`Spec`] cannot be carried out as written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// There is no program to run.
    #[error("the command is empty: name the program to run")]
    NoProgram,
    /// A path is not absolute and normal.
    #[error("`{0}` is not an absolute path without `.`, `..` or doubled slashes")]
    Path(String),
    /// An environment variable cannot be handed to a process.
    #[error("`{0}` cannot be the name or value of an environment variable")]
    Environment(String),
    /// An argument carries a NUL.
    #[error("argument `{0}` has a NUL character in it")]
    Argument(String),
}

impl Spec {
    /// Refuses what cannot be carried out, before anything is started.
    pub fn validate(&self) -> Result<(), SpecError> {
        if self.argv.first().is_none_or(String::is_empty) {
            return Err(SpecError::NoProgram);
        }
        if let Some(bad) = self.argv.iter().find(|argument| argument.contains('\0')) {
            return Err(SpecError::Argument(bad.escape_default().to_string()));
        }
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return Err(SpecError::Environment(name.escape_default().to_string()));
            }
        }
        let View::Roots { session_dir, programs } = &self.view;
        let fixed = programs.iter().chain([session_dir]).chain(&self.cwd);
        match fixed.chain(self.mounts.iter().map(|mount| &mount.path)).find(|path| !is_normal(path)) {
            Some(bad) => Err(SpecError::Path(bad.escape_default().to_string())),
            None => Ok(()),
        }
    }

    /// Where the server starts.
    pub fn working_dir(&self) -> &str {
        let View::Roots { session_dir, .. } = &self.view;
        self.cwd.as_deref().unwrap_or(session_dir)
    }

    /// The paths of the person's that are part of the sandbox, and not grants.
    pub(crate) fn fixed_paths(&self) -> Vec<String> {
        let View::Roots { session_dir, programs } = &self.view;
        programs.iter().chain([session_dir]).cloned().collect()
    }
}

/// Whether `path` is absolute, normal and not the root itself.
pub(crate) fn is_normal(path: &str) -> bool {
    let Some(rest) = path.strip_prefix('/') else { return false };
    !path.contains('\0') && rest.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_path_is_accepted_and_others_are_not() {
        assert!(is_normal("/a/b c/.d"));
        for bad in ["", "a", "/", "/a/", "//a", "/a//b", "/a/./b", "/a/../b", "/a\0b"] {
            assert!(!is_normal(bad), "{bad:?}");
        }
    }

    #[test]
    fn each_fault_is_named() {
        assert_eq!(spec().validate(), Ok(()));
        assert_eq!(Spec { argv: vec![], ..spec() }.validate(), Err(SpecError::NoProgram));
        let mounts = vec![Mount { path: "/a/../b".into(), access: Access::ReadOnly }];
        assert_eq!(Spec { mounts, ..spec() }.validate(), Err(SpecError::Path("/a/../b".into())));
        let env = BTreeMap::from([("A=B".to_owned(), String::new())]);
        assert_eq!(Spec { env, ..spec() }.validate(), Err(SpecError::Environment("A=B".into())));
        let argv = vec!["a".into(), "b\0".into()];
        assert_eq!(Spec { argv, ..spec() }.validate(), Err(SpecError::Argument("b\\u{0}".into())));
    }

    #[test]
    fn the_written_form_is_stable() {
        let text = r#"{"argv":["true"],"env":{},"view":{"kind":"roots","sessionDir":"/s","programs":[]},"mounts":[],"limits":{"processes":1024,"openFiles":4096,"fileSize":null,"tmpSize":1073741824},"allowRoot":false}"#;
        assert_eq!(serde_json::to_string(&spec()).unwrap(), text);
        assert_eq!(serde_json::from_str::<Spec>(text).unwrap(), spec());
    }

    fn spec() -> Spec {
        Spec {
            argv: vec!["true".into()],
            env: BTreeMap::new(),
            cwd: None,
            view: View::Roots { session_dir: "/s".into(), programs: vec![] },
            mounts: vec![],
            limits: Limits::default(),
            allow_root: false,
        }
    }
}
