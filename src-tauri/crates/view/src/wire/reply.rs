//! Encodes replies and notifications.

use std::{
    ffi::OsStr,
    fs::Metadata,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    time::Duration,
};

use rustix::{fs::StatVfs, io::Errno};

use super::MAX_WRITE;

/// FUSE features to enable if the kernel supports them: both kinds of locks, parallel lookups, asynchronous reads,
/// large writes, many pages per request, dropping cached pages of changed files, and looking up the entries of a folder
/// while listing it. `ATOMIC_O_TRUNC` is excluded, because a truncating open would hold the file's lock while it waits
/// for permission.
pub(crate) const INIT_FLAGS: u32 =
    1 | (1 << 1) | (1 << 5) | (1 << 10) | (1 << 12) | (1 << 13) | (1 << 18) | (1 << 22);

/// Major and minor protocol version of the view.
const VERSION: [u32; 2] = [7, 31];

/// Parameters agreed on by the view and the kernel.
pub(crate) struct Negotiated {
    pub(crate) max_readahead: u32,
    pub(crate) flags: u32,
}

/// Longest time for which the kernel caches an entry or attributes without asking again.
pub(crate) const CACHE_TIME: Duration = Duration::from_secs(1);

/// Time for which the kernel can cache an entry or attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ttl {
    None,
    /// [`CACHE_TIME`].
    Cached,
}

impl Ttl {
    fn seconds(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Cached => CACHE_TIME.as_secs(),
        }
    }
}

/// Attributes of a file or virtual entry, as reported to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    pub(crate) accessed: (i64, i64),
    pub(crate) modified: (i64, i64),
    pub(crate) changed: (i64, i64),
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) owner: u32,
    pub(crate) group: u32,
}

impl Entry {
    /// Returns the unmodified attributes of a real file.
    pub(crate) fn new(stat: &Metadata) -> Self {
        Self {
            inode: stat.ino(),
            size: stat.size(),
            blocks: stat.blocks(),
            accessed: (stat.atime(), stat.atime_nsec()),
            modified: (stat.mtime(), stat.mtime_nsec()),
            changed: (stat.ctime(), stat.ctime_nsec()),
            mode: stat.mode(),
            links: u32::try_from(stat.nlink()).unwrap_or(u32::MAX),
            owner: stat.uid(),
            group: stat.gid(),
        }
    }

    fn write(&self, to: &mut Vec<u8>) {
        let times = [self.accessed, self.modified, self.changed];
        for number in [self.inode, self.size, self.blocks] {
            to.extend(number.to_ne_bytes());
        }
        times.iter().for_each(|(seconds, _)| to.extend(seconds.to_ne_bytes()));
        times.iter().for_each(|(_, part)| to.extend(u32::try_from(*part).unwrap_or(0).to_ne_bytes()));
        const BLOCK: u32 = 4096;
        for number in [self.mode, self.links, self.owner, self.group, 0, BLOCK, 0] {
            to.extend(number.to_ne_bytes());
        }
    }
}

/// Encodes a reply header for `length` bytes of content.
pub(crate) fn reply_header(unique: u64, error: Option<Errno>, length: usize) -> Vec<u8> {
    header(unique, error.map_or(0, |error| -error.raw_os_error()), length)
}

fn header(unique: u64, code: i32, length: usize) -> Vec<u8> {
    const HEADER: usize = 16;
    let total_len = u32::try_from(HEADER + length).unwrap_or(u32::MAX);
    [&total_len.to_ne_bytes()[..], &code.to_ne_bytes(), &unique.to_ne_bytes()].concat()
}

pub(crate) fn init(negotiated: &Negotiated) -> Vec<u8> {
    const MAX_BACKGROUND: u16 = 64;
    const CONGESTED: u16 = 48;
    const MAX_PAGES: u16 = 256;
    const NANOSECOND: u32 = 1;
    let mut reply = numbers(&[VERSION[0], VERSION[1], negotiated.max_readahead, negotiated.flags]);
    reply.extend(MAX_BACKGROUND.to_ne_bytes());
    reply.extend(CONGESTED.to_ne_bytes());
    reply.extend(numbers(&[MAX_WRITE, NANOSECOND]));
    reply.extend(MAX_PAGES.to_ne_bytes());
    reply.resize(64, 0);
    reply
}

/// Encodes a reply to a lookup.
pub(crate) fn entry(node: u64, entry: &Entry, ttl: Ttl) -> Vec<u8> {
    let mut reply = Vec::with_capacity(ENTRY_LEN);
    for number in [node, 0, ttl.seconds(), ttl.seconds(), 0] {
        reply.extend(number.to_ne_bytes());
    }
    entry.write(&mut reply);
    reply
}

pub(crate) fn attributes(entry: &Entry, ttl: Ttl) -> Vec<u8> {
    let mut reply = Vec::with_capacity(104);
    for number in [ttl.seconds(), 0] {
        reply.extend(number.to_ne_bytes());
    }
    entry.write(&mut reply);
    reply
}

/// Flags in the reply to an open.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OpenedFlags {
    /// `true` if the kernel's cached pages of the file are still valid.
    pub(crate) keeps_pages: bool,
    /// `true` if the kernel need not report each closed descriptor of the file.
    pub(crate) skips_flush: bool,
}

/// Encodes a reply to an open.
pub(crate) fn opened(handle: u64, flags: OpenedFlags) -> Vec<u8> {
    const KEEP_CACHE: u32 = 1 << 1;
    // Version 7.35. Older kernels ignore it.
    const NOFLUSH: u32 = 1 << 5;
    let bit = |is_set, bit| if is_set { bit } else { 0 };
    let mut reply = handle.to_ne_bytes().to_vec();
    reply.extend(numbers(&[bit(flags.keeps_pages, KEEP_CACHE) | bit(flags.skips_flush, NOFLUSH), 0]));
    reply
}

pub(crate) fn written(count: usize) -> Vec<u8> {
    numbers(&[u32::try_from(count).unwrap_or(u32::MAX), 0])
}

pub(crate) fn seek(offset: u64) -> Vec<u8> {
    offset.to_ne_bytes().to_vec()
}

/// Encodes a reply to a query for a conflicting lock: its first and last byte and its `l_type`.
pub(crate) fn lock_found((start, end): (u64, u64), kind: u32) -> Vec<u8> {
    let mut reply = [start.to_ne_bytes(), end.to_ne_bytes()].concat();
    reply.extend(numbers(&[kind, 0]));
    reply
}

pub(crate) fn statistics(found: &StatVfs) -> Vec<u8> {
    let mut reply = Vec::with_capacity(80);
    for number in [found.f_blocks, found.f_bfree, found.f_bavail, found.f_files, found.f_ffree] {
        reply.extend(number.to_ne_bytes());
    }
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    reply.extend(numbers(&[small(found.f_bsize), small(found.f_namemax), small(found.f_frsize)]));
    reply.resize(80, 0);
    reply
}

/// Encodes a notification that invalidates a node's attributes and, unless `attributes_only` is `true`, its pages.
pub(crate) fn invalidate(node: u64, attributes_only: bool) -> Vec<u8> {
    const INVALIDATE_INODE: i32 = 2;
    let offset: i64 = if attributes_only { -1 } else { 0 };
    let mut notification = header(0, INVALIDATE_INODE, 24);
    notification.extend(node.to_ne_bytes());
    notification.extend(offset.to_ne_bytes());
    notification.extend(0_i64.to_ne_bytes());
    notification
}

/// Encodes a notification that removes a name from the kernel's cache.
pub(crate) fn invalidate_name(parent: u64, name: &OsStr) -> Vec<u8> {
    const INVALIDATE_ENTRY: i32 = 3;
    let length = u32::try_from(name.len()).unwrap_or(0);
    let mut notification = header(0, INVALIDATE_ENTRY, 16 + name.len() + 1);
    notification.extend(parent.to_ne_bytes());
    notification.extend(numbers(&[length, 0]));
    notification.extend(name.as_bytes());
    notification.push(0);
    notification
}

/// Length of the reply to a lookup.
const ENTRY_LEN: usize = 128;

/// Encoded directory entries, up to the size that the kernel requested.
pub(crate) struct FolderReply {
    bytes: Vec<u8>,
    max_len: usize,
    with_nodes: bool,
}

impl FolderReply {
    pub(crate) fn new(max_len: u32, with_nodes: bool) -> Self {
        let max_len = usize::try_from(max_len.min(MAX_WRITE)).unwrap_or(0);
        Self { bytes: Vec::new(), max_len, with_nodes }
    }

    /// Adds an entry. Returns `false` if the reply is full. `next` is the offset of the following entry. If the reply
    /// contains nodes, `looked_up` returns the reply to a lookup of the entry, or `None` for an entry without a node.
    pub(crate) fn add(
        &mut self,
        name: &OsStr,
        inode: u64,
        kind: u8,
        next: u64,
        looked_up: impl FnOnce() -> Option<Vec<u8>>,
    ) -> bool {
        const FIELDS: usize = 24;
        let name = name.as_bytes();
        let entry_len = if self.with_nodes { ENTRY_LEN } else { 0 };
        let total_len = (entry_len + FIELDS + name.len()).next_multiple_of(8);
        let Ok(length) = u32::try_from(name.len()) else { return false };
        let end = self.bytes.len() + total_len;
        if end > self.max_len {
            return false;
        }
        if self.with_nodes {
            self.bytes.extend(looked_up().unwrap_or_else(|| vec![0; ENTRY_LEN]));
        }
        self.bytes.extend(inode.to_ne_bytes());
        self.bytes.extend(next.to_ne_bytes());
        self.bytes.extend(numbers(&[length, kind.into()]));
        self.bytes.extend(name);
        self.bytes.resize(end, 0);
        true
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry {
        inode: 5,
        size: 6,
        blocks: 1,
        accessed: (1, 2),
        modified: (3, 4),
        changed: (5, 6),
        mode: 0o100_644,
        links: 1,
        owner: 1000,
        group: 1000,
    };

    #[test]
    fn replies_have_the_size_of_the_kernels_structures() {
        assert_eq!(entry(9, &ENTRY, Ttl::Cached).len(), 128);
        assert_eq!(attributes(&ENTRY, Ttl::None).len(), 104);
        assert_eq!(init(&Negotiated { max_readahead: 0, flags: 0 }).len(), 64);
        assert_eq!(opened(1, OpenedFlags::default()).len(), 16);
        assert_eq!(written(3).len(), 8);
        assert_eq!(invalidate(3, true).len(), 40);
        assert_eq!(lock_found((0, 1), 2).len(), 24);
        assert_eq!(invalidate_name(1, OsStr::new("abc")).len(), 36);
        assert_eq!(reply_header(1, Some(Errno::ACCESS), 0)[4..8], (-13_i32).to_ne_bytes());
    }

    #[test]
    fn a_folder_is_cut_at_a_whole_entry() {
        let mut folder = FolderReply::new(64, false);
        let none = || unreachable!("no nodes were requested");
        assert!(folder.add(OsStr::new("a"), 1, 8, 1, none));
        assert!(folder.add(OsStr::new("12345678"), 2, 8, 2, none));
        assert!(!folder.add(OsStr::new("c"), 3, 8, 3, none));
        let bytes = folder.finish();
        assert_eq!(bytes.len(), 64);
        assert_eq!(&bytes[32 + 24..], b"12345678");
        // An entry that does not fit is not looked up.
        let mut folder = FolderReply::new(256, true);
        assert!(folder.add(OsStr::new("a"), 1, 8, 1, || Some(vec![7; ENTRY_LEN])));
        assert!(!folder.add(OsStr::new("b"), 2, 8, 2, || unreachable!("the reply is full")));
        let bytes = folder.finish();
        assert_eq!((bytes.len(), bytes[0], bytes[ENTRY_LEN]), (ENTRY_LEN + 32, 7, 1));
    }
}
