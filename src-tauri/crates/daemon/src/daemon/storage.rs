//! The room that is left for our files: without it no session begins, and nothing can be granted.

use crate::health::{Concern, Health};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time between two checks.
const EVERY: Duration = Duration::from_secs(30);

/// The number of bytes below which there is no room.
const FEW_BYTES: u64 = 1 << 20;

/// The number of inodes below which there is no room.
const FEW_INODES: u64 = 16;

/// The room of a file system.
#[derive(Debug, Clone, Copy)]
struct Room {
    bytes: u64,
    /// Nothing where the file system has no table of inodes.
    inodes: Option<u64>,
}

/// Keeps the trouble about a full disk up to date.
pub(super) async fn follow(folder: PathBuf, health: Health) {
    loop {
        health.set(Concern::Storage, Room::at(&folder).and_then(|room| room.trouble(&folder)));
        tokio::time::sleep(EVERY).await;
    }
}

impl Room {
    /// Nothing where it cannot be told: that is no shortage.
    fn at(folder: &Path) -> Option<Self> {
        let found = rustix::fs::statvfs(folder).ok()?;
        let inodes = (found.f_files > 0).then_some(found.f_favail);
        Some(Self { bytes: found.f_bavail.saturating_mul(found.f_frsize), inodes })
    }

    fn trouble(self, folder: &Path) -> Option<String> {
        let lacks = match self {
            Self { inodes: Some(inodes), .. } if inodes < FEW_INODES => "no inodes are left",
            Self { bytes, .. } if bytes < FEW_BYTES => "no space is left",
            Self { .. } => return None,
        };
        Some(format!(
            "New sessions and grants are refused, because {lacks} at `{}`. Remove files that you do not need.",
            folder.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_a_trouble_and_one_without_a_table_of_inodes_is_not_full() {
        let trouble = |bytes, inodes| Room { bytes, inodes }.trouble(Path::new("/state"));
        assert_eq!(trouble(1 << 30, Some(1000)), None);
        assert_eq!(trouble(1 << 30, None), None);
        let told = |lacks| {
            format!(
                "New sessions and grants are refused, because {lacks} at `/state`. Remove files that you do not need."
            )
        };
        assert_eq!(trouble(1 << 30, Some(0)), Some(told("no inodes are left")));
        assert_eq!(trouble(0, Some(1000)), Some(told("no space is left")));
    }
}
