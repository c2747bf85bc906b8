//! Making processes: what happens between fork and exec, and forks that do not exec.
//!
//! - INVARIANT: what runs between fork and exec makes system calls only; it neither allocates nor locks, since the
//!   launching process has other threads.

use std::{
    os::{
        fd::{AsRawFd, BorrowedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
};

use rustix::{
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
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
