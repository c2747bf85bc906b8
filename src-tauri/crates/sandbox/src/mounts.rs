//! Granted paths in a running sandbox: which there are, and the one way they change.
//!
//! - INVARIANT: a mount lies on the nearest mount around it: a deeper grant on the wider one, whichever came first. So
//!   the access of a path is that of the deepest grant that covers it.
//! - INVARIANT: what the supervisor opened, without following any symlink, is what gets mounted, at the same path.
//! - INVARIANT: nothing is ever created in the host's tree. Mount points are made on the sandbox's own root or its
//!   private `/tmp`, and removed when nothing needs them.

mod apart;
mod initial;
mod inside;
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
    place::{FileId, is_at_or_below, is_below},
    spec::{Mount, MountAccess, is_normal},
    special::{NotWatched, SpecialLink, is_folder},
};

/// The granted paths of one sandbox.
#[derive(Debug)]
pub(crate) struct Mounts {
    sandbox: SandboxNamespaces,
    /// The parts of the host that are hidden or closed, for whatever is granted around it.
    view: MountPlan,
    /// The session directory and the programs, by path: part of the sandbox, kept on top of wider grants.
    fixed: BTreeMap<String, u64>,
    granted: BTreeMap<String, GrantedMount>,
    /// The places of those that are put on the sandbox's own root.
    under: BTreeMap<String, OwnedFd>,
    /// Granted paths that something may still hold a file of from before, for reading.
    loose: BTreeSet<String>,
    made: Vec<CreatedPoint>,
    masks: Masks,
    special: SpecialLink,
}

/// One granted path as it is mounted.
#[derive(Clone, Copy, Debug)]
struct GrantedMount {
    access: MountAccess,
    mount_id: u64,
    identity: FileId,
}

/// The reasons why a mount did not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub(crate) enum MountError {
    /// Nothing changed.
    #[error("{message}")]
    Refused {
        /// For programs.
        code: MountRefusal,
        /// For people.
        message: String,
    },
    /// The sandbox is not as it is thought to be: it must end.
    #[error("the sandbox is out of order: {0}")]
    Broken(String),
}

impl Mounts {
    /// The mounts of a sandbox that has none yet but `fixed`, with their ids; `shown` is what of the host is mounted in it
    /// already, and whether it can be written.
    pub(crate) fn new(
        sandbox: SandboxNamespaces,
        fixed: BTreeMap<String, u64>,
        view: MountPlan,
        shown: &BTreeMap<String, bool>,
        special: SpecialLink,
    ) -> io::Result<Self> {
        let mut masks = Masks::of(sandbox.process())?;
        for (path, writable) in shown {
            // What is not writable needs no closing.
            let hidden = || view.hidden_within(std::slice::from_ref(path));
            masks.put(path, &if *writable { view.below(path) } else { hidden() });
        }
        let granted = BTreeMap::new();
        let (under, loose) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { sandbox, view, fixed, granted, under, loose, made: Vec::new(), masks, special })
    }

    /// The sandbox they are in.
    pub(crate) fn sandbox(&self) -> &SandboxNamespaces {
        &self.sandbox
    }

    /// Has news when a path may not be masked any more.
    pub(crate) fn news(&self) -> PollFd<'_> {
        self.masks.news()
    }

    /// Has news when a pipe or a socket has appeared.
    pub(crate) fn special_news(&self) -> PollFd<'_> {
        self.special.news()
    }

    /// Masks again what was hidden or closed and is not any more, and says which paths those were. When the sandbox ends, all
    /// of its mounts go: then none.
    ///
    /// Also masks pipes and sockets that have appeared.
    ///
    /// # Errors
    /// A path cannot be masked, or what may appear is not known any more: the sandbox has to end.
    pub(crate) fn restore_masks(&mut self) -> io::Result<Vec<RestoredMask>> {
        let Self { masks, sandbox, granted, special, .. } = self;
        masks.add_special(&special.appeared()?)?;
        let is_written =
            |path: &str| granted.get(path).is_some_and(|granted| granted.access == MountAccess::ReadWrite);
        masks
            .restore(sandbox, is_written)
            .or_else(|error| if sandbox.has_ended() { Ok(vec![]) } else { Err(error) })
    }

    /// Mounts a path, or widens one that is mounted.
    pub(crate) fn add(&mut self, mount: &Mount) -> Result<(), MountError> {
        let Mount { path, access, closed, kept, named, .. } = mount;
        self.check_path(path)?;
        let mut plan = self.view.below(path);
        if *access == MountAccess::ReadWrite {
            let is_in = |shut: &String| is_at_or_below(path, shut);
            if kept.iter().any(is_in) || !named && closed.iter().any(is_in) {
                let message =
                    format!("`{path}` is never writable: programs of the person's run what it says");
                return Err(MountError::refused(MountRefusal::Protected, message));
            }
            plan.close_in(path, closed);
            plan.keep_in(path, kept);
        }
        let watched = !mount.file && self.mask_special(path, &mut plan)?;
        match self.add_planned(mount, &plan, watched) {
            Ok(true) => self.masks.put(path, &plan),
            Ok(false) => {}
            Err(error) => {
                if !self.granted.contains_key(path) {
                    self.forget_special(path)?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// True when anything has changed by it.
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
                    format!("`{path}` is granted for writing: narrow it"),
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

    /// Shows a path for reading that was shown for writing, and says whether anything can still write there.
    pub(crate) fn narrow(&mut self, path: &str, file: bool) -> Result<UnmountProof, MountError> {
        let before = self.granted.get(path).copied().ok_or_else(|| not_granted(path))?;
        let mut plan = self.view.below(path);
        let watched = !file && self.mask_special(path, &mut plan)?;
        let source = MountSource::open(path, MountAccess::ReadOnly, &plan)?;
        source.check_kind(path, file)?;
        source.check_watched(path, watched)?;
        if source.identity != before.identity {
            let message = format!("`{path}` is not what was granted any more");
            return Err(MountError::refused(MountRefusal::Kind, message));
        }
        let granted = GrantedMount {
            access: MountAccess::ReadOnly,
            mount_id: source.mount_id,
            identity: source.identity,
        };
        let proof = self.change(path, Some(before.mount_id), Some(source))?;
        self.granted.insert(path.to_owned(), granted);
        self.masks.put(path, &plan);
        Ok(proof.unwrap_or(UnmountProof::Held))
    }

    /// Takes a path away and says whether anything of it is left.
    pub(crate) fn remove(&mut self, path: &str) -> Result<UnmountProof, MountError> {
        let Some(granted) = self.granted.get(path).copied() else {
            return Err(not_granted(path));
        };
        let proof = self.change(path, Some(granted.mount_id), None)?;
        self.granted.remove(path);
        self.masks.take_away(path);
        self.forget_special(path)?;
        Ok(proof.unwrap_or(UnmountProof::Held))
    }

    fn forget_special(&mut self, path: &str) -> Result<(), MountError> {
        self.special.forget(path).map_err(|error| MountError::Broken(error.to_string()))
    }

    /// Has a folder watched for pipes and sockets, and those in it masked by the plan. Returns false where no folder is.
    fn mask_special(&mut self, path: &str, plan: &mut MountPlan) -> Result<bool, MountError> {
        if !is_folder(path) {
            return Ok(false);
        }
        // In the folder of the session they are the sandbox's own, and program folders are watched by themselves.
        let hidden = plan.hidden().chain(self.fixed.keys()).cloned().collect();
        let found = self.special.watch(path, hidden).map_err(|error| match error {
            NotWatched::Refused(reason) => MountError::refused(MountRefusal::Special, reason),
            NotWatched::Broken(error) => MountError::Broken(error.to_string()),
        })?;
        plan.mask_special(found);
        Ok(true)
    }

    /// The granted paths, in path order.
    pub(crate) fn list(&self) -> Vec<Mount> {
        self.granted.iter().map(|(path, granted)| Mount::new(path, granted.access)).collect()
    }

    /// Changes what is mounted at `path`; gives what is known of what was there, if something was.
    fn change(
        &mut self,
        path: &str,
        old: Option<u64>,
        new: Option<MountSource>,
    ) -> Result<Option<UnmountProof>, MountError> {
        let comes = new.as_ref().map(|new| new.mount_id);
        let others = self.granted.values().map(|granted| granted.mount_id).filter(|id| Some(*id) != old);
        let granted = others.chain(comes).collect();
        let new = new.map(|new| (NewMount { path: path.to_owned(), kind: new.kind }, new.tree));
        let (new, tree) = new.unzip();
        // What lies on another grant goes back onto that.
        let lies_on_root = !self.granted.keys().chain(self.fixed.keys()).any(|above| is_below(path, above));
        let under = if comes.is_none() { self.under.remove(path).filter(|_| lies_on_root) } else { None };
        let change = MountChange {
            old: old.map(|mount_id| MountedPath { path: path.to_owned(), mount_id }),
            new,
            carried: self.directly_below(path),
            made: self.made.clone(),
            path: path.to_owned(),
            under,
            granted,
        };
        let (outcome, under) = self.sandbox.change(change, tree)?;
        self.made = outcome.made;
        self.under.extend(under.map(|under| (path.to_owned(), under)));
        Ok(outcome.let_go.map(|let_go| self.account(path, comes, let_go)))
    }

    /// The knowledge of a mount that was at `path`, and of those that were there before it. What is still shown there by another
    /// one is not taken away until that is.
    fn account(&mut self, path: &str, comes: Option<u64>, let_go: UnmountOutcome) -> UnmountProof {
        let held_before = self.loose.remove(path);
        let Some(instead) = let_go.instead else {
            return if held_before { UnmountProof::Held } else { let_go.proof };
        };
        if held_before || let_go.loose {
            let by = |(_, granted): &(&String, &GrantedMount)| granted.mount_id == instead;
            let shown_by = || self.granted.iter().find(by).map(|(path, _)| path.clone());
            let shown_by = if comes == Some(instead) { Some(path.to_owned()) } else { shown_by() };
            self.loose.extend(shown_by);
        }
        let_go.proof
    }

    /// The mounts below `path` with no other between; what lies on them moves with them.
    fn directly_below(&self, path: &str) -> Vec<MountedPath> {
        let granted = self.granted.iter().map(|(path, granted)| (path, granted.mount_id));
        let all = self.fixed.iter().map(|(path, id)| (path, *id)).chain(granted);
        let mut below: Vec<MountedPath> = all
            .filter(|(other, _)| is_below(other, path))
            .map(|(path, mount_id)| MountedPath { path: path.clone(), mount_id })
            .collect();
        let paths: Vec<String> = below.iter().map(|placed| placed.path.clone()).collect();
        below.retain(|placed| !paths.iter().any(|between| is_below(&placed.path, between)));
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
        let kernels = ["/proc", "/sys", "/dev"].iter().any(|own| path == *own || is_below(path, own));
        if kernels || self.fixed.contains_key(path) {
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

    /// A refusal of the kernel that has no better name.
    fn kernel(doing: &str, path: &str, error: impl Into<io::Error>) -> Self {
        let error = error.into();
        Self::refused(MountRefusal::Kernel, format!("{doing} `{path}` failed: {error}"))
    }
}
