//! Detects paths that a server cannot use even with an approval so that the user is not asked unnecessarily.
//!
//! - Allows no call and refuses only calls that are certain to fail. The user is still asked about any other call.
//! - The refusal reveals the type of an existing path to the agent, as an approval would.

use super::Session;
use ironcurtain_config::SandboxBackend;
use ironcurtain_consent::RequestedAccess;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::{CanonicalPath, PathKind};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

/// Reason why an approval for a path would have no effect, with advice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnusablePath {
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
    NotWritable(CanonicalPath),
}

impl Session {
    /// Returns an error for the first requested path that the server could not use.
    pub(super) fn unreachable_path(&self, requested: &[RequestedAccess]) -> Option<UnusablePath> {
        // A remote server's paths are not on this machine.
        if self.principal.remote {
            return None;
        }
        let uses_mounts = self.sandboxed && self.services.sandbox_probe.backend() == SandboxBackend::Native;
        requested.iter().find_map(|requested_access| {
            let need = requested_access.need.as_ref()?;
            let special = || if uses_mounts { special_file(requested_access, need) } else { None };
            special().or_else(|| if need.writable { not_writable(need) } else { None })
        })
    }
}

/// Returns an error for a special file, which sandboxes never mount.
fn special_file(requested_access: &RequestedAccess, need: &MountRequest) -> Option<UnusablePath> {
    let is_special = requested_access.target == PathKind::Special && need.path == requested_access.path;
    is_special.then(|| UnusablePath::Special(requested_access.path.clone()))
}

/// Returns an error for a path that this user cannot write to. The server has the same rights, even if the path is
/// mounted.
fn not_writable(need: &MountRequest) -> Option<UnusablePath> {
    match accessat(CWD, need.path.as_path(), Access::WRITE_OK, AtFlags::EACCESS) {
        Err(Errno::ROFS) => Some(UnusablePath::ReadOnly(need.path.clone())),
        Err(Errno::ACCESS) => Some(UnusablePath::NotWritable(need.path.clone())),
        Ok(()) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_the_user_cannot_write_is_out_of_reach() {
        let check = |path: &str| {
            not_writable(&MountRequest::new(CanonicalPath::assume_canonical(path).unwrap(), true))
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        assert_eq!(check(path.to_str().unwrap()), None);
        assert_eq!(check("/no/such/path"), None, "what is not known is asked about");
        // Not even root can write to this file.
        let refused = check("/proc/sys/kernel/osrelease").unwrap();
        assert!(matches!(refused, UnusablePath::ReadOnly(_) | UnusablePath::NotWritable(_)), "{refused}");
    }
}
