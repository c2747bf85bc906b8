//! Decides which file systems are served: local disks and in-memory file systems.
//!
//! - Other file systems can block a thread indefinitely (network file systems) or expose kernel state. The mount table
//!   identifies them before any of their files is accessed.

use std::{
    ffi::OsString,
    fs,
    os::unix::ffi::OsStringExt,
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use crate::path_tree::PathTree;

/// Types of served file systems.
const SERVED_TYPES: [&str; 24] = [
    "bcachefs", "btrfs", "ecryptfs", "erofs", "exfat", "ext2", "ext3", "ext4", "f2fs", "hfsplus", "iso9660",
    "jfs", "msdos", "ntfs3", "overlay", "ramfs", "reiserfs", "rootfs", "squashfs", "tmpfs", "udf", "vfat",
    "xfs", "zfs",
];

/// Time after which the mount table is parsed again.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Mount table of this process, and the time when it was read.
#[derive(Debug, Default)]
pub(crate) struct FileSystems(Mutex<Option<(Instant, Mounts)>>);

/// Mount points. The value is `true` if the file system that is mounted there last is served, and `None` for a folder that
/// is only above a mount point.
type Mounts = PathTree<Option<bool>>;

impl FileSystems {
    /// Returns `true` if the file system at an absolute path is served. Returns `false` for every path if the mount
    /// table cannot be read.
    pub(crate) fn serves(&self, path: &Path) -> bool {
        let mut mounts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = mounts.take().filter(|(since, _)| since.elapsed() < REFRESH_INTERVAL);
        let cached = cached.unwrap_or_else(|| {
            (Instant::now(), parse(&fs::read("/proc/self/mountinfo").unwrap_or_default()))
        });
        let is_served = serves(&cached.1, path);
        *mounts = Some(cached);
        is_served
    }
}

/// Returns `true` if the mount that contains `path` is served. This is the mount at the path or at the nearest folder above
/// it.
fn serves(mounts: &Mounts, path: &Path) -> bool {
    mounts.along(path).filter_map(|is_served| *is_served).last() == Some(true)
}

/// Parses mountinfo lines (`proc_pid_mountinfo(5)`). The fifth field is the mount point, and the first field after `-`
/// is the type. A later mount covers an earlier one with the same mount point.
fn parse(table: &[u8]) -> Mounts {
    let mut mounts = Mounts::default();
    for line in table.split(|byte| *byte == b'\n') {
        let mut fields = line.split(|byte| *byte == b' ');
        let (path, kind) = (fields.nth(4), fields.skip_while(|field| *field != b"-").nth(1));
        if let (Some(path), Some(kind)) = (path, kind) {
            let path = OsString::from_vec(unescape(path));
            let is_served = SERVED_TYPES.iter().any(|served| served.as_bytes() == kind);
            *mounts.update(Path::new(&path), |_| {}) = Some(is_served);
        }
    }
    mounts
}

/// Decodes octal escapes such as `\040`.
fn unescape(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((first, after)) = rest.split_first() {
        let code = after.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|_| *first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { after.get(3..).unwrap_or_default() } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"22 1 254:1 / / rw shared:1 - ext4 /dev/vda1 rw\n\
        30 22 0:26 / /proc rw - proc proc rw\n\
        31 22 0:45 / /mnt/the\\040share rw master:3 - nfs4 host:/ rw\n\
        32 31 0:46 / /mnt/the\\040share/local rw - tmpfs none rw\n\
        33 22 0:47 / /over rw - tmpfs none rw\n\
        34 33 0:48 / /over rw - fuse.sshfs host: rw\n";

    #[test]
    fn deepest_and_last_mount_decides() {
        let mounts = parse(TABLE);
        let serves = |path: &str| serves(&mounts, Path::new(path));
        assert!(serves("/home/u") && serves("/mnt") && serves("/mnt/the share/local/x") && serves("/procs"));
        assert!(!serves("/mnt/the share") && !serves("/mnt/the share/x") && !serves("/proc/1"));
        assert!(!serves("/over/x"));
        assert!(!super::serves(&Mounts::default(), Path::new("/home/u")));
    }

    #[test]
    fn own_mount_table_is_read() {
        let systems = FileSystems::default();
        assert!(!systems.serves(Path::new("/proc/self")));
        let here = tempfile::tempdir_in(".").unwrap();
        assert!(systems.serves(&here.path().canonicalize().unwrap()));
    }
}
