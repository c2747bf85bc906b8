//! Arguments of an attribute change.

use super::{Malformed, body::Body};

/// Attributes to change. `None` keeps the current value.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AttributeChange {
    pub(crate) handle: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) mode: Option<u32>,
    pub(crate) owner: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) accessed: Option<NewTime>,
    pub(crate) modified: Option<NewTime>,
}

/// New access or modification time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NewTime {
    Now,
    At { seconds: i64, nanoseconds: u32 },
}

impl AttributeChange {
    pub(super) fn parse(body: &mut Body<'_>) -> Result<Self, Malformed> {
        let valid = body.u32()?;
        body.skip(4)?;
        let has = |bit: u32| valid & (1 << bit) != 0;
        let (handle, size) = (body.u64()?, body.u64()?);
        body.skip(8)?;
        let (accessed, modified) = (body.u64()?, body.u64()?);
        body.skip(8)?;
        let (accessed_part, modified_part) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        let mode = body.u32()?;
        body.skip(4)?;
        let (owner, group) = (body.u32()?, body.u32()?);
        let time = |bit, now, seconds: u64, nanoseconds| match (has(bit), has(now)) {
            (false, _) => None,
            (true, true) => Some(NewTime::Now),
            (true, false) => Some(NewTime::At { seconds: seconds.cast_signed(), nanoseconds }),
        };
        Ok(Self {
            mode: has(0).then_some(mode),
            owner: has(1).then_some(owner),
            group: has(2).then_some(group),
            size: has(3).then_some(size),
            accessed: time(4, 7, accessed, accessed_part),
            modified: time(5, 8, modified, modified_part),
            handle: has(6).then_some(handle),
        })
    }
}
