//! Finds servers' programs, and checks that no other user can change IronCurtain's own programs.

use ironcurtain_config::Exposure;
use ironcurtain_packages::Packages;
use ironcurtain_paths::OwnProgram;
use ironcurtain_secrets::SecretStore;
use std::io;
use std::path::{Path, PathBuf};

/// Function that returns an error if another server can change the given program.
pub type RefusesProgram = dyn Fn(&Path) -> Result<(), ProgramError> + Send + Sync;

/// Locations of server programs, packages and secrets.
#[derive(Debug, Clone)]
pub struct ServerPrograms {
    /// Directory that contains `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub dir: PathBuf,
    /// `true` if uid 0 is allowed to create sandboxes.
    pub allow_root: bool,
    /// Installed packages from which servers can run.
    pub packages: Packages,
    /// Store of the secrets that entries refer to.
    pub secrets: SecretStore,
}

/// Reason a program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The path is relative, so its meaning would depend on the current directory.
    #[error("`{0}` is a relative path; write the whole path or a name")]
    Relative(String),
    /// No folder in `PATH` contains the program.
    #[error("the program `{0}` was not found in `PATH`")]
    NotInPath(String),
    /// The path of the program cannot be resolved.
    #[error("failed to resolve the program `{program}`: {source}")]
    Unusable {
        /// Path of the program.
        program: PathBuf,
        /// Operating system error.
        source: io::Error,
    },
    /// A user other than root and the current user can change the program.
    #[error("refused to start `{program}`: {source}")]
    Refused {
        /// Path of the program.
        program: PathBuf,
        /// Users who can change the program, and how to prevent that.
        source: io::Error,
    },
    /// Another server can change the program.
    #[error(
        "refused to start `{}`: {} can write to `{}`; move it to a folder that no server can write to, or \
         remove the server's access",
        .0.file.display(), .0.by, .0.path
    )]
    Exposed(Exposure),
}

/// Finds a program by its absolute path, among IronCurtain's own programs, or in `PATH`, and resolves symlinks.
///
/// The `python` of a virtual environment is returned as a symlink, because Python finds its modules relative to it.
///
/// # Errors
/// Returns a [`ProgramError`] if the program is not found, or is one of IronCurtain's own programs and another user can
/// change it.
pub fn find_program(command: &str, ours: &Path) -> Result<PathBuf, ProgramError> {
    let found = named_program(command, ours)?;
    let real = |path: &Path| {
        path.canonicalize().map_err(|source| ProgramError::Unusable { program: found.clone(), source })
    };
    let file = real(&found)?;
    if ours.canonicalize().is_ok_and(|ours| file.starts_with(ours)) {
        check_trusted(&file)?;
    }
    match (found.parent(), found.file_name()) {
        (Some(bin), Some(name)) if bin.join("../pyvenv.cfg").is_file() => Ok(real(bin)?.join(name)),
        (Some(_) | None, _) => Ok(file),
    }
}

/// Like [`find_program`], but neither resolves symlinks nor checks who can change the program.
///
/// # Errors
/// Returns a [`ProgramError`] if the program is not found.
pub fn named_program(command: &str, ours: &Path) -> Result<PathBuf, ProgramError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if command.starts_with('/') {
        Some(PathBuf::from(command))
    } else if command.contains('/') {
        return Err(ProgramError::Relative(command.to_owned()));
    } else {
        let dirs = std::iter::once(ours.to_path_buf()).chain(std::env::split_paths(&path));
        dirs.map(|dir| dir.join(command)).find(|p| p.is_file())
    };
    found.ok_or_else(|| ProgramError::NotInPath(command.to_owned()))
}

/// Checks that only root and the current user can change a program.
///
/// # Errors
/// Returns [`ProgramError::Refused`] if another user can change the program.
pub fn check_trusted(program: &Path) -> Result<(), ProgramError> {
    match OwnProgram::open(program) {
        Ok(_) => Ok(()),
        Err(source) => Err(ProgramError::Refused { program: program.to_path_buf(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_a_missing_program() {
        let problem = find_program("no-such-program", Path::new("/nonexistent")).map_err(|e| e.to_string());
        assert_eq!(problem, Err("the program `no-such-program` was not found in `PATH`".into()));
        assert!(
            find_program("./x", Path::new("/nonexistent")).unwrap_err().to_string().contains("relative path")
        );
    }

    #[test]
    fn a_program_of_ours_that_others_can_write_is_not_started() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().canonicalize().unwrap().join("ironcurtain-x");
        std::fs::write(&file, "").unwrap();
        let with = |mode, ours: &Path| {
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            find_program(file.to_str().unwrap(), ours).map_err(|e| e.to_string())
        };
        let refused = with(0o777, dir.path()).unwrap_err();
        assert_eq!(
            refused,
            format!(
                "refused to start `{}`: other users can write to it; run `chmod go-w` on it",
                file.display()
            )
        );
        assert_eq!(with(0o755, dir.path()), Ok(file.clone()));
        assert_eq!(with(0o777, Path::new("/nonexistent")), Ok(file.clone()));
    }

    #[test]
    fn links_are_resolved_except_the_python_of_a_virtual_environment() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("venv/bin")).unwrap();
        let python = base.join("venv/bin/python");
        std::os::unix::fs::symlink("/bin/sh", &python).unwrap();
        std::os::unix::fs::symlink(base.join("venv"), base.join("link")).unwrap();
        let found = |path: &str| {
            find_program(base.join(path).to_str().unwrap(), Path::new("/nonexistent"))
                .map_err(|e| e.to_string())
        };
        assert_eq!(found("venv/bin/python"), Ok(Path::new("/bin/sh").canonicalize().unwrap()));
        std::fs::write(base.join("venv/pyvenv.cfg"), "home = /usr/bin\n").unwrap();
        assert_eq!(found("link/bin/python"), Ok(python.clone()));
        std::fs::remove_file(&python).unwrap();
        std::os::unix::fs::symlink("/nonexistent/x", &python).unwrap();
        assert!(find_program(python.to_str().unwrap(), Path::new("/")).is_err());
    }
}
