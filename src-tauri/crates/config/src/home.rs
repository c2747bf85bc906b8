//! Directories that contain IronCurtain's files. Each is private to this user (mode 0700).

mod account;

pub use account::{Account, HomeOverride};

use directories::{BaseDirs, ProjectDirs};
use ironcurtain_paths::{CanonicalPath, Resolver, is_trusted_owner, is_writable_by_others};
use ironcurtain_protocol::{HOME_VARIABLE, SocketPathError, Sockets};
use rustix::fs::{Mode, OFlags, fchmod, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Paths of IronCurtain's directories, its socket and the user's home directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The user's home directory, written as `~` in paths.
    pub user_home: PathBuf,
    /// Directory of `config.json`, `mcp-servers.json` and `policy/`.
    pub config: PathBuf,
    /// Directory of `audit/`, `state.db`, `sessions/` and `sandboxes/`.
    pub state: PathBuf,
    /// Directory of the files that servers keep between sessions.
    pub data: PathBuf,
    /// Path of the trusted process's socket.
    pub socket: PathBuf,
    /// Directory of IronCurtain's programs, which no agent may change. `None` if it is unknown.
    pub programs: Option<PathBuf>,
    /// `true` if the keyring may store the newest audit entry. Set only for the account's own directories.
    pub has_keyring: bool,
    /// Directory that an environment variable selects instead of the account's own, if any.
    pub override_warning: Option<HomeOverride>,
}

/// Reason one of IronCurtain's directories cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The path of the socket could not be determined from the environment.
    #[error(transparent)]
    Socket(#[from] SocketPathError),
    /// Neither `HOME` nor the user database contains the home directory.
    #[error("this user's home directory is unknown; set `HOME`")]
    NoHome,
    /// Creating, reading or changing a directory failed.
    #[error("failed to access the directory `{path}`: {source}")]
    Io {
        /// Path of the directory.
        path: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// Another user owns the directory.
    #[error("`{path}` belongs to user {owner}, not to you; move it away")]
    OtherOwner {
        /// Path of the directory.
        path: PathBuf,
        /// User id of the owner.
        owner: u32,
    },
    /// Other users can write to the directory or to one of its ancestors.
    #[error(
        "other users can write to `{path}`; run `chmod go-w` on it, or move IronCurtain's files elsewhere"
    )]
    WritableByOthers {
        /// Path of the directory.
        path: PathBuf,
    },
}

impl Home {
    /// Determines the directories from this process's environment.
    ///
    /// # Errors
    /// Returns a [`HomeError`] if the home directory or the socket's path is unknown.
    pub fn from_env() -> Result<Self, HomeError> {
        let socket = Sockets::for_current_user()?.first().to_path_buf();
        let user_home = BaseDirs::new().ok_or(HomeError::NoHome)?.home_dir().to_path_buf();
        let chosen = std::env::var_os(HOME_VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let override_warning =
            HomeOverride::detect(chosen.as_deref(), &user_home, Account::current().as_ref());
        if let Some(base) = chosen {
            return Ok(Self {
                socket,
                programs: current_program_dir(),
                override_warning,
                ..Self::under(&base, &user_home)
            });
        }
        let project_dirs = ProjectDirs::from("", "", "ironcurtain").ok_or(HomeError::NoHome)?;
        let state = project_dirs.state_dir().unwrap_or_else(|| project_dirs.data_local_dir()).to_path_buf();
        let (config, data) = (project_dirs.config_dir().to_path_buf(), project_dirs.data_dir().to_path_buf());
        let programs = current_program_dir();
        Ok(Self { user_home, config, state, data, socket, programs, has_keyring: true, override_warning })
    }

    /// Returns directories that are all inside `base`, as selected by [`HOME_VARIABLE`].
    #[must_use]
    pub fn under(base: &Path, user_home: &Path) -> Self {
        Self {
            user_home: user_home.to_path_buf(),
            config: base.join("config"),
            state: base.join("state"),
            data: base.join("data"),
            socket: base.join("run/socket"),
            programs: None,
            has_keyring: false,
            override_warning: None,
        }
    }

    /// Creates missing directories and removes other users' permissions from existing ones.
    ///
    /// # Errors
    /// Returns a [`HomeError`] that names the directory.
    pub fn prepare(&self) -> Result<(), HomeError> {
        for dir in [
            self.config.clone(),
            self.policy(),
            self.state.clone(),
            self.audit(),
            self.sessions(),
            self.sandboxes(),
            self.runtime(),
        ] {
            private_dir(&dir)?;
        }
        [&self.config, &self.state, &self.runtime()].into_iter().try_for_each(|dir| check_ancestors(dir))
    }

    /// Returns IronCurtain's own directories, which no tool or server may access.
    #[must_use]
    pub fn private_dirs(&self) -> [PathBuf; 3] {
        [self.config.clone(), self.state.clone(), self.runtime()]
    }

    /// Returns the directory of the policy files.
    #[must_use]
    pub fn policy(&self) -> PathBuf {
        self.config.join("policy")
    }

    /// Returns the directory of the user's run profiles.
    #[must_use]
    pub fn run_profiles(&self) -> PathBuf {
        self.config.join("run-profiles")
    }

    /// Returns the directory of the audit log.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }

    /// Returns the path of the file with the newest audit entry's hash. The file is outside the log's directory.
    #[must_use]
    pub fn audit_head(&self) -> PathBuf {
        self.state.join("audit-head.json")
    }

    /// Returns the path of the file with the audit log's signed heads.
    #[must_use]
    pub fn audit_heads(&self) -> PathBuf {
        self.state.join("audit-heads.jsonl")
    }

    /// Returns the path of the file with the desktops that may answer this machine's questions.
    #[must_use]
    pub fn desktops(&self) -> PathBuf {
        self.state.join("desktops.json")
    }

    /// Returns the path of the file with the remote machines that this desktop is paired with.
    #[must_use]
    pub fn remotes(&self) -> PathBuf {
        self.state.join("remotes.json")
    }

    /// Returns the path of the file with the export's state.
    #[must_use]
    pub fn export_state(&self) -> PathBuf {
        self.state.join("export.json")
    }

    /// Returns the directory that contains the session folders.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// Returns the path of the SQLite database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state.join("state.db")
    }

    /// Returns the path of the file that exists while lockdown is on.
    #[must_use]
    pub fn lockdown(&self) -> PathBuf {
        self.state.join("lockdown")
    }

    /// Returns the directory for the settings files of `srt` sandboxes, with a subdirectory for each session.
    #[must_use]
    pub fn srt(&self) -> PathBuf {
        self.runtime().join("srt")
    }

    /// Returns the directory for run checkpoints.
    #[must_use]
    pub fn checkpoints(&self) -> PathBuf {
        self.state.join("checkpoints")
    }

    /// Returns the directory for data that all sandboxes share, such as mount journals and quarantined files.
    #[must_use]
    pub fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes")
    }

    /// Returns the directory in which this server keeps data between sessions.
    #[must_use]
    pub fn server_data(&self, server: &str) -> PathBuf {
        self.data.join("servers").join(server)
    }

    /// Returns the directories with the data of all servers, including data that the user has set aside.
    #[must_use]
    pub fn all_server_data(&self) -> [PathBuf; 2] {
        [self.data.join("servers"), self.set_aside_data()]
    }

    /// Returns the directory for server data that the user has set aside.
    #[must_use]
    pub fn set_aside_data(&self) -> PathBuf {
        self.data.join("put-aside")
    }

    /// Returns the directory of installed server packages.
    #[must_use]
    pub fn installs(&self) -> PathBuf {
        self.data.join("installs")
    }

    fn runtime(&self) -> PathBuf {
        self.socket.parent().unwrap_or(Path::new("/")).to_path_buf()
    }
}

/// Returns the directory of the current executable.
fn current_program_dir() -> Option<PathBuf> {
    std::env::current_exe().ok()?.parent().map(Path::to_path_buf)
}

/// Error for a path that could not be resolved.
#[derive(Debug, thiserror::Error)]
#[error("failed to resolve `{path}`: {problem}")]
pub struct UnresolvedPath {
    /// Path that could not be resolved.
    pub path: String,
    /// Reason, as text.
    pub problem: String,
}

/// Returns the canonical path of the user's home directory.
///
/// # Errors
/// Returns an [`UnresolvedPath`] if the path cannot be resolved.
pub fn canonical_home(home: &Home) -> Result<CanonicalPath, UnresolvedPath> {
    let text = home.user_home.to_string_lossy().into_owned();
    let problem = |problem: String| UnresolvedPath { path: text.clone(), problem };
    let as_written = CanonicalPath::assume_canonical(&text).map_err(|e| problem(e.to_string()))?;
    let found =
        Resolver::new(as_written.clone(), as_written).resolve(&text).map_err(|e| problem(e.to_string()))?;
    Ok(found.path)
}

/// Creates a directory with mode 0700, or checks the owner of an existing directory and removes other users'
/// permissions. A symlink is an error.
///
/// # Errors
/// Returns a [`HomeError`] that names the directory.
pub fn private_dir(path: &Path) -> Result<(), HomeError> {
    let io = |source| HomeError::Io { path: path.to_path_buf(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io)?;
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
    let dir = match open(path, flags, Mode::empty()) {
        Err(Errno::NOTDIR | Errno::LOOP) => {
            return Err(io(io::Error::new(io::ErrorKind::NotADirectory, "it is not a directory")));
        }
        opened => opened.map_err(|e| io(e.into()))?,
    };
    let found = fstat(&dir).map_err(|e| io(e.into()))?;
    if found.st_uid != geteuid().as_raw() {
        return Err(HomeError::OtherOwner { path: path.to_path_buf(), owner: found.st_uid });
    }
    // Removing the permissions is not enough, because other users may already have created files in the directory.
    if is_writable_by_others(found.st_mode, found.st_gid) {
        return Err(HomeError::WritableByOthers { path: path.to_path_buf() });
    }
    if found.st_mode & 0o077 != 0 {
        fchmod(&dir, Mode::RWXU).map_err(|e| io(e.into()))?;
    }
    Ok(())
}

/// Checks that no other user can replace the directory. Each ancestor must belong to root or this user, and must have
/// the sticky bit if other users can write to it.
fn check_ancestors(path: &Path) -> Result<(), HomeError> {
    let io = |source| HomeError::Io { path: path.to_path_buf(), source };
    for ancestor in path.canonicalize().map_err(io)?.ancestors().skip(1) {
        let found = std::fs::metadata(ancestor).map_err(io)?;
        if !is_trusted_owner(found.uid()) {
            return Err(HomeError::OtherOwner { path: ancestor.to_path_buf(), owner: found.uid() });
        }
        if is_writable_by_others(found.mode(), found.gid()) && found.mode() & 0o1000 == 0 {
            return Err(HomeError::WritableByOthers { path: ancestor.to_path_buf() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_home_writable_by_others_is_refused_and_a_readable_one_is_made_private() {
        let all = tempfile::tempdir().unwrap();
        let home = Home::under(&all.path().join("ic"), Path::new("/home/u"));
        home.prepare().unwrap();
        let open =
            |dir: &Path, mode| std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = || home.prepare().unwrap_err().to_string();
        for (dir, mode) in [(home.config.clone(), 0o702), (home.policy(), 0o702), (home.audit(), 0o777)] {
            open(&dir, mode);
            assert!(
                refused().starts_with(&format!("other users can write to `{}`", dir.display())),
                "{}",
                refused()
            );
            open(&dir, 0o755);
            home.prepare().unwrap();
        }
        let ancestor = all.path().join("ic");
        open(&ancestor, 0o707);
        assert!(
            refused().starts_with(&format!("other users can write to `{}`", ancestor.display())),
            "{}",
            refused()
        );
        open(&ancestor, 0o1777);
        home.prepare().unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&ancestor, Some(12345), None).unwrap();
            assert_eq!(
                refused(),
                format!("`{}` belongs to user 12345, not to you; move it away", ancestor.display())
            );
        }
    }

    #[test]
    fn directories_are_private_and_stay_private() {
        let all = tempfile::tempdir().unwrap();
        let home = Home::under(all.path(), Path::new("/home/u"));
        home.prepare().unwrap();
        std::fs::set_permissions(home.audit(), std::fs::Permissions::from_mode(0o755)).unwrap();
        home.prepare().unwrap();
        for dir in [home.policy(), home.audit(), home.sessions(), all.path().join("run")] {
            assert_eq!(std::fs::metadata(&dir).unwrap().mode() & 0o777, 0o700, "{}", dir.display());
        }
    }

    #[test]
    fn a_link_in_place_of_a_directory_is_refused() {
        let all = tempfile::tempdir().unwrap();
        std::fs::create_dir(all.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(all.path().join("elsewhere"), all.path().join("config")).unwrap();
        let error = Home::under(all.path(), Path::new("/home/u")).prepare().unwrap_err();
        assert!(error.to_string().contains("it is not a directory"), "{error}");
    }
}
