//! A plain child that does not outlive whoever started it: for servers that run without a sandbox, or in one that
//! another program makes.
//!
//! - INVARIANT: it is started by a thread that lives until it is let go, because the kernel's parent-death signal follows
//!   the thread. Killing the trusted process at any instant kills the child; on platforms without such a signal none starts.
//! - INVARIANT: it leads a process group of its own and is not reaped before the group is killed, so the number cannot
//!   have become another's.

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

/// A running child with the other ends of its standard streams.
#[derive(Debug)]
pub struct BoundChild {
    /// Write end of its standard input.
    pub stdin: OwnedFd,
    /// Read end of its standard output.
    pub stdout: OwnedFd,
    /// Read end of its standard error.
    pub stderr: OwnedFd,
    /// Its process id, for display.
    pub pid: u32,
    /// The guard that keeps it alive.
    pub hold: Hold,
}

/// The guard that keeps a [`BoundChild`] alive. Dropped, the child is killed with everything in its process group.
#[derive(Debug)]
pub struct Hold {
    leader: Option<Pid>,
    _until: mpsc::Sender<Infallible>,
}

impl Hold {
    /// The exit status of a child that has ended, 128 and the signal where one ended it; the child stays to be reaped.
    #[must_use]
    pub fn status(&self) -> Option<i32> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let status = waitid(WaitId::Pid(self.leader?), options).ok()??;
        status.exit_status().or(status.terminating_signal().map(|signal| 128 + signal))
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        // The only failure is that all of it has ended, which is what was wanted.
        let _ = self.leader.map(|leader| kill_process_group(leader, Signal::KILL));
    }
}

/// Starts `command` with pipes for its standard streams.
pub fn spawn_bound(mut command: Command) -> io::Result<BoundChild> {
    if !cfg!(target_os = "linux") {
        return Err(io::Error::new(io::ErrorKind::Unsupported, SandboxLaunchError::Unsupported));
    }
    command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(target_os = "linux")]
    crate::sys::process::die_with_parent(&mut command);
    let (started, start) = mpsc::channel();
    let (until, let_go) = mpsc::channel();
    thread::Builder::new().name("server".into()).stack_size(256 * 1024).spawn(move || {
        let mut child = match command.spawn().map(|mut child| (streams(&mut child), child)) {
            Ok((Some(streams), child)) => {
                // A starter that no longer listens has dropped the hold, so the child is let go at once.
                let _ = started.send(Ok((streams, child.id())));
                child
            }
            Ok((None, mut child)) => {
                let _ = child.kill().and_then(|()| child.wait());
                let _ = started.send(Err(io::Error::other("its standard streams are missing")));
                return;
            }
            Err(error) => {
                let _ = started.send(Err(error));
                return;
            }
        };
        // Nothing is ever sent: this ends when the hold is dropped, which has killed the child.
        let _: Result<Infallible, _> = let_go.recv();
        let _ = child.kill();
        let _ = child.wait();
    })?;
    let gone = |_| io::Error::other("the thread that starts it ended");
    let ([stdin, stdout, stderr], pid) = start.recv().map_err(gone)??;
    let leader = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(BoundChild { stdin, stdout, stderr, pid, hold: Hold { leader, _until: until } })
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

    fn script(script: &str) -> BoundChild {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        spawn_bound(command).unwrap()
    }

    /// Completes when the last process that holds the write end has ended.
    fn rest(stdout: OwnedFd) -> String {
        let mut said = String::new();
        File::from(stdout).read_to_string(&mut said).unwrap();
        said
    }

    #[test]
    fn its_streams_are_its_own() {
        let child = script("read line; echo got $line; echo bad >&2");
        File::from(child.stdin).write_all(b"this\n").unwrap();
        assert_eq!((rest(child.stdout), rest(child.stderr)), ("got this\n".into(), "bad\n".into()));
    }

    #[test]
    fn letting_go_kills_it_with_its_group() {
        let child = script("sleep 1000 & echo up; wait");
        let mut stdout = File::from(child.stdout);
        stdout.read_exact(&mut [0; 3]).unwrap();
        drop(child.hold);
        assert_eq!(rest(stdout.into()), "");
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error() {
        let error = spawn_bound(Command::new("/nonexistent/program")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
