//! Signals from the user, a parent process or the kernel, which are blocked and read from a queue.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
};

use rustix::process::Signal;

/// Signals to forward to a command. The kernel sends `SIGXFSZ` to a process that exceeds the file size limit. This
/// process may write a file on the command's behalf, and then forwards the signal.
const PASSED_ON: [Signal; 7] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2, Signal::XFSZ];

/// Queue of the signals received since [`Signals::hold_these`].
#[derive(Debug)]
pub struct Signals(File);

impl Signals {
    /// Blocks and queues the signals to forward to a command.
    pub(crate) fn hold() -> io::Result<Self> {
        Self::hold_these(&PASSED_ON)
    }

    /// Blocks and queues these signals, in this thread and the threads that it spawns.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub fn hold_these(signals: &[Signal]) -> io::Result<Self> {
        mask(libc::SIG_BLOCK, signals)?;
        let set = set(signals);
        // SAFETY: creates a new descriptor from an initialised set.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was created just now, and no other code owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }.into()))
    }

    /// Returns the next received signal, or `None` if the queue is empty.
    ///
    /// # Errors
    /// Returns the error of the operating system.
    pub fn next(&self) -> io::Result<Option<Signal>> {
        let mut told = [0; size_of::<libc::signalfd_siginfo>()];
        match (&self.0).read(&mut told) {
            // The first field is the signal number.
            Ok(_) => {
                Ok(told.first_chunk().and_then(|number| Signal::from_named_raw(i32::from_ne_bytes(*number))))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Unblocks the signals to forward. Must be called in a child before `exec`, because the child would otherwise
/// inherit the mask.
pub(crate) fn unblock() -> io::Result<()> {
    mask(libc::SIG_UNBLOCK, &PASSED_ON)
}

/// Blocks exactly these signals in this thread.
pub(crate) fn block_only(signals: &[Signal]) -> io::Result<()> {
    mask(libc::SIG_SETMASK, signals)
}

/// Runs `send` while a blocked signal is unblocked in this thread, so that the signal takes its default action. Then
/// blocks it again.
///
/// # Errors
/// Returns an error of `send` or of the operating system.
pub fn unblocked(signal: Signal, send: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    mask(libc::SIG_UNBLOCK, &[signal])?;
    let sent = send();
    mask(libc::SIG_BLOCK, &[signal])?;
    sent
}

fn mask(how: libc::c_int, signals: &[Signal]) -> io::Result<()> {
    let set = set(signals);
    // SAFETY: changes the calling thread's mask to an initialised set; nothing is read back.
    match unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn set(signals: &[Signal]) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set; the others add valid signal numbers.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}
