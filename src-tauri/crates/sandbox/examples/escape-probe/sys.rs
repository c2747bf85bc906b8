//! Small things every technique needs.

use std::{
    error::Error,
    ffi::CString,
    fs, io,
    os::fd::{FromRawFd, OwnedFd},
};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The answer of a system call, or the error it set.
pub(crate) fn check(value: impl Into<i64>) -> io::Result<i64> {
    let value = value.into();
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// The descriptor that a system call has just made.
pub(crate) fn descriptor(value: impl Into<i64>) -> Result<OwnedFd, Box<dyn Error>> {
    let number = i32::try_from(check(value)?)?;
    // SAFETY: the call that the caller has just made returned it, so it is open and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

pub(crate) fn c(text: &str) -> Result<CString, Box<dyn Error>> {
    Ok(CString::new(text)?)
}

/// Leaves word on the host that the kernel has given what was asked for.
pub(crate) fn claim(file: &str, what: &str) -> Outcome {
    Ok(fs::write(file, what)?)
}
