//! Letting a mount go, and proving that nothing of it is left.
//!
//! - The proof is the kernel's: a plain unmount succeeds only when no descriptor, mapping, working directory or
//!   descriptor in flight in any socket refers to the mount. Looking through `/proc` would miss the last.
//! - INVARIANT: the mount is made read-only first, which the kernel refuses while anything can write to a file of it. So
//!   what closes names in it can be taken off.
//! - What another grant still shows at the same path is not taken away, so whoever reads it may go on.
//! - Once set aside, the mount has no name that anybody in the sandbox could use, whatever comes of the proof.
//! - A tree with mounts below it that the host had when the sandbox started cannot be taken apart by us (the kernel locks
//!   them together), so there is no proof for it: it is detached, and reported as held.

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

/// The folder where a mount waits for its end; on the root, so nobody inside can move it.
const ASIDE: &str = "/.ironcurtain-aside";
/// The time that a file being closed may take: the kernel finishes closing when the closing process leaves it.
const PATIENCE: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_micros(500);
/// The number of times that a mount is looked for whose directory is being renamed under us.
const TRIES: usize = 64;

/// A mount that has no name in the sandbox any more.
pub(super) enum SetAside {
    /// It waits at [`ASIDE`].
    Waiting(u64, FileId),
    /// It has ended already.
    Ended(UnmountOutcome),
}

/// The outcome of an unmount.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(in super::super) struct UnmountOutcome {
    pub(in super::super) proof: UnmountProof,
    /// The mount that shows the same file at its path now, if one does.
    pub(in super::super) instead: Option<u64>,
    /// True when something may still hold a file of it, for reading.
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
    /// Takes a mount off its path.
    pub(super) fn set_aside(&mut self, old: &MountedPath) -> Result<SetAside, MountError> {
        let broken = |why: String| MountError::Broken(format!("`{}` cannot be taken away: {why}", old.path));
        for _ in 0..TRIES {
            let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
            let Some(entry) = table.get(old.mount_id) else {
                // The kernel detached it because the directory it lay on was removed.
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
                // The kernel does not move what was deleted on the host since: it ends where it is.
                Err(Errno::NOENT) => {
                    drop(mount);
                    Ok(SetAside::Ended(self.end(old.mount_id, &entry.point, None)?))
                }
                Err(error) => Err(broken(error.to_string())),
            };
        }
        Err(broken("it is moved about all the time".into()))
    }

    /// Ends a mount that was set aside from `path`; `granted` are the mounts by which a file may still be shown there.
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

    /// By what of `granted` the same file is at `path` now.
    fn instead(&self, path: &str, identity: FileId, granted: &[u64]) -> Option<u64> {
        let place = open_plain(&self.root, path).ok()?;
        let mount_id = mount_id(&place).ok().filter(|id| granted.contains(id))?;
        let is_same = FileId::of(&fstat(&place).ok()?) == identity;
        is_same.then_some(mount_id)
    }

    /// Ends the mount `id`, which is at `point`.
    fn end(&self, id: u64, point: &OsStr, instead: Option<u64>) -> Result<UnmountOutcome, MountError> {
        let broken = |why: String| {
            MountError::Broken(format!("the mount at `{}` cannot be ended: {why}", point.display()))
        };
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        let deadline = Instant::now() + PATIENCE;
        // Before anything that lies on it, and closes names in it, is taken off.
        let closed = self.close_for_writing(id, point, deadline);
        let unmounted = |point: &OsString| unmount_plainly(point, deadline);
        if closed != Err(Errno::BUSY) && table.subtree(id).iter().all(unmounted) {
            return Ok(UnmountOutcome { instead, ..UnmountOutcome::proved() });
        }
        unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .map_err(|error| broken(error.to_string()))?;
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        if table.get(id).is_some() {
            return Err(broken("it is still there".into()));
        }
        let is_read_on = instead.is_some() && closed.is_ok();
        Ok(if is_read_on {
            UnmountOutcome { instead, loose: true, ..UnmountOutcome::proved() }
        } else {
            UnmountOutcome::held()
        })
    }

    /// Makes the mount `id` at `point` read-only, and all that lies on it; it is busy while anything can write to a file of
    /// it.
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

/// Tries until it is not busy. The last try begins after the deadline, however long this thread did not run before it.
fn until_free(deadline: Instant, attempt: impl Fn() -> Result<(), Errno>) -> Result<(), Errno> {
    loop {
        let is_last = Instant::now() >= deadline;
        match attempt() {
            Err(Errno::BUSY) if !is_last => thread::sleep(STEP),
            done => return done,
        }
    }
}
