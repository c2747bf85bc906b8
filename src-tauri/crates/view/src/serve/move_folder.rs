//! Moves folders. A move changes the path of every file in the folder, so all new paths are checked first.
//!
//! - INVARIANT: no name is created or moved between the check and the move.

use std::{ffi::OsStr, fs::Metadata, os::unix::fs::MetadataExt, path::Path};

use rustix::{
    fs::{RenameFlags, renameat_with},
    io::Errno,
};

use super::{Call, Incomplete, Reply, absolute, remove_and_rename::MOVE};
use crate::{gate::AccessKind, server::Server};

/// Maximum number of entries below a moved folder. Programs copy larger folders file by file instead.
const MAX_COUNT: usize = 10_000;

impl Server {
    pub(super) fn rename_folder(
        &self,
        call: &Call<'_>,
        (parent, name, new_parent, new_name): (u64, &OsStr, u64, &OsStr),
        (path, new_path): (&Path, &Path),
        (stat, target): (&Metadata, Option<&Metadata>),
        flags: RenameFlags,
    ) -> Result<Reply, Incomplete> {
        if flags.contains(RenameFlags::EXCHANGE) {
            return Err(Errno::XDEV.into());
        }
        if target.is_some_and(|target| !target.is_dir()) {
            return Err(Errno::NOTDIR.into());
        }
        let _names = self.names.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut remaining = MAX_COUNT;
        let is_created_by_run = self.check_folder_move((path, new_path), stat.dev(), &mut remaining)?
            && self.created_files.contains(stat);
        if !is_created_by_run {
            for kind in MOVE {
                self.permit(call, path, kind, Some(stat))?;
            }
        }
        self.permit(call, new_path, AccessKind::Write, target)?;
        self.make_real(new_parent)?;
        let ((folder, old), (new_folder, new)) = (self.tree.parent(path)?, self.tree.parent(new_path)?);
        renameat_with(&folder, old, &new_folder, new, flags)?;
        self.nodes.move_name((parent, name), (new_parent, new_name));
        Ok(Reply::Empty)
    }

    /// Checks that every file in a folder may be moved to its new path. Returns `true` if the run created all of them.
    fn check_folder_move(
        &self,
        (path, new_path): (&Path, &Path),
        device: u64,
        remaining: &mut usize,
    ) -> Result<bool, Errno> {
        // `EXDEV` makes programs copy the files instead so that each new path is checked.
        if self.gate.starts_programs(&absolute(new_path)) {
            return Err(Errno::XDEV);
        }
        let mut is_created_by_run = true;
        for name in self.names_in(path)? {
            *remaining = remaining.checked_sub(1).ok_or(Errno::XDEV)?;
            let (inner, new_inner) = (path.join(&name), new_path.join(&name));
            // Hidden files must not be moved.
            let stat = self.tree.find(&inner).map_err(|_| Errno::ACCESS)?.stat;
            if stat.dev() != device {
                return Err(Errno::XDEV);
            }
            is_created_by_run &= self.created_files.contains(&stat);
            if stat.is_dir() {
                is_created_by_run &= self.check_folder_move((&inner, &new_inner), device, remaining)?;
            } else if self.would_run_programs(&stat, &new_inner) {
                return Err(Errno::XDEV);
            }
        }
        Ok(is_created_by_run)
    }

    /// Returns `true` if other programs would run the file at its new path or, if it is a symlink, run files through
    /// it.
    pub(super) fn would_run_programs(&self, stat: &Metadata, new_path: &Path) -> bool {
        let path = absolute(new_path);
        if stat.is_symlink() { self.gate.leads_to_programs(&path) } else { self.gate.starts_programs(&path) }
    }
}
