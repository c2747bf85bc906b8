//! Removes and moves entries.

use std::{ffi::OsStr, fs::Metadata, path::Path};

use rustix::{
    fs::{AtFlags, RenameFlags, renameat_with, unlinkat},
    io::Errno,
};

use super::{Call, Reply, Stop, open::refuse_shared_memory};
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
        match (is_folder, place.facts.is_dir()) {
            (true, false) => return Err(Errno::NOTDIR.into()),
            (false, true) => return Err(Errno::ISDIR.into()),
            (true, true) | (false, false) => {}
        }
        self.permit_leaving(call, &path, &place.facts, &[AccessKind::Delete])?;
        let (folder, name) = self.tree.parent(&path)?;
        unlinkat(&folder, name, if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() })?;
        self.nodes.retire(parent, name);
        self.made.remove(&place.facts);
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
        refuse_shared_memory(&new_path)?;
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
        let facts = self.tree.find(&path)?.facts;
        // What a folder contains was judged under its old name only. Programs copy it instead, file by file.
        if facts.is_dir() {
            return Err(Errno::XDEV.into());
        }
        let target = self.tree.find(&new_path).ok().map(|place| place.facts);
        // A moved file can be read where the run may read.
        const MOVE: [AccessKind; 2] = [AccessKind::Read, AccessKind::Delete];
        self.permit_leaving(call, &path, &facts, &MOVE)?;
        match target.as_ref().filter(|_| is_exchange) {
            Some(target) if target.is_dir() => return Err(Errno::XDEV.into()),
            Some(target) => {
                self.permit_leaving(call, &new_path, target, &MOVE)?;
                self.permit(call, &path, AccessKind::Write, Some(FileId::of(&facts)))?;
            }
            None if is_exchange => return Err(Errno::NOENT.into()),
            None => {}
        }
        self.permit(call, &new_path, AccessKind::Write, target.as_ref().map(FileId::of))?;
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

    /// Requires permission for each kind of access to a file that leaves its path, unless this run created it.
    fn permit_leaving(
        &self,
        call: &Call<'_>,
        path: &Path,
        facts: &Metadata,
        kinds: &[AccessKind],
    ) -> Result<(), Stop> {
        if !self.made.has(facts) {
            for kind in kinds {
                self.permit(call, path, *kind, Some(FileId::of(facts)))?;
            }
        }
        Ok(())
    }
}
