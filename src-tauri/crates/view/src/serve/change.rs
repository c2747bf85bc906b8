//! Removes and moves entries.

use std::{ffi::OsStr, path::Path};

use rustix::{
    fs::{AtFlags, RenameFlags, renameat_with, unlinkat},
    io::Errno,
};

use super::{Call, Reply, Stop};
use crate::{
    gate::AccessKind,
    nodes::{FileId, Kind},
    server::Server,
};

impl Server {
    pub(super) fn remove(
        &self,
        call: &Call<'_>,
        (parent, name): (u64, &OsStr),
        is_folder: bool,
    ) -> Result<Reply, Stop> {
        let path = self.nodes.path(parent)?.join(name);
        let known = self.nodes.named(parent, name);
        if is_folder && known.is_some_and(|(node, _)| !self.nodes.virtual_children(node).is_empty()) {
            return Err(Errno::NOTEMPTY.into());
        }
        if let Some((_, Kind::Virtual(_))) = known {
            self.nodes.retire(parent, name);
            return Ok(Reply::Empty);
        }
        let place = self.tree.find(&path)?;
        let file = FileId::of(&place.facts);
        match (is_folder, place.facts.is_dir()) {
            (true, false) => return Err(Errno::NOTDIR.into()),
            (false, true) => return Err(Errno::ISDIR.into()),
            (true, true) | (false, false) => {}
        }
        self.permit_move(call, &path, file)?;
        let (folder, name) = self.tree.parent(&path)?;
        unlinkat(&folder, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() })?;
        self.nodes.retire(parent, name);
        self.made.remove(file);
        Ok(Reply::Empty)
    }

    pub(super) fn rename(
        &self,
        call: &Call<'_>,
        (parent, name): (u64, &OsStr),
        (new_parent, new_name): (u64, &OsStr),
        flags: RenameFlags,
    ) -> Result<Reply, Stop> {
        if !(RenameFlags::NOREPLACE | RenameFlags::EXCHANGE).contains(flags) {
            return Err(Errno::INVAL.into());
        }
        let path = self.nodes.path(parent)?.join(name);
        let new_path = self.nodes.path(new_parent)?.join(new_name);
        if self.tree.hides_below(&path) || self.tree.hides_below(&new_path) {
            return Err(Errno::ACCESS.into());
        }
        let replaced = self.nodes.named(new_parent, new_name);
        if let Some((_, Kind::Virtual(_))) = self.nodes.named(parent, name) {
            let is_free = replaced.is_none() && matches!(self.tree.find(&new_path), Err(Errno::NOENT));
            if !is_free || !flags.is_empty() {
                return Err(Errno::EXIST.into());
            }
            self.nodes.moved((parent, name), (new_parent, new_name));
            return Ok(Reply::Empty);
        }
        if replaced.is_some_and(|(node, _)| !self.nodes.virtual_children(node).is_empty()) {
            return Err(Errno::NOTEMPTY.into());
        }
        let is_exchange = flags.contains(RenameFlags::EXCHANGE);
        let file = FileId::of(&self.tree.find(&path)?.facts);
        let target = self.tree.find(&new_path).ok().map(|place| FileId::of(&place.facts));
        self.permit_move(call, &path, file)?;
        match target.filter(|_| is_exchange) {
            Some(target) => {
                self.permit_move(call, &new_path, target)?;
                self.permit(call, &path, AccessKind::Write, Some(file))?;
            }
            None if is_exchange => return Err(Errno::NOENT.into()),
            None => {}
        }
        self.permit(call, &new_path, AccessKind::Write, target)?;
        self.make_real(new_parent)?;
        let ((folder, old), (new_folder, new)) = (self.tree.parent(&path)?, self.tree.parent(&new_path)?);
        renameat_with(&folder, old, &new_folder, new, flags)?;
        if is_exchange {
            self.nodes.exchanged((parent, name), (new_parent, new_name));
        } else {
            self.nodes.moved((parent, name), (new_parent, new_name));
        }
        Ok(Reply::Empty)
    }

    /// Requires permission to remove a file from a path, unless this run created it.
    fn permit_move(&self, call: &Call<'_>, path: &Path, file: FileId) -> Result<(), Stop> {
        if !self.made.has(file) {
            self.permit(call, path, AccessKind::Delete, Some(file))?;
        }
        Ok(())
    }
}
