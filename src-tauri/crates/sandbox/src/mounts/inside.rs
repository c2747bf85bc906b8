//! Changing the mounts of a sandbox from inside its namespaces, in a child that enters them and ends.
//!
//! - The child goes through the user namespace that owns the mount namespace, which is not the one the server is in.
//! - A change is checked as far as can be before it begins. If it fails half-way all the same, the answer is
//!   [`MountError::Broken`], and the sandbox ends: no state in between is ever reported as done.

mod point;
mod release;

use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    os::unix::net::UnixStream,
};

use rustix::{
    fs::{Mode, OFlags, fstat, open, openat},
    io::Errno,
    thread::{LinkNameSpaceType, move_into_link_name_space},
};
use serde::{Deserialize, Serialize};

pub(super) use point::CreatedPoint;
pub(super) use release::UnmountOutcome;

use super::MountError;
use crate::{
    autostart::name_text::raw,
    control::{MountRefusal, UnmountProof},
    fd_passing,
    mountinfo::MountInfo,
    place::{FileKind, is_below, mount_id, open_plain, open_plain_end},
    sys, tree,
};

/// The namespaces of a running sandbox.
#[derive(Debug)]
pub(crate) struct SandboxNamespaces {
    user: OwnedFd,
    mounts: OwnedFd,
    /// `/proc/PID` of its first process, seen from outside.
    process: OwnedFd,
    /// The mount id of its root.
    root_id: u64,
    /// The mount id of its private `/tmp`.
    tmp_id: Option<u64>,
}

/// The change at one path: what goes, what comes, and what is to stay on top.
#[derive(Debug)]
pub(super) struct MountChange {
    pub(super) old: Option<MountedPath>,
    pub(super) new: Option<NewMount>,
    pub(super) carried: Vec<MountedPath>,
    pub(super) made: Vec<CreatedPoint>,
    pub(super) path: String,
    /// The place of what goes on the sandbox's own root: there, what lies on it can be put back before it goes.
    pub(super) under: Option<OwnedFd>,
    /// By which mounts a file may still be shown when `old` is gone.
    pub(super) granted: Vec<u64>,
}

/// A mount in the sandbox.
#[derive(Clone, Debug)]
pub(super) struct MountedPath {
    pub(super) path: String,
    pub(super) mount_id: u64,
}

/// A mount to be.
#[derive(Debug)]
pub(super) struct NewMount {
    pub(super) path: String,
    pub(super) kind: FileKind,
}

/// The outcome of a change.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MountOutcome {
    /// Of what went, if something did.
    pub(super) let_go: Option<UnmountOutcome>,
    /// The mount points that exist for us now.
    pub(super) made: Vec<CreatedPoint>,
}

impl SandboxNamespaces {
    /// The sandbox whose first process is `process`, a directory of `/proc`; it has a `/tmp` of its own or not.
    pub(crate) fn of(process: OwnedFd, own_tmp: bool) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = openat(&process, "ns/mnt", flags, Mode::empty())?;
        let user = sys::mount::owning_user_namespace(&mounts)?;
        let root_id = mount_id_of(&process, "root")?;
        // Through the process's root, so that it is the sandbox's.
        let tmp_id = own_tmp.then(|| mount_id_of(&process, "root/tmp")).transpose()?;
        Ok(Self { user, mounts, process, root_id, tmp_id })
    }

    /// Its mount namespace.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.mounts.as_fd()
    }

    /// True when its first process still has the root that it had. One that has been moved to another root, or to other namespaces,
    /// has another.
    pub(crate) fn is_as_entered(&self) -> io::Result<bool> {
        Ok(mount_id_of(&self.process, "root")? == self.root_id)
    }

    /// Carries out `change`, whose new mount is `tree`; gives the place of the sandbox's own root that it was put on, if it
    /// was put there.
    pub(super) fn change(
        &self,
        change: MountChange,
        tree: Option<OwnedFd>,
    ) -> Result<(MountOutcome, Option<OwnedFd>), MountError> {
        let broken = |error: String| MountError::Broken(error);
        let (ours, theirs) = UnixStream::pair().map_err(|error| broken(error.to_string()))?;
        let work = || {
            let done = self.enter().and_then(|inside| inside.carry_out(change, tree, &theirs));
            serde_json::to_vec(&done).unwrap_or_default()
        };
        let said = sys::process::in_fork(work).map_err(|error| broken(error.to_string()))?;
        let outcome = serde_json::from_slice::<Result<MountOutcome, MountError>>(&said)
            .map_err(|error| broken(format!("the child that changes mounts said nothing: {error}")))??;
        drop(theirs);
        Ok((outcome, fd_passing::receive(&ours).ok()))
    }

    /// Puts `tree` over what is at `path`, whatever mount that is on.
    pub(crate) fn cover(&self, path: &str, tree: &OwnedFd) -> io::Result<()> {
        sys::process::try_in_fork(|| {
            let inside = self.enter().map_err(io::Error::other)?;
            Ok(tree::attach(tree, open_plain_end(&inside.root, &*raw(path.trim_start_matches('/')))?)?)
        })
    }

    pub(super) fn enter(&self) -> Result<Inside<'_>, MountError> {
        let entered = || -> io::Result<Inside<'_>> {
            move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
            move_into_link_name_space(self.mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
            let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            Ok(Inside { sandbox: self, root, writable_root: None, made: Vec::new() })
        };
        entered().map_err(|error| MountError::kernel("entering", "the sandbox", error))
    }

    /// The id of the mount that a path in it is on.
    pub(crate) fn mount_at(&self, path: &str) -> io::Result<u64> {
        mount_id_of(&self.process, &format!("root/{}", path.trim_start_matches('/')))
    }

    /// Its first process, a directory of `/proc`.
    pub(super) fn process(&self) -> &OwnedFd {
        &self.process
    }

    /// True when its first process ends or has ended, and so all of it. What cannot be found out counts as running.
    pub(crate) fn has_ended(&self) -> bool {
        let opened = openat(&self.process, "stat", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let stat = opened.map_err(io::Error::from).and_then(|stat| io::read_to_string(File::from(stat)));
        match stat {
            Ok(stat) => is_exiting(&stat),
            Err(error) => error.raw_os_error() == Some(Errno::SRCH.raw_os_error()),
        }
    }

    pub(crate) fn table(&self) -> io::Result<MountInfo> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut text = Vec::new();
        File::from(openat(&self.process, "mountinfo", flags, Mode::empty())?).read_to_end(&mut text)?;
        Ok(MountInfo::parse(&text))
    }
}

/// A process that is in the sandbox's namespaces, with nobody in the sandbox able to see it.
pub(super) struct Inside<'a> {
    sandbox: &'a SandboxNamespaces,
    root: OwnedFd,
    /// A detached copy of the root that can be written, and that only this process sees.
    writable_root: Option<OwnedFd>,
    made: Vec<CreatedPoint>,
}

/// A mount that stays: its root, and where it goes.
struct KeptMount {
    mount: OwnedFd,
    path: String,
    kind: FileKind,
    /// Its place in the new tree, or under what goes, if there is one.
    target: Option<OwnedFd>,
}

impl Inside<'_> {
    /// Carries a change out. What is shown before and after is shown all the time: what comes is there before what goes goes, where the kernel can
    /// do that. `door` takes the place that what comes is put on.
    fn carry_out(
        mut self,
        change: MountChange,
        tree: Option<OwnedFd>,
        door: &UnixStream,
    ) -> Result<MountOutcome, MountError> {
        let MountChange { old, new, carried, made, path, under, granted } = change;
        self.made = made;
        let new = new.zip(tree);
        let mut lost = false;
        let mut staying = Vec::new();
        for placed in &carried {
            match self.pick_up(placed, new.as_ref(), under.as_ref().map(|under| (under, path.as_str()))) {
                Ok(carried) => staying.push(carried),
                // Taking away must not fail because something else has been moved out of reach.
                Err(_) if new.is_none() => lost = true,
                Err(error) => return Err(error),
            }
        }
        let is_beneath =
            old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| self.slide_beneath(old, new));
        let has_place = |carried: &KeptMount| carried.target.is_some() && (is_beneath || new.is_none());
        let (first, last): (Vec<_>, Vec<_>) = staying.into_iter().partition(has_place);
        lost |= self.put_all_down(first, new.is_some())?;
        let aside = old.as_ref().map(|old| self.set_aside(old)).transpose()?;
        if let Some((new, tree)) = new.as_ref().filter(|_| !is_beneath)
            && let Err(error) = self.put(new, tree, door)
        {
            self.tidy();
            return Err(match aside {
                Some(_) => MountError::Broken(error.to_string()),
                None => error,
            });
        }
        lost |= self.put_all_down(last, new.is_some())?;
        let mut let_go = aside.map(|aside| self.release(aside, &path, &granted)).transpose()?;
        if let Some(let_go) = let_go.as_mut().filter(|_| lost) {
            let_go.proof = UnmountProof::Held;
        }
        self.tidy();
        Ok(MountOutcome { let_go, made: self.made })
    }

    /// Mounts it.
    fn put(&mut self, new: &NewMount, tree: &OwnedFd, door: &UnixStream) -> Result<(), MountError> {
        let point = self.mount_point(&new.path, new.kind)?;
        // Nobody in the sandbox can move anything there.
        let is_root = mount_id(&point).is_ok_and(|id| id == self.sandbox.root_id);
        tree::attach(tree, &point).map_err(|error| MountError::kernel("mounting", &new.path, error))?;
        if is_root {
            // Without it, what lies on this mount is put back a moment after that has gone.
            let _ = fd_passing::send(door, &point);
        }
        Ok(())
    }

    /// Puts what comes under what goes, which hides it until then; whether that could be done.
    fn slide_beneath(&self, old: &MountedPath, (new, tree): &(NewMount, OwnedFd)) -> bool {
        let top = open_plain(&self.root, &new.path).ok();
        let top = top.filter(|top| mount_id(top) == Ok(old.mount_id));
        top.is_some_and(|top| tree::attach_beneath(tree, &top).is_ok())
    }

    /// True when one of them is lost; that is an error where something else comes.
    fn put_all_down(&mut self, staying: Vec<KeptMount>, comes: bool) -> Result<bool, MountError> {
        let mut lost = false;
        for carried in staying {
            match self.put_down(carried) {
                Ok(()) => {}
                Err(_) if !comes => lost = true,
                Err(error) => return Err(MountError::Broken(error.to_string())),
            }
        }
        Ok(lost)
    }

    fn pick_up(
        &mut self,
        placed: &MountedPath,
        new: Option<&(NewMount, OwnedFd)>,
        under: Option<(&OwnedFd, &str)>,
    ) -> Result<KeptMount, MountError> {
        let path = placed.path.clone();
        let no_place = |error| {
            let message = format!("`{path}` cannot be kept where it is: {error}");
            MountError::refused(MountRefusal::NoMountPoint, message)
        };
        let mount = open_plain(&self.root, &path).map_err(no_place)?;
        let stat = fstat(&mount).map_err(no_place)?;
        let kind = FileKind::of(&stat).ok_or_else(|| no_place(Errno::INVAL))?;
        if mount_id(&mount).map_err(no_place)? != placed.mount_id {
            return Err(no_place(Errno::STALE));
        }
        let target = match (new, under) {
            (Some((new, tree)), _) if is_below(&path, &new.path) => {
                let relative = path.get(new.path.len() + 1..).unwrap_or_default();
                Some(open_plain(tree, relative).map_err(no_place)?)
            }
            (None, Some((under, above))) => {
                let under = under.try_clone().ok();
                under.and_then(|under| self.point_below(under, above, &path, kind).ok())
            }
            (Some(_) | None, _) => None,
        };
        Ok(KeptMount { mount, path, kind, target })
    }

    fn put_down(&mut self, carried: KeptMount) -> Result<(), MountError> {
        let target = match carried.target {
            Some(target) => target,
            None => self.mount_point(&carried.path, carried.kind)?,
        };
        tree::attach(&carried.mount, &target)
            .map_err(|error| MountError::kernel("keeping", &carried.path, error))
    }
}

/// The mount id of a place as a process sees it, which is a directory of `/proc`.
fn mount_id_of(process: &OwnedFd, place: &str) -> io::Result<u64> {
    Ok(mount_id(openat(process, place, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)?)
}

/// True when a process ends, by its line in `/proc`: proc_pid_stat(5). It gives up its mounts before it is a zombie.
fn is_exiting(stat: &str) -> bool {
    /// `PF_EXITING` in the kernel's `include/linux/sched.h`.
    const EXITING: u64 = 0x4;
    // The name may hold anything; what is counted comes after the parenthesis that ends it, the state first.
    let flags = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ends_is_told_from_one_that_runs() {
        assert!(!is_exiting(&std::fs::read_to_string("/proc/self/stat").unwrap()));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let path = format!("/proc/{}/stat", ended.id());
        // Not waited for, it stays a zombie.
        while !is_exiting(&std::fs::read_to_string(&path).unwrap()) {
            std::thread::yield_now();
        }
        ended.wait().unwrap();
        assert!(!is_exiting("1 (a) 4) S 0 0 0 0 0 0 0"));
        assert!(!is_exiting(""));
    }
}
