//! A profile as our own sandbox wants it: the view, the limits and what is writable, as plain values.
//!
//! - What no server may read stays shut whatever an entry says: our own folders cannot be opened at all, and a folder
//!   that holds something protected cannot be shown where nothing inside of it can be hidden.

use super::resolve::{Profile, expand_home, normal};
use ironcurtain_config::home::Home;
use ironcurtain_config::{FileView, GitConfigSettings, LimitSettings, SandboxSettings};
use ironcurtain_grants::mounts::Need;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Annotations, ProtectedPaths, Role};
use ironcurtain_sandbox::{ResourceLimits, View};
use std::io;
use std::path::{Path, PathBuf};

/// The folders and protected paths around a sandbox.
#[derive(Debug, Clone, PartialEq)]
pub struct Surroundings {
    /// The session sandbox directory.
    pub session_dir: CanonicalPath,
    /// The person's home.
    pub home: CanonicalPath,
    /// Our own folders.
    pub own: Vec<CanonicalPath>,
    /// The paths that no server may read, our own folders among them, or change.
    pub protected: ProtectedPaths,
    /// The folder that all sandboxes share: journals, and what was moved away.
    pub sandboxes: CanonicalPath,
    /// The data folders of all servers, each of which only its own server is shown.
    pub data: [PathBuf; 2],
}

/// Why a path of an entry is not opened to its server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// It is no path that could be opened.
    #[error("`{0}` cannot be opened to a server")]
    NotAPath(String),
    /// It is one of our folders, or in one.
    #[error("`{0}` is IronCurtain's own, which is opened to no server")]
    Own(CanonicalPath),
    /// Something protected lies in it.
    #[error(
        "`{path}` holds the protected `{inside}`, which the `roots` view cannot hide; name folders in it, or use the `host-read` view"
    )]
    Holds {
        /// The path.
        path: CanonicalPath,
        /// The protected one.
        inside: CanonicalPath,
    },
    /// Something that no server may change lies in it, or around it.
    #[error("`{path}` cannot be written to, because no server may change `{inside}`")]
    ReadOnly {
        /// The path.
        path: String,
        /// The one that stays as it is.
        inside: CanonicalPath,
    },
}

/// Folders of the kernel, of which every sandbox has its own.
const KERNEL: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Returns the view that a server's sandbox has: that of its entry, and nothing but what is granted where it names none.
#[must_use]
pub fn view_of(settings: &SandboxSettings) -> FileView {
    settings.view.unwrap_or(FileView::Roots)
}

/// The default use of the `config` of git repositories, for a server whose entry does not say: one that changes them
/// writes there as git does.
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

/// Every role that an argument of one of its tools can have.
fn roles(server: &str, annotations: &Annotations) -> impl Iterator<Item = Role> {
    let arguments = annotations.tools(server).flat_map(|(_, tool)| &tool.arguments);
    arguments.flat_map(|(_, roles)| {
        roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles)).copied()
    })
}

impl Surroundings {
    /// For a session. `protected` is what no call touches or changes.
    ///
    /// # Errors
    /// When one of our folders cannot be found.
    pub fn new(
        ours: &Home,
        home: &CanonicalPath,
        protected: &ProtectedPaths,
        session_dir: &CanonicalPath,
    ) -> io::Result<Self> {
        let canonical = |dir: PathBuf| {
            let real = dir.canonicalize()?;
            let text = real.to_str().ok_or_else(|| io::Error::other("it is not UTF-8"))?;
            CanonicalPath::assume_canonical(text).map_err(io::Error::other)
        };
        let own = ours.own().into_iter().map(canonical).collect::<io::Result<_>>()?;
        let sandboxes = canonical(ours.sandboxes())?;
        let (session_dir, home, data) = (session_dir.clone(), home.clone(), ours.all_server_data());
        Ok(Self { session_dir, home, own, protected: protected.clone(), sandboxes, data })
    }

    /// The part of the file system that is seen before any grant. `program` is the file that is run.
    ///
    /// # Errors
    /// [`ViewError`], naming the path that cannot be opened.
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
                // As in the other view, what is not there opens nothing.
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

    /// The paths that no server reads, and those that this one does not.
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

    /// The data folders of all servers. One that its entry opens to a server is shown again.
    fn data_folders(&self) -> impl Iterator<Item = String> {
        self.data.iter().filter(|folder| folder.is_dir()).map(|folder| folder.to_string_lossy().into_owned())
    }

    /// The paths that no server writes to, as far as they exist, and those that this one does not.
    #[must_use]
    pub fn not_written(&self, profile: &Profile) -> Vec<String> {
        let there =
            self.protected.read_only().iter().map(|kept| &kept.path).filter(|kept| kept.as_path().exists());
        self.paths(&profile.deny_write)
            .into_iter()
            .chain(there.map(|kept| kept.as_str().to_owned()))
            .collect()
    }

    /// The writable mounts of a view that shows nothing by itself. Paths that do not exist are left out.
    #[must_use]
    pub fn mounted(&self, profile: &Profile) -> Vec<Need> {
        let writable = self.paths(&profile.allow_write);
        let there = writable.iter().filter_map(|path| {
            let real = Path::new(path).canonicalize().ok()?;
            CanonicalPath::assume_canonical(real.to_str()?).ok()
        });
        there.filter(|path| !self.session_dir.contains(path)).map(|path| Need::new(path, true)).collect()
    }

    /// The paths that its view makes writable by itself, the session's own folder first.
    #[must_use]
    pub fn writable(&self, profile: &Profile, kind: FileView) -> Vec<CanonicalPath> {
        let named = match kind {
            FileView::HostRead => self.mounted(profile),
            FileView::Roots => Vec::new(),
        };
        std::iter::once(self.session_dir.clone()).chain(named.into_iter().map(|need| need.path)).collect()
    }

    /// The paths that its entry denies writing to, existing or not.
    #[must_use]
    pub fn unwritable(&self, profile: &Profile) -> Vec<String> {
        self.paths(&profile.deny_write)
    }

    /// The paths that are masked in a folder, so that the rest of it can be written.
    #[must_use]
    pub fn kept_in(&self, folder: &CanonicalPath) -> Vec<String> {
        self.protected.masked_in(folder).into_iter().map(|kept| kept.as_str().to_owned()).collect()
    }

    fn paths(&self, written: &[String]) -> Vec<String> {
        let home = self.home.as_path();
        written.iter().map(|path| normal(&expand_home(path, home), self.session_dir.as_path())).collect()
    }

    fn may_be_opened(&self, path: &str, kind: FileView) -> Result<(), ViewError> {
        // As it is spelled, and as it really is.
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
    /// Refuses to open a read-only path for writing, and in [`FileView::Roots`] a folder that has one it cannot mask.
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

/// The program's own files, which it needs to see: its file, or the whole virtual environment that it is a link of.
fn own_files(program: &str) -> &str {
    let environment = Path::new(program).parent().and_then(Path::parent).and_then(Path::to_str);
    environment.filter(|_| Path::new(program).is_symlink()).unwrap_or(program)
}

/// The limits of an entry, and the defaults where it says nothing.
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
