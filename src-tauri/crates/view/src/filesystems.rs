//! File systems whose files are served: those of local disks and memory.
//!
//! - Others may block a thread without end (network file systems), or show the kernel's own state.

use std::{
    collections::HashMap,
    fs::File,
    sync::{Mutex, PoisonError},
};

use rustix::fs::fstatfs;

/// Types that `statfs(2)` reports for ext, xfs, btrfs, tmpfs, ramfs, overlayfs, zfs, f2fs, bcachefs, jfs, reiserfs, vfat, exfat,
/// ntfs3, squashfs, iso9660, udf, erofs, ecryptfs and hfsplus.
const SERVED: [u32; 20] = [
    0xef53,
    0x5846_5342,
    0x9123_683e,
    0x0102_1994,
    0x8584_58f6,
    0x794c_7630,
    0x2fc1_2fc1,
    0xf2f5_2010,
    0xca45_1a4e,
    0x3153_464a,
    0x5265_4973,
    0x4d44,
    0x2011_bab0,
    0x7366_746e,
    0x7371_7368,
    0x9660,
    0x1501_3346,
    0xe0f5_e1e2,
    0xf15f,
    0x482b,
];

/// Decisions by device.
#[derive(Debug, Default)]
pub(crate) struct FileSystems(Mutex<HashMap<u64, bool>>);

impl FileSystems {
    /// Returns whether files on this device are served. `file` is one of them.
    pub(crate) fn serves(&self, device: u64, file: &File) -> bool {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&device) {
            return *known;
        }
        let Ok(found) = fstatfs(file) else { return false };
        let is_served = u32::try_from(found.f_type).is_ok_and(|kind| SERVED.contains(&kind));
        known.insert(device, is_served);
        is_served
    }
}
