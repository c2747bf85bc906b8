//! Reads files that only root can modify.

use super::ManagedError;
use ironcurtain_paths::bounded_read;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Reason a file or folder is refused, as a phrase that follows its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedFileError {
    /// The path is a symbolic link.
    #[error("it is a symbolic link; replace the link with what it leads to")]
    Link,
    /// The path of a folder leads to something else.
    #[error("it is not a folder")]
    NotAFolder,
    /// Another user owns it.
    #[error("it does not belong to root; run `chown root:root` on it")]
    Owner,
    /// Other users can write to it.
    #[error("other users can write to it; run `chmod go-w` on it")]
    Writable,
}

/// Reads a file after checking that only root can modify it.
///
/// # Errors
/// Returns [`ManagedError`] if another user can modify the file or a folder above it, or if reading failed.
pub fn read_root_file(path: &Path) -> Result<String, ManagedError> {
    if !path.is_absolute() {
        return Err(ManagedError::Invalid(format!("`{}` is not an absolute path", path.display())));
    }
    let io = |source| ManagedError::Io { path: path.to_path_buf(), source };
    let untrusted = |path: &Path| {
        let path = path.to_path_buf();
        move |problem| ManagedError::Untrusted { path, problem }
    };
    for folder in path.ancestors().skip(1) {
        let metadata = folder
            .symlink_metadata()
            .map_err(|source| ManagedError::Io { path: folder.to_path_buf(), source })?;
        check_folder(&metadata).map_err(untrusted(folder))?;
    }
    let file = bounded_read::open_nofollow(path).map_err(|source| {
        // The parent folders are not links, so only the file itself can be one.
        let is_link = source.raw_os_error() == Some(Errno::LOOP.raw_os_error());
        if is_link { untrusted(path)(UntrustedFileError::Link) } else { io(source) }
    })?;
    check_owner(&file.metadata().map_err(io)?).map_err(untrusted(path))?;
    text(file).map_err(io)
}

fn check_folder(metadata: &Metadata) -> Result<(), UntrustedFileError> {
    match FileType::from_raw_mode(metadata.mode()) {
        FileType::Directory => check_owner(metadata),
        FileType::Symlink => Err(UntrustedFileError::Link),
        FileType::RegularFile
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(UntrustedFileError::NotAFolder),
    }
}

fn check_owner(metadata: &Metadata) -> Result<(), UntrustedFileError> {
    if metadata.uid() != 0 {
        return Err(UntrustedFileError::Owner);
    }
    if metadata.mode() & 0o022 != 0 { Err(UntrustedFileError::Writable) } else { Ok(()) }
}

fn text(file: File) -> io::Result<String> {
    let mut text = String::new();
    file.take(bounded_read::MAX_LEN).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_that_others_can_change_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("managed.json");
        std::fs::write(&file, "{}").unwrap();
        // The temporary directory is writable by all users.
        let refused = read_root_file(&file).unwrap_err().to_string();
        assert!(refused.contains("` is refused: "), "{refused}");
        let metadata = |mode: u32| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            check_owner(&file.symlink_metadata().unwrap())
        };
        if rustix::process::geteuid().is_root() {
            assert_eq!(metadata(0o644), Ok(()));
            assert_eq!(metadata(0o664), Err(UntrustedFileError::Writable));
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
        }
        assert_eq!(metadata(0o644), Err(UntrustedFileError::Owner));
        assert!(read_root_file(Path::new("k")).unwrap_err().to_string().contains("not an absolute path"));
    }

    #[test]
    fn links_and_files_are_no_folders() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        let metadata = |path: &Path| check_folder(&path.symlink_metadata().unwrap());
        assert_eq!(metadata(&file), Err(UntrustedFileError::NotAFolder));
        assert_eq!(metadata(&link), Err(UntrustedFileError::Link));
        assert_eq!(metadata(Path::new("/")), Ok(()));
    }

    #[test]
    fn link_is_named_as_the_reason() {
        // `/proc/mounts` is a link in a folder that belongs to root.
        let refused = read_root_file(Path::new("/proc/mounts")).unwrap_err().to_string();
        let expected =
            "`/proc/mounts` is refused: it is a symbolic link; replace the link with what it leads to";
        assert_eq!(refused, expected);
    }
}
