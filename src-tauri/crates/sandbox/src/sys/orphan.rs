//! What happens to a sandbox whose launcher is killed while its supervisor is busy and does not look.
//!
//! - A signal handler kills the sandbox at once, and the supervisor goes on to search. Where a file system keeps it from
//!   running the handler, it ends a little later, and the sandbox with it.
//! - INVARIANT: the handler makes one system call, and changes nothing that the code it interrupts could notice.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
    sync::atomic::{AtomicI32, Ordering},
    time::Duration,
};

use rustix::{
    io::Errno,
    process::{Pid, Signal, getppid, set_parent_process_death_signal},
};

use super::process::{end_no_more, end_within, unbind};

/// What the kernel sends when the launcher ends. Nothing else of ours uses it.
const LAUNCHER_ENDED: Signal = Signal::IO;

/// The descriptor of the sandbox's first process.
static FIRST: AtomicI32 = AtomicI32::new(-1);

/// Has the handler kill the process that `first` is a descriptor of. It has to be open whenever this process is
/// [`guarded`](guard).
pub(crate) fn prepare(first: BorrowedFd<'_>) -> io::Result<()> {
    FIRST.store(first.as_raw_fd(), Ordering::Relaxed);
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: all of the action is written, zeroes being an empty mask, and all of the set; the handler may be called at any
    // time.
    unsafe {
        (*action.as_mut_ptr()).sa_sigaction = launcher_ended as *const () as libc::sighandler_t;
        (*action.as_mut_ptr()).sa_flags = libc::SA_RESTART;
        if libc::sigaction(LAUNCHER_ENDED.as_raw(), action.as_ptr(), ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), LAUNCHER_ENDED.as_raw());
        libc::sigaddset(set.as_mut_ptr(), libc::SIGALRM);
        match libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut()) {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// From now on the end of `parent` is the sandbox's, and this process ends when `bound` is over.
///
/// # Errors
/// It has ended already.
pub(crate) fn guard(parent: Pid, bound: Duration) -> Result<(), Errno> {
    end_within(bound);
    set_parent_process_death_signal(Some(LAUNCHER_ENDED))?;
    if getppid() == Some(parent) { Ok(()) } else { Err(Errno::SRCH) }
}

/// As it was before [`guard`].
pub(crate) fn release() -> Result<(), Errno> {
    unbind()?;
    end_no_more();
    Ok(())
}

extern "C" fn launcher_ended(_signal: libc::c_int) {
    // SAFETY: the error number is this thread's own, and is as it was when this returns. The call touches no memory, and is
    // given the descriptor of a process that is ours to kill, or none.
    unsafe {
        let error = *libc::__errno_location();
        let first = FIRST.load(Ordering::Relaxed);
        libc::syscall(libc::SYS_pidfd_send_signal, first, libc::SIGKILL, ptr::null::<libc::siginfo_t>(), 0);
        *libc::__errno_location() = error;
    }
}
