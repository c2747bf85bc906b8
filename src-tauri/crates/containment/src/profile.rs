//! Converts a profile to the view, limits and writable paths of IronCurtain's own sandbox.
//!
//! - An entry cannot grant access to protected paths. IronCurtain's own folders are rejected. If the view cannot hide
//!   single paths, folders that contain a protected path are rejected as well.

use super::resolve::{Profile, expand_home, normalize};
use super::served::{HiddenPaths, served_view};
use super::view_error::ViewError;
use ironcurtain_config::home::Home;
use ironcurtain_config::{FileView, GitConfigSettings, LimitSettings, SandboxSettings};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{Annotations, ProtectedPaths, Role};
use ironcurtain_sandbox::{ResourceLimits, View};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Folders and protected paths that affect a sandbox's view.
#[derive(Debug, Clone, PartialEq)]
pub struct SandboxContext {
    /// The session's sandbox directory.
    pub session_dir: CanonicalPath,
    /// The user's home directory.
    pub home: CanonicalPath,
    /// IronCurtain's own folders.
    pub own: Vec<CanonicalPath>,
    /// Paths that no server may read or change, including IronCurtain's own folders.
    pub protected: Arc<ProtectedPaths>,
    /// Folder with the journals and quarantined files of all sandboxes.
    pub sandboxes: CanonicalPath,
    /// Folders that contain the servers' data folders. Each server sees only its own.
    pub data: [PathBuf; 2],
}

/// Kernel file systems. Every sandbox has its own instances.
const KERNEL_FOLDERS: [&str; 3] = ["/proc", "/sys", "/dev"];

/// Returns the view selected in a server's settings. By default, it shows only granted paths.
#[must_use]
pub fn view_of(settings: &SandboxSettings) -> FileView {
    settings.view.unwrap_or(FileView::Roots)
}

/// Returns the default access to git repositories' `config` files.
///
/// The files are writable for servers whose tools change repositories, because git then writes to them.
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

/// Returns the given absolute paths, and the path to which each of them resolves.
pub(super) fn with_link_targets(paths: impl Iterator<Item = String>, home: &CanonicalPath) -> Vec<String> {
    let resolver = Resolver::new(home.clone(), home.clone());
    let target = |path: &String| Some(resolver.resolve(path).ok()?.path.as_str().to_owned());
    let all: BTreeSet<String> = paths.flat_map(|path| target(&path).into_iter().chain([path])).collect();
    all.into_iter().collect()
}

/// Iterates over the roles of the arguments of a server's tools.
fn roles(server: &str, annotations: &Annotations) -> impl Iterator<Item = Role> {
    let arguments = annotations.tools(server).flat_map(|(_, tool)| &tool.arguments);
    arguments.flat_map(|(_, roles)| {
        roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles)).copied()
    })
}

impl SandboxContext {
    /// Collects the surroundings of a session's sandboxes.
    ///
    /// # Errors
    /// Returns an error if one of IronCurtain's own folders does not exist.
    pub fn new(
        ours: &Home,
        home: &CanonicalPath,
        protected: &Arc<ProtectedPaths>,
        session_dir: &CanonicalPath,
    ) -> io::Result<Self> {
        let canonical = |dir: PathBuf| {
            let real = dir.canonicalize()?;
            let text = real.to_str().ok_or_else(|| io::Error::other("the path is not valid UTF-8"))?;
            CanonicalPath::assume_canonical(text).map_err(io::Error::other)
        };
        let own = ours.private_dirs().into_iter().map(canonical).collect::<io::Result<_>>()?;
        let sandboxes = canonical(ours.sandboxes())?;
        let (session_dir, home, data) = (session_dir.clone(), home.clone(), ours.all_server_data());
        Ok(Self { session_dir, home, own, protected: protected.clone(), sandboxes, data })
    }

    /// Returns the view that a server has without any grant. `program` is the file to run.
    ///
    /// # Errors
    /// Returns a [`ViewError`] that names the rejected path.
    pub fn view(&self, profile: &Profile, kind: FileView, program: &str) -> Result<View, ViewError> {
        let session_dir = self.session_dir.as_str().to_owned();
        let read = self.paths(&profile.allow_read);
        let writable = self.paths(&profile.allow_write);
        self.check_entry(profile, kind)?;
        let mut view = match kind {
            FileView::Roots => {
                // Missing paths are ignored, as in the `host-read` view.
                let programs = read.into_iter().filter(|path| Path::new(path).exists()).collect();
                View::Roots { session_dir, programs }
            }
            FileView::HostRead => View::HostRead {
                session_dir: Some(session_dir),
                deny_read: self.denied(profile).into_iter().chain(self.data_folders()).collect(),
                allow_read: read,
                allow_write: writable,
                deny_write: self.read_only_paths(profile),
                private_tmp: true,
            },
        };
        self.add_program_files(&mut view, program, kind)?;
        Ok(view)
    }

    /// Checks that an entry grants access only to permitted paths.
    ///
    /// # Errors
    /// Returns a [`ViewError`] that names the rejected path.
    pub fn check_entry(&self, profile: &Profile, kind: FileView) -> Result<(), ViewError> {
        let (read, writable) = (self.paths(&profile.allow_read), self.paths(&profile.allow_write));
        read.iter().chain(&writable).try_for_each(|path| self.check_readable(path, kind))?;
        writable.iter().try_for_each(|path| self.check_writable(path, kind))
    }

    /// Returns the view of a server whose file accesses require the user's approval. `program` is the file to run.
    ///
    /// # Errors
    /// Returns a [`ViewError`] that names the rejected path.
    pub fn asking_view(&self, profile: &Profile, program: &str) -> Result<View, ViewError> {
        self.check_entry(profile, FileView::Roots)?;
        let read = self.paths(&profile.allow_read);
        let writable = self.paths(&profile.allow_write);
        let closed = self.hidden_paths(profile);
        for path in read.iter().chain(&writable) {
            closed.check_mountable(path)?;
        }
        let mut view = served_view(&self.home, &self.protected, std::iter::empty());
        if let View::Served { session_dir, hidden, programs, .. } = &mut view {
            *session_dir = Some(self.session_dir.as_str().to_owned());
            hidden.extend(closed.hidden);
            programs.extend(read.into_iter().filter(|path| Path::new(path).exists()));
        }
        self.add_program_files(&mut view, program, FileView::Roots)?;
        Ok(view)
    }

    /// Adds to a view the files that a program needs to run.
    fn add_program_files(&self, view: &mut View, program: &str, kind: FileView) -> Result<(), ViewError> {
        let files = program_root(program);
        if files != program {
            self.check_readable(files, kind)?;
        }
        view.show_program(files);
        Ok(())
    }

    /// Returns the paths that the entry hides from the server, and the folders that contain the data of all servers.
    #[must_use]
    pub fn hidden_paths(&self, profile: &Profile) -> HiddenPaths {
        let denied = self.paths(profile.deny_read.as_deref().unwrap_or_default());
        let data = self.data.iter().filter_map(|folder| Some(normalize(folder.to_str()?, Path::new("/"))));
        HiddenPaths { hidden: with_link_targets(denied.into_iter().chain(data), &self.home) }
    }

    /// Returns the paths that the server must not read, including the paths that no server may read.
    #[must_use]
    pub fn denied(&self, profile: &Profile) -> Vec<String> {
        let kernel = |path: &&CanonicalPath| KERNEL_FOLDERS.iter().any(|own| path.as_path().starts_with(own));
        let standing =
            self.protected.paths().iter().filter(|path| !kernel(path)).map(|path| path.as_str().to_owned());
        let own = self.paths(profile.deny_read.as_deref().unwrap_or_default());
        let mut denied: Vec<String> = standing.chain(own).collect();
        denied.sort();
        denied.dedup();
        denied
    }

    /// Returns the folders that contain the data of all servers, which the view hides. The server's own data folder is
    /// mounted separately.
    fn data_folders(&self) -> impl Iterator<Item = String> {
        self.data.iter().filter(|folder| folder.is_dir()).map(|folder| folder.to_string_lossy().into_owned())
    }

    /// Returns the paths that the server must not write to, including existing paths that no server may change.
    #[must_use]
    pub fn read_only_paths(&self, profile: &Profile) -> Vec<String> {
        let existing =
            self.protected.read_only().iter().map(|kept| &kept.path).filter(|kept| kept.as_path().exists());
        self.paths(&profile.deny_write)
            .into_iter()
            .chain(existing.map(|kept| kept.as_str().to_owned()))
            .collect()
    }

    /// Returns the writable mounts to add to a view. Missing paths are omitted.
    #[must_use]
    pub fn writable_mounts(&self, profile: &Profile) -> Vec<MountRequest> {
        let writable = self.paths(&profile.allow_write);
        let existing = writable.iter().filter_map(|path| {
            let real = Path::new(path).canonicalize().ok()?;
            CanonicalPath::assume_canonical(real.to_str()?).ok()
        });
        existing
            .filter(|path| !self.session_dir.contains(path))
            .map(|path| MountRequest::new(path, true))
            .collect()
    }

    /// Returns the paths that are writable without any grant, starting with the session's sandbox directory.
    #[must_use]
    pub fn writable(&self, profile: &Profile, kind: FileView) -> Vec<CanonicalPath> {
        let named = match kind {
            FileView::HostRead => self.writable_mounts(profile),
            FileView::Roots => Vec::new(),
        };
        std::iter::once(self.session_dir.clone()).chain(named.into_iter().map(|need| need.path)).collect()
    }

    /// Returns the paths that the entry makes read-only, including missing paths.
    #[must_use]
    pub fn entry_read_only_paths(&self, profile: &Profile) -> Vec<String> {
        self.paths(&profile.deny_write)
    }

    /// Returns the paths in a folder that the sandbox must mask before the rest of the folder can be writable.
    #[must_use]
    pub fn masked_paths_in(&self, folder: &CanonicalPath) -> Vec<String> {
        self.protected.masked_in(folder).into_iter().map(|kept| kept.as_str().to_owned()).collect()
    }

    fn paths(&self, written: &[String]) -> Vec<String> {
        let home = self.home.as_path();
        written.iter().map(|path| normalize(&expand_home(path, home), self.session_dir.as_path())).collect()
    }

    fn check_readable(&self, path: &str, kind: FileView) -> Result<(), ViewError> {
        // Both the written path and its real path must be permitted.
        let real = Path::new(path).canonicalize().ok().and_then(|real| Some(real.to_str()?.to_owned()));
        for path in std::iter::once(path.to_owned()).chain(real) {
            let Ok(path) = CanonicalPath::assume_canonical(&path) else {
                return Err(ViewError::InvalidPath(path));
            };
            if self.session_dir.contains(&path) {
                continue;
            }
            if self.own.iter().any(|own| own.contains(&path)) {
                return Err(ViewError::OwnFolder(path));
            }
            self.check_not_denied(&path, kind)?;
            let inside = self.protected.paths().iter().find(|inside| path.strictly_contains(inside));
            if let Some(inside) = inside.filter(|inside| kind == FileView::Roots && inside.as_path().exists())
            {
                return Err(ViewError::ContainsProtected { path: path.clone(), inside: inside.clone() });
            }
        }
        Ok(())
    }
}

impl SandboxContext {
    /// Returns an error if the user's organization denies access to a path. With [`FileView::HostRead`], a denied path
    /// inside the given path is hidden instead.
    fn check_not_denied(&self, path: &CanonicalPath, kind: FileView) -> Result<(), ViewError> {
        let rule = self.protected.denying_rule(path, kind == FileView::Roots);
        match rule {
            Some(rule) => Err(ViewError::Managed { path: path.clone(), rule: rule.rule.to_string() }),
            None => Ok(()),
        }
    }

    /// Returns an error if making `path` writable would also make a read-only path inside it writable.
    /// [`FileView::Roots`] cannot always mask such a path.
    fn check_writable(&self, path: &str, kind: FileView) -> Result<(), ViewError> {
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

/// Returns the path that a program needs to run: its virtual environment if the program is a symlink,
/// otherwise the program itself.
fn program_root(program: &str) -> &str {
    let environment = Path::new(program).parent().and_then(Path::parent).and_then(Path::to_str);
    environment.filter(|_| Path::new(program).is_symlink()).unwrap_or(program)
}

/// Converts an entry's limits. Limits that the entry does not set get their defaults.
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
