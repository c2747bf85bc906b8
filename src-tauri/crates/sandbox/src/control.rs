//! Control protocol: JSON lines over a unix stream between the trusted process and a supervisor.
//!
//! - The client chooses each request's id. Every request gets exactly one [`ControlReply`] with that id, in order.
//! - [`SandboxEvent`]s may arrive between replies: first [`SandboxEvent::Started`] or [`SandboxEvent::Failed`], last
//!   [`SandboxEvent::Exited`].
//! - Closing the stream is equivalent to `shutdown`: the supervisor kills the sandbox and exits.

use serde::{Deserialize, Serialize};

use crate::spec::{Mount, MountAccess};

/// Request line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Id echoed in the reply.
    pub id: u64,
    /// The requested operation.
    #[serde(flatten)]
    pub op: ControlOp,
}

/// Operations on a running sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum ControlOp {
    /// Mount a path. A read-only mount can be widened to read-write in place, but not the reverse.
    Add(Mount),
    /// Make a read-write mount read-only, and prove that nothing in the sandbox can write to it any more. The path stays
    /// visible throughout.
    Narrow {
        /// A path that was added.
        path: String,
        /// Require a regular file.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        file: bool,
    },
    /// Unmount a path, and prove that nothing refers to it.
    Remove {
        /// A path that was added.
        path: String,
    },
    /// List the granted paths that are mounted.
    List,
    /// Check that every mask is in place, and restore the others: a program outside has changed a hidden or read-only
    /// name.
    Check,
    /// Kill everything in the sandbox and exit.
    Shutdown,
}

/// Line from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FromSupervisor {
    /// Reply to a request.
    Reply(ControlReply),
    /// Unsolicited event.
    Event(SandboxEvent),
}

/// Reply to one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReply {
    /// Id of the request.
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
        /// Proof that nothing in the sandbox can write to it any more.
        proof: UnmountProof,
    },
    /// The path is no longer mounted.
    Removed {
        /// Proof that nothing in the sandbox refers to it.
        proof: UnmountProof,
    },
    /// Granted paths, in path order.
    Mounts {
        /// The mounts.
        mounts: Vec<Mount>,
    },
    /// Every mask is in place. A [`SandboxEvent::Uncovered`] precedes this for each mask that was restored.
    Checked,
    /// The sandbox is being terminated.
    Closing,
    /// The operation failed half-way and the state of the mounts is unknown; the sandbox is being terminated.
    Broken {
        /// One-sentence reason for the user.
        message: String,
    },
    /// The request was refused, and nothing changed.
    Refused {
        /// Machine-readable reason.
        code: MountRefusal,
        /// One-sentence reason for the user.
        message: String,
    },
}

/// Result of proving that a mount was removed or narrowed. If another grant still shows the same file, the proof covers only
/// the access which that grant does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmountProof {
    /// The kernel released the mount: no descriptor, mapping, working directory or message in flight refers to it. Or the
    /// mount is permanently read-only, and another grant still shows its content.
    Proved,
    /// The path is not visible anymore, but a process still has one of its files open. Only
    /// restarting the server stops that.
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
    /// The path is a part of the sandbox (`/proc`, `/dev`, `/sys`, the session directory, a program).
    Reserved,
    /// The path does not exist.
    Missing,
    /// A component of the path has become a symlink, so it is no longer the path that was judged.
    Symlink,
    /// The path is not a regular file or directory, or is a directory where a file is required.
    Kind,
    /// The path cannot be searched for named pipes and sockets, which are masked in every folder.
    Special,
    /// The user may not access the path.
    Denied,
    /// The path is granted read-write; narrow it instead.
    Narrower,
    /// The sandbox has a file of another kind at the path, or a tree without that name. Restart the server with the grant.
    NoMountPoint,
    /// The path is read-only because it is an autostart file and no answer of the user named it.
    Protected,
    /// The path was never added.
    NotGranted,
    /// The kernel refused; the message has the reason.
    Kernel,
}

/// Event in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SandboxEvent {
    /// The initial mounts are made and the server's program runs.
    Started,
    /// The server never ran, and the sandbox has been removed.
    Failed {
        /// One-sentence reason for the user.
        reason: String,
    },
    /// Limits in force, and their enforcement; follows [`SandboxEvent::Started`].
    Limited {
        /// Enforcement of the memory limit.
        memory: Enforcement,
        /// Enforcement of the processor time limit.
        cpu: Enforcement,
        /// Enforcement of the process limit.
        processes: Enforcement,
    },
    /// A program outside replaced a hidden or read-only path. The server could reach the replacement for about a millisecond,
    /// until it was masked again.
    Uncovered {
        /// The path.
        path: String,
        /// True if the path is hidden and could be read; false if it is read-only and could be written.
        hidden: bool,
    },
    /// The server exited.
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
    /// A resource limit of each process separately.
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

    /// Sets the paths at or below the mount that stay read-only.
    #[must_use]
    pub fn closing(self, closed: Vec<String>) -> Self {
        Self { closed, ..self }
    }

    /// Sets the paths below the mount that stay read-only and cannot be moved.
    #[must_use]
    pub fn keeping(self, kept: Vec<String>) -> Self {
        Self { kept, ..self }
    }

    /// Restricts the mount to a regular file.
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
