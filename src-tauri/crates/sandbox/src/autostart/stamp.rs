//! One file at one time, by what the kernel says of it.
//!
//! - INVARIANT: an inode number alone says nothing, since it is given to another file when the first one is gone. It counts
//!   together with the time when the file was made, which no program can set.

use rustix::{
    fs::{AtFlags, FileType, Statx, StatxFlags, makedev, statx},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::raw::raw;

/// One file at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    pub(super) born: Option<(i64, u32)>,
    size: u64,
    pub(super) written: (i64, u32),
    pub(super) changed: (i64, u32),
    pub(super) is_dir: bool,
    pub(super) is_file: bool,
}

/// Which file it is, whatever its name and content.
pub(super) type Identity = (u64, u64, Option<(i64, u32)>);

impl Stamp {
    pub(super) fn of(dir: impl rustix::fd::AsFd, name: &str) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let about = statx(dir, &*raw(name), flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        Ok(Self::from(&about))
    }

    fn from(about: &Statx) -> Self {
        let knows_birth = StatxFlags::from_bits_retain(about.stx_mask).contains(StatxFlags::BTIME);
        let kind = FileType::from_raw_mode(about.stx_mode.into());
        Self {
            device: makedev(about.stx_dev_major, about.stx_dev_minor),
            inode: about.stx_ino,
            born: knows_birth.then_some((about.stx_btime.tv_sec, about.stx_btime.tv_nsec)),
            size: about.stx_size,
            written: (about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec),
            changed: (about.stx_ctime.tv_sec, about.stx_ctime.tv_nsec),
            is_dir: kind.is_dir(),
            is_file: kind.is_file(),
        }
    }

    pub(super) fn identity(&self) -> Identity {
        (self.device, self.inode, self.born)
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}
