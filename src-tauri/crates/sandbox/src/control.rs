//! Control protocol: JSON lines over a unix stream between the trusted process and a supervisor.
//!
//! - The client chooses each request's id. Every request gets exactly one [`ControlReply`] with that id, in order.
//! - [`SandboxEvent`]s can arrive between replies. The first is [`SandboxEvent::Started`] or [`SandboxEvent::Failed`],
//!   the last [`SandboxEvent::Exited`].
//! - Closing the stream is equivalent to `shutdown`: the supervisor kills the sandbox and exits.

use serde::{Deserialize, Serialize};

use crate::spec::{Mount, MountAccess};

/// Request to the supervisor, sent as one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Id of the request, which the client chooses and the reply repeats.
    pub id: u64,
    /// Operation to perform.
    #[serde(flatten)]
    pub op: ControlOp,
}

/// Operation on a running sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum ControlOp {
    /// Mount a path. A read-only mount can be widened to read-write in place; [`Narrow`](Self::Narrow) does the
    /// reverse.
    Add(Mount),
    /// Make a read-write mount read-only, and prove that nothing in the sandbox can write to it any more. The path
    /// stays visible throughout.
    Narrow {
        /// Path of a mount that was added.
        path: String,
        /// `true` to require that the path is a regular file.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        file: bool,
    },
    /// Unmount a path, and prove that nothing in the sandbox refers to it.
    Remove {
        /// Path of a mount that was added.
        path: String,
    },
    /// List the granted paths that are mounted.
    List,
    /// Check that every mask is in place, and restore lost ones. A mask is lost when a program outside the sandbox
    /// replaces the hidden or read-only path.
    Check,
    /// Kill everything in the sandbox and exit.
    Shutdown,
}

/// Line that the supervisor sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FromSupervisor {
    /// Reply to the oldest unanswered request.
    Reply(ControlReply),
    /// Event that was not caused by a request.
    Event(SandboxEvent),
}

/// Reply to one request, sent as one line.
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
        /// Proof that nothing in the sandbox can write to the path any more, or a report that a process still can.
        proof: UnmountProof,
    },
    /// The path is no longer mounted.
    Removed {
        /// Proof that nothing in the sandbox refers to the path, or a report that a process still does.
        proof: UnmountProof,
    },
    /// The granted paths.
    Mounts {
        /// Granted mounts, in path order.
        mounts: Vec<Mount>,
    },
    /// Every mask is in place. A [`SandboxEvent::Uncovered`] was sent before this reply for each mask that had to be
    /// restored.
    Checked,
    /// The sandbox is being terminated.
    Closing,
    /// The operation failed half-way, so the state of the mounts is unknown and the sandbox is being terminated.
    Broken {
        /// Reason for the user, as one sentence.
        message: String,
    },
    /// The request was refused, and nothing changed.
    Refused {
        /// Reason for programs.
        code: MountRefusal,
        /// Reason for the user, as one sentence.
        message: String,
    },
}

/// Result of checking that a mount was removed or narrowed. If another grant still shows the same file, the proof
/// does not cover the access that this other grant gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmountProof {
    /// The kernel released the mount: no descriptor, mapping, working directory or message in flight refers to it.
    /// Alternatively, the mount was made permanently read-only, and another grant still shows its content.
    Proved,
    /// The path is no longer visible, but a process still has one of its files open. Only restarting the server ends
    /// that access.
    Held,
}

/// Reason for refusing a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountRefusal {
    /// The line is not a valid request.
    BadRequest,
    /// The path is not absolute and normal.
    BadPath,
    /// The path belongs to the sandbox itself (`/proc`, `/dev`, `/sys`, the session directory, a program).
    Reserved,
    /// The path does not exist.
    Missing,
    /// A component of the path has become a symlink, so the path is no longer the one that was approved.
    Symlink,
    /// The path is not a regular file or directory, or it is a directory where a file is required.
    Kind,
    /// The folder cannot be searched for named pipes and sockets, which must be masked.
    Special,
    /// The user may not access the path.
    Denied,
    /// Removing the path was refused because it is granted read-write. It must be narrowed instead.
    Narrower,
    /// The path cannot be used as a mount point: the sandbox shows a different kind of file there, or a tree in which
    /// the path does not exist. The server must be restarted with the grant.
    NoMountPoint,
    /// The path is an autostart file, which stays read-only unless the user approved this exact path.
    Protected,
    /// The path is not granted.
    NotGranted,
    /// The kernel refused the operation; the message contains the error.
    Kernel,
}

/// Event that the supervisor reports without a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SandboxEvent {
    /// The initial mounts are complete and the server's program is running.
    Started,
    /// The server was never started, and the sandbox was removed.
    Failed {
        /// Reason for the user, as one sentence.
        reason: String,
    },
    /// Limits in force, and the mechanism that enforces each. Follows [`SandboxEvent::Started`].
    Limited {
        /// Enforcement of the memory limit.
        memory: Enforcement,
        /// Enforcement of the processor time limit.
        cpu: Enforcement,
        /// Enforcement of the process limit.
        processes: Enforcement,
    },
    /// A program outside the sandbox replaced a hidden or read-only path. The server could access the replacement for
    /// about a millisecond, until it was masked again.
    Uncovered {
        /// Path that was replaced.
        path: String,
        /// `true` if the path is hidden, so the server could read it; `false` if it is read-only, so the server could
        /// write to it.
        hidden: bool,
    },
    /// The server exited. Always the last event.
    Exited {
        /// Exit status, or 128 + the signal number.
        status: i32,
    },
}

/// Mechanism that enforces a limit, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// A control group, which limits all processes of the sandbox together.
    Cgroup,
    /// The user namespace, which limits all processes of the sandbox together.
    Sandbox,
    /// A resource limit, which applies to each process separately.
    Process,
    /// No limit was requested.
    Unlimited,
    /// A limit was requested, but this machine cannot enforce it.
    Unenforced,
}

impl Mount {
    /// Creates a mount of `path`, which may be a file or a directory.
    pub fn new(path: impl Into<String>, access: MountAccess) -> Self {
        Self { path: path.into(), access, file: false, closed: vec![], kept: vec![], named: false }
    }

    /// Sets the paths at or below the mount that stay read-only ([`Mount::closed`]).
    #[must_use]
    pub fn closing(self, closed: Vec<String>) -> Self {
        Self { closed, ..self }
    }

    /// Sets the paths below the mount that stay read-only and cannot be moved ([`Mount::kept`]).
    #[must_use]
    pub fn keeping(self, kept: Vec<String>) -> Self {
        Self { kept, ..self }
    }

    /// Requires that the path is a regular file.
    #[must_use]
    pub fn of_file(self) -> Self {
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
            &ControlReply { id: 8, answer: ControlAnswer::Removed { proof: UnmountProof::Held } },
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
