//! Moves folders. A move changes the path of every file in the folder, so all new paths are checked first.
//!
//! - INVARIANT: no name is created or moved between the check and the move.

use std::{ffi::OsStr, fs::Metadata, os::unix::fs::MetadataExt, path::Path};

use rustix::{
    fs::{RenameFlags, renameat_with},
    io::Errno,
};

use super::{Call, Reply, Stop, absolute, change::MOVE};
use crate::{gate::AccessKind, server::Server};

/// Maximum number of entries below a moved folder. Programs copy larger folders file by file instead.
const MAX_COUNT: usize = 10_000;

impl Server {
    pub(super) fn rename_folder(
        &self,
        call: &Call<'_>,
        (parent, name, new_parent, new_name): (u64, &OsStr, u64, &OsStr),
        (path, new_path): (&Path, &Path),
        (facts, target): (&Metadata, Option<&Metadata>),
        flags: RenameFlags,
    ) -> Result<Reply, Stop> {
        if flags.contains(RenameFlags::EXCHANGE) {
            return Err(Errno::XDEV.into());
        }
        if target.is_some_and(|target| !target.is_dir()) {
            return Err(Errno::NOTDIR.into());
        }
        let _names = self.names.write().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut left = MAX_COUNT;
        let is_own = self.survey((path, new_path), facts.dev(), &mut left)? && self.made.has(facts);
        if !is_own {
            for kind in MOVE {
                self.permit(call, path, kind, Some(facts))?;
            }
        }
        self.permit(call, new_path, AccessKind::Write, target)?;
        self.make_real(new_parent)?;
        let ((folder, old), (new_folder, new)) = (self.tree.parent(path)?, self.tree.parent(new_path)?);
        renameat_with(&folder, old, &new_folder, new, flags)?;
        self.nodes.moved((parent, name), (new_parent, new_name));
        Ok(Reply::Empty)
    }

    /// Checks that every file in a folder may be moved to its new path. Returns `true` if the run created all of them.
    fn survey(&self, (path, new_path): (&Path, &Path), device: u64, left: &mut usize) -> Result<bool, Errno> {
        // `EXDEV` makes programs copy the files instead, so that each new path is checked.
        if self.gate.starts_programs(&absolute(new_path)) {
            return Err(Errno::XDEV);
        }
        let mut is_own = true;
        for name in self.names_in(path)? {
            *left = left.checked_sub(1).ok_or(Errno::XDEV)?;
            let (inner, new_inner) = (path.join(&name), new_path.join(&name));
            // Hidden files must not be moved.
            let facts = self.tree.find(&inner).map_err(|_| Errno::ACCESS)?.facts;
            if facts.dev() != device {
                return Err(Errno::XDEV);
            }
            is_own &= self.made.has(&facts);
            if facts.is_dir() {
                is_own &= self.survey((&inner, &new_inner), device, left)?;
            } else if self.leads_astray(&facts, &new_inner) {
                return Err(Errno::XDEV);
            }
        }
        Ok(is_own)
    }

    /// Returns `true` if other programs would run the file at its new path or, if it is a symlink, run files through
    /// it.
    pub(super) fn leads_astray(&self, facts: &Metadata, new_path: &Path) -> bool {
        let path = absolute(new_path);
        if facts.is_symlink() { self.gate.leads_to_programs(&path) } else { self.gate.starts_programs(&path) }
    }
}
