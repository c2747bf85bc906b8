//! Signals that a person, or what a person started, sends, or the kernel for them: held back here and passed on to the
//! command.

use std::{
    fs::File,
    io::{self, ErrorKind, Read},
    mem::MaybeUninit,
    os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd},
};

use rustix::process::Signal;

/// The signals that are passed on. The last is the kernel's word that a file grew beyond the limit, which ends who writes: that is the
/// command, where what it says is copied into a file for it.
const PASSED_ON: [Signal; 7] =
    [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::USR1, Signal::USR2, Signal::XFSZ];

/// The signals that came in since [`Signals::hold`], to be taken one by one.
#[derive(Debug)]
pub(crate) struct Signals(File);

impl Signals {
    /// Holds them back from now on. What is ignored already stays so.
    pub(crate) fn hold() -> io::Result<Self> {
        mask(libc::SIG_BLOCK)?;
        let set = set();
        // SAFETY: makes a new descriptor for a set that is whole.
        let descriptor =
            unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was made just now, and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(descriptor) }.into()))
    }

    /// The next that came in, if one has.
    pub(crate) fn next(&self) -> io::Result<Option<Signal>> {
        let mut told = [0; size_of::<libc::signalfd_siginfo>()];
        match (&self.0).read(&mut told) {
            // Its number is what comes first.
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

/// Holds them back no longer: for a child before exec, which would take the mask along.
pub(crate) fn let_go() -> io::Result<()> {
    mask(libc::SIG_UNBLOCK)
}

fn mask(how: libc::c_int) -> io::Result<()> {
    let set = set();
    // SAFETY: changes the mask of the calling thread by a set that is whole; nothing is read back.
    match unsafe { libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut()) } {
        0 => Ok(()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

fn set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call makes the set whole; the others add numbers that are signals.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in PASSED_ON {
            libc::sigaddset(set.as_mut_ptr(), signal.as_raw());
        }
        set.assume_init()
    }
}
