//! Removes and moves files and folders.

use std::{ffi::OsStr, fs::Metadata, path::Path};

use rustix::{
    fs::{AtFlags, RenameFlags, renameat_with, unlinkat},
    io::Errno,
};

use super::{Basis, Call, Incomplete, Reply, absolute, open::refuse_shared_memory};
use crate::{
    created_files::Origin,
    gate::{AccessKind, WantedAccess},
    nodes::{FileId, NodeKind, is_folder_mode},
    server::Server,
};

/// Permissions required for moving a file. Reading is included, because the run may be permitted to read the new path.
pub(super) const MOVE: [AccessKind; 2] = [AccessKind::Read, AccessKind::Delete];

impl Server {
    pub(super) fn remove(
        &self,
        call: &Call<'_>,
        (parent, name): (u64, &OsStr),
        is_folder: bool,
    ) -> Result<Reply, Incomplete> {
        let path = self.nodes.path(parent)?.join(name);
        let known = self.nodes.by_name(parent, name);
        if is_folder && known.is_some_and(|(node, _)| !self.nodes.virtual_children(node).is_empty()) {
            return Err(Errno::NOTEMPTY.into());
        }
        if let Some((_, NodeKind::Virtual(mode))) = known {
            match (is_folder, is_folder_mode(mode)) {
                (true, false) => return Err(Errno::NOTDIR.into()),
                (false, true) => return Err(Errno::ISDIR.into()),
                (true, true) | (false, false) => {}
            }
            self.nodes.retire(parent, name);
            return Ok(Reply::Empty);
        }
        let found = self.tree.find(&path)?;
        match (is_folder, found.stat.is_dir()) {
            (true, false) => return Err(Errno::NOTDIR.into()),
            (false, true) => return Err(Errno::ISDIR.into()),
            (true, true) | (false, false) => {}
        }
        self.permit_removal(call, &path, &found.stat, &[AccessKind::Delete])?;
        let (folder, name) = self.tree.parent(&path)?;
        unlinkat(&folder, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() })?;
        self.nodes.retire(parent, name);
        self.created_files.remove(&found.stat);
        Ok(Reply::Empty)
    }

    pub(super) fn rename(
        &self,
        call: &Call<'_>,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<Reply, Incomplete> {
        if !(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE).contains(flags) {
            return Err(Errno::INVAL.into());
        }
        let path = self.nodes.path(parent)?.join(name);
        let new_path = self.nodes.path(new_parent)?.join(new_name);
        if self.tree.hides_below(&path) || self.tree.hides_below(&new_path) {
            return Err(Errno::ACCESS.into());
        }
        // The mount would move along with the folder.
        if self.is_mounted_below(&path)
            || flags.contains(RenameFlags::EXCHANGE) && self.is_mounted_below(&new_path)
        {
            return Err(Errno::BUSY.into());
        }
        refuse_shared_memory(&new_path)?;
        let replaced = self.nodes.by_name(new_parent, new_name);
        if let Some((_, NodeKind::Virtual(mode))) = self.nodes.by_name(parent, name) {
            self.rename_virtual((parent, name, mode), (new_parent, new_name), &new_path, flags)?;
            return Ok(Reply::Empty);
        }
        if replaced.is_some_and(|(node, _)| !self.nodes.virtual_children(node).is_empty()) {
            return Err(Errno::NOTEMPTY.into());
        }
        let stat = self.tree.find(&path)?.stat;
        let target = self.tree.find(&new_path).ok().map(|found| found.stat);
        if stat.is_dir() {
            let names = (parent, name, new_parent, new_name);
            return self.rename_folder(call, names, (&path, &new_path), (&stat, target.as_ref()), flags);
        }
        if stat.is_symlink() && self.would_run_programs(&stat, &new_path) {
            return Err(Errno::PERM.into());
        }
        let _names = self.lock_names();
        let is_exchange = flags.contains(RenameFlags::EXCHANGE);
        let mut backup_origin = None;
        match target.as_ref() {
            Some(target) if is_exchange && target.is_dir() => return Err(Errno::XDEV.into()),
            None if is_exchange => return Err(Errno::NOENT.into()),
            Some(target) if is_exchange => {
                self.permit_removal(call, &path, &stat, &MOVE)?;
                self.permit_removal(call, &new_path, target, &MOVE)?;
                self.permit(call, &path, AccessKind::Write, Some(&stat))?;
                self.permit(call, &new_path, AccessKind::Write, Some(target))?;
            }
            None if self.created_files.origin(&stat).is_none() && self.is_backup_rename(&path, &new_path) => {
                let (_, basis) = self.permit(call, &path, AccessKind::ReadWrite, Some(&stat))?;
                backup_origin = Some(if basis == Basis::Once {
                    Origin::MovedAsideOnce
                } else {
                    Origin::MovedAside(path.clone())
                });
            }
            Some(_) | None => {
                self.permit_removal(call, &path, &stat, &MOVE)?;
                self.permit_target(call, &new_path, &stat, target.as_ref())?;
            }
        }
        self.make_real(new_parent)?;
        let ((folder, old), (new_folder, new)) = (self.tree.parent(&path)?, self.tree.parent(&new_path)?);
        renameat_with(&folder, old, &new_folder, new, flags)?;
        if is_exchange {
            self.nodes.exchange_names((parent, name), (new_parent, new_name));
            return Ok(Reply::Empty);
        }
        self.nodes.move_name((parent, name), (new_parent, new_name));
        match (backup_origin, target) {
            (Some(origin), _) => self.created_files.add(&stat, origin),
            // The file replaces one of the user's files, so the run no longer counts as its creator.
            (None, Some(target)) if !self.created_files.contains(&target) => self.created_files.remove(&stat),
            (None, Some(target)) => self.created_files.remove(&target),
            (None, None) => {}
        }
        Ok(Reply::Empty)
    }

    /// Moves a virtual entry.
    fn rename_virtual(
        &self,
        (parent, name, mode): (u64, &OsStr, u32),
        (new_parent, new_name): (u64, &OsStr),
        new_path: &Path,
        flags: RenameFlags,
    ) -> Result<(), Errno> {
        if !(flags - RenameFlags::NOREPLACE).is_empty() {
            return Err(Errno::INVAL);
        }
        let replaced = self.nodes.by_name(new_parent, new_name);
        match (self.tree.find(new_path), replaced) {
            (Err(Errno::NOENT), None | Some((_, NodeKind::Real(_)))) => {}
            (Err(Errno::NOENT), Some((node, NodeKind::Virtual(_)))) if flags.is_empty() => {
                if !self.nodes.virtual_children(node).is_empty() {
                    return Err(Errno::NOTEMPTY);
                }
            }
            // Keeps the user's empty folder and adds the virtual folder's entries to it. The result looks the same as a
            // move.
            (Ok(_), Some((target, NodeKind::Real(_)))) if flags.is_empty() && is_folder_mode(mode) => {
                if !self.names_in(new_path)?.is_empty() || !self.nodes.virtual_children(target).is_empty() {
                    return Err(Errno::NOTEMPTY);
                }
                let (folder, _) = self.nodes.by_name(parent, name).ok_or(Errno::NOENT)?;
                for (entry, ..) in self.nodes.virtual_children(folder) {
                    self.nodes.move_name((folder, &entry), (target, &entry));
                }
                self.nodes.retire(parent, name);
                return Ok(());
            }
            (Ok(_) | Err(_), _) => return Err(Errno::EXIST),
        }
        self.nodes.move_name((parent, name), (new_parent, new_name));
        Ok(())
    }

    /// Requires permission for each kind of access needed to remove or move a file, unless the run created the file or
    /// moved it aside.
    pub(super) fn permit_removal(
        &self,
        call: &Call<'_>,
        path: &Path,
        stat: &Metadata,
        kinds: &[AccessKind],
    ) -> Result<(), Incomplete> {
        match self.created_files.origin(stat) {
            Some(Origin::Created | Origin::CreatedFor(..) | Origin::MovedAsideOnce) => return Ok(()),
            Some(Origin::MovedAside(of))
                if self.gate.permits(&WantedAccess { path: absolute(&of), kind: AccessKind::ReadWrite }) =>
            {
                return Ok(());
            }
            Some(Origin::MovedAside(_)) | None => {}
        }
        for kind in kinds {
            self.permit(call, path, *kind, Some(stat))?;
        }
        Ok(())
    }

    /// Requires permission to create or replace the file at `path`.
    fn permit_target(
        &self,
        call: &Call<'_>,
        path: &Path,
        stat: &Metadata,
        target: Option<&Metadata>,
    ) -> Result<(), Incomplete> {
        let Some(target) = target else { return self.permit_new(call, path).map(drop) };
        let file = FileId::new(target);
        if self.created_files.origin(stat) == Some(Origin::CreatedFor(path.to_owned(), file)) {
            return Ok(());
        }
        self.permit(call, path, AccessKind::Write, Some(target)).map(drop)
    }
}
