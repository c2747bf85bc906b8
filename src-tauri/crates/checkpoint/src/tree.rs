//! Accesses a folder without following symbolic links or leaving the folder.

use crate::MAX_PATHS_LEN;
use crate::record::NotCopied;
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatvfs, openat, openat2,
    readlinkat, statat,
};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::Path;

/// An open folder.
#[derive(Debug)]
pub(crate) struct Tree(OwnedFd);

/// Entries in a folder, and the paths that cannot be copied.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Each path relative to the folder, with its attributes. A folder precedes its content.
    pub(crate) entries: Vec<(String, Stat)>,
    pub(crate) not_copied: Vec<NotCopied>,
}

/// Error returned when a folder cannot be listed.
#[derive(Debug)]
pub(crate) enum ListError {
    TooMany,
    Io(Errno),
}

impl Tree {
    /// Opens a folder at its canonical path.
    pub(crate) fn open(path: &Path) -> Result<Self, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(CWD, path, flags, Mode::empty()).map(Self)
    }

    /// Returns the folder's device and inode number.
    pub(crate) fn identity(&self) -> Result<(u64, u64), Errno> {
        fstat(&self.0).map(|stat| (stat.st_dev, stat.st_ino))
    }

    /// Returns the id of the folder's file system, or 0 if the file system has none.
    pub(crate) fn file_system(&self) -> Result<u64, Errno> {
        fstatvfs(&self.0).map(|file_system| file_system.f_fsid)
    }

    /// Opens a path beneath the folder.
    pub(crate) fn open_below(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        let path = if path.is_empty() { "." } else { path };
        openat2(&self.0, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)
    }

    /// Opens the folder that contains a path and returns the last component of the path.
    pub(crate) fn parent<'a>(&self, path: &'a str) -> Result<(OwnedFd, &'a str), Errno> {
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        Ok((self.open_below(parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }

    /// Returns a path's attributes, or `None` if it does not exist.
    pub(crate) fn stat(&self, path: &str) -> Result<Option<Stat>, Errno> {
        let found =
            self.parent(path).and_then(|(parent, name)| statat(parent, name, AtFlags::SYMLINK_NOFOLLOW));
        match found {
            Ok(stat) => Ok(Some(stat)),
            // A file or link may have replaced the folder.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Opens a regular file for reading.
    pub(crate) fn read(&self, path: &str) -> Result<File, Errno> {
        let file = self.open_below(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        match FileType::from_raw_mode(fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file.into()),
            FileType::Directory
            | FileType::Symlink
            | FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Err(Errno::INVAL),
        }
    }

    /// Returns a symbolic link's target, which must be UTF-8.
    pub(crate) fn read_link(&self, path: &str) -> Result<String, Errno> {
        let (parent, name) = self.parent(path)?;
        readlinkat(parent, name, Vec::new())?.into_string().map_err(|_| Errno::ILSEQ)
    }

    /// Lists everything below the folder. Fails if there are more than `max_entries` entries, including those that
    /// cannot be copied, or if their paths are longer than [`MAX_PATHS_LEN`].
    pub(crate) fn list(&self, max_entries: usize) -> Result<Listing, ListError> {
        self.list_within(max_entries, MAX_PATHS_LEN)
    }

    fn list_within(&self, max_entries: usize, mut length: usize) -> Result<Listing, ListError> {
        let mut listing = Listing::default();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            let names = match self.entry_names(&folder, max_entries) {
                Ok(names) => names,
                Err(error) if folder.is_empty() => return Err(ListError::Io(error)),
                Err(error) => {
                    listing.not_copied.push(NotCopied::from_error(folder, error));
                    continue;
                }
            };
            for name in names {
                if listing.entries.len() + listing.not_copied.len() >= max_entries {
                    return Err(ListError::TooMany);
                }
                length = length.checked_sub(folder.len() + 1 + name.len()).ok_or(ListError::TooMany)?;
                let name = match String::from_utf8(name) {
                    Ok(name) => name,
                    Err(error) => {
                        listing.not_copied.push(NotCopied::not_utf8(&folder, error.as_bytes()));
                        continue;
                    }
                };
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match self.stat(&path) {
                    Ok(Some(stat)) => {
                        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                            folders.push(path.clone());
                        }
                        listing.entries.push((path, stat));
                    }
                    // The entry was removed concurrently.
                    Ok(None) => {}
                    Err(error) => listing.not_copied.push(NotCopied::from_error(path, error)),
                }
            }
        }
        listing.entries.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(listing)
    }

    /// Returns the names in a folder, at most one more than `max_entries`.
    fn entry_names(&self, folder: &str, max_entries: usize) -> Result<Vec<Vec<u8>>, Errno> {
        let opened = self.open_below(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::new(opened)? {
            if names.len() > max_entries {
                break;
            }
            let name = entry?.file_name().to_bytes().to_vec();
            if !matches!(name.as_slice(), b"." | b"..") {
                names.push(name);
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::{ListError, Tree};

    #[test]
    fn the_length_of_all_paths_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("folder")).unwrap();
        std::fs::write(dir.path().join("folder/file"), "").unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        let exact = "/folder".len() + "folder/file".len();
        assert_eq!(tree.list_within(10, exact).unwrap().entries.len(), 2);
        for (max_entries, length) in [(10, exact - 1), (1, exact)] {
            assert!(
                matches!(tree.list_within(max_entries, length), Err(ListError::TooMany)),
                "{max_entries} {length}"
            );
        }
    }
}
