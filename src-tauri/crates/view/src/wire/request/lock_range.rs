//! Arguments of lock requests.

use super::{Malformed, body::Body};

/// Lock on a byte range or on a whole open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockRange {
    pub(crate) handle: u64,
    pub(crate) owner: u64,
    pub(crate) start: u64,
    /// Last byte of the range, inclusive.
    pub(crate) end: u64,
    pub(crate) kind: LockKind,
    /// `true` for `flock(2)`, which locks the whole open file.
    pub(crate) is_whole: bool,
}

/// Type of lock.
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
