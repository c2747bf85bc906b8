//! Replacing a file in one step, or not at all; a link to it stays a link, and its mode stays.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Replaces a file, or what a link at its place leads to, in one step.
///
/// # Errors
/// The operating system's answer; then the file is as it was.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    replace_bytes(path, text.as_bytes())
}

/// The same with what is no text.
///
/// # Errors
/// As [`replace`].
pub fn replace_bytes(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = if path.is_symlink() { path.canonicalize()? } else { path.to_path_buf() };
    let folder = target.parent().ok_or(io::ErrorKind::NotFound)?;
    let mode = std::fs::metadata(&target).map_or(0o600, |found| found.permissions().mode() & 0o777);
    let beside = folder.join(format!(".ironcurtain-{}", crate::clock::random_name()?));
    let written = write_new(&beside, content, mode).and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        // What was not made is not there to be removed.
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(content)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_is_replaced_through_a_link_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let problem = replace(&dir.path().join("no/where"), "x").unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::NotFound);
    }
}
