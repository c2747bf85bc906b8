//! Releases a mount and proves that nothing uses it any more.
//!
//! - The kernel provides the proof: an unmount fails while a descriptor, mapping or working directory refers to the
//!   mount, or a descriptor is in flight in a socket. A scan of `/proc` would miss the last case.
//! - INVARIANT: the mount is first made read-only so that its masks can be removed safely. The kernel refuses this
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

use super::{EnteredSandbox, MountError, MountedPath};
use crate::{
    control::UnmountProof,
    nofollow::{FileId, FileKind, mount_id, open_no_symlinks},
    sys::mount::{Attributes, set_attributes},
    tree::attach,
};

/// Folder for mounts that are being released, on the read-only root where the sandbox cannot move it.
const ASIDE_PATH: &str = "/.ironcurtain-aside";
/// Maximum time to wait for a file to be closed. The kernel completes a close when the closing process returns from
/// the call.
const TIMEOUT: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_micros(500);
/// Maximum number of attempts to find a mount while its directory is being renamed.
const MAX_ATTEMPTS: usize = 64;

/// Mount that no longer has a path in the sandbox.
pub(super) enum AsideMount {
    /// The mount is at [`ASIDE_PATH`].
    Moved(u64, FileId),
    /// The mount has already been removed, with this outcome.
    Released(UnmountOutcome),
}

/// Outcome of releasing a mount.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in super::super) struct UnmountOutcome {
    pub(in super::super) proof: UnmountProof,
    /// Id of the mount that now shows the same file at the path, if there is one.
    pub(in super::super) replacement: Option<u64>,
    /// `true` if a process may still have one of the mount's files open for reading.
    pub(in super::super) still_read: bool,
}

impl UnmountOutcome {
    fn proved() -> Self {
        Self { proof: UnmountProof::Proved, replacement: None, still_read: false }
    }

    fn held() -> Self {
        Self { proof: UnmountProof::StillOpen, ..Self::proved() }
    }
}

impl EnteredSandbox<'_> {
    /// Moves a mount to [`ASIDE_PATH`], away from its path.
    pub(super) fn move_aside(&mut self, old: &MountedPath) -> Result<AsideMount, MountError> {
        let broken = |why: String| MountError::Broken(format!("failed to unmount `{}`: {why}", old.path));
        for _ in 0..MAX_ATTEMPTS {
            let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
            let Some(entry) = table.get(old.mount_id) else {
                // The directory under the mount was removed, so the kernel detached the mount.
                return Ok(AsideMount::Released(UnmountOutcome::held()));
            };
            let Ok(mount) = open_no_symlinks(&self.root, &entry.point) else { continue };
            if mount_id(&mount) != Ok(old.mount_id) {
                continue;
            }
            let stat = fstat(&mount).map_err(|error| broken(error.to_string()))?;
            let kind = FileKind::from_stat(&stat)
                .ok_or_else(|| broken("it is neither a file nor a directory".into()))?;
            let point = self.mount_point(ASIDE_PATH, kind).map_err(|error| broken(error.to_string()))?;
            return match attach(&mount, &point) {
                Ok(()) => Ok(AsideMount::Moved(old.mount_id, FileId::from_stat(&stat))),
                // The kernel cannot move a mount whose root was deleted on the host, so the mount is released in place.
                Err(Errno::NOENT) => {
                    drop(mount);
                    Ok(AsideMount::Released(self.unmount_or_detach(old.mount_id, &entry.point, None)?))
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
        aside: AsideMount,
        path: &str,
        granted: &[u64],
    ) -> Result<UnmountOutcome, MountError> {
        match aside {
            AsideMount::Moved(id, identity) => {
                self.unmount_or_detach(id, OsStr::new(ASIDE_PATH), self.replacement(path, identity, granted))
            }
            AsideMount::Released(unmount_outcome) => Ok(unmount_outcome),
        }
    }

    /// Returns the id of the mount in `granted` that now shows the same file at `path`, if any.
    fn replacement(&self, path: &str, identity: FileId, granted: &[u64]) -> Option<u64> {
        let fd = open_no_symlinks(&self.root, path).ok()?;
        let mount_id = mount_id(&fd).ok().filter(|id| granted.contains(id))?;
        let is_same = FileId::from_stat(&fstat(&fd).ok()?) == identity;
        is_same.then_some(mount_id)
    }

    /// Unmounts the mount `id` at `point`, or detaches it if that fails.
    fn unmount_or_detach(
        &self,
        id: u64,
        point: &OsStr,
        replacement: Option<u64>,
    ) -> Result<UnmountOutcome, MountError> {
        let broken = |why: String| {
            MountError::Broken(format!("failed to release the mount at `{}`: {why}", point.display()))
        };
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        let deadline = Instant::now() + TIMEOUT;
        // The mount must be read-only before the masks on top of it are removed.
        let closed = self.make_read_only(id, point, deadline);
        let unmounted = |point: &OsString| try_unmount(point, deadline);
        if closed != Err(Errno::BUSY) && table.subtree(id).iter().all(unmounted) {
            return Ok(UnmountOutcome { replacement, ..UnmountOutcome::proved() });
        }
        unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .map_err(|error| broken(error.to_string()))?;
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        if table.get(id).is_some() {
            return Err(broken("it is still mounted".into()));
        }
        let is_still_read = replacement.is_some() && closed.is_ok();
        Ok(if is_still_read {
            UnmountOutcome { replacement, still_read: true, ..UnmountOutcome::proved() }
        } else {
            UnmountOutcome::held()
        })
    }

    /// Makes the mount `id` at `point` and all mounts on top of it read-only. Fails with `EBUSY` while a process has a
    /// file in the mount open for writing.
    fn make_read_only(&self, id: u64, point: &OsStr, deadline: Instant) -> Result<(), Errno> {
        let mount = open_no_symlinks(&self.root, point)?;
        if mount_id(&mount)? != id {
            return Err(Errno::STALE);
        }
        let read_only = Attributes { set: libc::MOUNT_ATTR_RDONLY, recursive: true, ..Attributes::default() };
        retry_while_busy(deadline, || {
            let made = set_attributes(&mount, read_only);
            made.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::PERM))
        })
    }
}

fn try_unmount(point: &OsStr, deadline: Instant) -> bool {
    retry_while_busy(deadline, || unmount(point, UnmountFlags::NOFOLLOW)).is_ok()
}

/// Retries `attempt` while it fails with `EBUSY`. The last attempt starts after the deadline, even if this thread was
/// not scheduled for a while.
fn retry_while_busy(deadline: Instant, attempt: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        let is_last = Instant::now() >= deadline;
        match attempt() {
            Err(Errno::BUSY) if !is_last => thread::sleep(STEP),
            done => return done,
        }
    }
}
