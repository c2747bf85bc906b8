//! Opens regular files safely, even if the path leads to something else: a named pipe without a writer, an endless
//! device, or a folder.
//!
//! - Opening never blocks, and only regular files are read.
//! - IronCurtain's own files are opened for writing only if this user owns them, no other user can write to them, and
//!   the path is not a symlink.

use crate::is_writable_by_others;
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum size in bytes of a file that is read as a whole: 16 MiB.
pub const MAX_LEN: u64 = 16 * 1024 * 1024;

/// Opens a regular file for reading.
///
/// # Errors
/// Returns an error if opening fails or the file is not regular. The message names the file's type.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::empty())
}

/// Opens a file like [`open`], but fails if the path is a symlink.
pub fn open_nofollow(path: &Path) -> io::Result<File> {
    open_with(path, OFlags::NOFOLLOW)
}

/// Opens a file like [`open`], but fails if any component of the path is a symlink.
///
/// # Errors
/// Returns the same errors as [`open`], and an error if the path contains a symlink or the kernel cannot check for
/// symlinks.
#[cfg(target_os = "linux")]
pub fn open_no_symlinks(path: &Path) -> io::Result<File> {
    use rustix::fs::{CWD, ResolveFlags, openat2};
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    require_regular_file(File::from(openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS)?))
}

/// Fails, because only Linux can reject symlinks anywhere in a path.
#[cfg(not(target_os = "linux"))]
pub fn open_no_symlinks(_: &Path) -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens one of IronCurtain's own files for reading and appending, creating it if it does not exist.
///
/// # Errors
/// Returns an error if opening fails, the path is a symlink, or another user owns the file or can write to it.
pub fn open_own(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR
        | OFlags::APPEND
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::NOCTTY
        | OFlags::CLOEXEC;
    let open = |extra_flags: OFlags| rustix::fs::open(path, flags | extra_flags, Mode::RUSR | Mode::WUSR);
    let opened = match open(OFlags::empty()) {
        // Another process may create the file at the same moment.
        Err(Errno::NOENT) => match open(OFlags::CREATE | OFlags::EXCL) {
            Err(Errno::EXIST) => open(OFlags::empty()),
            created => created,
        },
        found => found,
    };
    let file = File::from(opened.map_err(|error| match error {
        Errno::LOOP => unsafe_file("it is a link".to_owned()),
        error => error.into(),
    })?);
    let found = fstat(&file)?;
    check_owner(found.st_mode, found.st_uid, found.st_gid)?;
    Ok(file)
}

/// Checks that one of IronCurtain's own files is safe to open. Does not open it, because closing a file drops all
/// locks that this process holds on it, including SQLite's.
///
/// # Errors
/// Returns an error if the file does not exist, the path is a symlink, or another user owns the file or can write to
/// it.
pub fn check_own(path: &Path) -> io::Result<()> {
    let found = path.symlink_metadata()?;
    if found.is_symlink() {
        return Err(unsafe_file("it is a link".to_owned()));
    }
    check_owner(found.mode(), found.uid(), found.gid())
}

fn check_owner(mode: u32, owner: u32, group: u32) -> io::Result<()> {
    match FileType::from_raw_mode(mode) {
        FileType::RegularFile if owner != rustix::process::geteuid().as_raw() => {
            Err(unsafe_file(format!("it belongs to user {owner}, not to you")))
        }
        FileType::RegularFile if is_writable_by_others(mode, group) => {
            Err(unsafe_file("other users can write to it; run `chmod go-w` on it".to_owned()))
        }
        // Devices are accepted, because only root can create them.
        FileType::RegularFile | FileType::CharacterDevice => Ok(()),
        FileType::Directory
        | FileType::Fifo
        | FileType::BlockDevice
        | FileType::Symlink
        | FileType::Socket
        | FileType::Unknown => Err(unsafe_file("it is not a regular file".to_owned())),
    }
}

fn unsafe_file(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

fn open_with(path: &Path, extra_flags: OFlags) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | extra_flags;
    require_regular_file(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Returns `file` if it is regular, and an error otherwise.
fn require_regular_file(file: File) -> io::Result<File> {
    let kind = match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => return Ok(file),
        FileType::Directory => "a folder",
        FileType::Fifo => "a named pipe",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Symlink | FileType::Socket | FileType::Unknown => "something else",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("it is {kind}, not a regular file")))
}

/// Returns `true` if nothing exists at a path. A dangling symlink in the path counts as existing, because its
/// target is unknown.
///
/// # Errors
/// Returns an error if the path cannot be accessed.
pub fn is_absent(path: &Path) -> io::Result<bool> {
    let is_missing = |e: &io::Error| e.kind() == io::ErrorKind::NotFound;
    match std::fs::symlink_metadata(path) {
        Ok(_) => return Ok(false),
        Err(e) if is_missing(&e) => {}
        Err(e) => return Err(e),
    }
    let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) else { return Ok(true) };
    match std::fs::metadata(folder) {
        Ok(_) => Ok(true),
        Err(e) if is_missing(&e) => is_absent(folder),
        Err(e) => Err(e),
    }
}

/// Reads a file as text. Returns `None` if nothing exists at the path.
///
/// # Errors
/// Returns an error if the file is unreadable, not regular, longer than [`MAX_LEN`] or not UTF-8, or if the path is a
/// dangling symlink.
pub fn read_text(path: &Path) -> io::Result<Option<String>> {
    let file = match open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound && is_absent(path)? => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(io::Error::new(e.kind(), "it is a link to a file that does not exist"));
        }
        Err(e) => return Err(e),
    };
    let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    let mut content = Vec::new();
    file.take(MAX_LEN + 1).read_to_end(&mut content)?;
    if content.len() as u64 > MAX_LEN {
        return Err(invalid(format!("it is longer than {} MiB", MAX_LEN / 1024 / 1024)));
    }
    String::from_utf8(content).map(Some).map_err(|e| {
        let good = e.utf8_error().valid_up_to();
        invalid(format!("it is not valid UTF-8 at byte {}", good + 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn only_regular_files_are_read_and_opening_never_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let read = |name: &str| read_text(&path(name)).map_err(|e| e.to_string());
        std::fs::write(path("good"), "text").unwrap();
        std::os::unix::fs::symlink(path("good"), path("link")).unwrap();
        assert_eq!([read("good"), read("link")], [Ok(Some("text".into())), Ok(Some("text".into()))]);
        assert_eq!(read("missing"), Ok(None));
        assert_eq!(read("missing/below"), Ok(None));
        std::os::unix::fs::symlink("nowhere", path("dangling")).unwrap();
        for below in ["dangling", "dangling/below", "dangling/below/further"] {
            assert_eq!(read(below).unwrap_err(), "it is a link to a file that does not exist");
        }
        std::fs::create_dir(path("folder")).unwrap();
        assert_eq!(read("folder").unwrap_err(), "it is a folder, not a regular file");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(read("pipe").unwrap_err(), "it is a named pipe, not a regular file");
        std::os::unix::fs::symlink("/dev/zero", path("device")).unwrap();
        assert_eq!(read("device").unwrap_err(), "it is a device, not a regular file");
        std::fs::write(path("bytes"), b"ab\xff").unwrap();
        assert_eq!(read("bytes").unwrap_err(), "it is not valid UTF-8 at byte 3");
        File::create(path("long")).unwrap().set_len(MAX_LEN + 1).unwrap();
        assert_eq!(read("long").unwrap_err(), "it is longer than 16 MiB");
        File::create(path("longest")).unwrap().set_len(MAX_LEN).unwrap();
        assert_eq!(read("longest").unwrap().unwrap().len() as u64, MAX_LEN);
    }

    #[test]
    fn own_files_are_private_and_never_created_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let mode = |name: &str| fstat(File::open(path(name)).unwrap()).unwrap().st_mode & 0o777;
        let unsafe_file = |name: &str| open_own(&path(name)).unwrap_err().to_string();
        for _ in 0..2 {
            open_own(&path("log")).unwrap().write_all(b"line\n").unwrap();
        }
        assert_eq!(
            (std::fs::read_to_string(path("log")).unwrap().as_str(), mode("log")),
            ("line\nline\n", 0o600)
        );
        for (name, to) in [("link", "log"), ("dangling", "elsewhere")] {
            std::os::unix::fs::symlink(path(to), path(name)).unwrap();
            assert_eq!(unsafe_file(name), "it is a link");
        }
        assert!(!path("elsewhere").exists());
        std::fs::set_permissions(path("log"), std::os::unix::fs::PermissionsExt::from_mode(0o602)).unwrap();
        assert_eq!(unsafe_file("log"), "other users can write to it; run `chmod go-w` on it");
        rustix::fs::mkfifoat(rustix::fs::CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(unsafe_file("pipe"), "it is not a regular file");
        if rustix::process::geteuid().is_root() {
            File::create(path("theirs")).unwrap();
            std::os::unix::fs::chown(path("theirs"), Some(12345), None).unwrap();
            assert_eq!(unsafe_file("theirs"), "it belongs to user 12345, not to you");
        }
    }

    #[test]
    fn open_files_are_not_inherited_and_links_are_followed_only_where_allowed() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for opened in [open(&file), open(&link), open_nofollow(&file)] {
            let flags = rustix::io::fcntl_getfd(opened.unwrap()).unwrap();
            assert_eq!(flags, rustix::io::FdFlags::CLOEXEC);
        }
        assert_eq!(open_nofollow(&link).unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
    }
}
