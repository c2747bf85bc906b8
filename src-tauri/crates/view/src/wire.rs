//! The FUSE protocol, version 7.31: `include/uapi/linux/fuse.h` of the kernel.

mod reply;
mod request;

pub(crate) use reply::{
    Entry, Folder, INIT_FLAGS, Negotiated, Ttl, attributes, entry, forget_name, init, invalidate, lock_found,
    message, opened, seek, statistics, written,
};
pub(crate) use request::{
    AttributeChange, Header, LockKind, LockRange, NewTime, Operation, Request, SeekFrom, TRUNCATE,
};

/// Node id of the root.
pub(crate) const ROOT: u64 = 1;

/// Maximum length of a name.
pub(crate) const LONGEST_NAME: usize = 255;

/// Maximum number of bytes in one write.
pub(crate) const MAX_WRITE: u32 = 1 << 20;

/// Size of a buffer for any request: the largest write, with its header.
pub(crate) const BUFFER: usize = MAX_WRITE as usize + 4096;
