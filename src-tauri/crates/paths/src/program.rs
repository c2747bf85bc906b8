//! Starts IronCurtain's own programs through the file descriptor that was checked.
//!
//! - A program is started only if root or this user owns it and no other user can write to it.
//! - The process list shows the program's path rather than the descriptor.

use rustix::process::{getegid, geteuid};
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
#[cfg(target_os = "linux")]
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Search path for programs that run outside a sandbox. The environment's `PATH` is not used, because an agent client
/// may have set it, and its directories may be writable from a sandbox.
pub const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/run/current-system/sw/bin";

/// One of IronCurtain's own programs, opened and checked.
#[derive(Debug)]
pub struct OwnProgram {
    file: File,
    path: PathBuf,
}

impl OwnProgram {
    /// Opens and checks a program.
    ///
    /// # Errors
    /// Returns an error if the program cannot be opened, is not a regular file, or can be changed by a user other than
    /// root and this user.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        let rejected = |why: String| Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        if !found.is_file() {
            return rejected("it is not a regular file".to_owned());
        }
        if !is_trusted_owner(found.uid()) {
            return rejected(format!("it belongs to user {}, who is neither you nor root", found.uid()));
        }
        if is_writable_by_others(found.mode(), found.gid()) {
            return rejected("other users can write to it; run `chmod go-w` on it".to_owned());
        }
        Ok(Self { file, path: path.to_path_buf() })
    }

    /// Returns a command that starts the opened file.
    #[must_use]
    pub fn into_command(self) -> OwnProgramCommand {
        #[cfg(target_os = "linux")]
        let mut command = Command::new(format!("/proc/self/fd/{}", self.file.as_raw_fd()));
        #[cfg(not(target_os = "linux"))]
        let mut command = Command::new(&self.path);
        command.arg0(&self.path);
        OwnProgramCommand { command, _file: self.file }
    }
}

/// A command that starts one of IronCurtain's own programs. Keeps the program's file open, because the command refers
/// to its descriptor.
#[derive(Debug)]
pub struct OwnProgramCommand {
    command: Command,
    _file: File,
}

impl Deref for OwnProgramCommand {
    type Target = Command;

    fn deref(&self) -> &Command {
        &self.command
    }
}

impl DerefMut for OwnProgramCommand {
    fn deref_mut(&mut self) -> &mut Command {
        &mut self.command
    }
}

/// Returns `true` if the owner is root or this user. A user namespace reports the host's root as the overflow id,
/// like all unmapped users, so that id is also accepted.
#[must_use]
pub fn is_trusted_owner(uid: u32) -> bool {
    const UNMAPPED: u32 = 65534;
    const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];
    let maps_all_users = || {
        std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| map.split_whitespace().eq(ALL_USERS))
    };
    [0, geteuid().as_raw()].contains(&uid) || (uid == UNMAPPED && !maps_all_users())
}

/// Returns `true` if a mode lets other users write. Write permission for root's group or for a user private group
/// does not count.
#[must_use]
pub fn is_writable_by_others(mode: impl Into<u32>, gid: u32) -> bool {
    let mode = mode.into();
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    let is_own_group = gid == 0 || (gid == group && gid == user);
    mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_own_group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{copy, rename, set_permissions};
    use std::os::unix::fs::{PermissionsExt, chown};

    fn program() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("program");
        copy("/bin/echo", &path).unwrap();
        (dir, path)
    }

    fn rejected(path: &Path) -> String {
        OwnProgram::open(path).unwrap_err().to_string()
    }

    #[test]
    fn the_checked_file_is_started_even_if_its_path_is_replaced() {
        let (dir, path) = program();
        let opened = OwnProgram::open(&path).unwrap();
        copy("/bin/false", dir.path().join("other")).unwrap();
        rename(dir.path().join("other"), &path).unwrap();
        let output = opened.into_command().arg("looked at").output().unwrap();
        assert_eq!((output.stdout.as_slice(), output.status.success()), (b"looked at\n".as_slice(), true));
        assert!(!OwnProgram::open(&path).unwrap().into_command().status().unwrap().success());
    }

    #[test]
    fn a_program_that_others_can_write_or_own_is_not_started() {
        let (dir, path) = program();
        let mode = |mode| set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        mode(0o757);
        assert_eq!(rejected(&path), "other users can write to it; run `chmod go-w` on it");
        mode(0o755);
        assert!(OwnProgram::open(&path).is_ok());
        assert_eq!(rejected(dir.path()), "it is not a regular file");
        if geteuid().is_root() {
            chown(&path, Some(12345), None).unwrap();
            assert_eq!(rejected(&path), "it belongs to user 12345, who is neither you nor root");
            assert!(is_trusted_owner(0) && !is_trusted_owner(12345));
            chown(&path, Some(0), Some(12345)).unwrap();
            mode(0o775);
            assert_eq!(rejected(&path), "other users can write to it; run `chmod go-w` on it");
            chown(&path, Some(0), Some(0)).unwrap();
            assert!(OwnProgram::open(&path).is_ok());
        }
    }
}
