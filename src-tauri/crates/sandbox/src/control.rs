//! The control conversation: JSON lines over a unix stream between the trusted process and a supervisor.
//!
//! - Each request has an id of the asker's choosing and gets exactly one [`ControlReply`] with that id, in order.
//! - [`SandboxEvent`]s come in between: first [`SandboxEvent::Started`] or [`SandboxEvent::Failed`], at the end [`SandboxEvent::Exited`].
//! - Hanging up is `shutdown`: the supervisor kills the sandbox and ends.

use serde::{Deserialize, Serialize};

use crate::spec::{Mount, MountAccess};

/// A request line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlRequest {
    /// Echoed in the reply.
    pub id: u64,
    /// The change, or the question.
    #[serde(flatten)]
    pub op: ControlOp,
}

/// The requests to a running sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "kebab-case")]
pub enum ControlOp {
    /// Mount a path; read-only can be widened to read-write in place, never the reverse.
    Add(Mount),
    /// Show a path that is shown for writing for reading only, and prove that nothing can write there any more. It is not
    /// gone in between.
    Narrow {
        /// A path that was added.
        path: String,
        /// True when it is to be a file.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        file: bool,
    },
    /// Take a path away, and prove it.
    Remove {
        /// A path that was added.
        path: String,
    },
    /// The granted paths that are mounted now.
    List,
    /// Look whether every mask is still in place, and put back those that are not: a program outside has changed a name that
    /// is hidden or closed.
    Check,
    /// Kill everything in the sandbox and end.
    Shutdown,
}

/// A line from the supervisor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum FromSupervisor {
    /// The answer to a request.
    Reply(ControlReply),
    /// News.
    Event(SandboxEvent),
}

/// The answer to one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReply {
    /// The id of the request.
    pub id: u64,
    /// The outcome.
    #[serde(flatten)]
    pub answer: ControlAnswer,
}

/// The outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub enum ControlAnswer {
    /// The path is mounted with the access asked for.
    Added,
    /// The path is mounted read-only.
    Narrowed {
        /// The proof that nothing in the sandbox can write there any more.
        proof: UnmountProof,
    },
    /// The path is no longer mounted.
    Removed {
        /// The proof that nothing of it is left in the sandbox.
        proof: UnmountProof,
    },
    /// The granted paths, in path order.
    Mounts {
        /// The mounts.
        mounts: Vec<Mount>,
    },
    /// Every mask is in place; [`SandboxEvent::Uncovered`] came before this for each that was not.
    Checked,
    /// The sandbox is being ended.
    Closing,
    /// It could not be carried through and the mounts are not known any more: the sandbox is being ended.
    Broken {
        /// For people: one sentence.
        message: String,
    },
    /// Not done, and nothing changed.
    Refused {
        /// For programs.
        code: MountRefusal,
        /// For people: one sentence.
        message: String,
    },
}

/// The knowledge after a path was taken away, or narrowed. Where something else that is granted still shows the same file,
/// what was taken is only what that does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnmountProof {
    /// The kernel let the mount go: no descriptor, mapping, working directory or message in flight refers to it. Or it is
    /// read-only for good, and what can be read there is still shown.
    Proved,
    /// The path is gone by name, but something still holds a file of it, or writes to one: only a restart of the server ends
    /// that.
    Held,
}

/// The reasons why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MountRefusal {
    /// The line is not a request.
    BadRequest,
    /// The path is not absolute and normal.
    BadPath,
    /// The path belongs to the sandbox itself (`/proc`, `/dev`, `/sys`, the session directory, a program).
    Reserved,
    /// There is nothing at the path.
    Missing,
    /// A part of the path is a symlink now: it is not what was judged.
    Symlink,
    /// Neither a regular file nor a directory, or a directory where a file was given.
    Kind,
    /// It cannot be searched for named pipes and sockets, which are masked in every folder.
    Special,
    /// The person's own rights do not reach it.
    Denied,
    /// The path is granted read-write; narrow it.
    Narrower,
    /// Inside the sandbox something of another kind, or a tree without that name, is in the way: restart with the grant.
    NoMountPoint,
    /// The path is closed for writing, since it would run later, and no answer of the person named it.
    Protected,
    /// The path was never added.
    NotGranted,
    /// The kernel refused for another reason, named in the message.
    Kernel,
}

/// News of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum SandboxEvent {
    /// The initial mounts are made and the server's program runs.
    Started,
    /// The server never ran; nothing is left.
    Failed {
        /// One sentence for people.
        reason: String,
    },
    /// The limits in force, and what enforces each; follows [`SandboxEvent::Started`].
    Limited {
        /// Of memory.
        memory: Enforcement,
        /// Of processor time.
        cpu: Enforcement,
        /// Of processes.
        processes: Enforcement,
    },
    /// A program outside put something else in the place of a path that is hidden or closed. For about a millisecond, until it
    /// was masked again, the server could reach what is there now.
    Uncovered {
        /// The path.
        path: String,
        /// True when it is hidden, and could be read; else it is closed, and could be written.
        hidden: bool,
    },
    /// The server ended.
    Exited {
        /// Its exit status, 128 + signal where a signal ended it.
        status: i32,
    },
}

/// By what a limit is in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Enforcement {
    /// By a control group, for all processes of the sandbox together.
    Cgroup,
    /// By the user namespace, for all processes of the sandbox together.
    Sandbox,
    /// By a resource limit of each process for itself.
    Process,
    /// None was asked for.
    Unlimited,
    /// One was asked for that this machine does not let us enforce.
    Unenforced,
}

impl Mount {
    /// A mount of `path`, whatever stands there.
    pub fn new(path: impl Into<String>, access: MountAccess) -> Self {
        Self { path: path.into(), access, file: false, closed: vec![], kept: vec![], named: false }
    }

    /// The same with `closed`, paths at or below it that are not to be written.
    #[must_use]
    pub fn closing(self, closed: Vec<String>) -> Self {
        Self { closed, ..self }
    }

    /// The same with `kept`, paths below it that are not to be written, and that stay where they are.
    #[must_use]
    pub fn keeping(self, kept: Vec<String>) -> Self {
        Self { kept, ..self }
    }

    /// The same, of a file alone.
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
