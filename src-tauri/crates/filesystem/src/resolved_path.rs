//! Checked path that cannot be redirected by later changes on disk.
//!
//! - The allowed directory is opened by its real path, without following symlinks. Everything else is opened relative
//!   to that handle and cannot leave the directory (`openat2` where available).
//! - A value lives only for the duration of one call.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, OpenOptions};

use crate::error::ToolError;

/// Open allowed directory and a path below it.
#[derive(Debug)]
pub(crate) struct ResolvedPath {
    directory: Dir,
    relative: PathBuf,
    path: PathBuf,
}

impl ResolvedPath {
    /// Opens the allowed directory `base`, which contains the real path `path`.
    pub(crate) fn open(base: &Path, path: PathBuf) -> Result<Self, ToolError> {
        let directory = open_directory(base).map_err(|error| ToolError::io(error, "open", base))?;
        let relative = match path.strip_prefix(base) {
            Ok(relative) if relative.as_os_str().is_empty() => PathBuf::from("."),
            Ok(relative) => relative.to_path_buf(),
            Err(_) => return Err(ToolError::io(io::ErrorKind::InvalidInput.into(), "open", &path)),
        };
        Ok(Self { directory, relative, path })
    }

    /// Returns the real absolute path, for messages and results only.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open allowed directory.
    pub(crate) fn directory(&self) -> &Dir {
        &self.directory
    }

    /// Returns the path relative to the allowed directory, or `.` for the directory itself.
    pub(crate) fn relative(&self) -> &Path {
        &self.relative
    }

    /// Returns the file's metadata, following symlinks inside the allowed directory.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        self.directory.metadata(&self.relative)
    }

    /// Opens the path as a directory.
    pub(crate) fn open_dir(&self) -> io::Result<Dir> {
        self.directory.open_dir(&self.relative)
    }

    /// Opens the path as a file. Never blocks, even on a named pipe or device.
    pub(crate) fn open_file(&self, options: &mut OpenOptions) -> io::Result<File> {
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
            options.custom_flags(flags.bits().cast_signed());
        }
        self.directory.open_with(&self.relative, options).map(cap_std::fs::File::into_std)
    }

    /// Opens the parent directory and returns it with the last component.
    pub(crate) fn parent(&self) -> io::Result<(Dir, &OsStr)> {
        let name = self.relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let above = self.relative.parent().filter(|above| !above.as_os_str().is_empty());
        let directory = self.directory.open_dir(above.unwrap_or(Path::new(".")))?;
        Ok((directory, name))
    }
}

#[cfg(target_os = "linux")]
fn open_directory(path: &Path) -> io::Result<Dir> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Ok(directory) => Ok(Dir::from_std_file(File::from(directory))),
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => open_real(path),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn open_directory(path: &Path) -> io::Result<Dir> {
    open_real(path)
}

/// Opens a directory without `openat2`. Returns an error if the path contains a symlink.
fn open_real(path: &Path) -> io::Result<Dir> {
    let directory = Dir::open_ambient_dir(path, cap_std::ambient_authority())?;
    if std::fs::canonicalize(path)? == path {
        Ok(directory)
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}
