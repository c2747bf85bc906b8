//! Masks over hidden and read-only paths of a running sandbox, and their restoration.
//!
//! - When a file is removed or replaced by a rename, the kernel removes the mounts on it in every namespace. When a
//!   file is renamed, its mounts move with it. Only programs outside the sandbox can do this to masked files.
//! - INVARIANT: a mask is in place if the sandbox's mount table lists it at its path, or at a path that results from
//!   renaming a folder above it. A lost mask is mounted over the file that is now at its path.
//! - The table shows that a file was removed or replaced, but not that it was renamed and recreated. The launcher
//!   watches names. It therefore detects the latter case and requests a check
//!   ([`ControlOp::Check`](crate::ControlOp::Check)).

use std::{
    collections::BTreeMap,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    event::{PollFd, PollFlags},
    fs::{AtFlags, CWD, Mode, OFlags, StatxAttributes, StatxFlags, fstat, openat, statx},
    io::Errno,
};

use super::{inside::SandboxNamespaces, isolated_tree::build_isolated_tree};
use crate::{
    autostart::name_text::{from_os_bytes, to_os_str},
    mount_plan::{MountPlan, PathTreatment},
    mountinfo::MountInfo,
    nofollow::{FileId, is_below, open_no_symlinks, open_nofollow},
    special::{MAX_MASKED, is_folder, is_special},
    tree,
};

/// Maximum number of attempts to restore a mask whose path keeps changing.
const MAX_ATTEMPTS: usize = 20;

/// Masks of one sandbox.
#[derive(Debug)]
pub(crate) struct Masks {
    /// Root directory of the sandbox.
    root: OwnedFd,
    /// Mount table of the sandbox, which can be polled for changes.
    table: OwnedFd,
    /// Masks of each mounted tree, by the tree's path.
    trees: BTreeMap<String, Vec<Mask>>,
}

#[derive(Debug)]
struct Mask {
    path: String,
    treatment: PathTreatment,
    /// Id of the mask's mount, or `None` while the path does not exist.
    mount: Option<u64>,
    /// Identity of the parent folder.
    folder: Option<FileId>,
}

/// Mask that was lost and has been restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestoredMask {
    pub(crate) path: String,
    /// `true` if the path is hidden, `false` if it is read-only.
    pub(crate) hidden: bool,
}

impl Masks {
    /// Creates an empty set of masks. `process` is the `/proc` directory of the sandbox's init.
    pub(crate) fn new(process: &OwnedFd) -> io::Result<Self> {
        let root = openat(process, "root", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let table = openat(process, "mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, table, trees: BTreeMap::new() })
    }

    /// Records the masks of `plan` in the tree mounted at `path`, replacing the previous ones.
    pub(crate) fn set(&mut self, path: &str, plan: &MountPlan) {
        let masks = plan.masks().filter(|(masked, _)| is_below(masked, path));
        let masks =
            masks.map(|(masked, treatment)| Mask::find(&self.root, masked.clone(), treatment.clone()));
        let masks: Vec<Mask> = masks.collect();
        self.trees.insert(path.to_owned(), masks);
    }

    /// Adds pipes and sockets, which the next [`restore`](Self::restore) masks.
    ///
    /// # Errors
    /// Fails if there are too many pipes and sockets. The caller must then terminate the sandbox.
    pub(crate) fn add_special(&mut self, paths: &[String]) -> io::Result<()> {
        for path in paths {
            for (_, masks) in self.trees.iter_mut().filter(|(tree, _)| is_below(path, tree)) {
                if !masks.iter().any(|mask| mask.path == *path) {
                    let treatment = PathTreatment::Special;
                    masks.push(Mask { path: path.clone(), treatment, mount: None, folder: None });
                }
            }
        }
        let special = self.trees.values().flatten().filter(|mask| mask.is_special());
        if special.count() > 2 * MAX_MASKED {
            return Err(io::Error::other(
                "too many named pipes and sockets appeared in the sandbox's folders",
            ));
        }
        Ok(())
    }

    /// Drops the masks of a tree that is no longer mounted.
    pub(crate) fn remove(&mut self, path: &str) {
        self.trees.remove(path);
    }

    /// Returns a descriptor that becomes ready when a mask may have been lost.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        PollFd::new(&self.table, PollFlags::PRI)
    }

    /// Restores lost masks and returns them. Paths for which `is_written` returns `true` are granted read-write and
    /// skipped.
    ///
    /// # Errors
    /// Fails if a path cannot be masked. The caller must then terminate the sandbox.
    pub(crate) fn restore(
        &mut self,
        sandbox: &SandboxNamespaces,
        is_written: impl Fn(&str) -> bool,
    ) -> io::Result<Vec<RestoredMask>> {
        let table = sandbox.table()?;
        let mut restored: Vec<RestoredMask> = Vec::new();
        let mut covered: Vec<String> = Vec::new();
        for mask in self.trees.values_mut().flatten() {
            if mask.is_in_place(&self.root, &table) || is_written(&mask.path) {
                continue;
            }
            // Nested trees have masks at the same paths.
            if covered.contains(&mask.path) {
                mask.refresh(&self.root);
            } else if mask.remount(sandbox, &self.root)? {
                covered.push(mask.path.clone());
                if !mask.is_special() {
                    restored.push(RestoredMask { path: mask.path.clone(), hidden: mask.hides() });
                }
            }
        }
        // Drops special files without a mask so that a new file at the same path is reported again.
        self.trees
            .values_mut()
            .for_each(|masks| masks.retain(|mask| !mask.is_special() || mask.mount.is_some()));
        Ok(restored)
    }
}

impl Mask {
    fn find(root: &OwnedFd, path: String, treatment: PathTreatment) -> Self {
        let mut mask = Self { path, treatment, mount: None, folder: None };
        mask.refresh(root);
        mask
    }

    /// Records the mount and parent folder currently at the path, if the path contains no symlink.
    fn refresh(&mut self, root: &OwnedFd) {
        let fd = open_nofollow(root, &*to_os_str(relative(&self.path)));
        let stat = fd.and_then(|fd| {
            statx(&fd, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID)
        });
        let found = stat.ok().filter(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
        self.mount = found.map(|stat| stat.stx_mnt_id);
        self.folder = parent_id(root, &self.path);
    }

    fn hides(&self) -> bool {
        matches!(self.treatment, PathTreatment::Hide { .. })
    }

    fn is_special(&self) -> bool {
        matches!(self.treatment, PathTreatment::Special)
    }

    /// Returns `true` if the mask is no longer needed, because its special file was replaced by a different kind of
    /// file.
    fn is_obsolete(&self) -> bool {
        self.is_special() && !is_special(&self.path) && !is_folder(&self.path)
    }

    fn is_in_place(&mut self, root: &OwnedFd, table: &MountInfo) -> bool {
        let Some(entry) = self.mount.and_then(|id| table.get(id)) else { return false };
        let now = from_os_bytes(entry.point.as_bytes());
        if now == self.path {
            return true;
        }
        // A folder above the path was renamed, and the mask moved with it.
        let name = |path: &str| path.rsplit_once('/').map(|(_, name)| name.to_owned());
        let moved_along =
            self.folder.is_some() && parent_id(root, &now) == self.folder && name(&now) == name(&self.path);
        if moved_along {
            self.path = now;
        }
        moved_along
    }

    /// Mounts the mask over the file at the path. Returns `false` if there is no file.
    fn remount(&mut self, sandbox: &SandboxNamespaces, root: &OwnedFd) -> io::Result<bool> {
        for _ in 0..MAX_ATTEMPTS {
            if self.is_obsolete() {
                self.mount = None;
                return Ok(false);
            }
            let covered = self.tree().and_then(|tree| sandbox.cover(&self.path, &tree));
            match covered {
                Ok(()) => {
                    self.refresh(root);
                    return Ok(true);
                }
                Err(error) if is_missing(&error) && !self.exists(root) => {
                    self.mount = None;
                    return Ok(false);
                }
                // The path has changed again, so the loop retries.
                Err(_) => {}
            }
        }
        Err(io::Error::other(format!("failed to restore the mask over `{}`", self.path)))
    }

    fn exists(&self, root: &OwnedFd) -> bool {
        open_nofollow(root, &*to_os_str(relative(&self.path))).is_ok()
    }

    /// Creates a cover for the file currently at the path.
    fn tree(&self) -> io::Result<OwnedFd> {
        match &self.treatment {
            PathTreatment::Pin | PathTreatment::Reopen { .. } => {
                Ok(tree::copy_mount(&open_nofollow(CWD, &*to_os_str(&self.path))?, false, true)?)
            }
            PathTreatment::ReadOnly => {
                Ok(tree::copy_mount(&open_nofollow(CWD, &*to_os_str(&self.path))?, true, true)?)
            }
            PathTreatment::Hide { .. } | PathTreatment::Special => self.empty_tree(),
        }
    }

    /// Creates an empty, inaccessible cover.
    fn empty_tree(&self) -> io::Result<OwnedFd> {
        let hiding = MountPlan::hiding_file(&self.path)?;
        build_isolated_tree(&hiding, || {
            Ok(tree::copy_mount(&open_nofollow(CWD, &*to_os_str(&self.path))?, true, true)?)
        })
        // Opening a path that does not exist gives a more precise error.
        .or_else(|error| open_nofollow(CWD, &*to_os_str(&self.path)).map_err(io::Error::from).and(Err(error)))
    }
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// Returns the identity of the parent folder of `path`, or `None` if it does not exist.
fn parent_id(root: impl AsFd, path: &str) -> Option<FileId> {
    let (parent, _) = path.rsplit_once('/')?;
    let fd = if parent.is_empty() {
        open_no_symlinks(root, ".")
    } else {
        open_no_symlinks(root, &*to_os_str(relative(parent)))
    };
    fd.and_then(fstat).ok().map(|stat| FileId::from_stat(&stat))
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}
