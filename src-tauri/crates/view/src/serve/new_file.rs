//! Permission to create files, including lock and temporary files that belong to another file.

use std::{
    fs::Metadata,
    path::{Path, PathBuf},
};

use super::{Basis, Call, Incomplete, absolute};
use crate::{
    companions::{is_generated, owners},
    created_files::Origin,
    gate::{AccessKind, WantedAccess},
    nodes::FileId,
    server::Server,
};

/// Permission to create a file.
pub(super) struct NewFile {
    pub(super) access: WantedAccess,
    pub(super) basis: Basis,
    pub(super) origin: Origin,
}

impl Server {
    /// Requires permission to create a file or, if it belongs to an existing file, to change that file.
    pub(super) fn permit_new(&self, call: &Call<'_>, path: &Path) -> Result<NewFile, Incomplete> {
        let access = WantedAccess { path: absolute(path), kind: AccessKind::Write };
        let owner = if self.gate.permits(&access) { None } else { self.owner(path) };
        let Some((owner, stat)) = owner else {
            let (access, basis) = self.permit(call, path, AccessKind::Write, None)?;
            return Ok(NewFile { access, basis, origin: Origin::Created });
        };
        let (access, basis) = self.permit(call, &owner, AccessKind::ReadWrite, Some(&stat))?;
        let origin = match basis {
            Basis::Standing => Origin::Created,
            Basis::Once => Origin::CreatedFor(owner, FileId::new(&stat)),
        };
        Ok(NewFile { access, basis, origin })
    }

    /// Returns `true` if the run may create this entry, or change the file that it belongs to, without asking the user.
    pub(super) fn may_create(&self, path: &Path) -> bool {
        let permits = |path: &Path, kind| self.gate.permits(&WantedAccess { path: absolute(path), kind });
        permits(path, AccessKind::Write)
            || self.owner(path).is_some_and(|(owner, _)| permits(&owner, AccessKind::ReadWrite))
    }

    /// Returns the existing file to which a new file belongs, if any. Returns `None` if other programs would run the
    /// new file because of its name.
    fn owner(&self, path: &Path) -> Option<(PathBuf, Metadata)> {
        let (folder, name) = (path.parent()?, path.file_name()?);
        if self.gate.starts_programs(&absolute(path)) {
            return None;
        }
        let existing = |owner: PathBuf| {
            let found = self.tree.find(&owner).ok().filter(|found| found.stat.is_file())?;
            Some((owner, found.stat))
        };
        let mut named =
            owners(name).into_iter().map(|(owner, is_temporary)| (folder.join(owner), is_temporary));
        let found = named.find_map(|(owner, is_temporary)| {
            if is_temporary || self.recent_files.contains(&owner) { existing(owner) } else { None }
        });
        found.or_else(|| if is_generated(name) { existing(self.recent_files.last(folder)?) } else { None })
    }

    /// Returns `true` if the move renames a file to a backup name in the same folder, as programs do before they
    /// replace a file.
    pub(super) fn is_backup_rename(&self, path: &Path, new_path: &Path) -> bool {
        path.parent() == new_path.parent()
            && new_path
                .file_name()
                .is_some_and(|name| owners(name).iter().any(|(owner, _)| Some(*owner) == path.file_name()))
            && !self.gate.starts_programs(&absolute(new_path))
    }
}
