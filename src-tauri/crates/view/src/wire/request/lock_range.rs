//! Locks on open files.

use super::{Malformed, body::Body};

/// Lock on a part of a file, or on an open file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockRange {
    pub(crate) handle: u64,
    pub(crate) owner: u64,
    pub(crate) start: u64,
    /// Last byte of the range.
    pub(crate) end: u64,
    pub(crate) kind: LockKind,
    /// True for flock(2), which locks the open file as a whole.
    pub(crate) is_whole: bool,
}

/// Kind of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind {
    Shared,
    Exclusive,
    None,
}

impl LockRange {
    pub(super) fn parse(body: &mut Body<'_>) -> Result<Self, Malformed> {
        const WHOLE: u32 = 1;
        let (handle, owner, start, end) = (body.u64()?, body.u64()?, body.u64()?, body.u64()?);
        let kind = match body.u32()? {
            0 => LockKind::Shared,
            1 => LockKind::Exclusive,
            2 => LockKind::None,
            _ => return Err(Malformed),
        };
        body.skip(4)?;
        let is_whole = body.u32()? & WHOLE != 0;
        if start > end {
            return Err(Malformed);
        }
        Ok(Self { handle, owner, start, end, kind, is_whole })
    }
}
