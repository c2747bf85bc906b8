//! Converts a profile to the parameters of IronCurtain's own sandbox: its view, its limits and its writable
//! paths.
//!
//! - An entry cannot open protected paths. IronCurtain's own folders are always rejected, and so is a folder
//!   that contains a protected path in a view that cannot hide it.

use super::resolve::{Profile, expand_home, normal};
use super::served::served_view;
use ironcurtain_config::home::Home;
use ironcurtain_config::{FileView, GitConfigSettings, LimitSettings, SandboxSettings};
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Annotations, ProtectedPaths, Role};
use ironcurtain_sandbox::{ResourceLimits, View};
use std::io;
use std::path::{Path, PathBuf};

/// Folders and protected paths on which a sandbox's view depends.
#[derive(Debug, Clone, PartialEq)]
pub struct Surroundings {
    /// Sandbox directory of the session.
    pub session_dir: CanonicalPath,
    /// Home directory of the user.
    pub home: CanonicalPath,
    /// IronCurtain's own folders.
    pub own: Vec<CanonicalPath>,
    /// Paths that no server may read or may change; includes IronCurtain's own folders.
    pub protected: ProtectedPaths,
    /// Folder with the journals and the quarantined files of all sandboxes.
    pub sandboxes: CanonicalPath,
    /// Folders that contain the data folders of all servers. Each server can see only its own.
    pub data: [PathBuf; 2],
}

/// Path in an entry that the server must not get access to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The path is invalid.
    #[error("`{0}` is not a path that can be opened to a server")]
    NotAPath(String),
    /// The path is, or is inside, one of IronCurtain's own folders.
    #[error("`{0}` belongs to IronCurtain and cannot be opened to a server")]
    Own(CanonicalPath),
    /// The folder contains a protected path.
    #[error(
        "`{path}` contains the protected `{inside}`, which the `roots` view cannot hide; name folders inside it, or use the `host-read` view"
    )]
    Holds {
        /// Path in the entry.
        path: CanonicalPath,
        /// Protected path inside it.
        inside: CanonicalPath,
    },
    /// The path contains, or is inside, a path that no server may change.
    #[error("`{path}` cannot be writable, because no server may change `{inside}`")]
    ReadOnly {
        /// Path in the entry.
        path: String,
        /// Path that no server may change.
        inside: CanonicalPath,
    },
}

/// Folders of the kernel. Every sandbox has its own versions of these.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Returns the view that a server's settings choose. The default shows only what is granted.
#[must_use]
pub fn view_of(settings: &SandboxSettings) -> FileView {
    settings.view.unwrap_or(FileView::Roots)
}

/// Returns the default access to the `config` file of git repositories.
///
/// It is writable for servers whose tools change repositories, because git writes to it.
#[must_use]
pub fn default_git_config(server: &str, annotations: &Annotations) -> GitConfigSettings {
    let is_of_git =
        |role: Role| matches!(role, Role::WriteHistory | Role::DeleteHistory | Role::GitRemoteUrl);
    if roles(server, annotations).any(is_of_git) {
        GitConfigSettings::Guarded
    } else {
        GitConfigSettings::Closed
    }
}

/// Iterates over the roles that the arguments of the server's tools can have.
fn roles(server: &str, annotations: &Annotations) -> impl Iterator<Item = Role> {
    let arguments = annotations.tools(server).flat_map(|(_, tool)| &tool.arguments);
    arguments.flat_map(|(_, roles)| {
        roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles)).copied()
    })
}

impl Surroundings {
    /// Creates the surroundings for a sandbox of a session.
    ///
    /// # Errors
    /// Returns an error if one of IronCurtain's own folders does not exist.
    pub fn new(
        ours: &Home,
        home: &CanonicalPath,
        protected: &ProtectedPaths,
        session_dir: &CanonicalPath,
    ) -> io::Result<Self> {
        let canonical = |dir: PathBuf| {
            let real = dir.canonicalize()?;
            let text = real.to_str().ok_or_else(|| io::Error::other("the path is not valid UTF-8"))?;
            CanonicalPath::assume_canonical(text).map_err(io::Error::other)
        };
        let own = ours.own().into_iter().map(canonical).collect::<io::Result<_>>()?;
        let sandboxes = canonical(ours.sandboxes())?;
        let (session_dir, home, data) = (session_dir.clone(), home.clone(), ours.all_server_data());
        Ok(Self { session_dir, home, own, protected: protected.clone(), sandboxes, data })
    }

    /// Returns the part of the file system that the server sees without any grant. `program` is the file to
    /// run.
    ///
    /// # Errors
    /// Returns [`ViewError`] with the path that cannot be opened.
    pub fn view(&self, profile: &Profile, kind: FileView, program: &str) -> Result<View, ViewError> {
        let session_dir = self.session_dir.as_str().to_owned();
        let read = self.paths(&profile.allow_read);
        let writable = self.paths(&profile.allow_write);
        for path in read.iter().chain(&writable) {
            self.may_be_opened(path, kind)?;
        }
        for path in &writable {
            self.may_be_changed(path, kind)?;
        }
        let mut view = match kind {
            FileView::Roots => {
                // A path that does not exist opens nothing, as in the other view.
                let programs = read.into_iter().filter(|path| Path::new(path).exists()).collect();
                View::Roots { session_dir, programs }
            }
            FileView::HostRead => View::HostRead {
                session_dir: Some(session_dir),
                deny_read: self.denied(profile).into_iter().chain(self.data_folders()).collect(),
                allow_read: read,
                allow_write: writable,
                deny_write: self.not_written(profile),
                private_tmp: true,
            },
        };
        view.show_program(own_files(program));
        Ok(view)
    }

    /// Returns the view of a server that asks the user before it opens a file. `program` is the file to run.
    ///
    /// # Errors
    /// Returns [`ViewError`] with the path that cannot be opened.
    pub fn asking_view(&self, profile: &Profile, program: &str) -> Result<View, ViewError> {
        let read = self.paths(&profile.allow_read);
        let writable = self.paths(&profile.allow_write);
        for path in read.iter().chain(&writable) {
            self.may_be_opened(path, FileView::Roots)?;
        }
        for path in &writable {
            self.may_be_changed(path, FileView::Roots)?;
        }
        let mut view = served_view(&self.home, &self.protected, std::iter::empty());
        if let View::Served { session_dir, hidden, programs, .. } = &mut view {
            *session_dir = Some(self.session_dir.as_str().to_owned());
            hidden.extend(self.paths(profile.deny_read.as_deref().unwrap_or_default()));
            hidden.extend(self.data_folders());
            programs.extend(read.into_iter().filter(|path| Path::new(path).exists()));
        }
        view.show_program(own_files(program));
        Ok(view)
    }

    /// Returns the paths that the server must not read, including the paths that no server may read.
    #[must_use]
    pub fn denied(&self, profile: &Profile) -> Vec<String> {
        let kernel = |path: &&CanonicalPath| KERNEL.iter().any(|own| path.as_path().starts_with(own));
        let standing =
            self.protected.paths().iter().filter(|path| !kernel(path)).map(|path| path.as_str().to_owned());
        let own = self.paths(profile.deny_read.as_deref().unwrap_or_default());
        let mut denied: Vec<String> = standing.chain(own).collect();
        denied.sort();
        denied.dedup();
        denied
    }

    /// Returns the data folders to hide. The server's own data folder is mounted again later.
    fn data_folders(&self) -> impl Iterator<Item = String> {
        self.data.iter().filter(|folder| folder.is_dir()).map(|folder| folder.to_string_lossy().into_owned())
    }

    /// Returns the paths that the server must not write to, including existing ones that no server may change.
    #[must_use]
    pub fn not_written(&self, profile: &Profile) -> Vec<String> {
        let there =
            self.protected.read_only().iter().map(|kept| &kept.path).filter(|kept| kept.as_path().exists());
        self.paths(&profile.deny_write)
            .into_iter()
            .chain(there.map(|kept| kept.as_str().to_owned()))
            .collect()
    }

    /// Returns the writable mounts to add to a view. Paths that do not exist are omitted.
    #[must_use]
    pub fn mounted(&self, profile: &Profile) -> Vec<Need> {
        let writable = self.paths(&profile.allow_write);
        let there = writable.iter().filter_map(|path| {
            let real = Path::new(path).canonicalize().ok()?;
            CanonicalPath::assume_canonical(real.to_str()?).ok()
        });
        there.filter(|path| !self.session_dir.contains(path)).map(|path| Need::new(path, true)).collect()
    }

    /// Returns the paths that are writable without any grant, starting with the session's sandbox directory.
    #[must_use]
    pub fn writable(&self, profile: &Profile, kind: FileView) -> Vec<CanonicalPath> {
        let named = match kind {
            FileView::HostRead => self.mounted(profile),
            FileView::Roots => Vec::new(),
        };
        std::iter::once(self.session_dir.clone()).chain(named.into_iter().map(|need| need.path)).collect()
    }

    /// Returns the paths that the entry makes read-only, including paths that do not exist.
    #[must_use]
    pub fn unwritable(&self, profile: &Profile) -> Vec<String> {
        self.paths(&profile.deny_write)
    }

    /// Returns the paths in a folder that the sandbox must mask, so that the rest of the folder can be writable.
    #[must_use]
    pub fn kept_in(&self, folder: &CanonicalPath) -> Vec<String> {
        self.protected.masked_in(folder).into_iter().map(|kept| kept.as_str().to_owned()).collect()
    }

    fn paths(&self, written: &[String]) -> Vec<String> {
        let home = self.home.as_path();
        written.iter().map(|path| normal(&expand_home(path, home), self.session_dir.as_path())).collect()
    }

    fn may_be_opened(&self, path: &str, kind: FileView) -> Result<(), ViewError> {
        // Both the path as written and its real path must be permitted.
        let real = Path::new(path).canonicalize().ok().and_then(|real| Some(real.to_str()?.to_owned()));
        for path in std::iter::once(path.to_owned()).chain(real) {
            let Ok(path) = CanonicalPath::assume_canonical(&path) else {
                return Err(ViewError::NotAPath(path));
            };
            if self.session_dir.contains(&path) {
                continue;
            }
            if self.own.iter().any(|own| own.contains(&path)) {
                return Err(ViewError::Own(path));
            }
            let inside = self.protected.paths().iter().find(|inside| path.strictly_contains(inside));
            if let Some(inside) = inside.filter(|inside| kind == FileView::Roots && inside.as_path().exists())
            {
                return Err(ViewError::Holds { path: path.clone(), inside: inside.clone() });
            }
        }
        Ok(())
    }
}

impl Surroundings {
    /// Returns an error if making `path` writable would also open a read-only path, which [`FileView::Roots`]
    /// cannot always mask.
    fn may_be_changed(&self, path: &str, kind: FileView) -> Result<(), ViewError> {
        let Some(real) = Path::new(path).canonicalize().ok() else { return Ok(()) };
        let folder = real.to_str().and_then(|real| CanonicalPath::assume_canonical(real).ok());
        let masked = folder.as_ref().map(|folder| self.protected.masked_in(folder)).unwrap_or_default();
        let kept = self.protected.read_only().iter().map(|kept| &kept.path).find(|kept| {
            let holds_it = kept.as_path().starts_with(&real) && kept.as_path().exists();
            real.starts_with(kept.as_path())
                || (kind == FileView::Roots && holds_it && !masked.contains(kept))
        });
        kept.map_or(Ok(()), |kept| Err(ViewError::ReadOnly { path: path.to_owned(), inside: kept.clone() }))
    }
}

/// Returns the files that a program needs: the program or, if it is a symlink in a virtual environment, the
/// environment.
fn own_files(program: &str) -> &str {
    let environment = Path::new(program).parent().and_then(Path::parent).and_then(Path::to_str);
    environment.filter(|_| Path::new(program).is_symlink()).unwrap_or(program)
}

/// Converts the limits in an entry. Limits that the entry does not set get their defaults.
#[must_use]
pub fn limits(wanted: &LimitSettings) -> ResourceLimits {
    const MIB: u64 = 1 << 20;
    let default = ResourceLimits::default();
    let bytes = |mib: Option<u64>| mib.map(|mib| mib.saturating_mul(MIB));
    ResourceLimits {
        memory: bytes(wanted.memory_mib).or(default.memory),
        cpu: wanted.cpu_percent.or(default.cpu),
        processes: wanted.processes.or(default.processes),
        open_files: wanted.open_files.or(default.open_files),
        file_size: bytes(wanted.file_size_mib).or(default.file_size),
        tmp_size: bytes(wanted.tmp_size_mib).or(default.tmp_size),
    }
}
