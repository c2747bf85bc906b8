//! Signals that are blocked and read from a queue instead (`signalfd(2)`).

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
};

use rustix::process::Signal;

/// Signals forwarded to a command. They include `SIGXFSZ`, because this process may exceed the file size limit while
/// it writes a file for the command.
const FORWARDED: [Signal; 7] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2, Signal::XFSZ];

/// Queue of blocked signals.
#[derive(Debug)]
pub struct Signals(File);

impl Signals {
    /// Blocks and queues the signals that are forwarded to a command.
    pub(crate) fn block_forwarded() -> io::Result<Self> {
        Self::block(&FORWARDED)
    }

    /// Blocks and queues `signals` in this thread and in the threads that it spawns afterwards.
    ///
    /// # Errors
    /// Returns an I/O error if the queue cannot be created.
    pub fn block(signals: &[Signal]) -> io::Result<Self> {
        mask(libc::SIG_BLOCK, &set(signals))?;
        let set = set(signals);
        // SAFETY: the set is initialised and outlives the call, and -1 requests a new descriptor.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just created, and no other code owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }.into()))
    }

    /// Discards the queued signals and unblocks `signals` in this thread.
    ///
    /// # Errors
    /// Returns an I/O error if reading fails.
    pub fn unblock(self, signals: &[Signal]) -> io::Result<()> {
        while self.next()?.is_some() {}
        mask(libc::SIG_UNBLOCK, &set(signals)).map(drop)
    }

    /// Returns the next queued signal, or `None` if the queue is empty.
    ///
    /// # Errors
    /// Returns an I/O error if reading fails.
    pub fn next(&self) -> io::Result<Option<Signal>> {
        let mut info = [0; size_of::<libc::signalfd_siginfo>()];
        match (&self.0).read(&mut info) {
            // The signal number is the first field.
            Ok(_) => {
                Ok(info.first_chunk().and_then(|number| Signal::from_named_raw(i32::from_ne_bytes(*number))))
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

/// Unblocks the forwarded signals. Must be called in a child before `exec`, which preserves the signal mask.
pub(crate) fn unblock() -> io::Result<()> {
    mask(libc::SIG_UNBLOCK, &set(&FORWARDED)).map(drop)
}

/// Sets this thread's signal mask to exactly these signals.
pub(crate) fn block_only(signals: &[Signal]) -> io::Result<()> {
    mask(libc::SIG_SETMASK, &set(signals)).map(drop)
}

/// Runs `send` with `signal` unblocked in this thread so that the signal takes its default action, then restores the
/// signal mask.
///
/// # Errors
/// Returns the error from `send`, or an I/O error.
pub fn with_unblocked(signal: Signal, send: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let before = mask(libc::SIG_UNBLOCK, &set(&[signal]))?;
    let sent = send();
    mask(libc::SIG_SETMASK, &before)?;
    sent
}

/// Changes this thread's signal mask and returns the previous one.
fn mask(how: libc::c_int, signals: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut before = set(&[]);
    // SAFETY: both sets are initialised and outlive the call.
    match unsafe { libc::pthread_sigmask(how, signals, &raw mut before) } {
        0 => Ok(before),
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
