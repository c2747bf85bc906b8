//! Unsandboxed child processes that die with their parent.
//!
//! - INVARIANT: the thread that spawns a child outlives the child, because the kernel sends the parent-death signal
//!   when that thread exits. The child therefore dies whenever the trusted process is killed. Platforms without a
//!   parent-death signal are unsupported.
//! - INVARIANT: a child leads its own process group and is reaped only after the group is killed, so the group id
//!   cannot have been reused.

use std::{
    convert::Infallible,
    io,
    os::{fd::OwnedFd, unix::process::CommandExt},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
};

use crate::error::SandboxLaunchError;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// Running child and the parent's ends of its standard streams.
#[derive(Debug)]
pub struct LinkedChild {
    /// Write end of the child's standard input.
    pub stdin: OwnedFd,
    /// Read end of the child's standard output.
    pub stdout: OwnedFd,
    /// Read end of the child's standard error.
    pub stderr: OwnedFd,
    /// Process id of the child, for display.
    pub pid: u32,
    /// Guard that kills the child when dropped.
    pub guard: KillOnDrop,
}

/// Kill-on-drop guard of a [`LinkedChild`]. Kills the child's whole process group.
#[derive(Debug)]
pub struct KillOnDrop {
    leader: Option<Pid>,
    _until: mpsc::Sender<Infallible>,
}

impl KillOnDrop {
    /// Returns the child's exit status (128 + the signal number), or `None` while it is running. Does not reap the
    /// child.
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.leader?), options).ok()??;
        status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal))
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        // Ignores the error: the whole group has already exited.
        let _ = self.leader.map(|leader| kill_process_group(leader, Signal::KILL));
    }
}

/// Spawns `command` with pipes for its standard streams.
pub fn spawn_linked(mut command: Command) -> io::Result<LinkedChild> {
    if !cfg!(target_os = "linux") {
        return Err(io::Error::new(io::ErrorKind::Unsupported, SandboxLaunchError::Unsupported));
    }
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(target_os = "linux")]
    crate::sys::process::die_with_parent(&mut command);
    let (started, start) = mpsc::channel();
    let (release, released) = mpsc::channel();
    thread::Builder::new().name("server".into()).stack_size(256 * 1024).spawn(move || {
        let mut child = match command.spawn().map(|mut child| (streams(&mut child), child)) {
            Ok((Some(streams), child)) => {
                // If the receiver was dropped, the hold was dropped too, and the child is killed below.
                let _ = started.send(Ok((streams, child.id())));
                child
            }
            Ok((None, mut child)) => {
                let _ = child.kill().and_then(|()| child.wait());
                let _ = started.send(Err(io::Error::other("the child has no standard streams")));
                return;
            }
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        // Nothing is ever sent: `recv` returns when the hold is dropped, after the child was killed.
        let _: Result<Infallible, _> = released.recv();
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let thread_exited = |_| io::Error::other("the spawning thread has exited");
    let ([stdin, stdout, stderr], pid) = start.recv().map_err(thread_exited)??;
    let leader = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(LinkedChild { stdin, stdout, stderr, pid, guard: KillOnDrop { leader, _until: release } })
}

fn streams(child: &mut Child) -> Option<[OwnedFd; 3]> {
    let stdin = child.stdin.take()?.into();
    Some([stdin, child.stdout.take()?.into(), child.stderr.take()?.into()])
}

#[cfg(test)]
mod tests {
    use std::{
        fs::File,
        io::{Read, Write},
    };

    use super::*;

    fn script(script: &str) -> LinkedChild {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        spawn_linked(command).unwrap()
    }

    /// Reads until EOF. By then, the last process that holds the write end has exited.
    fn rest(stdout: OwnedFd) -> String {
        let mut output = String::new();
        File::from(stdout).read_to_string(&mut output).unwrap();
        output
    }

    #[test]
    fn child_has_its_own_streams() {
        let child = script("read line; echo got $line; echo bad >&2");
        File::from(child.stdin).write_all(b"this\n").unwrap();
        assert_eq!((rest(child.stdout), rest(child.stderr)), ("got this\n".into(), "bad\n".into()));
    }

    #[test]
    fn dropping_hold_kills_process_group() {
        let child = script("sleep 1000 & echo up; wait");
        let mut stdout = File::from(child.stdout);
        stdout.read_exact(&mut [0; 3]).unwrap();
        drop(child.guard);
        assert_eq!(rest(stdout.into()), "");
    }

    #[test]
    fn missing_program_is_an_error() {
        let error = spawn_linked(Command::new("/nonexistent/program")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
