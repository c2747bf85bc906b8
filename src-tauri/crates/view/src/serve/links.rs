//! Creates and reads symlinks and hard links.

use std::{
    ffi::OsStr,
    os::fd::AsRawFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, linkat, symlinkat},
    io::Errno,
};

use super::{Call, Incomplete, absolute};
use crate::{
    gate::AccessKind,
    invalidation::drop_attributes,
    nodes::{FileId, NodeKind},
    server::Server,
};

impl Server {
    /// Creates a symlink. Refuses hidden targets, and names that would make other programs run files through the link.
    pub(super) fn make_link(
        &self,
        call: &Call<'_>,
        (parent, name): (u64, &OsStr),
        target: &OsStr,
    ) -> Result<Vec<u8>, Incomplete> {
        let path = self.new_path(parent, name)?;
        let link_target = normalize(&path.parent().unwrap_or(Path::new("")).join(target));
        if target.is_empty() || self.tree.hides(&link_target) {
            return Err(Errno::ACCESS.into());
        }
        if self.gate.leads_to_programs(&absolute(&path)) {
            return Err(Errno::PERM.into());
        }
        self.permit(call, &path, AccessKind::Write, None)?;
        self.make_real(parent)?;
        let (folder, name) = self.tree.parent(&path)?;
        symlinkat(target, &folder, name)?;
        self.record_created(&path)?;
        Ok(self.look_up(parent, name)?)
    }

    /// Creates a hard link. This requires permission to change the file under both names.
    pub(super) fn hard_link(
        &self,
        call: &Call<'_>,
        node: u64,
        parent: u64,
        name: &OsStr,
    ) -> Result<Vec<u8>, Incomplete> {
        let path = self.new_path(parent, name)?;
        let old = self.nodes.path(node)?;
        let kind = self.nodes.kind(node)?;
        if let NodeKind::Virtual(_) = kind {
            return Err(Errno::PERM.into());
        }
        let found = self.tree.find(&old)?;
        let file = FileId::new(&found.stat);
        if kind != NodeKind::Real(file) || !found.stat.is_file() {
            return Err(Errno::PERM.into());
        }
        let is_backup_rename = self.is_backup_rename(&old, &path);
        if is_backup_rename || !self.created_files.contains(&found.stat) {
            self.permit(call, &old, AccessKind::ReadWrite, Some(&found.stat))?;
        }
        if !is_backup_rename {
            self.permit(call, &path, AccessKind::Write, None)?;
        }
        self.make_real(parent)?;
        let (folder, name) = self.tree.parent(&path)?;
        // Uses the descriptor, because the name may now refer to a different file.
        let source = format!("/proc/self/fd/{}", found.file.as_raw_fd());
        linkat(CWD, source, &folder, name, AtFlags::SYMLINK_FOLLOW)?;
        drop_attributes(&*self.device, node);
        Ok(self.look_up(parent, name)?)
    }
}

/// Resolves `.` and `..` in a path and makes it relative to the root.
fn normalize(path: &Path) -> PathBuf {
    let mut normalized = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normalized.push(name),
            Component::ParentDir => _ = normalized.pop(),
            Component::RootDir | Component::Prefix(_) => normalized.clear(),
            Component::CurDir => {}
        }
    }
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_resolved_by_their_names() {
        for (path, expected) in [("a/b/../c", "a/c"), ("a/../../x", "x"), ("/etc/./x", "etc/x")] {
            assert_eq!(normalize(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
