//! Detects paths that a server cannot use even with an approval, so that the user is not asked unnecessarily.
//!
//! - Allows no call, and refuses only calls that are certain to fail. The user is still asked about any other call.
//! - The refusal reveals the type of an existing path to the agent, as an approval would.

use super::Session;
use ironcurtain_config::SandboxBackend;
use ironcurtain_consent::RequestedAccess;
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::{CanonicalPath, PathKind};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

/// Reason why an approval for a path would have no effect, with advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OutOfReach {
    /// The path is a device, socket or pipe, which is never mounted.
    #[error(
        "the user was not asked about `{0}`, because it is a device, a socket or a pipe, which no sandboxed server can use; \
         copy what is needed into a file"
    )]
    Special(CanonicalPath),
    /// The call writes to the path, but the path's file system is read-only.
    #[error("the user was not asked about `{0}`, because its file system is read-only; write somewhere else")]
    ReadOnly(CanonicalPath),
    /// The call writes to the path, but the user who runs IronCurtain does not have write permission.
    #[error(
        "the user was not asked about `{0}`, because the user that the server runs as has no write \
         permission; write somewhere else, or let the user change the path's permissions"
    )]
    NotTheirs(CanonicalPath),
}

impl Session {
    /// Returns an error for the first requested path that the server could not use.
    pub(super) fn unreachable_path(&self, requested: &[RequestedAccess]) -> Option<OutOfReach> {
        // A remote server's paths are not on this machine.
        if self.principal.remote {
            return None;
        }
        let is_shown_by_mounts = self.sandboxed && self.services.machine.backend() == SandboxBackend::Native;
        requested.iter().find_map(|asked| {
            let need = asked.need.as_ref()?;
            let unshown = || if is_shown_by_mounts { special_file(asked, need) } else { None };
            unshown().or_else(|| if need.writable { not_writable(need) } else { None })
        })
    }
}

/// Returns an error for a special file, which sandboxes never mount.
fn special_file(asked: &RequestedAccess, need: &Need) -> Option<OutOfReach> {
    let is_special = asked.target == PathKind::Special && need.path == asked.path;
    is_special.then(|| OutOfReach::Special(asked.path.clone()))
}

/// Returns an error for a path that this user cannot write to. The server has the same rights, even if the path is
/// mounted.
fn not_writable(need: &Need) -> Option<OutOfReach> {
    match accessat(CWD, need.path.as_path(), Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ROFS) => Some(OutOfReach::ReadOnly(need.path.clone())),
        Err(Errno::ACCESS) => Some(OutOfReach::NotTheirs(need.path.clone())),
        Ok(()) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_user_cannot_write_is_out_of_reach() {
        let written =
            |path: &str| not_writable(&Need::new(CanonicalPath::assume_canonical(path).unwrap(), true));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        assert_eq!(written(path.to_str().unwrap()), None);
        assert_eq!(written("/no/such/path"), None, "what is not known is asked about");
        // Not even root can write to this file.
        let refused = written("/proc/sys/kernel/osrelease").unwrap();
        assert!(matches!(refused, OutOfReach::ReadOnly(_) | OutOfReach::NotTheirs(_)), "{refused}");
    }
}
