//! Detects paths that no approval could open to a server, so that the user is not asked about them.
//!
//! - Nothing is allowed here. Only calls that are certain to fail are refused; the rest are asked about.
//! - The refusal reveals that the path exists and its type, which an approval would have revealed too.

use super::Session;
use ironcurtain_config::SandboxBackend;
use ironcurtain_consent::RequestedAccess;
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::{CanonicalPath, PathKind};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use rustix::io::Errno;

/// Reason why no approval could open a path to a server, and what to do instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum OutOfReach {
    /// The path is a device, socket or pipe.
    #[error(
        "the user was not asked about `{0}`, because it is a device, a socket or a pipe, which no sandboxed server can use; \
         copy what is needed into a file"
    )]
    Special(CanonicalPath),
    /// The file system is read-only.
    #[error("the user was not asked about `{0}`, because its file system is read-only; write somewhere else")]
    ReadOnly(CanonicalPath),
    /// The server's user lacks write permission.
    #[error(
        "the user was not asked about `{0}`, because the user whose rights the server has may not change it; write somewhere else, or \
         let the user change its permissions"
    )]
    NotTheirs(CanonicalPath),
}

impl Session {
    /// Returns the reason for the first requested path that no approval could open.
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

/// Returns an error for a special file, which is never mounted in a sandbox.
fn special_file(asked: &RequestedAccess, need: &Need) -> Option<OutOfReach> {
    let is_special = asked.target == PathKind::Special && need.path == asked.path;
    is_special.then(|| OutOfReach::Special(asked.path.clone()))
}

/// Returns an error for a path that the server cannot write even when it is mounted, since it has our rights.
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
        // Not writable for anyone, including root.
        let refused = written("/proc/sys/kernel/osrelease").unwrap();
        assert!(matches!(refused, OutOfReach::ReadOnly(_) | OutOfReach::NotTheirs(_)), "{refused}");
    }
}
