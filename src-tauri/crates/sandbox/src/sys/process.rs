//! Process creation: hooks between `fork` and `exec`, forks without `exec`, and inherited descriptors.
//!
//! - INVARIANT: hooks that [`launch`](crate::launch) runs between `fork` and `exec` only make system calls. They
//!   neither allocate nor lock, because the launching process has other threads. The single-threaded supervisor may do
//!   both.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    mount::{MountPropagationFlags, mount_change},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, Signal, WaitOptions, getpid, getppid, kill_process, set_parent_process_death_signal, waitpid,
    },
    thread::{UnshareFlags, unshare_unsafe},
};

/// Command-line argument in place of a descriptor number if no descriptor is passed.
pub(crate) const NO_DESCRIPTOR: &str = "-";

/// Makes the kernel kill the child when the thread that spawns it exits. If the thread has already exited, the child
/// does not start.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the closure makes system calls only: it does not allocate and takes no lock.
    unsafe {
        command.pre_exec(move || Ok(bind_to_parent(parent)?));
    }
}

/// Makes the kernel kill this process when its parent dies. Fails if `parent` is not its current parent.
pub(crate) fn bind_to_parent(parent: Pid) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH) }
}

/// Passes `descriptors` to the child under the same numbers.
pub(crate) fn inherit(command: &mut Command, descriptors: &[BorrowedFd<'_>]) {
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: the closure makes system calls only. The numbers are open descriptors of the process that forks: its
    // table was copied, and the caller of `spawn` still holds them.
    unsafe {
        command.pre_exec(move || {
            for &number in &numbers {
                fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::empty())?;
            }
            Ok(())
        });
    }
}

/// Runs `prepare` in the child before `exec`. The caller must be single-threaded.
pub(crate) fn prepare(
    command: &mut Command,
    prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the only caller, the supervisor, is single-threaded, so no other thread can hold a lock at the fork.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Runs `work` in a forked child and returns the resulting bytes. The caller must be single-threaded.
pub(crate) fn run_in_fork(work: impl FnOnce() -> Vec<u8>) -> io::Result<Vec<u8>> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    let parent = getpid();
    // SAFETY: the only caller, the supervisor, is single-threaded, so no lock in the child can belong to a missing
    // thread. The child exits with `_exit`, so no destructor or exit handler runs twice.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(read);
            let report = bind_to_parent(parent)
                .map_err(io::Error::from)
                .and_then(|()| File::from(write).write_all(&work()));
            // SAFETY: `_exit` terminates the process without accessing memory.
            unsafe { libc::_exit(i32::from(report.is_err())) }
        }
        child => {
            drop(write);
            let mut bytes = Vec::new();
            let received = File::from(read).read_to_end(&mut bytes);
            waitpid(Pid::from_raw(child), WaitOptions::empty())?;
            received.map(|_| bytes)
        }
    }
}

/// Runs `work` in a forked child and returns its result. The caller must be single-threaded.
pub(crate) fn try_run_in_fork(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let report = run_in_fork(|| {
        let error = work().err().map(|error| (error.raw_os_error(), error.to_string()));
        serde_json::to_vec(&error).unwrap_or_default()
    })?;
    match serde_json::from_slice(&report)? {
        None => Ok(()),
        Some((Some(number), _)) => Err(io::Error::from_raw_os_error(number)),
        Some((None, text)) => Err(io::Error::other::<String>(text)),
    }
}

/// Child that is the init of a pid namespace. Its death kills every process in the namespace.
#[derive(Debug)]
pub(crate) struct NamespaceInit {
    pid: Pid,
    /// Exit status, or `None` until the child is reaped. Its process id can be reused afterwards.
    ended: Option<i32>,
    /// Pipe on which the child reports an `exec` error.
    exec: File,
}

impl NamespaceInit {
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Kills the child, unless it was already reaped.
    pub(crate) fn kill(&self) {
        if self.ended.is_none() {
            // Ignores the error: the child has exited.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    /// Waits until the child exits. Returns the exit status, or 128 plus the signal number.
    pub(crate) fn wait(&mut self) -> io::Result<i32> {
        if let Some(status) = self.ended {
            return Ok(status);
        }
        let status = loop {
            match waitpid(Some(self.pid), WaitOptions::empty()) {
                Err(Errno::INTR) | Ok(None) => {}
                Err(error) => return Err(error.into()),
                Ok(Some((_, status))) => break status,
            }
        };
        let code = status.exit_status().or_else(|| Some(128 + status.terminating_signal()?));
        Ok(*self.ended.insert(code.unwrap_or(128)))
    }

    /// Waits for the result of `exec`. Returns the error if it failed.
    pub(crate) fn exec_error(&self) -> Option<io::Error> {
        let mut report = [0; 4];
        (&self.exec).read_exact(&mut report).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_le_bytes(report)))
    }
}

/// Runs `command` as the init of a new pid namespace. Unlike `unshare`, this does not affect later children. The
/// caller must be single-threaded.
pub(crate) fn spawn_namespace_init(command: &mut Command) -> io::Result<NamespaceInit> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: without a shared stack, memory or settings, this is `fork` with one more flag. The only caller, the
    // supervisor, is single-threaded, so the child has a consistent copy of its memory.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWPID | libc::SIGCHLD, 0, 0, 0, 0) };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        drop(read);
        let error = command.exec().raw_os_error().unwrap_or(libc::EINVAL);
        // A successful `exec` has closed the pipe.
        let _ = File::from(write).write_all(&error.to_le_bytes());
        // SAFETY: `_exit` terminates the process without accessing memory.
        unsafe { libc::_exit(1) }
    }
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    Ok(NamespaceInit { pid, ended: None, exec: read.into() })
}

/// Forked child, killed on drop.
#[derive(Debug)]
pub(crate) struct Forked(Pid);

impl Drop for Forked {
    fn drop(&mut self) {
        // Ignores the error: the child may have exited. It is reaped below, so its process id cannot have been reused
        // yet.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

/// Runs `work` in a forked child. The child keeps only the standard streams and the descriptors in `kept`, so this
/// process's files and locks are released when it closes them. The caller must be single-threaded.
pub(crate) fn fork(kept: &[BorrowedFd<'_>], work: impl FnOnce()) -> io::Result<Forked> {
    let parent = getpid();
    // SAFETY: as in `run_in_fork`.
    match unsafe { libc::fork() } {
        0 => {
            let ready = bind_to_parent(parent).and_then(|()| close_all_but(3, kept));
            if ready.is_ok() {
                work();
            }
            // SAFETY: `_exit` terminates the process without accessing memory.
            unsafe { libc::_exit(i32::from(ready.is_err())) }
        }
        child => Pid::from_raw(child).filter(|_| child > 0).map(Forked).ok_or_else(io::Error::last_os_error),
    }
}

/// Forks a child that closes `descriptors` last so that this process does not wait while the kernel releases them.
/// The caller must be single-threaded and about to exit.
pub(crate) fn close_in_child(descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    // SAFETY: as in `run_in_fork`. The child only closes descriptors and exits.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let closed = close_all_but(0, descriptors);
            // SAFETY: `_exit` terminates the process without accessing memory.
            unsafe { libc::_exit(i32::from(closed.is_err())) }
        }
        _ => Ok(()),
    }
}

/// Closes all descriptors numbered `first` or higher, except those in `kept`. Called in a forked child, which never
/// drops its parent's values.
fn close_all_but(first: u32, kept: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut kept: Vec<u32> = kept.iter().map(|kept| kept.as_raw_fd().cast_unsigned()).collect();
    kept.sort_unstable();
    let mut first = first;
    for number in kept {
        if first < number {
            close_range(first, number - 1, 0)?;
        }
        first = number + 1;
    }
    close_range(first, u32::MAX, 0)
}

/// Moves this process into new namespaces.
pub(crate) fn unshare(namespaces: UnshareFlags) -> Result<(), Errno> {
    debug_assert!(!namespaces.contains(UnshareFlags::FILES));
    // SAFETY: only the flag for a separate descriptor table could break safe code, and no caller sets it.
    unsafe { unshare_unsafe(namespaces) }
}

/// Enters a private mount namespace, into which later mounts on the host do not propagate.
pub(crate) fn enter_private_mount_namespace() -> Result<(), Errno> {
    unshare(UnshareFlags::NEWNS)?;
    mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
}

/// Replaces the session keyring of this process and its descendants with an empty one.
pub(crate) fn join_new_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: with a null name, the call creates a new keyring and does not access memory.
    let made =
        unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    let error = io::Error::last_os_error();
    // There is nothing to replace if the kernel has no keyrings or a container denies access to them.
    let has_none = matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
    if made >= 0 || has_none { Ok(()) } else { Err(error) }
}

/// Takes ownership of an inherited descriptor whose number is a command-line argument.
pub(crate) fn take_descriptor(number: &str) -> io::Result<OwnedFd> {
    let number: RawFd = number.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the number is borrowed only for this call, which fails if no descriptor with this number is open.
    unsafe { fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::CLOEXEC)? };
    // SAFETY: the descriptor is open, and the command line names it once. The program has just started, so no other
    // code owns it yet.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Like [`take_descriptor`], but returns `None` for [`NO_DESCRIPTOR`].
pub(crate) fn take_optional(number: &str) -> io::Result<Option<OwnedFd>> {
    if number == NO_DESCRIPTOR { Ok(None) } else { take_descriptor(number).map(Some) }
}

/// Closes all descriptors numbered `first` or higher. The caller must not own any of them.
pub(crate) fn close_from(first: u32) -> Result<(), Errno> {
    close_range(first, u32::MAX, 0)
}

/// Sets close-on-exec on all descriptors numbered `first` or higher.
pub(crate) fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: every caller either changes flags only, or runs where no code owns the descriptors: before this program
    // has opened any, or in a forked copy that runs nothing else and exits with `_exit`.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}
