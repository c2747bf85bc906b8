//! File identity and state as reported by the kernel, and the clock behind file timestamps.
//!
//! - INVARIANT: a file is identified by its inode number and creation time. Inode numbers are reused after deletion,
//!   but no program can set the creation time.

use std::{
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, FileType, Statx, StatxFlags, makedev, statx},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::name_text::to_os_str;

/// Maximum wait for the timestamp clock to advance. The clock ticks at least every 10 ms (`CONFIG_HZ=100`).
const MAX_TICK: Duration = Duration::from_millis(100);

/// Identity and state of a file at a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    pub(super) born: Option<(i64, u32)>,
    size: u64,
    pub(super) written: (i64, u32),
    pub(super) changed: (i64, u32),
    pub(super) is_dir: bool,
    pub(super) is_file: bool,
}

/// Identity of a file, independent of its name and content.
pub(super) type FileIdentity = (u64, u64, Option<(i64, u32)>);

impl FileStamp {
    pub(super) fn at(dir: impl rustix::fd::AsFd, name: &str) -> Result<Self, Errno> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
        let stat = statx(dir, &*to_os_str(name), flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)?;
        Ok(Self::from(&stat))
    }

    fn from(stat: &Statx) -> Self {
        let has_birth_time = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        let kind = FileType::from_raw_mode(stat.stx_mode.into());
        Self {
            device: makedev(stat.stx_dev_major, stat.stx_dev_minor),
            inode: stat.stx_ino,
            born: has_birth_time.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
            size: stat.stx_size,
            written: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            changed: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            is_dir: kind.is_dir(),
            is_file: kind.is_file(),
        }
    }

    pub(super) fn identity(&self) -> FileIdentity {
        (self.device, self.inode, self.born)
    }

    pub(super) fn is_same_file(&self, other: &Self) -> bool {
        self.identity() == other.identity()
    }
}

/// Waits until `clock` is past `earlier`, usually one tick, and returns the new time. Gives up after [`MAX_TICK`],
/// because the clock may have been set back.
pub(super) fn wait_past(earlier: (i64, u32), clock: impl Fn() -> (i64, u32)) -> (i64, u32) {
    let deadline = Instant::now() + MAX_TICK;
    loop {
        let now = clock();
        if now > earlier || Instant::now() >= deadline {
            return now;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn once_past_waits_a_tick_but_not_for_a_clock_set_back() {
        let ticks = Cell::new(2);
        let ticking = || (7, ticks.replace(ticks.get() + 1));
        assert_eq!(wait_past((7, 2), ticking), (7, 3));
        let began = Instant::now();
        assert_eq!(wait_past((7, 2), || (3, 0)), (3, 0));
        assert!(began.elapsed() < 20 * MAX_TICK, "waited too long for the clock");
    }
}
