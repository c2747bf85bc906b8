//! Rechecks files that are judged by their content.

use std::{hash::BuildHasher, os::fd::OwnedFd, time::Instant};

use rustix::fs::{Mode, OFlags, openat};

use super::Watcher;
use crate::autostart::{
    baseline::read_bounded,
    git,
    name_text::to_os_str,
    paths::{file_name, parent},
    reopened_folders::open_folder,
};

/// Maximum number of files whose content is rechecked periodically.
const MAX_CONTENTS: usize = 200;

impl Watcher {
    /// Starts rechecking a file that is judged by its content, because a program may still be writing to it.
    pub(super) fn watch_content(&mut self, dir: &OwnedFd, path: &str) {
        if self.contents.len() < MAX_CONTENTS {
            self.contents.insert(path.to_owned(), self.digest(dir, path));
        }
        if let Ok(file) = openat(
            dir,
            &*to_os_str(file_name(path)),
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) && let Err(error) = self.queue.watch_content(path, &file)
        {
            self.report_once(path, "watch", error.to_string());
        }
    }

    /// Rechecks files that are judged by their content, because writes through `mmap` cause no events.
    pub(super) fn recheck_contents(&mut self) {
        self.last_recheck = Instant::now();
        for path in self.contents.keys().cloned().collect::<Vec<_>>() {
            let Ok(dir) = open_folder(parent(&path)) else {
                self.contents.remove(&path);
                continue;
            };
            let now = self.digest(&dir, &path);
            if now.is_none() {
                self.contents.remove(&path);
            } else if self.contents.insert(path.clone(), now) != Some(now) {
                self.check_file(&dir, &path);
            }
        }
    }

    fn digest(&self, dir: &OwnedFd, path: &str) -> Option<u64> {
        Some(self.digests.hash_one(read_bounded(dir, file_name(path), git::MAX_LEN)?))
    }
}
