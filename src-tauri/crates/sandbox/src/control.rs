//! Control protocol: JSON lines over a unix stream between the trusted process and a supervisor.
//!
//! - The client numbers its requests. Each request gets exactly one [`ControlReply`] with the same id, in order.
//! - [`SandboxEvent`]s arrive between replies. The first is [`SandboxEvent::Started`] or [`SandboxEvent::Failed`], the
//!   last is [`SandboxEvent::Exited`].
//! - Closing the stream has the same effect as `shutdown`: the supervisor kills the sandbox and exits.

use serde::{Deserialize, Serialize};

use crate::spec::{Mount, MountAccess};

/// Request to the supervisor, sent as one JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Id of the request, chosen by the client and repeated in the reply.
    pub id: u64,
    /// Operation to perform.
    #[serde(flatten)]
    pub op: ControlOp,
}

/// Operation on a running sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum ControlOp {
    /// Mount a path. Adding a read-only path again as read-write widens its access in place; [`Narrow`](Self::Narrow)
    /// does the reverse.
    Add(Mount),
    /// Make a read-write mount read-only and check that no process can still write to it. The path stays visible
    /// throughout.
    Narrow {
        /// Path of an added mount.
        path: String,
        /// `true` to require that the path is a regular file.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        file: bool,
    },
    /// Unmount a path and check that no process still uses it.
    Remove {
        /// Path of an added mount.
        path: String,
    },
    /// List the mounted grants.
    List,
    /// Check all masks and restore lost masks. A mask is lost when a program outside the sandbox replaces the hidden or
    /// read-only path.
    Check,
    /// Kill all processes in the sandbox and exit.
    Shutdown,
}

/// Message from the supervisor, sent as one JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FromSupervisor {
    /// Reply to the oldest unanswered request.
    Reply(ControlReply),
    /// Event that no request caused.
    Event(SandboxEvent),
}

/// Reply to one request, sent as one JSON line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReply {
    /// Id of the request, or 0 if it could not be parsed.
    pub id: u64,
    /// Outcome of the request.
    #[serde(flatten)]
    pub answer: ControlAnswer,
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ControlAnswer {
    /// The path is mounted with the requested access.
    Added,
    /// The path is mounted read-only.
    Narrowed {
        /// Result of checking that no process can still write to the path.
        proof: UnmountProof,
    },
    /// The path is no longer mounted.
    Removed {
        /// Result of checking that no process still uses the path.
        proof: UnmountProof,
    },
    /// The current grants.
    Mounts {
        /// Granted mounts, in path order.
        mounts: Vec<Mount>,
    },
    /// Every mask is in place. For each mask that was restored, [`SandboxEvent::Uncovered`] was sent before this
    /// reply.
    Checked,
    /// The sandbox is being terminated.
    Closing,
    /// The operation failed partway. The mounts are in an unknown state, so the sandbox is being terminated.
    Broken {
        /// Reason for the user, as a sentence.
        message: String,
    },
    /// The request was refused, and nothing changed.
    Refused {
        /// Machine-readable reason.
        code: MountRefusal,
        /// Reason for the user, as a sentence.
        message: String,
    },
}

/// Result of checking that access ended after a mount was removed or narrowed. Access through another grant of the
/// same file is not taken into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmountProof {
    /// No descriptor, mapping, working directory or in-flight message refers to the mount, as proved by the kernel. If
    /// another grant still shows the same file, the mount was made permanently read-only instead.
    Proved,
    /// The path is no longer visible, but a process still has one of its files open. Restarting the server ends that
    /// access.
    #[serde(rename = "held")]
    StillOpen,
}

/// Reason a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountRefusal {
    /// The line is not a valid request.
    BadRequest,
    /// The path is not absolute or not normal.
    BadPath,
    /// The path belongs to the sandbox itself (`/proc`, `/dev`, `/sys`, the session directory, a program).
    Reserved,
    /// The path does not exist.
    Missing,
    /// A component of the path has become a symlink, so the path is no longer the path that was approved.
    Symlink,
    /// The path is neither a regular file nor a directory, or is a directory where a file is required.
    Kind,
    /// The folder could not be searched for named pipes and sockets, which must be masked.
    Special,
    /// The user has no access to the path.
    Denied,
    /// The path is granted read-write, so it must be narrowed rather than replaced by a read-only grant.
    Narrower,
    /// The path cannot serve as a mount point, because the sandbox shows a different kind of file there, or a tree that
    /// does not contain the path. The grant takes effect when the server restarts.
    NoMountPoint,
    /// The path is an autostart file. Such a file is writable only if the user approved this exact path.
    Protected,
    /// The path is not granted.
    NotGranted,
    /// The kernel refused the operation; the message contains the error.
    Kernel,
}

/// Event from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SandboxEvent {
    /// The sandbox has no TUN device, so programs that ignore the proxy have no network. Sent before
    /// [`SandboxEvent::Started`].
    TunUnavailable {
        /// Reason for the user.
        reason: String,
    },
    /// The initial mounts are complete, and the server's program is running.
    Started,
    /// The server could not be started, and the sandbox was removed.
    Failed {
        /// Reason for the user, as a sentence.
        reason: String,
    },
    /// Enforcement of the resource limits. Follows [`SandboxEvent::Started`].
    Limited {
        /// Enforcement of the memory limit.
        memory: Enforcement,
        /// Enforcement of the CPU time limit.
        cpu: Enforcement,
        /// Enforcement of the process limit.
        processes: Enforcement,
    },
    /// A program outside the sandbox replaced a hidden or read-only path. The server had access to the replacement for
    /// about a millisecond, until it was masked again.
    Uncovered {
        /// Path that was replaced.
        path: String,
        /// `true` if the path is hidden and the server could read the replacement. `false` if the path is read-only and
        /// the server could write to the replacement.
        hidden: bool,
    },
    /// The server exited. Always the last event.
    Exited {
        /// Exit status, or 128 + the signal number.
        status: i32,
    },
}

/// Mechanism that enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// A control group, for all processes of the sandbox together.
    Cgroup,
    /// The user namespace, for all processes of the sandbox together.
    Sandbox,
    /// A resource limit (`setrlimit`), for each process separately.
    Process,
    /// No limit was requested.
    Unlimited,
    /// A limit was requested, but the machine cannot enforce it.
    Unenforced,
}

impl Mount {
    /// Creates a mount of `path`, a file or a directory.
    pub fn new(path: impl Into<String>, access: MountAccess) -> Self {
        Self { path: path.into(), access, file: false, read_only: vec![], pinned: vec![], approved: false }
    }

    /// Sets [`Mount::read_only`], the paths that stay read-only inside the mount.
    #[must_use]
    pub fn with_read_only(self, read_only: Vec<String>) -> Self {
        Self { read_only, ..self }
    }

    /// Sets [`Mount::pinned`], the paths that stay read-only and cannot be moved.
    #[must_use]
    pub fn with_pinned(self, pinned: Vec<String>) -> Self {
        Self { pinned, ..self }
    }

    /// Requires `path` to be a regular file.
    #[must_use]
    pub fn file_only(self) -> Self {
        Self { file: true, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_stable() {
        let add = ControlRequest { id: 7, op: ControlOp::Add(Mount::new("/a", MountAccess::ReadOnly)) };
        same(&add, r#"{"id":7,"op":"add","path":"/a","access":"read-only"}"#);
        same(
            &ControlRequest { id: 8, op: ControlOp::Remove { path: "/a".into() } },
            r#"{"id":8,"op":"remove","path":"/a"}"#,
        );
        same(
            &ControlRequest { id: 8, op: ControlOp::Narrow { path: "/a".into(), file: true } },
            r#"{"id":8,"op":"narrow","path":"/a","file":true}"#,
        );
        same(&ControlRequest { id: 9, op: ControlOp::List }, r#"{"id":9,"op":"list"}"#);
        same(
            &ControlReply { id: 8, answer: ControlAnswer::Removed { proof: UnmountProof::StillOpen } },
            r#"{"id":8,"answer":"removed","proof":"held"}"#,
        );
        let refused = ControlAnswer::Refused { code: MountRefusal::NoMountPoint, message: "no".into() };
        same(
            &ControlReply { id: 1, answer: refused },
            r#"{"id":1,"answer":"refused","code":"no-mount-point","message":"no"}"#,
        );
        same(&FromSupervisor::Event(SandboxEvent::Exited { status: 3 }), r#"{"event":"exited","status":3}"#);
        same(&FromSupervisor::Event(SandboxEvent::Started), r#"{"event":"started"}"#);
    }

    fn same<T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug>(value: &T, line: &str) {
        assert_eq!(serde_json::to_string(value).unwrap(), line);
        assert_eq!(&serde_json::from_str::<T>(line).unwrap(), value);
    }
}
