//! Helpers shared by all techniques.

use std::{
    error::Error,
    ffi::CString,
    fs, io,
    os::fd::{FromRawFd, OwnedFd},
};

pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// Returns a system call's result, or the error from `errno`.
pub(crate) fn check(value: impl Into<i64>) -> io::Result<i64> {
    let value = value.into();
    if value < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Takes ownership of a descriptor that a system call has just created.
pub(crate) fn descriptor(value: impl Into<i64>) -> Result<OwnedFd, Box<dyn Error>> {
    let number = i32::try_from(check(value)?)?;
    // SAFETY: the caller's system call has just returned the descriptor, so it is open and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

pub(crate) fn c(text: &str) -> Result<CString, Box<dyn Error>> {
    Ok(CString::new(text)?)
}

/// Records on the host that the kernel granted a request.
pub(crate) fn claim(file: &str, what: &str) -> Outcome {
    Ok(fs::write(file, what)?)
}
