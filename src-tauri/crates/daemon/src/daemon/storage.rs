//! Monitors the free disk space. While the disk is full, new sessions and grants are refused.

use ironcurtain_services::{Health, HealthComponent};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);

/// Minimum free space in bytes. A disk with less free space counts as full.
const MIN_BYTES: u64 = 1 << 20;

/// Minimum number of free inodes. A disk with fewer free inodes counts as full.
const MIN_INODES: u64 = 16;

/// Free space on a file system.
#[derive(Debug, Clone, Copy)]
struct FreeSpace {
    bytes: u64,
    /// Number of free inodes, or `None` if the file system has no fixed number.
    inodes: Option<u64>,
}

/// Checks the disk periodically and reports a full disk to `health`.
pub(super) async fn monitor(folder: PathBuf, health: Health) {
    loop {
        health
            .set(HealthComponent::Storage, FreeSpace::read(&folder).and_then(|space| space.trouble(&folder)));
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

impl FreeSpace {
    /// Returns the free space, or `None` if it cannot be determined. In that case, the disk does not count as full.
    fn read(folder: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(folder).ok()?;
        let inodes = (found.f_files > 0).then_some(found.f_favail);
        Some(Self { bytes: found.f_bavail.saturating_mul(found.f_frsize), inodes })
    }

    fn trouble(self, folder: &Path) -> Option<String> {
        let reason = match self {
            Self { inodes: Some(inodes), .. } if inodes < MIN_INODES => "no inodes are left",
            Self { bytes, .. } if bytes < MIN_BYTES => "no space is left",
            Self { .. } => return None,
        };
        Some(format!(
            "New sessions and grants are refused, because {reason} at `{}`. Remove files that you do not need.",
            folder.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_problem_but_a_disk_without_an_inode_table_is_not() {
        let trouble = |bytes, inodes| FreeSpace { bytes, inodes }.trouble(Path::new("/state"));
        assert_eq!(trouble(1 << 30, Some(1000)), None);
        assert_eq!(trouble(1 << 30, None), None);
        let text = |reason| {
            format!(
                "New sessions and grants are refused, because {reason} at `/state`. Remove files that you do not need."
            )
        };
        assert_eq!(trouble(1 << 30, Some(0)), Some(text("no inodes are left")));
        assert_eq!(trouble(0, Some(1000)), Some(text("no space is left")));
    }
}
