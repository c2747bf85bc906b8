//! Making processes: what happens between fork and exec, forks that do not exec, and descriptors that came with exec.
//!
//! - INVARIANT: what [`launch`](crate::launch) runs between fork and exec makes system calls only; it neither allocates
//!   nor locks, since the launching process has other threads. The supervisor has one thread, and may do more.

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

/// Has the child killed when the thread that spawns it ends; it does not even start if that has happened already.
pub(crate) fn die_with_parent(command: &mut Command) {
    let parent = getpid();
    // SAFETY: the closure makes system calls only: it does not allocate and takes no lock.
    unsafe {
        command.pre_exec(move || Ok(bind_to_parent(parent)?));
    }
}

/// Asks for death with the parent, and fails if the parent is not (or no longer) `parent`.
pub(crate) fn bind_to_parent(parent: Pid) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH) }
}

/// Leaves `descriptors` open in the child, under the same numbers.
pub(crate) fn inherit(command: &mut Command, descriptors: &[BorrowedFd<'_>]) {
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    // SAFETY: the closure makes system calls only. The numbers are open descriptors of the process that forks: its
    // table was copied, and whoever calls `spawn` still holds them.
    unsafe {
        command.pre_exec(move || {
            for &number in &numbers {
                fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::empty())?;
            }
            Ok(())
        });
    }
}

/// Runs `prepare` in the child before exec. Only for a process with one thread.
pub(crate) fn prepare(
    command: &mut Command,
    prepare: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the supervisor, the only caller, has one thread, so no lock can be held by another at the fork.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Runs `work` in a forked child and returns the bytes it made. Only for a process with one thread.
pub(crate) fn in_fork(work: impl FnOnce() -> Vec<u8>) -> io::Result<Vec<u8>> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the supervisor, the only caller, has one thread, so the child is a whole process: no lock can be held by
    // a thread that is missing in it. It leaves by `_exit`, so no destructor or exit handler runs twice.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(read);
            let said = set_parent_process_death_signal(Some(Signal::KILL))
                .map_err(io::Error::from)
                .and_then(|()| File::from(write).write_all(&work()));
            // SAFETY: ends the calling process and touches no memory.
            unsafe { libc::_exit(i32::from(said.is_err())) }
        }
        child => {
            drop(write);
            let mut bytes = Vec::new();
            let heard = File::from(read).read_to_end(&mut bytes);
            waitpid(Pid::from_raw(child), WaitOptions::empty())?;
            heard.map(|_| bytes)
        }
    }
}

/// Runs `work` in a forked child; its error is the child's. Only for a process with one thread.
pub(crate) fn try_in_fork(work: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let said = in_fork(|| {
        let error = work().err().map(|error| (error.raw_os_error(), error.to_string()));
        serde_json::to_vec(&error).unwrap_or_default()
    })?;
    match serde_json::from_slice(&said)? {
        None => Ok(()),
        Some((Some(number), _)) => Err(io::Error::from_raw_os_error(number)),
        Some((None, text)) => Err(io::Error::other::<String>(text)),
    }
}

/// A child that is the first process of a pid namespace: with it everything in there ends.
#[derive(Debug)]
pub(crate) struct NamespaceInit {
    pid: Pid,
    /// Its exit status, once it was waited for: then the number may be another's.
    ended: Option<i32>,
    /// Through this it tells why it could not become the program.
    exec: File,
}

impl NamespaceInit {
    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Kills it, unless it was waited for.
    pub(crate) fn kill(&self) {
        if self.ended.is_none() {
            // The only failure is that it has ended already.
            let _ = kill_process(self.pid, Signal::KILL);
        }
    }

    /// The exit status, 128 + signal where a signal ended it. Waits for the end.
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

    /// The reason why it did not become the program, if it did not. Waits until that is known.
    pub(crate) fn exec_error(&self) -> Option<io::Error> {
        let mut said = [0; 4];
        (&self.exec).read_exact(&mut said).ok()?;
        Some(io::Error::from_raw_os_error(i32::from_le_bytes(said)))
    }
}

/// Has a child run `command` as the first process of a new pid namespace. This process's other children stay in its own, unlike
/// after `unshare`. Only for a process with one thread.
pub(crate) fn spawn_namespace_init(command: &mut Command) -> io::Result<NamespaceInit> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: without a stack, memory or settings to share it is `fork` with a flag more; as there, the supervisor, the only
    // caller, has one thread, so that the child is a whole process.
    let child = unsafe { libc::syscall(libc::SYS_clone, libc::CLONE_NEWPID | libc::SIGCHLD, 0, 0, 0, 0) };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        drop(read);
        let error = command.exec().raw_os_error().unwrap_or(libc::EINVAL);
        // Exec has closed the pipe if it worked.
        let _ = File::from(write).write_all(&error.to_le_bytes());
        // SAFETY: ends the calling process and touches no memory.
        unsafe { libc::_exit(1) }
    }
    let pid = i32::try_from(child).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidData)?;
    Ok(NamespaceInit { pid, ended: None, exec: read.into() })
}

/// A forked child that does not outlive this value.
#[derive(Debug)]
pub(crate) struct Forked(Pid);

impl Drop for Forked {
    fn drop(&mut self) {
        // It may have ended by itself; it is not reaped before this, so the number is still its own.
        let _ = kill_process(self.0, Signal::KILL);
        let _ = waitpid(Some(self.0), WaitOptions::empty());
    }
}

/// Runs `work` in a forked child, beside this process. Of the descriptors it has `kept` and the standard streams: what this
/// process holds open or locked ends with this process. Only for a process with one thread.
pub(crate) fn fork(kept: BorrowedFd<'_>, work: impl FnOnce()) -> io::Result<Forked> {
    // SAFETY: as in `in_fork`.
    match unsafe { libc::fork() } {
        0 => {
            let bound = set_parent_process_death_signal(Some(Signal::KILL));
            let alone = bound.and_then(|()| close_all_but(3, &[kept]));
            if alone.is_ok() {
                work();
            }
            // SAFETY: ends the calling process and touches no memory.
            unsafe { libc::_exit(i32::from(alone.is_err())) }
        }
        child => Pid::from_raw(child).filter(|_| child > 0).map(Forked).ok_or_else(io::Error::last_os_error),
    }
}

/// Has a child close `descriptors` for the last time, when this process has ended: those that the kernel takes long to close. Only
/// for a process with one thread, at its end.
pub(crate) fn close_beside(descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    // SAFETY: as in `in_fork`. The child does nothing but leave.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let closed = close_all_but(0, descriptors);
            // SAFETY: ends the calling process and touches no memory.
            unsafe { libc::_exit(i32::from(closed.is_err())) }
        }
        _ => Ok(()),
    }
}

/// Closes every descriptor from `first` on that is not `kept`, in a forked child that never drops what its parent owns.
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

/// Enters new namespaces.
pub(crate) fn unshare(namespaces: UnshareFlags) -> Result<(), Errno> {
    debug_assert!(!namespaces.contains(UnshareFlags::FILES));
    // SAFETY: no caller asks for a descriptor table of its own, the one flag that safe code could notice.
    unsafe { unshare_unsafe(namespaces) }
}

/// Enters a mount namespace of its own, which later mounts of the host do not come to.
pub(crate) fn leave_mount_namespace() -> Result<(), Errno> {
    unshare(UnshareFlags::NEWNS)?;
    mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)
}

/// Gives up the keys that came with the session, for this process and all it starts.
pub(crate) fn leave_keyring() -> io::Result<()> {
    const JOIN_SESSION_KEYRING: libc::c_int = 1;
    // SAFETY: without a name it makes a new keyring, and touches no memory.
    let made =
        unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<libc::c_char>()) };
    let error = io::Error::last_os_error();
    // A kernel without keyrings, or a container that is refused them, has no keys to give up.
    let has_none = matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
    if made >= 0 || has_none { Ok(()) } else { Err(error) }
}

/// Takes over a descriptor that came with exec, by the number written on the command line.
pub(crate) fn take_descriptor(number: &str) -> io::Result<OwnedFd> {
    let number: RawFd = number.parse().map_err(|_| io::ErrorKind::InvalidInput)?;
    if number <= 2 {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: borrowed for this one call, which fails if the number is not open. It must not be inherited further.
    unsafe { fcntl_setfd(BorrowedFd::borrow_raw(number), FdFlags::CLOEXEC)? };
    // SAFETY: it is open, and the program, whose command line names it once, is at its start: nobody owns it yet.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor from `first` on. Only for a program that has opened none yet, or none any more.
pub(crate) fn close_from(first: u32) -> Result<(), Errno> {
    close_range(first, u32::MAX, 0)
}

/// Marks every descriptor from `first` on to be closed by exec.
pub(crate) fn close_on_exec_from(first: u32) -> Result<(), Errno> {
    close_range(first, u32::MAX, libc::CLOSE_RANGE_CLOEXEC)
}

fn close_range(first: u32, last: u32, flags: libc::c_uint) -> Result<(), Errno> {
    // SAFETY: every caller either changes flags only, or is at a place where nobody owns the descriptors: before this program
    // has opened any, or in a copy of memory that nothing else runs in, which is left by `_exit`.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
    if done == 0 {
        Ok(())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
    }
}
