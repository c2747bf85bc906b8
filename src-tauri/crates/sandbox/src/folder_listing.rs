//! Opens folders for listing without changing their access time, which programs in the sandbox could otherwise observe.

use std::{
    ffi::OsStr,
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

/// Opens a folder. Changes the access time only if another user owns the folder, because only the owner may keep it
/// (`open(2)`).
pub(crate) fn open_for_listing(
    root: impl AsFd,
    path: &OsStr,
    flags: OFlags,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let open = |flags| openat2(root.as_fd(), path, flags, Mode::empty(), resolve);
    match open(flags | OFlags::NOATIME) {
        Err(Errno::PERM) => open(flags),
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, fcntl_getfl};

    #[test]
    fn own_folder_keeps_its_access_time() {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| {
            open_for_listing(CWD, dir.path().join(name).as_os_str(), OFlags::NOFOLLOW, ResolveFlags::empty())
        };
        assert!(fcntl_getfl(open(".").unwrap()).unwrap().contains(OFlags::NOATIME));
        assert_eq!(open("missing").unwrap_err(), Errno::NOENT);
    }
}
