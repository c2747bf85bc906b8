//! Granted paths of a running sandbox, and the operations that change them.
//!
//! - INVARIANT: a path is mounted on its nearest enclosing mount, so a deeper grant is always on top of a wider grant.
//!   The deepest grant that contains a path determines the access to it.
//! - INVARIANT: the supervisor mounts the exact file that it opened without following symlinks, at the same path.
//! - INVARIANT: nothing is created in the host's tree. Mount points are created on the sandbox's own root or in its
//!   private `/tmp`, and removed when they are no longer used.

mod initial;
mod inside;
mod isolated_tree;
mod masks;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::fd::OwnedFd,
};

use rustix::event::PollFd;
use serde::{Deserialize, Serialize};

pub(crate) use initial::{InitialMounts, InitialMountsChild};
pub(crate) use inside::SandboxNamespaces;
use inside::{CreatedPoint, MountChange, MountedPath, NewMount, UnmountOutcome};
use masks::Masks;
pub(crate) use masks::RestoredMask;
use source::MountSource;

use crate::{
    control::{MountRefusal, UnmountProof},
    mount_plan::MountPlan,
    nofollow::{FileId, is_at_or_below, is_below},
    spec::{Mount, MountAccess, is_normal},
    special::{SpecialFileLink, WatchFolderError, is_folder},
};

/// Granted paths of one sandbox.
#[derive(Debug)]
pub(crate) struct Mounts {
    sandbox: SandboxNamespaces,
    /// Host paths that stay hidden or read-only inside every grant.
    view: MountPlan,
    /// Mount ids of the session directory and the programs, by path. They stay on top of wider grants.
    fixed: BTreeMap<String, u64>,
    granted: BTreeMap<String, GrantedMount>,
    /// Directories of the sandbox's root that are covered by a mount, by path.
    covered_dirs: BTreeMap<String, OwnedFd>,
    /// Paths at which a process may still be reading a file through an earlier mount.
    still_read: BTreeSet<String>,
    created_points: Vec<CreatedPoint>,
    masks: Masks,
    special: SpecialFileLink,
}

/// Mount of a granted path.
#[derive(Clone, Copy, Debug)]
struct GrantedMount {
    access: MountAccess,
    mount_id: u64,
    identity: FileId,
}

/// Failure to change a mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum MountError {
    /// The change was refused and nothing was changed.
    #[error("{message}")]
    Refused {
        /// Machine-readable reason.
        code: MountRefusal,
        /// Reason for the user.
        message: String,
    },
    /// The mounts are in an unknown state, so the sandbox must be terminated.
    #[error("the sandbox is in an inconsistent state: {0}")]
    Broken(String),
}

impl Mounts {
    /// Creates the mounts of a sandbox without grants. `fixed` contains the mount ids of the sandbox's own paths.
    /// `shown` contains the mounted host paths, each with `true` if it is writable.
    pub(crate) fn new(
        sandbox: SandboxNamespaces,
        fixed: BTreeMap<String, u64>,
        view: MountPlan,
        shown: &BTreeMap<String, bool>,
        special: SpecialFileLink,
    ) -> io::Result<Self> {
        let mut masks = Masks::new(sandbox.process())?;
        for (path, writable) in shown {
            // In a tree that is read-only as a whole, only hidden paths matter.
            let hidden = || view.hidden_within(std::slice::from_ref(path));
            masks.set(path, &if *writable { view.below(path) } else { hidden() });
        }
        let granted = BTreeMap::new();
        let (covered_dirs, still_read) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self {
            sandbox,
            view,
            fixed,
            granted,
            covered_dirs,
            still_read,
            created_points: Vec::new(),
            masks,
            special,
        })
    }

    /// Returns the namespaces of the running sandbox.
    pub(crate) fn sandbox(&self) -> &SandboxNamespaces {
        &self.sandbox
    }

    /// Returns a descriptor that becomes ready when a mask may have been lost.
    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        self.masks.poll_fd()
    }

    /// Returns a descriptor that becomes ready when a pipe or socket is created.
    pub(crate) fn special_poll_fd(&self) -> PollFd<'_> {
        self.special.poll_fd()
    }

    /// Masks new pipes and sockets, restores lost masks, and returns the restored masks. Does nothing while the sandbox
    /// is exiting, because its mounts are then being removed.
    ///
    /// # Errors
    /// Fails if a path cannot be masked, or new pipes and sockets can no longer be detected. The caller must then
    /// terminate the sandbox.
    pub(crate) fn restore_masks(&mut self) -> io::Result<Vec<RestoredMask>> {
        let Self { masks, sandbox, granted, special, .. } = self;
        masks.add_special(&special.appeared()?)?;
        let is_written =
            |path: &str| granted.get(path).is_some_and(|granted| granted.access == MountAccess::ReadWrite);
        masks
            .restore(sandbox, is_written)
            .or_else(|error| if sandbox.is_exiting() { Ok(vec![]) } else { Err(error) })
    }

    /// Mounts a path, or widens the access of an existing mount.
    pub(crate) fn add(&mut self, mount: &Mount) -> Result<(), MountError> {
        let Mount { path, access, read_only, pinned, approved, .. } = mount;
        self.check_path(path)?;
        let mut plan = self.view.below(path);
        if *access == MountAccess::ReadWrite {
            let is_in = |protected: &String| is_at_or_below(path, protected);
            if pinned.iter().any(is_in) || !approved && read_only.iter().any(is_in) {
                let message = format!("`{path}` is never writable: other programs run it automatically");
                return Err(MountError::refused(MountRefusal::Protected, message));
            }
            plan.set_read_only_in(path, read_only);
            plan.pin_read_only_in(path, pinned);
        }
        let watched = !mount.file && self.mask_special(path, &mut plan)?;
        match self.add_planned(mount, &plan, watched) {
            Ok(true) => self.masks.set(path, &plan),
            Ok(false) => {}
            Err(error) => {
                if !self.granted.contains_key(path) {
                    self.unwatch_special(path)?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Adds a mount with its plan. Returns `true` if anything changed.
    fn add_planned(&mut self, mount: &Mount, plan: &MountPlan, watched: bool) -> Result<bool, MountError> {
        let Mount { path, access, file, .. } = mount;
        let source = MountSource::open(path, *access, plan)?;
        source.check_kind(path, *file)?;
        source.check_watched(path, watched)?;
        let before = self.granted.get(path).copied();
        if let Some(before) = before {
            if before.access > *access {
                return Err(MountError::refused(
                    MountRefusal::Narrower,
                    format!("`{path}` is granted read-write; narrow it instead"),
                ));
            }
            if before.access == *access && before.identity == source.identity {
                return Ok(false);
            }
        }
        let granted = GrantedMount { access: *access, mount_id: source.mount_id, identity: source.identity };
        self.change(path, before.map(|before| before.mount_id), Some(source))?;
        self.granted.insert(path.clone(), granted);
        Ok(true)
    }

    /// Makes a read-write mount read-only and checks that no process can still write to it.
    pub(crate) fn narrow(&mut self, path: &str, file: bool) -> Result<UnmountProof, MountError> {
        let before = self.granted.get(path).copied().ok_or_else(|| not_granted(path))?;
        let mut plan = self.view.below(path);
        let watched = !file && self.mask_special(path, &mut plan)?;
        let source = MountSource::open(path, MountAccess::ReadOnly, &plan)?;
        source.check_kind(path, file)?;
        source.check_watched(path, watched)?;
        if source.identity != before.identity {
            let message = format!("`{path}` is no longer the file that was granted");
            return Err(MountError::refused(MountRefusal::Kind, message));
        }
        let granted = GrantedMount {
            access: MountAccess::ReadOnly,
            mount_id: source.mount_id,
            identity: source.identity,
        };
        let proof = self.change(path, Some(before.mount_id), Some(source))?;
        self.granted.insert(path.to_owned(), granted);
        self.masks.set(path, &plan);
        Ok(proof.unwrap_or(UnmountProof::StillOpen))
    }

    /// Unmounts a path and checks that no process still uses it.
    pub(crate) fn remove(&mut self, path: &str) -> Result<UnmountProof, MountError> {
        let Some(granted) = self.granted.get(path).copied() else {
            return Err(not_granted(path));
        };
        let proof = self.change(path, Some(granted.mount_id), None)?;
        self.granted.remove(path);
        self.masks.remove(path);
        self.unwatch_special(path)?;
        Ok(proof.unwrap_or(UnmountProof::StillOpen))
    }

    fn unwatch_special(&mut self, path: &str) -> Result<(), MountError> {
        self.special.unwatch(path).map_err(|error| MountError::Broken(error.to_string()))
    }

    /// Watches a folder for pipes and sockets and adds the existing ones to the plan. Returns `false` if the path is
    /// not a folder.
    fn mask_special(&mut self, path: &str, plan: &mut MountPlan) -> Result<bool, MountError> {
        if !is_folder(path) {
            return Ok(false);
        }
        // The session folder's special files belong to the sandbox, and program folders are watched separately.
        let hidden = plan.hidden().chain(self.fixed.keys()).cloned().collect();
        let found = self.special.watch(path, hidden).map_err(|error| match error {
            WatchFolderError::Refused(reason) => MountError::refused(MountRefusal::Special, reason),
            WatchFolderError::Broken(error) => MountError::Broken(error.to_string()),
        })?;
        plan.mask_special(found);
        Ok(true)
    }

    /// Returns the granted mounts, ordered by path.
    pub(crate) fn list(&self) -> Vec<Mount> {
        self.granted.iter().map(|(path, granted)| Mount::new(path, granted.access)).collect()
    }

    /// Changes the mount at `path`. Returns the proof for the previous mount, if there was one.
    fn change(
        &mut self,
        path: &str,
        old: Option<u64>,
        new: Option<MountSource>,
    ) -> Result<Option<UnmountProof>, MountError> {
        let new_id = new.as_ref().map(|new| new.mount_id);
        let others = self.granted.values().map(|granted| granted.mount_id).filter(|id| Some(*id) != old);
        let granted = others.chain(new_id).collect();
        let new = new.map(|new| (NewMount { path: path.to_owned(), kind: new.kind }, new.tree));
        let (new, tree) = new.unzip();
        // Mounts on top of this mount move to the enclosing grant, if there is one.
        let lies_on_root = !self.granted.keys().chain(self.fixed.keys()).any(|above| is_below(path, above));
        let covered_dir =
            if new_id.is_none() { self.covered_dirs.remove(path).filter(|_| lies_on_root) } else { None };
        let change = MountChange {
            old: old.map(|mount_id| MountedPath { path: path.to_owned(), mount_id }),
            new,
            nested: self.directly_below(path),
            created_points: self.created_points.clone(),
            path: path.to_owned(),
            covered_dir,
            granted,
        };
        let (outcome, covered_dir) = self.sandbox.change(change, tree)?;
        self.created_points = outcome.created_points;
        self.covered_dirs.extend(covered_dir.map(|covered_dir| (path.to_owned(), covered_dir)));
        Ok(outcome.unmount_outcome.map(|unmount_outcome| self.combine_proofs(path, new_id, unmount_outcome)))
    }

    /// Combines the outcomes of the last and earlier mounts at `path` into a proof. A file that another mount still
    /// shows counts as removed only once that mount is removed.
    fn combine_proofs(
        &mut self,
        path: &str,
        new_id: Option<u64>,
        unmount_outcome: UnmountOutcome,
    ) -> UnmountProof {
        let held_before = self.still_read.remove(path);
        let Some(replacement) = unmount_outcome.replacement else {
            return if held_before { UnmountProof::StillOpen } else { unmount_outcome.proof };
        };
        if held_before || unmount_outcome.still_read {
            let by = |(_, granted): &(&String, &GrantedMount)| granted.mount_id == replacement;
            let shown_by = || self.granted.iter().find(by).map(|(path, _)| path.clone());
            let shown_by = if new_id == Some(replacement) { Some(path.to_owned()) } else { shown_by() };
            self.still_read.extend(shown_by);
        }
        unmount_outcome.proof
    }

    /// Returns the mounts directly below `path`. Deeper mounts move along with them.
    fn directly_below(&self, path: &str) -> Vec<MountedPath> {
        let granted = self.granted.iter().map(|(path, granted)| (path, granted.mount_id));
        let all = self.fixed.iter().map(|(path, id)| (path, *id)).chain(granted);
        let mut below: Vec<MountedPath> = all
            .filter(|(other, _)| is_below(other, path))
            .map(|(path, mount_id)| MountedPath { path: path.clone(), mount_id })
            .collect();
        let paths: Vec<String> = below.iter().map(|mounted| mounted.path.clone()).collect();
        below.retain(|mounted| !paths.iter().any(|between| is_below(&mounted.path, between)));
        below
    }

    fn check_path(&self, path: &str) -> Result<(), MountError> {
        if !is_normal(path) {
            return Err(MountError::refused(
                MountRefusal::BadPath,
                format!(
                    "`{}` is not an absolute path without `.`, `..` or doubled slashes",
                    path.escape_default()
                ),
            ));
        }
        let is_kernel_path = ["/proc", "/sys", "/dev"].iter().any(|own| path == *own || is_below(path, own));
        if is_kernel_path || self.fixed.contains_key(path) {
            return Err(MountError::refused(
                MountRefusal::Reserved,
                format!("`{path}` belongs to the sandbox itself and cannot be granted"),
            ));
        }
        Ok(())
    }
}

fn not_granted(path: &str) -> MountError {
    MountError::refused(MountRefusal::NotGranted, format!("`{path}` is not granted"))
}

impl MountError {
    fn refused(code: MountRefusal, message: String) -> Self {
        Self::Refused { code, message }
    }

    /// Converts a kernel error that has no refusal code of its own.
    fn kernel(doing: &str, path: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        Self::refused(MountRefusal::Kernel, format!("{doing} `{path}` failed: {error}"))
    }
}
