//! Makes a package folder read-only, hashes it, and detects changes.
//!
//! - The hash covers names, types, modes, contents and link targets. Other types of files, such as sockets, are an
//!   error.
//! - [`metadata_hash`] reads no contents. It relies on `ctime`, which every write updates and no program can set.

use sha2::{Digest, Sha256};
use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Removes write permission and special mode bits from everything below `root`, but not from `root` itself.
///
/// # Errors
/// Returns an I/O error if a folder cannot be read or a mode cannot be set.
pub fn make_read_only(root: &Path) -> io::Result<()> {
    for entry in entries(root)? {
        if entry.metadata.is_symlink() {
            continue;
        }
        let is_executable = entry.metadata.is_dir() || entry.metadata.mode() & 0o111 != 0;
        set_mode(&entry.path, if is_executable { 0o555 } else { 0o444 })?;
    }
    Ok(())
}

/// Makes `root` itself read-only. Call this after moving the folder to its final location.
///
/// # Errors
/// Returns an I/O error if the mode cannot be set.
pub fn make_root_read_only(root: &Path) -> io::Result<()> {
    set_mode(root, 0o555)
}

/// Removes the read-only folder `root` and its contents, if it exists.
///
/// # Errors
/// Returns an I/O error if a mode cannot be set or a file cannot be removed.
pub fn remove(root: &Path) -> io::Result<()> {
    if !root.exists() {
        return Ok(());
    }
    set_mode(root, 0o700)?;
    make_folders_writable(root)?;
    std::fs::remove_dir_all(root)
}

/// Returns the SHA-256 hash of everything below `root`, as `sha256:HEX`.
///
/// # Errors
/// Returns an I/O error if a file cannot be read.
pub fn content_hash(root: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    for entry in entries(root)? {
        let content = if entry.metadata.is_symlink() {
            Sha256::digest(std::fs::read_link(&entry.path)?.as_os_str().as_bytes())
        } else if entry.metadata.is_file() {
            let mut content = Sha256::new();
            copy(&mut File::open(&entry.path)?, &mut content)?;
            content.finalize()
        } else {
            Sha256::digest([])
        };
        hash_header(&mut hasher, root, &entry);
        hasher.update(content);
    }
    Ok(format_hash(hasher))
}

/// Returns a SHA-256 hash of the metadata of `root` and everything below it, as `sha256:HEX`.
///
/// # Errors
/// Returns an I/O error if a folder cannot be read.
pub fn metadata_hash(root: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let root_entry = TreeEntry { path: root.to_path_buf(), metadata: root.symlink_metadata()? };
    for entry in std::iter::once(root_entry).chain(entries(root)?) {
        hash_header(&mut hasher, root, &entry);
        let metadata = &entry.metadata;
        for number in [metadata.ino(), metadata.size()] {
            hasher.update(number.to_le_bytes());
        }
        for time in [metadata.mtime(), metadata.mtime_nsec(), metadata.ctime(), metadata.ctime_nsec()] {
            hasher.update(time.to_le_bytes());
        }
    }
    Ok(format_hash(hasher))
}

struct TreeEntry {
    path: PathBuf,
    metadata: Metadata,
}

/// Returns everything below `root`, sorted by path.
fn entries(root: &Path) -> io::Result<Vec<TreeEntry>> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for child in std::fs::read_dir(folder)? {
            let path = child?.path();
            let metadata = path.symlink_metadata()?;
            if metadata.is_dir() {
                open.push(path.clone());
            } else if !metadata.is_file() && !metadata.is_symlink() {
                let problem = format!("`{}` is not a file, folder or link", path.display());
                return Err(io::Error::other(problem));
            }
            found.push(TreeEntry { path, metadata });
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Hashes an entry's relative path, terminated by NUL, and its mode, which includes the type.
fn hash_header(hasher: &mut Sha256, root: &Path, entry: &TreeEntry) {
    let name = entry.path.strip_prefix(root).unwrap_or(&entry.path);
    hasher.update(name.as_os_str().as_bytes());
    hasher.update([0]);
    hasher.update(entry.metadata.mode().to_le_bytes());
}

fn copy(from: &mut File, to: &mut Sha256) -> io::Result<()> {
    use io::Read;
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            length => to.update(buffer.get(..length).unwrap_or_default()),
        }
    }
}

fn format_hash(hasher: Sha256) -> String {
    let hex: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Makes all folders below `folder` writable so that their contents can be removed.
fn make_folders_writable(folder: &Path) -> io::Result<()> {
    for child in std::fs::read_dir(folder)? {
        let child = child?;
        if child.file_type()?.is_dir() {
            set_mode(&child.path(), 0o700)?;
            make_folders_writable(&child.path())?;
        }
    }
    Ok(())
}

fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/file"), "one").unwrap();
        fs::write(root.join("a/b/program"), "two").unwrap();
        set_mode(&root.join("a/b/program"), 0o6775).unwrap();
        symlink("file", root.join("a/link")).unwrap();
        (dir, root)
    }

    fn modes(root: &Path) -> Vec<u32> {
        let all = entries(root).unwrap();
        all.iter().filter(|e| !e.metadata.is_symlink()).map(|e| e.metadata.mode() & 0o7777).collect()
    }

    /// Waits until the kernel's file timestamp clock, which ticks every few milliseconds, is past the newest `ctime`
    /// in the tree.
    fn tick(root: &Path) {
        let time = |metadata: &Metadata| (metadata.ctime(), metadata.ctime_nsec());
        let last = entries(root).unwrap().iter().map(|e| time(&e.metadata)).max();
        let probe = root.with_extension("probe");
        loop {
            fs::write(&probe, "").unwrap();
            if Some(time(&fs::metadata(&probe).unwrap())) > last {
                return;
            }
        }
    }

    #[test]
    fn a_read_only_folder_has_no_writable_or_special_file_and_can_be_removed() {
        let (_dir, root) = tree();
        make_read_only(&root).unwrap();
        make_root_read_only(&root).unwrap();
        // `a`, `a/b`, `a/b/program`, `a/file`.
        assert_eq!(modes(&root), [0o555, 0o555, 0o555, 0o444]);
        remove(&root).unwrap();
        assert!(!root.exists());
        remove(&root).unwrap();
    }

    #[test]
    fn every_change_changes_the_hash_and_the_stamp() {
        let (_dir, root) = tree();
        let (hash_before, stamp_before) = (content_hash(&root).unwrap(), metadata_hash(&root).unwrap());
        assert!(hash_before.starts_with("sha256:") && hash_before.len() == 71);
        assert_eq!(
            (content_hash(&root).unwrap(), metadata_hash(&root).unwrap()),
            (hash_before.clone(), stamp_before.clone())
        );
        type Change = fn(&Path);
        let changes: [(&str, Change); 7] = [
            ("content of the same length", |root| fs::write(root.join("a/file"), "eno").unwrap()),
            ("mode", |root| set_mode(&root.join("a/file"), 0o600).unwrap()),
            ("name", |root| fs::rename(root.join("a/file"), root.join("a/elif")).unwrap()),
            ("link", |root| {
                fs::remove_file(root.join("a/link")).unwrap();
                symlink("b", root.join("a/link")).unwrap();
            }),
            ("more", |root| fs::write(root.join("a/b/more"), "").unwrap()),
            ("less", |root| fs::remove_file(root.join("a/file")).unwrap()),
            ("kind", |root| {
                fs::remove_file(root.join("a/file")).unwrap();
                fs::create_dir(root.join("a/file")).unwrap();
            }),
        ];
        for (what, change) in changes {
            let (_dir, root) = tree();
            assert_eq!(content_hash(&root).unwrap(), hash_before, "{what}");
            let stamp_before = metadata_hash(&root).unwrap();
            tick(&root);
            change(&root);
            assert_ne!(content_hash(&root).unwrap(), hash_before, "{what}");
            assert_ne!(metadata_hash(&root).unwrap(), stamp_before, "{what}");
        }
    }

    #[test]
    fn a_write_changes_the_stamp_even_if_length_and_mtime_are_unchanged() {
        let (_dir, root) = tree();
        let file = root.join("a/file");
        let (before, time) =
            (metadata_hash(&root).unwrap(), fs::metadata(&file).unwrap().modified().unwrap());
        tick(&root);
        fs::write(&file, "eno").unwrap();
        File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), time);
        assert_ne!(metadata_hash(&root).unwrap(), before);
    }

    #[test]
    fn a_special_file_is_an_error() {
        let (_dir, root) = tree();
        drop(std::os::unix::net::UnixListener::bind(root.join("a/socket")).unwrap());
        let problem = content_hash(&root).unwrap_err().to_string();
        assert!(problem.contains("a/socket` is not a file"), "{problem}");
    }
}
