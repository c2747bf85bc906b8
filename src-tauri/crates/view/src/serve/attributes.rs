//! Changes attributes: size, permissions and times. Changing the owner is not supported.

use std::{fs::File, os::fd::AsRawFd};

use rustix::{
    fs::{
        AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, chmodat, ftruncate,
        utimensat,
    },
    io::Errno,
};

use super::{Call, Incomplete};
use crate::{
    gate::AccessKind,
    nodes::{FileId, NodeKind, now},
    server::Server,
    wire::{AttributeChange, NewTime},
};

impl Server {
    pub(super) fn set_attributes(
        &self,
        call: &Call<'_>,
        node: u64,
        change: AttributeChange,
    ) -> Result<Vec<u8>, Incomplete> {
        let [owner, group] = self.ids;
        if change.owner.is_some_and(|new| new != owner) || change.group.is_some_and(|new| new != group) {
            return Err(Errno::PERM.into());
        }
        if let Ok(NodeKind::Virtual(_)) = self.nodes.kind(node) {
            let [accessed, modified] = [change.accessed, change.modified].map(|time| match time {
                None => None,
                Some(NewTime::Now) => Some(now()),
                Some(NewTime::At { seconds, nanoseconds }) => Some((seconds, nanoseconds.into())),
            });
            self.nodes.set_virtual_attributes(node, change.mode, (accessed, modified));
            return Ok(self.attributes(node, None)?);
        }
        let open = change.handle.map(|handle| self.files.get(handle)).transpose()?;
        // For an open with `O_TRUNC`, the kernel sends the truncation without a handle.
        match open.filter(|open| open.is_writable()).or_else(|| self.files.writable_by_node(node)) {
            Some(open) => {
                apply(open.to_write(false)?, Some(open.to_write(false)?), change)?;
                self.record_stamp(&open, open.to_write(false)?);
            }
            None => {
                let path = self.nodes.path(node)?;
                let found = self.tree.find(&path)?;
                let file = FileId::new(&found.stat);
                if self.nodes.kind(node)? != NodeKind::Real(file) {
                    return Err(Errno::STALE.into());
                }
                // The run may change the mode and times of files that it created, but changing the size requires
                // permission.
                if change.size.is_some() || !self.created_files.contains(&found.stat) {
                    self.permit(call, &path, AccessKind::Write, Some(&found.stat))?;
                }
                let sized = change.size.map(|_| {
                    let opened = self.tree.open(&path, OFlags::WRONLY, Mode::empty())?;
                    let stat = crate::real_tree::metadata(&opened)?;
                    let is_same = FileId::new(&stat) == file && stat.is_file();
                    if is_same { Ok(opened) } else { Err(Errno::STALE) }
                });
                apply(&found.file, sized.transpose()?.as_ref(), change)?;
            }
        }
        if change.modified.is_some() {
            self.nodes.clear_entries_changed(node);
        }
        Ok(self.attributes(node, change.handle)?)
    }
}

/// Changes a file's attributes, and its size through the descriptor `writable`.
fn apply(file: &File, writable: Option<&File>, change: AttributeChange) -> Result<(), Errno> {
    if let Some(size) = change.size {
        ftruncate(writable.ok_or(Errno::BADF)?, size)?;
    }
    // Uses the descriptor, because the path may now refer to a different file.
    let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    if let Some(mode) = change.mode {
        const PERMISSIONS: u32 = 0o1777;
        chmodat(CWD, &by_descriptor, Mode::from_raw_mode(mode & PERMISSIONS), AtFlags::empty())?;
    }
    if change.accessed.is_some() || change.modified.is_some() {
        let times =
            Timestamps { last_access: time(change.accessed), last_modification: time(change.modified) };
        utimensat(CWD, &by_descriptor, &times, AtFlags::empty())?;
    }
    Ok(())
}

fn time(time: Option<NewTime>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(NewTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(NewTime::At { seconds, nanoseconds }) => {
            Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() }
        }
    }
}
