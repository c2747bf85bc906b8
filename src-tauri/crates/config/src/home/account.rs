//! The account that this process runs as, and detection of a home directory other than the account's.

use ironcurtain_protocol::HOME_VARIABLE;
use std::fmt;
use std::path::{Path, PathBuf};

/// Account of the user who runs this process, from the user database (`passwd(5)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Login name.
    pub name: String,
    /// Home directory.
    pub home: PathBuf,
}

impl Account {
    /// Returns the account, or `None` if the user database has no entry for it, as in many containers.
    #[must_use]
    pub fn current() -> Option<Self> {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten()?;
        Some(Self { name: user.name, home: user.dir })
    }
}

/// Directory that an environment variable selects for settings, grants and the audit log instead of the account's
/// own.
///
/// A repository can set such a variable in a client's settings, so the user is warned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HomeOverride {
    variable: &'static str,
    path: PathBuf,
}

impl HomeOverride {
    /// Returns the directory that the environment selects, if it is not the account's own.
    pub(super) fn detect(chosen: Option<&Path>, user_home: &Path, account: Option<&Account>) -> Option<Self> {
        if let Some(path) = chosen {
            return Some(Self { variable: HOME_VARIABLE, path: path.to_path_buf() });
        }
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let differs = account.is_some_and(|account| real(&account.home) != real(user_home));
        differs.then(|| Self { variable: "HOME", path: user_home.to_path_buf() })
    }
}

impl fmt::Display for HomeOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { variable, path } = self;
        write!(f, "Not your usual rules: `{variable}` was set to `{}`", path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(chosen: Option<&str>, user_home: &str, account: Option<&str>) -> Option<String> {
        let account = account.map(|home| Account { name: "u".into(), home: home.into() });
        HomeOverride::detect(chosen.map(Path::new), Path::new(user_home), account.as_ref())
            .map(|it| it.to_string())
    }

    #[test]
    fn a_home_other_than_the_accounts_is_named() {
        assert_eq!(
            warning(Some("/repo/ic"), "/home/u", Some("/home/u")).unwrap(),
            "Not your usual rules: `IRONCURTAIN_HOME` was set to `/repo/ic`"
        );
        assert_eq!(
            warning(None, "/repo", Some("/home/u")).unwrap(),
            "Not your usual rules: `HOME` was set to `/repo`"
        );
    }

    #[test]
    fn the_accounts_home_needs_no_warning_in_any_spelling() {
        assert_eq!(warning(None, "/home/u", Some("/home/u")), None);
        assert_eq!(warning(None, "/home/u", None), None);
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(dir.path(), &link).unwrap();
        assert_eq!(warning(None, link.to_str().unwrap(), dir.path().to_str()), None);
    }
}
