//! Changes a sandbox's mounts in a short-lived child process that enters the sandbox's namespaces.
//!
//! - The child enters the user namespace that owns the sandbox's mount namespace. The server's own user namespace is
//!   nested inside it.
//! - Changes are checked in advance as far as possible. A change that fails partway is [`MountError::Broken`] and
//!   terminates the sandbox, so an intermediate state is never reported as success.

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
    autostart::name_text::to_os_str,
    control::{MountRefusal, UnmountProof},
    fd_passing,
    mountinfo::MountInfo,
    nofollow::{FileKind, is_below, mount_id, open_no_symlinks, open_nofollow},
    sys, tree,
};

/// Namespaces of a running sandbox.
#[derive(Debug)]
pub(crate) struct SandboxNamespaces {
    user: OwnedFd,
    mounts: OwnedFd,
    /// `/proc/PID` of the sandbox's init, as seen from outside.
    process: OwnedFd,
    /// Mount id of the sandbox's root.
    root_id: u64,
    /// Mount id of the sandbox's private `/tmp`, if it has one.
    tmp_id: Option<u64>,
}

/// Change at one path: the old mount, the new mount, and the mounts on top of them that stay.
#[derive(Debug)]
pub(super) struct MountChange {
    pub(super) old: Option<MountedPath>,
    pub(super) new: Option<NewMount>,
    pub(super) nested: Vec<MountedPath>,
    pub(super) created_points: Vec<CreatedPoint>,
    pub(super) path: String,
    /// Directory of the sandbox's root that the old mount covers. Mounts on top of the old mount can move there before
    /// it is removed.
    pub(super) covered_dir: Option<OwnedFd>,
    /// Ids of the mounts that may still show the same file after `old` is removed.
    pub(super) granted: Vec<u64>,
}

/// Existing mount in the sandbox.
#[derive(Clone, Debug)]
pub(super) struct MountedPath {
    pub(super) path: String,
    pub(super) mount_id: u64,
}

/// Mount to add.
#[derive(Debug)]
pub(super) struct NewMount {
    pub(super) path: String,
    pub(super) kind: FileKind,
}

/// Outcome of a change, as reported by the child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct MountOutcome {
    /// Outcome of releasing the old mount, if there was one.
    pub(super) unmount_outcome: Option<UnmountOutcome>,
    /// Created mount points that exist after the change.
    pub(super) created_points: Vec<CreatedPoint>,
}

impl SandboxNamespaces {
    /// Opens the namespaces of the sandbox. `process` is the `/proc` directory of its init.
    pub(crate) fn open(process: OwnedFd, own_tmp: bool) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mounts = openat(&process, "ns/mnt", flags, Mode::empty())?;
        let user = sys::mount::owning_user_namespace(&mounts)?;
        let root_id = mount_id_of(&process, "root")?;
        // This path is resolved in the sandbox, because it starts at the process's root.
        let tmp_id = own_tmp.then(|| mount_id_of(&process, "root/tmp")).transpose()?;
        Ok(Self { user, mounts, process, root_id, tmp_id })
    }

    /// Returns the sandbox's mount namespace.
    pub(crate) fn namespace(&self) -> BorrowedFd<'_> {
        self.mounts.as_fd()
    }

    /// Returns the sandbox's network namespace.
    pub(crate) fn network(&self) -> io::Result<OwnedFd> {
        Ok(openat(&self.process, "ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?)
    }

    /// Returns `true` if the sandbox's init has the same root as when its namespaces were opened. A different root
    /// means that the init has changed its root or mount namespace.
    pub(crate) fn has_original_root(&self) -> io::Result<bool> {
        Ok(mount_id_of(&self.process, "root")? == self.root_id)
    }

    /// Applies `change` with `tree` as the new mount, if there is one. If the new mount covers a directory of the
    /// sandbox's root, returns that directory.
    pub(super) fn change(
        &self,
        change: MountChange,
        tree: Option<OwnedFd>,
    ) -> Result<(MountOutcome, Option<OwnedFd>), MountError> {
        let broken = |error: String| MountError::Broken(error);
        let (ours, theirs) = UnixStream::pair().map_err(|error| broken(error.to_string()))?;
        let work = || {
            let done = self.enter().and_then(|inside| inside.apply_change(change, tree, &theirs));
            serde_json::to_vec(&done).unwrap_or_default()
        };
        let report = sys::process::run_in_fork(work).map_err(|error| broken(error.to_string()))?;
        let outcome = serde_json::from_slice::<Result<MountOutcome, MountError>>(&report)
            .map_err(|error| broken(format!("no report from the child that changes mounts: {error}")))??;
        drop(theirs);
        Ok((outcome, fd_passing::receive(&ours).ok()))
    }

    /// Mounts `tree` at `path`, on top of any existing mount there.
    pub(crate) fn cover(&self, path: &str, tree: &OwnedFd) -> io::Result<()> {
        sys::process::try_run_in_fork(|| {
            let inside = self.enter().map_err(io::Error::other)?;
            Ok(tree::attach(tree, open_nofollow(&inside.root, &*to_os_str(path.trim_start_matches('/')))?)?)
        })
    }

    pub(super) fn enter(&self) -> Result<EnteredSandbox<'_>, MountError> {
        let entered = || -> io::Result<EnteredSandbox<'_>> {
            move_into_link_name_space(self.user.as_fd(), Some(LinkNameSpaceType::User))?;
            move_into_link_name_space(self.mounts.as_fd(), Some(LinkNameSpaceType::Mount))?;
            let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            Ok(EnteredSandbox { sandbox: self, root, writable_root: None, created_points: Vec::new() })
        };
        entered().map_err(|error| MountError::kernel("entering", "the sandbox", error))
    }

    /// Returns the id of the mount that contains a path in the sandbox.
    pub(crate) fn mount_at(&self, path: &str) -> io::Result<u64> {
        mount_id_of(&self.process, &format!("root/{}", path.trim_start_matches('/')))
    }

    /// Returns the `/proc` directory of the sandbox's init.
    pub(super) fn process(&self) -> &OwnedFd {
        &self.process
    }

    /// Returns `true` if the sandbox's init is exiting or has exited. If the state is unknown, the init counts as
    /// running.
    pub(crate) fn is_exiting(&self) -> bool {
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

/// Child process inside the sandbox's namespaces, invisible to the sandbox's processes.
pub(super) struct EnteredSandbox<'a> {
    sandbox: &'a SandboxNamespaces,
    root: OwnedFd,
    /// Writable, detached copy of the root that only this process can access.
    writable_root: Option<OwnedFd>,
    created_points: Vec<CreatedPoint>,
}

/// Mount to keep, and its new location.
struct KeptMount {
    mount: OwnedFd,
    path: String,
    kind: FileKind,
    /// Location in the new tree or in the directory that the old mount covers, or `None` if neither contains the path.
    target: Option<OwnedFd>,
}

impl EnteredSandbox<'_> {
    /// Carries out a change. Where the kernel can add the new mount beneath the old one, the path stays visible
    /// throughout. Sends to `socket` the directory that the new mount covers.
    fn apply_change(
        mut self,
        change: MountChange,
        tree: Option<OwnedFd>,
        socket: &UnixStream,
    ) -> Result<MountOutcome, MountError> {
        let MountChange { old, new, nested, created_points, path, covered_dir, granted } = change;
        self.created_points = created_points;
        let new = new.zip(tree);
        let mut lost = false;
        let mut kept = Vec::new();
        for mounted in &nested {
            match self.open_nested(
                mounted,
                new.as_ref(),
                covered_dir.as_ref().map(|covered_dir| (covered_dir, path.as_str())),
            ) {
                Ok(nested) => kept.push(nested),
                // Removing a mount must succeed even if a mount on top of it has been moved out of reach.
                Err(_) if new.is_none() => lost = true,
                Err(error) => return Err(error),
            }
        }
        let is_beneath =
            old.as_ref().zip(new.as_ref()).is_some_and(|(old, new)| self.attach_beneath(old, new));
        let can_reattach = |nested: &KeptMount| nested.target.is_some() && (is_beneath || new.is_none());
        let (first, last): (Vec<_>, Vec<_>) = kept.into_iter().partition(can_reattach);
        lost |= self.reattach_all(first, new.is_some())?;
        let aside = old.as_ref().map(|old| self.move_aside(old)).transpose()?;
        if let Some((new, tree)) = new.as_ref().filter(|_| !is_beneath)
            && let Err(error) = self.mount_new(new, tree, socket)
        {
            self.remove_unused_points();
            return Err(match aside {
                Some(_) => MountError::Broken(error.to_string()),
                None => error,
            });
        }
        lost |= self.reattach_all(last, new.is_some())?;
        let mut unmount_outcome = aside.map(|aside| self.release(aside, &path, &granted)).transpose()?;
        if let Some(unmount_outcome) = unmount_outcome.as_mut().filter(|_| lost) {
            unmount_outcome.proof = UnmountProof::StillOpen;
        }
        self.remove_unused_points();
        Ok(MountOutcome { unmount_outcome, created_points: self.created_points })
    }

    /// Mounts the new tree at its path.
    fn mount_new(&mut self, new: &NewMount, tree: &OwnedFd, socket: &UnixStream) -> Result<(), MountError> {
        let point = self.mount_point(&new.path, new.kind)?;
        // Processes in the sandbox cannot move directories on its root.
        let is_root = mount_id(&point).is_ok_and(|id| id == self.sandbox.root_id);
        tree::attach(tree, &point).map_err(|error| MountError::kernel("mounting", &new.path, error))?;
        if is_root {
            // Ignores the error: without the directory, mounts on top of this mount return only after it is removed.
            let _ = fd_passing::send(socket, &point);
        }
        Ok(())
    }

    /// Mounts the new tree beneath the old mount, where it is hidden until the old mount is removed. Returns `false`
    /// if the kernel does not support this.
    fn attach_beneath(&self, old: &MountedPath, (new, tree): &(NewMount, OwnedFd)) -> bool {
        let top = open_no_symlinks(&self.root, &new.path).ok();
        let top = top.filter(|top| mount_id(top) == Ok(old.mount_id));
        top.is_some_and(|top| tree::attach_beneath(tree, &top).is_ok())
    }

    /// Moves the kept mounts back. Returns `true` if a mount was lost. If the change adds a mount, a lost mount is an
    /// error.
    fn reattach_all(&mut self, kept: Vec<KeptMount>, adds_mount: bool) -> Result<bool, MountError> {
        let mut lost = false;
        for nested in kept {
            match self.reattach(nested) {
                Ok(()) => {}
                Err(_) if !adds_mount => lost = true,
                Err(error) => return Err(MountError::Broken(error.to_string())),
            }
        }
        Ok(lost)
    }

    fn open_nested(
        &mut self,
        mounted: &MountedPath,
        new: Option<&(NewMount, OwnedFd)>,
        covered_dir: Option<(&OwnedFd, &str)>,
    ) -> Result<KeptMount, MountError> {
        let path = mounted.path.clone();
        let no_mount_point = |error| {
            let message = format!("failed to keep `{path}` in place: {error}");
            MountError::refused(MountRefusal::NoMountPoint, message)
        };
        let mount = open_no_symlinks(&self.root, &path).map_err(no_mount_point)?;
        let stat = fstat(&mount).map_err(no_mount_point)?;
        let kind = FileKind::from_stat(&stat).ok_or_else(|| no_mount_point(Errno::INVAL))?;
        if mount_id(&mount).map_err(no_mount_point)? != mounted.mount_id {
            return Err(no_mount_point(Errno::STALE));
        }
        let target = match (new, covered_dir) {
            (Some((new, tree)), _) if is_below(&path, &new.path) => {
                let relative = path.get(new.path.len() + 1..).unwrap_or_default();
                Some(open_no_symlinks(tree, relative).map_err(no_mount_point)?)
            }
            (None, Some((covered_dir, above))) => {
                let covered_dir = covered_dir.try_clone().ok();
                covered_dir
                    .and_then(|covered_dir| self.mount_point_below(covered_dir, above, &path, kind).ok())
            }
            (Some(_) | None, _) => None,
        };
        Ok(KeptMount { mount, path, kind, target })
    }

    fn reattach(&mut self, nested: KeptMount) -> Result<(), MountError> {
        let target = match nested.target {
            Some(target) => target,
            None => self.mount_point(&nested.path, nested.kind)?,
        };
        tree::attach(&nested.mount, &target)
            .map_err(|error| MountError::kernel("keeping", &nested.path, error))
    }
}

/// Returns the mount id of a path relative to `process`, a process's directory in `/proc`.
fn mount_id_of(process: &OwnedFd, path: &str) -> io::Result<u64> {
    Ok(mount_id(openat(process, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?)?)
}

/// Returns `true` if a process is exiting, according to its `stat` line (`proc_pid_stat(5)`). Exiting processes
/// release their mounts before they become zombies.
fn is_exiting(stat: &str) -> bool {
    /// `PF_EXITING` in the kernel's `include/linux/sched.h`.
    const EXITING: u64 = 0x4;
    // The process name may contain any character. The state follows its closing parenthesis.
    let flags = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(6)?.parse::<u64>().ok());
    flags.is_some_and(|flags| flags & EXITING != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_exiting_detects_exit() {
        assert!(!is_exiting(&std::fs::read_to_string("/proc/self/stat").unwrap()));
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let path = format!("/proc/{}/stat", ended.id());
        // The child is not reaped yet, so it stays a zombie.
        while !is_exiting(&std::fs::read_to_string(&path).unwrap()) {
            std::thread::yield_now();
        }
        ended.wait().unwrap();
        assert!(!is_exiting("1 (a) 4) S 0 0 0 0 0 0 0"));
        assert!(!is_exiting(""));
    }
}
