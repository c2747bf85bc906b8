//! The masks over hidden and closed paths in a running sandbox, and how a lost one is put back.
//!
//! - When a file is removed, or another is renamed over it, the kernel takes the mounts on it away in every namespace; when
//!   it is renamed, they go along. Nothing in a sandbox can do that to what is masked, but programs outside can.
//! - INVARIANT: a mask is in place while its mount is in the sandbox's table, at its path or at the one that its folder was
//!   renamed to. One that is not is put over whatever stands at its path now.
//! - The table has news of what was removed or replaced. Of what was renamed away and made anew it has none: the launcher,
//!   which watches names, asks for a look ([`ControlOp::Check`](crate::ControlOp::Check)).

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

use super::{apart::tree_made_apart, inside::SandboxNamespaces};
use crate::{
    autostart::name_text::{raw, text},
    mount_plan::{MountPlan, PathTreatment},
    mountinfo::MountInfo,
    place::{FileId, is_below, open_plain, open_plain_end},
    special::{MOST_MASKED, is_folder, is_special},
    tree,
};

/// The number of times that a mask is put back whose path changes at that very moment.
const TRIES: usize = 20;

/// The masks of one sandbox.
#[derive(Debug)]
pub(crate) struct Masks {
    /// The sandbox's root directory.
    root: OwnedFd,
    /// Its table of mounts, which has news when mounts come or go.
    table: OwnedFd,
    /// By the path of the tree that they are in.
    trees: BTreeMap<String, Vec<Mask>>,
}

#[derive(Debug)]
struct Mask {
    path: String,
    step: PathTreatment,
    /// Its mount; none while nothing is at its path.
    mount: Option<u64>,
    /// The folder it is in.
    folder: Option<FileId>,
}

/// A mask that was lost and is in place again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RestoredMask {
    pub(crate) path: String,
    /// True when the path is hidden; else it is closed for writing.
    pub(crate) hidden: bool,
}

impl Masks {
    /// Of a sandbox without any yet, whose first process is `process`, a directory of `/proc`.
    pub(crate) fn of(process: &OwnedFd) -> io::Result<Self> {
        let root = openat(process, "root", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        let table = openat(process, "mountinfo", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { root, table, trees: BTreeMap::new() })
    }

    /// A tree was mounted at `path`, in place of what was there, with `plan` applied to it.
    pub(crate) fn put(&mut self, path: &str, plan: &MountPlan) {
        let masks = plan.masks().filter(|(masked, _)| is_below(masked, path));
        let masks = masks.map(|(masked, step)| Mask::find(&self.root, masked.clone(), step.clone()));
        let masks: Vec<Mask> = masks.collect();
        self.trees.insert(path.to_owned(), masks);
    }

    /// Pipes and sockets have appeared, which are to be masked when this is restored.
    ///
    /// # Errors
    /// There are too many: the sandbox has to end.
    pub(crate) fn add_special(&mut self, paths: &[String]) -> io::Result<()> {
        for path in paths {
            for (_, masks) in self.trees.iter_mut().filter(|(tree, _)| is_below(path, tree)) {
                if !masks.iter().any(|mask| mask.path == *path) {
                    let step = PathTreatment::Special;
                    masks.push(Mask { path: path.clone(), step, mount: None, folder: None });
                }
            }
        }
        let special = self.trees.values().flatten().filter(|mask| mask.is_special());
        if special.count() > 2 * MOST_MASKED {
            return Err(io::Error::other("too many named pipes and sockets appeared in what it is shown"));
        }
        Ok(())
    }

    /// The tree at `path` is not mounted any more.
    pub(crate) fn take_away(&mut self, path: &str) {
        self.trees.remove(path);
    }

    /// Has news when a mask may be lost.
    pub(crate) fn news(&self) -> PollFd<'_> {
        PollFd::new(&self.table, PollFlags::PRI)
    }

    /// Puts back what is lost, but where `is_written` says that the path is a grant of its own.
    ///
    /// # Errors
    /// A path is not masked and cannot be: the sandbox has to end.
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
            // Trees that lie on one another are masked at the same path.
            if covered.contains(&mask.path) {
                mask.look(&self.root);
            } else if mask.put_back(sandbox, &self.root)? {
                covered.push(mask.path.clone());
                if !mask.is_special() {
                    restored.push(RestoredMask { path: mask.path.clone(), hidden: mask.hides() });
                }
            }
        }
        // One that appears at the same path again is reported again.
        self.trees
            .values_mut()
            .for_each(|masks| masks.retain(|mask| !mask.is_special() || mask.mount.is_some()));
        Ok(restored)
    }
}

impl Mask {
    fn find(root: &OwnedFd, path: String, step: PathTreatment) -> Self {
        let mut mask = Self { path, step, mount: None, folder: None };
        mask.look(root);
        mask
    }

    /// Notes what is at its path, if that is a mount of its own. No symlink may be on the way.
    fn look(&mut self, root: &OwnedFd) {
        let place = open_plain_end(root, &*raw(relative(&self.path)));
        let about = place.and_then(|place| {
            statx(&place, "", AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW, StatxFlags::MNT_ID)
        });
        let found = about.ok().filter(|about| about.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
        self.mount = found.map(|about| about.stx_mnt_id);
        self.folder = folder(root, &self.path);
    }

    fn hides(&self) -> bool {
        matches!(self.step, PathTreatment::Hide { .. })
    }

    fn is_special(&self) -> bool {
        matches!(self.step, PathTreatment::Special)
    }

    /// Returns true if a file stands at the path by now that needs no mask.
    fn is_over(&self) -> bool {
        self.is_special() && !is_special(&self.path) && !is_folder(&self.path)
    }

    fn is_in_place(&mut self, root: &OwnedFd, table: &MountInfo) -> bool {
        let Some(entry) = self.mount.and_then(|id| table.get(id)) else { return false };
        let now = text(entry.point.as_bytes());
        if now == self.path {
            return true;
        }
        // A folder on the way has another name, and it went along.
        let name = |path: &str| path.rsplit_once('/').map(|(_, name)| name.to_owned());
        let went_along =
            self.folder.is_some() && folder(root, &now) == self.folder && name(&now) == name(&self.path);
        if went_along {
            self.path = now;
        }
        went_along
    }

    /// Masks what is at its path now; whether something is.
    fn put_back(&mut self, sandbox: &SandboxNamespaces, root: &OwnedFd) -> io::Result<bool> {
        for _ in 0..TRIES {
            if self.is_over() {
                self.mount = None;
                return Ok(false);
            }
            let put = self.tree().and_then(|tree| sandbox.cover(&self.path, &tree));
            match put {
                Ok(()) => {
                    self.look(root);
                    return Ok(true);
                }
                Err(error) if is_gone(&error) && !self.is_there(root) => {
                    self.mount = None;
                    return Ok(false);
                }
                // Something else stands there by now.
                Err(_) => {}
            }
        }
        Err(io::Error::other(format!("`{}` cannot be masked again", self.path)))
    }

    fn is_there(&self, root: &OwnedFd) -> bool {
        open_plain_end(root, &*raw(relative(&self.path))).is_ok()
    }

    /// The tree that goes over the path, made of what is there.
    fn tree(&self) -> io::Result<OwnedFd> {
        match &self.step {
            PathTreatment::Pin | PathTreatment::Reopen { .. } => {
                Ok(tree::copy(&open_plain_end(CWD, &*raw(&self.path))?, false, true)?)
            }
            PathTreatment::ReadOnly => Ok(tree::copy(&open_plain_end(CWD, &*raw(&self.path))?, true, true)?),
            PathTreatment::Hide { .. } | PathTreatment::Special => self.empty_tree(),
        }
    }

    /// Something empty and closed.
    fn empty_tree(&self) -> io::Result<OwnedFd> {
        let hiding = MountPlan::hiding(&self.path)?;
        tree_made_apart(&hiding, || Ok(tree::copy(&open_plain_end(CWD, &*raw(&self.path))?, true, true)?))
            // Nothing there, or nothing any more, is told by the place itself.
            .or_else(|error| open_plain_end(CWD, &*raw(&self.path)).map_err(io::Error::from).and(Err(error)))
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(Errno::LOOP.raw_os_error())
}

/// The folder that `path` is in.
fn folder(root: impl AsFd, path: &str) -> Option<FileId> {
    let (above, _) = path.rsplit_once('/')?;
    let place =
        if above.is_empty() { open_plain(root, ".") } else { open_plain(root, &*raw(relative(above))) };
    place.and_then(fstat).ok().map(|stat| FileId::of(&stat))
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}
