//! Reads files that only root can modify.

use super::ManagedError;
use ironcurtain_paths::bounded_read;
use rustix::fs::FileType;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Reads a file after checking that only root can modify it.
///
/// # Errors
/// Returns [`ManagedError`] if another user can modify the file or a folder above it, or if reading failed.
pub fn read_root_file(path: &Path) -> Result<String, ManagedError> {
    if !path.is_absolute() {
        return Err(ManagedError::Invalid(format!("`{}` is not an absolute path", path.display())));
    }
    let io = |source| ManagedError::Io { path: path.to_path_buf(), source };
    for folder in path.ancestors().skip(1) {
        let found = folder
            .symlink_metadata()
            .map_err(|source| ManagedError::Io { path: folder.to_path_buf(), source })?;
        only_of_root(folder, &found, FileType::Directory)?;
    }
    let file = bounded_read::open_unlinked(path).map_err(io)?;
    only_of_root(path, &file.metadata().map_err(io)?, FileType::RegularFile)?;
    text(file).map_err(io)
}

fn only_of_root(path: &Path, found: &std::fs::Metadata, kind: FileType) -> Result<(), ManagedError> {
    let why = if FileType::from_raw_mode(found.mode()) != kind {
        "it is a symbolic link or has the wrong file type"
    } else if found.uid() != 0 {
        "it does not belong to root"
    } else if found.mode() & 0o022 != 0 {
        "other users can write to it"
    } else {
        return Ok(());
    };
    Err(ManagedError::Owner { path: path.to_path_buf(), why })
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
        let found = |mode: u32| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            only_of_root(&file, &file.symlink_metadata().unwrap(), FileType::RegularFile)
                .map_err(|problem| problem.to_string())
        };
        if rustix::process::geteuid().is_root() {
            assert_eq!(found(0o644), Ok(()));
            assert!(found(0o664).unwrap_err().contains("other users can write to it"));
            std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
        }
        assert!(found(0o644).unwrap_err().contains("it does not belong to root"));
        assert!(read_root_file(Path::new("k")).unwrap_err().to_string().contains("not an absolute path"));
    }
}
