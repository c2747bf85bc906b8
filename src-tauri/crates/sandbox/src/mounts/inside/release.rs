//! Releases a mount and proves that nothing uses it any more.
//!
//! - The kernel provides the proof: an unmount fails while a descriptor, mapping or working directory refers to the
//!   mount, or a descriptor is in flight in a socket. A scan of `/proc` would miss the last case.
//! - INVARIANT: the mount is first made read-only, so that its masks can be removed safely. The kernel refuses this
//!   while a process has a file in the mount open for writing.
//! - A file that another grant still shows at the same path is not revoked, so processes may continue reading it.
//! - A mount that was set aside has no path in the sandbox, even if the proof fails later.
//! - The kernel locks a tree together with submounts that existed when the sandbox started. If such a tree cannot be
//!   unmounted, it is detached and reported as held.

use std::{
    ffi::{OsStr, OsString},
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::fstat,
    io::Errno,
    mount::{UnmountFlags, unmount},
};

use serde::{Deserialize, Serialize};

use super::{Inside, MountError, MountedPath};
use crate::{
    control::UnmountProof,
    place::{FileId, FileKind, mount_id, open_plain},
    sys::mount::{Attributes, set_attributes},
    tree::attach,
};

/// Folder for mounts that are being released, on the read-only root where the sandbox cannot move it.
const ASIDE: &str = "/.ironcurtain-aside";
/// Maximum time to wait for a file to be closed. The kernel completes a close when the closing process returns from
/// the call.
const TIMEOUT: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_micros(500);
/// Maximum number of attempts to find a mount while its directory is being renamed.
const TRIES: usize = 64;

/// Mount that no longer has a path in the sandbox.
pub(super) enum SetAside {
    /// The mount is at [`ASIDE`].
    Waiting(u64, FileId),
    /// The mount has already been removed, with this outcome.
    Ended(UnmountOutcome),
}

/// Outcome of releasing a mount.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in super::super) struct UnmountOutcome {
    pub(in super::super) proof: UnmountProof,
    /// Id of the mount that now shows the same file at the path, if there is one.
    pub(in super::super) instead: Option<u64>,
    /// `true` if a process may still have one of the mount's files open for reading.
    pub(in super::super) loose: bool,
}

impl UnmountOutcome {
    fn proved() -> Self {
        Self { proof: UnmountProof::Proved, instead: None, loose: false }
    }

    fn held() -> Self {
        Self { proof: UnmountProof::Held, ..Self::proved() }
    }
}

impl Inside<'_> {
    /// Moves a mount to [`ASIDE`], away from its path.
    pub(super) fn set_aside(&mut self, old: &MountedPath) -> Result<SetAside, MountError> {
        let broken = |why: String| MountError::Broken(format!("failed to unmount `{}`: {why}", old.path));
        for _ in 0..TRIES {
            let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
            let Some(entry) = table.get(old.mount_id) else {
                // The directory under the mount was removed, so the kernel detached the mount.
                return Ok(SetAside::Ended(UnmountOutcome::held()));
            };
            let Ok(mount) = open_plain(&self.root, &entry.point) else { continue };
            if mount_id(&mount) != Ok(old.mount_id) {
                continue;
            }
            let stat = fstat(&mount).map_err(|error| broken(error.to_string()))?;
            let kind =
                FileKind::of(&stat).ok_or_else(|| broken("it is neither a file nor a directory".into()))?;
            let point = self.mount_point(ASIDE, kind).map_err(|error| broken(error.to_string()))?;
            return match attach(&mount, &point) {
                Ok(()) => Ok(SetAside::Waiting(old.mount_id, FileId::of(&stat))),
                // The kernel cannot move a mount whose root was deleted on the host, so the mount is released in place.
                Err(Errno::NOENT) => {
                    drop(mount);
                    Ok(SetAside::Ended(self.end(old.mount_id, &entry.point, None)?))
                }
                Err(error) => Err(broken(error.to_string())),
            };
        }
        Err(broken("its directory is renamed continuously".into()))
    }

    /// Releases a mount that was set aside from `path`. `granted` lists the mounts that may still show the same file
    /// there.
    pub(super) fn release(
        &self,
        aside: SetAside,
        path: &str,
        granted: &[u64],
    ) -> Result<UnmountOutcome, MountError> {
        match aside {
            SetAside::Waiting(id, identity) => {
                self.end(id, OsStr::new(ASIDE), self.instead(path, identity, granted))
            }
            SetAside::Ended(let_go) => Ok(let_go),
        }
    }

    /// Returns the id of the mount in `granted` that now shows the same file at `path`, if any.
    fn instead(&self, path: &str, identity: FileId, granted: &[u64]) -> Option<u64> {
        let place = open_plain(&self.root, path).ok()?;
        let mount_id = mount_id(&place).ok().filter(|id| granted.contains(id))?;
        let is_same = FileId::of(&fstat(&place).ok()?) == identity;
        is_same.then_some(mount_id)
    }

    /// Unmounts the mount `id` at `point`, or detaches it if that fails.
    fn end(&self, id: u64, point: &OsStr, instead: Option<u64>) -> Result<UnmountOutcome, MountError> {
        let broken = |why: String| {
            MountError::Broken(format!("failed to release the mount at `{}`: {why}", point.display()))
        };
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        let deadline = Instant::now() + TIMEOUT;
        // The mount must be read-only before the masks on top of it are removed.
        let closed = self.close_for_writing(id, point, deadline);
        let unmounted = |point: &OsString| unmount_plainly(point, deadline);
        if closed != Err(Errno::BUSY) && table.subtree(id).iter().all(unmounted) {
            return Ok(UnmountOutcome { instead, ..UnmountOutcome::proved() });
        }
        unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .map_err(|error| broken(error.to_string()))?;
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        if table.get(id).is_some() {
            return Err(broken("it is still mounted".into()));
        }
        let is_read_on = instead.is_some() && closed.is_ok();
        Ok(if is_read_on {
            UnmountOutcome { instead, loose: true, ..UnmountOutcome::proved() }
        } else {
            UnmountOutcome::held()
        })
    }

    /// Makes the mount `id` at `point` and all mounts on top of it read-only. Fails with `EBUSY` while a process has a
    /// file in the mount open for writing.
    fn close_for_writing(&self, id: u64, point: &OsStr, deadline: Instant) -> Result<(), Errno> {
        let mount = open_plain(&self.root, point)?;
        if mount_id(&mount)? != id {
            return Err(Errno::STALE);
        }
        let read_only = Attributes { set: libc::MOUNT_ATTR_RDONLY, recursive: true, ..Attributes::default() };
        until_free(deadline, || {
            let made = set_attributes(&mount, read_only);
            made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))
        })
    }
}

fn unmount_plainly(point: &OsStr, deadline: Instant) -> bool {
    until_free(deadline, || unmount(point, UnmountFlags::NOFOLLOW)).is_ok()
}

/// Retries `attempt` while it fails with `EBUSY`. The last attempt starts after the deadline, even if this thread was
/// not scheduled for a while.
fn until_free(deadline: Instant, attempt: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        let is_last = Instant::now() >= deadline;
        match attempt() {
            Err(Errno::BUSY) if !is_last => thread::sleep(STEP),
            done => return done,
        }
    }
}
