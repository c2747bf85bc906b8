//! Opens real files below the root without following symlinks.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::{fd::AsRawFd, unix::fs::FileTypeExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, openat2},
    io::Errno,
};

use crate::{filesystems::FileSystems, hidden::Hidden, nodes::FileId, wire::MAX_NAME_LEN};

/// Root folder, and the hidden paths below it.
#[derive(Debug)]
pub(crate) struct RealTree {
    root: File,
    /// Absolute real path of the root.
    root_path: PathBuf,
    hidden: Hidden,
    filesystems: FileSystems,
}

/// File found by its path.
pub(crate) struct FoundFile {
    /// `O_PATH` descriptor, which identifies the file without access to its content.
    pub(crate) file: File,
    pub(crate) stat: Metadata,
}

impl RealTree {
    pub(crate) fn new(root: File, hidden: Hidden) -> io::Result<Self> {
        let root_path = std::fs::read_link(format!("/proc/self/fd/{}", root.as_raw_fd()))?;
        Ok(Self { root, root_path, hidden, filesystems: FileSystems::default() })
    }

    /// Finds the file at a path relative to the root.
    ///
    /// # Errors
    /// Returns [`Errno::NOENT`] if the path is hidden, missing, or on a file system that is not served.
    pub(crate) fn find(&self, path: &Path) -> Result<FoundFile, Errno> {
        if self.hides(path) || !self.filesystems.serves(&self.root_path.join(path)) {
            return Err(Errno::NOENT);
        }
        let file = self.open(path, OFlags::PATH, Mode::empty())?;
        let stat = metadata(&file)?;
        if self.hides_entry(path, FileId::new(&stat)) {
            return Err(Errno::NOENT);
        }
        Ok(FoundFile { file, stat })
    }

    /// Opens the folder that contains `path`, and returns it with the last component of the path. Fails for a hidden
    /// path, even if a mount point makes it visible, because callers change the entry.
    pub(crate) fn parent<'a>(&self, path: &'a Path) -> Result<(File, &'a OsStr), Errno> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        if name.len() > MAX_NAME_LEN {
            return Err(Errno::NAMETOOLONG);
        }
        if self.hidden.contains_path(path) {
            return Err(Errno::ACCESS);
        }
        let parent = self.find(path.parent().unwrap_or(Path::new("")))?;
        Ok((parent.file, name))
    }

    /// Returns `true` if the path, relative to the root, is hidden.
    pub(crate) fn hides(&self, path: &Path) -> bool {
        self.hidden.contains_path(path) && !self.hidden.is_above_mount_point(path)
    }

    /// Returns `true` if the path, relative to the root, or the file that was found there is hidden.
    pub(crate) fn hides_entry(&self, path: &Path, file: FileId) -> bool {
        !self.hidden.is_above_mount_point(path)
            && (self.hidden.contains_path(path) || self.hidden.contains_file(file))
    }

    /// Returns `true` if `path`, a folder above it or a path below it is hidden.
    pub(crate) fn hides_below(&self, path: &Path) -> bool {
        self.hidden.contains_path(path) || self.hidden.has_hidden_below(path)
    }

    /// Opens a path relative to the root. Does not check whether it is hidden.
    ///
    /// With `O_PATH`, a symlink in the last component is opened itself (`openat2(2)`).
    pub(crate) fn open(&self, path: &Path, flags: OFlags, mode: Mode) -> Result<File, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let non_blocking = OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = if flags.contains(OFlags::PATH) { flags } else { flags | non_blocking };
        Ok(openat2(&self.root, path, flags, mode, RESOLVE_FLAGS)?.into())
    }
}

/// Path resolution flags: do not leave the root, and do not follow symlinks.
const RESOLVE_FLAGS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

pub(crate) fn metadata(file: &File) -> Result<Metadata, Errno> {
    file.metadata().map_err(|error| errno(&error))
}

/// Returns `true` for pipes, sockets and devices, which the kernel opens without asking the view.
pub(crate) fn is_special(stat: &Metadata) -> bool {
    let kind = stat.file_type();
    kind.is_fifo() || kind.is_socket() || kind.is_block_device() || kind.is_char_device()
}

/// Returns an I/O error's errno, or `EIO` if it has none.
pub(crate) fn errno(error: &io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
