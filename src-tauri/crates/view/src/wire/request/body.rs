//! Reads a request's fields in order, checking every length.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use super::Malformed;

/// Unread bytes of a request.
pub(super) struct Body<'a>(pub(super) &'a [u8]);

impl<'a> Body<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.take(count).map(drop)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?.first_chunk().ok_or(Malformed)?;
        Ok(u32::from_ne_bytes(*bytes))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.first_chunk().ok_or(Malformed)?;
        Ok(u64::from_ne_bytes(*bytes))
    }

    /// Reads a NUL-terminated string.
    pub(super) fn c_string(&mut self) -> Result<&'a OsStr, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = self.take(end)?;
        self.skip(1)?;
        Ok(OsStr::from_bytes(text))
    }

    /// Reads a file name, which must not be empty, `.` or `..`, or contain `/`.
    pub(super) fn name(&mut self) -> Result<&'a OsStr, Malformed> {
        let name = self.c_string()?;
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.contains(&b'/') || bytes == b"." || bytes == b".." {
            return Err(Malformed);
        }
        Ok(name)
    }
}
