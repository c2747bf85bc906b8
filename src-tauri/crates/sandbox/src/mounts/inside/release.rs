//! Letting a mount go, and proving that nothing of it is left.
//!
//! - The proof is the kernel's: a plain unmount succeeds only when no descriptor, mapping, working directory or
//!   descriptor in flight in any socket refers to the mount. Looking through `/proc` would miss the last.
//! - Once set aside, the mount has no name that anybody in the sandbox could use, whatever comes of the proof.
//! - A tree with mounts below it that the host had when the sandbox started cannot be taken apart by us (the kernel locks
//!   them together), so there is no proof for it: it is detached, and reported as held.

use std::{
    ffi::OsStr,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    fs::fstat,
    io::Errno,
    mount::{UnmountFlags, unmount},
};

use super::{Inside, MountError, Placed};
use crate::{
    control::Proof,
    place::{Kind, mount_id, open_plain},
    tree::attach,
};

/// Where a mount waits for its end; on the root, so nobody inside can move it.
const ASIDE: &str = "/.ironcurtain-aside";
/// How long a file that is being closed may take: the kernel finishes closing when the closing process leaves it.
const PATIENCE: Duration = Duration::from_millis(20);
const STEP: Duration = Duration::from_micros(500);
/// How often a mount whose directory is being renamed under us is looked for.
const TRIES: usize = 64;

/// A mount that has no name in the sandbox any more.
pub(super) enum Aside {
    /// It waits at [`ASIDE`].
    Waiting(u64),
    /// It has ended already.
    Ended(Proof),
}

impl Inside<'_> {
    /// Takes a mount off its path.
    pub(super) fn set_aside(&mut self, old: &Placed) -> Result<Aside, MountError> {
        let broken = |why: String| MountError::Broken(format!("`{}` cannot be taken away: {why}", old.path));
        for _ in 0..TRIES {
            let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
            let Some(entry) = table.get(old.mount_id) else {
                // The kernel detached it because the directory it lay on was removed.
                return Ok(Aside::Ended(Proof::Held));
            };
            let Ok(mount) = open_plain(&self.root, &entry.point) else { continue };
            if mount_id(&mount) != Ok(old.mount_id) {
                continue;
            }
            let kind = fstat(&mount).ok().and_then(|stat| Kind::of(&stat));
            let kind = kind.ok_or_else(|| broken("it is neither a file nor a directory".into()))?;
            let point = self.mount_point(ASIDE, kind).map_err(|error| broken(error.to_string()))?;
            return match attach(&mount, &point) {
                Ok(()) => Ok(Aside::Waiting(old.mount_id)),
                // The kernel does not move what was deleted on the host since: it ends where it is.
                Err(Errno::NOENT) => {
                    drop(mount);
                    Ok(Aside::Ended(self.end(old.mount_id, &entry.point)?))
                }
                Err(error) => Err(broken(error.to_string())),
            };
        }
        Err(broken("it is moved about all the time".into()))
    }

    /// Ends a mount that was set aside.
    pub(super) fn release(&mut self, aside: Aside) -> Result<Proof, MountError> {
        match aside {
            Aside::Waiting(id) => self.end(id, OsStr::new(ASIDE)),
            Aside::Ended(proof) => Ok(proof),
        }
    }

    /// Ends the mount `id`, which is at `point`.
    fn end(&self, id: u64, point: &OsStr) -> Result<Proof, MountError> {
        let broken = |why: String| {
            MountError::Broken(format!("the mount at `{}` cannot be ended: {why}", point.display()))
        };
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        let deadline = Instant::now() + PATIENCE;
        if table.subtree(id).iter().all(|point| unmount_plainly(point, deadline)) {
            return Ok(Proof::Proved);
        }
        unmount(point, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)
            .map_err(|error| broken(error.to_string()))?;
        let table = self.sandbox.table().map_err(|error| broken(error.to_string()))?;
        if table.get(id).is_some() { Err(broken("it is still there".into())) } else { Ok(Proof::Held) }
    }
}

fn unmount_plainly(point: &OsStr, deadline: Instant) -> bool {
    loop {
        match unmount(point, UnmountFlags::NOFOLLOW) {
            Ok(()) => return true,
            Err(Errno::BUSY) if Instant::now() < deadline => thread::sleep(STEP),
            Err(_) => return false,
        }
    }
}
