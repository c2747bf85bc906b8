//! The folders that our files are in. Every directory is this user's alone (mode 0700).

mod account;

pub use account::{Account, OtherHome};

use directories::{BaseDirs, ProjectDirs};
use ironcurtain_paths::{CanonicalPath, Resolver, is_trusted_owner, is_written_by_others};
use ironcurtain_protocol::{HOME_VARIABLE, SocketPathError, Sockets};
use rustix::fs::{Mode, OFlags, fchmod, fstat, open};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Our directories, and the person's home that `~` stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    /// The person's home directory.
    pub person: PathBuf,
    /// `config.json`, `mcp-servers.json`, `policy/`.
    pub config: PathBuf,
    /// `audit/`, `state.db`, `sessions/`, `sandboxes/`.
    pub state: PathBuf,
    /// The files that servers keep between sessions: the person's, not ours.
    pub data: PathBuf,
    /// The socket.
    pub socket: PathBuf,
    /// Our programs, where it is known: no agent changes what is there.
    pub programs: Option<PathBuf>,
    /// The keyring is for this home: what is known of its record may be kept there. One that is not in the usual place has none.
    pub has_keyring: bool,
    /// The environment chose another directory than the account's.
    pub other: Option<OtherHome>,
}

/// Why our directories cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    /// The environment does not say where they are.
    #[error(transparent)]
    Place(#[from] SocketPathError),
    /// No home directory is known.
    #[error("this user's home directory is unknown; set `HOME`")]
    NoHome,
    /// A directory cannot be made or read.
    #[error("`{path}` cannot be used: {source}")]
    Io {
        /// The directory.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Another user owns it.
    #[error("`{path}` belongs to user {owner}, not to you; move it away")]
    OtherOwner {
        /// The directory.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
    /// Others can write it, or a directory above it.
    #[error(
        "other users can write `{path}`: close it with `chmod go-w`, or move IronCurtain's files elsewhere"
    )]
    OthersWrite {
        /// The directory.
        path: PathBuf,
    },
}

impl Home {
    /// From this process's environment.
    ///
    /// # Errors
    /// [`HomeError`], when the environment names no usable directory.
    pub fn from_env() -> Result<Self, HomeError> {
        let socket = Sockets::of_user()?.first().to_path_buf();
        let person = BaseDirs::new().ok_or(HomeError::NoHome)?.home_dir().to_path_buf();
        let chosen = std::env::var_os(HOME_VARIABLE).filter(|v| !v.is_empty()).map(PathBuf::from);
        let other = OtherHome::of(chosen.as_deref(), &person, Account::of_process().as_ref());
        if let Some(all) = chosen {
            return Ok(Self { socket, programs: own_programs(), other, ..Self::under(&all, &person) });
        }
        let ours = ProjectDirs::from("", "", "ironcurtain").ok_or(HomeError::NoHome)?;
        let state = ours.state_dir().unwrap_or_else(|| ours.data_local_dir()).to_path_buf();
        let (config, data) = (ours.config_dir().to_path_buf(), ours.data_dir().to_path_buf());
        let programs = own_programs();
        Ok(Self { person, config, state, data, socket, programs, has_keyring: true, other })
    }

    /// Everything under one directory, as [`HOME_VARIABLE`] has it.
    #[must_use]
    pub fn under(all: &Path, person: &Path) -> Self {
        Self {
            person: person.to_path_buf(),
            config: all.join("config"),
            state: all.join("state"),
            data: all.join("data"),
            socket: all.join("run/socket"),
            programs: None,
            has_keyring: false,
            other: None,
        }
    }

    /// Makes the directories that are missing, and closes them to other users.
    ///
    /// # Errors
    /// [`HomeError`], naming the directory.
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
        [&self.config, &self.state, &self.runtime()].into_iter().try_for_each(|dir| safe_above(dir))
    }

    /// Our own directories: protected from every tool and every server.
    #[must_use]
    pub fn own(&self) -> [PathBuf; 3] {
        [self.config.clone(), self.state.clone(), self.runtime()]
    }

    /// Policy files.
    #[must_use]
    pub fn policy(&self) -> PathBuf {
        self.config.join("policy")
    }

    /// The audit log's directory.
    #[must_use]
    pub fn audit(&self) -> PathBuf {
        self.state.join("audit")
    }

    /// The newest entry of the audit log as it is known outside of its directory.
    #[must_use]
    pub fn audit_head(&self) -> PathBuf {
        self.state.join("audit-head.json")
    }

    /// Session directories.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    /// The database.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.state.join("state.db")
    }

    /// The file that says that everything is locked down.
    #[must_use]
    pub fn lockdown(&self) -> PathBuf {
        self.state.join("lockdown")
    }

    /// Settings of the sandboxes that `srt` makes, a directory for each session.
    #[must_use]
    pub fn srt(&self) -> PathBuf {
        self.runtime().join("srt")
    }

    /// The folder that all sandboxes share: journals, and what was moved away.
    #[must_use]
    pub fn sandboxes(&self) -> PathBuf {
        self.state.join("sandboxes")
    }

    /// The folder in which the server of this name keeps what outlives its sessions.
    #[must_use]
    pub fn server_data(&self, server: &str) -> PathBuf {
        self.data.join("servers").join(server)
    }

    /// The folders with the data of all servers: those in use, and those that were put aside.
    #[must_use]
    pub fn all_server_data(&self) -> [PathBuf; 2] {
        [self.data.join("servers"), self.put_aside()]
    }

    /// The folder of data that a user who started afresh has put aside.
    #[must_use]
    pub fn put_aside(&self) -> PathBuf {
        self.data.join("put-aside")
    }

    /// The packages that servers are started from.
    #[must_use]
    pub fn installs(&self) -> PathBuf {
        self.data.join("installs")
    }

    fn runtime(&self) -> PathBuf {
        self.socket.parent().unwrap_or(Path::new("/")).to_path_buf()
    }
}

/// They lie beside the one that runs.
fn own_programs() -> Option<PathBuf> {
    std::env::current_exe().ok()?.parent().map(Path::to_path_buf)
}

/// A path of ours, or the home directory, that cannot be resolved.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be resolved: {problem}")]
pub struct UnresolvedPath {
    /// The path.
    pub path: String,
    /// Why not.
    pub problem: String,
}

/// The person's home without symlinks.
///
/// # Errors
/// When it cannot be resolved.
pub fn canonical_home(home: &Home) -> Result<CanonicalPath, UnresolvedPath> {
    let text = home.person.to_string_lossy().into_owned();
    let problem = |problem: String| UnresolvedPath { path: text.clone(), problem };
    let spelled = CanonicalPath::assume_canonical(&text).map_err(|e| problem(e.to_string()))?;
    let found = Resolver::new(spelled.clone(), spelled).resolve(&text).map_err(|e| problem(e.to_string()))?;
    Ok(found.path)
}

/// Makes a directory only this user can enter, or checks and closes one that exists. It is no link.
///
/// # Errors
/// [`HomeError`], naming the directory.
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
    // Something of theirs may be in it already.
    if is_written_by_others(found.st_mode, found.st_gid) {
        return Err(HomeError::OthersWrite { path: path.to_path_buf() });
    }
    if found.st_mode & 0o077 != 0 {
        fchmod(&dir, Mode::RWXU).map_err(|e| io(e.into()))?;
    }
    Ok(())
}

/// Checks that nobody else can put another directory in the place of one that is ours: those above it are root's or this
/// user's, and others write at most what sticks to its owner.
fn safe_above(path: &Path) -> Result<(), HomeError> {
    let io = |source| HomeError::Io { path: path.to_path_buf(), source };
    for above in path.canonicalize().map_err(io)?.ancestors().skip(1) {
        let found = std::fs::metadata(above).map_err(io)?;
        if !is_trusted_owner(found.uid()) {
            return Err(HomeError::OtherOwner { path: above.to_path_buf(), owner: found.uid() });
        }
        if is_written_by_others(found.mode(), found.gid()) && found.mode() & 0o1000 == 0 {
            return Err(HomeError::OthersWrite { path: above.to_path_buf() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_home_that_others_can_write_is_refused_by_name_and_one_that_they_can_read_is_closed() {
        let all = tempfile::tempdir().unwrap();
        let home = Home::under(&all.path().join("ic"), Path::new("/home/u"));
        home.prepare().unwrap();
        let open =
            |dir: &Path, mode| std::fs::set_permissions(dir, std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = || home.prepare().unwrap_err().to_string();
        for (dir, mode) in [(home.config.clone(), 0o702), (home.policy(), 0o702), (home.audit(), 0o777)] {
            open(&dir, mode);
            assert!(
                refused().starts_with(&format!("other users can write `{}`", dir.display())),
                "{}",
                refused()
            );
            open(&dir, 0o755);
            home.prepare().unwrap();
        }
        let above = all.path().join("ic");
        open(&above, 0o707);
        assert!(
            refused().starts_with(&format!("other users can write `{}`", above.display())),
            "{}",
            refused()
        );
        open(&above, 0o1777);
        home.prepare().unwrap();
        if geteuid().is_root() {
            std::os::unix::fs::chown(&above, Some(12345), None).unwrap();
            assert_eq!(
                refused(),
                format!("`{}` belongs to user 12345, not to you; move it away", above.display())
            );
        }
    }

    #[test]
    fn directories_are_made_private_and_stay_so() {
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
    fn a_link_in_the_place_of_a_directory_is_refused() {
        let all = tempfile::tempdir().unwrap();
        std::fs::create_dir(all.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(all.path().join("elsewhere"), all.path().join("config")).unwrap();
        let error = Home::under(all.path(), Path::new("/home/u")).prepare().unwrap_err();
        assert!(error.to_string().contains("it is not a directory"), "{error}");
    }
}
