//! FUSE protocol, version 7.31, as defined in the kernel's `include/uapi/linux/fuse.h`.

mod reply;
mod request;

pub(crate) use reply::{
    CACHE_TIME, Entry, FolderReply, INIT_FLAGS, Negotiated, OpenedFlags, Ttl, attributes, entry, init,
    invalidate, invalidate_name, lock_found, opened, reply_header, seek, statistics, written,
};
pub(crate) use request::{
    AttributeChange, Header, LockKind, LockRange, NewTime, Operation, Request, SeekFrom, TRUNCATE,
};

/// Node id of the file system's root.
pub(crate) const ROOT: u64 = 1;

/// Maximum length of a file name, in bytes.
pub(crate) const MAX_NAME_LEN: usize = 255;

/// Maximum amount of data in one write request, in bytes.
pub(crate) const MAX_WRITE: u32 = 1 << 20;

/// Size in bytes of a buffer for the largest request, a write with its header.
pub(crate) const BUFFER: usize = MAX_WRITE as usize + 4096;
