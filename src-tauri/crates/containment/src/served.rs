//! View of a sandbox whose files are served through FUSE.

use super::view_error::ViewError;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::ProtectedPaths;
use ironcurtain_sandbox::View;
use std::path::{Path, PathBuf};

/// Top-level folders that the file view does not serve, because the sandbox has its own versions.
const OWN: [&str; 8] = ["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr"];

/// Alternative to `/etc/machine-id`. Some programs read it if `/etc/machine-id` does not exist.
const MACHINE: &str = "/var/lib/dbus/machine-id";

/// Returns a view that serves the home directory and the top-level folders that the sandbox itself does not have.
/// `sockets` are the paths of sockets on which the launcher listens.
#[must_use]
pub fn served_view<'a>(
    home: &CanonicalPath,
    protected: &ProtectedPaths,
    sockets: impl Iterator<Item = &'a str>,
) -> View {
    let is_served = |path: &PathBuf| {
        let is_folder = std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir());
        let programs = ["/bin", "/gnu", "/lib", "/lib32", "/lib64", "/libx32", "/nix", "/sbin"];
        is_folder && !OWN.iter().chain(&programs).any(|own| path == Path::new(own))
    };
    let top = std::fs::read_dir("/").into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<String> =
        top.filter(is_served).filter_map(|path| path.to_str().map(str::to_owned)).collect();
    let home = home.as_str();
    if !folders.iter().any(|folder| Path::new(home).starts_with(folder)) {
        folders.push(home.to_owned());
    }
    folders.sort();
    let hidden = protected.paths().iter().map(CanonicalPath::as_str).chain([MACHINE]);
    let hidden = hidden.map(str::to_owned).collect();
    let sockets = sockets.filter_map(|path| Path::new(path).file_name());
    let sockets = sockets.map(|name| name.to_string_lossy().into_owned()).collect();
    View::Served { session_dir: None, folders, hidden, programs: vec![], sockets }
}

/// Paths that a server's entry hides from the server, in addition to the protected paths. Includes missing paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HiddenPaths {
    /// Paths that the server must not see.
    pub hidden: Vec<String>,
}

impl HiddenPaths {
    /// Returns `true` if the entry hides a path.
    #[must_use]
    pub fn covers(&self, path: &Path) -> bool {
        self.hidden.iter().any(|closed| path.starts_with(closed))
    }

    /// Returns a hidden path that equals, contains or is inside `path`, or `None` if there is none.
    #[must_use]
    pub fn overlapping(&self, path: &Path) -> Option<&str> {
        let overlaps = |closed: &&String| path.starts_with(closed) || Path::new(closed).starts_with(path);
        self.hidden.iter().find(overlaps).map(String::as_str)
    }

    /// Returns an error if mounting a path would show a hidden path inside it.
    pub(crate) fn check_mountable(&self, path: &str) -> Result<(), ViewError> {
        let real = Path::new(path).canonicalize().unwrap_or_else(|_| path.into());
        let is_inside = |hidden: &&String| {
            let hidden = Path::new(*hidden);
            hidden != Path::new(path) && (hidden.starts_with(path) || hidden.starts_with(&real))
        };
        match self.hidden.iter().find(is_inside) {
            Some(inside) => Err(ViewError::Hidden { path: path.to_owned(), inside: inside.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Profile, SandboxContext};
    use std::fs::create_dir_all;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    struct Fixture {
        home: CanonicalPath,
        context: SandboxContext,
        _dir: tempfile::TempDir,
    }

    impl Fixture {
        fn new(protected: &str) -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = dir.path().canonicalize().unwrap();
            let home = CanonicalPath::assume_canonical(home.to_str().unwrap()).unwrap();
            let at = |name: &str| home.join(name).unwrap();
            for folder in ["session", "docs/private", "real", "share/servers/own", "venv/bin", "venv/.ssh"] {
                create_dir_all(at(folder).as_path()).unwrap();
            }
            symlink(at("real").as_path(), at("way").as_path()).unwrap();
            symlink("/bin/sh", at("venv/bin/python").as_path()).unwrap();
            let context = SandboxContext {
                session_dir: at("session"),
                home: home.clone(),
                own: vec![],
                protected: Arc::new([at(protected)].into_iter().collect()),
                sandboxes: at("sandboxes"),
                data: [at("share/servers").as_path().into(), at("share/put-aside").as_path().into()],
            };
            Self { home, context, _dir: dir }
        }

        fn at(&self, name: &str) -> String {
            self.home.join(name).unwrap().as_str().to_owned()
        }

        fn profile(&self, read: &[&str], written: &[&str], denied: &[&str]) -> Profile {
            let paths = |names: &[&str]| names.iter().map(|name| self.at(name)).collect();
            Profile {
                allow_read: paths(read),
                allow_write: paths(written),
                deny_read: Some(paths(denied)),
                ..Profile::default()
            }
        }
    }

    #[test]
    fn closed_paths_include_missing_ones_and_targets_of_links() {
        let scene = Fixture::new("keys");
        let closed = scene.context.hidden_paths(&scene.profile(&[], &[], &["docs/later", "way"]));
        let covers = |name: &str| closed.covers(Path::new(&scene.at(name)));
        for hidden in
            ["docs/later", "docs/later/x", "way", "real/x", "share/servers/other/x", "share/put-aside"]
        {
            assert!(covers(hidden), "{hidden}");
        }
        assert!(!covers("docs") && !covers("docs/private"));
        let overlapping = |name: &str| closed.overlapping(Path::new(&scene.at(name)));
        assert_eq!(overlapping("docs"), Some(scene.at("docs/later").as_str()));
        assert!(overlapping("real").is_some());
        assert_eq!([overlapping("docs/private"), overlapping("other")], [None; 2]);
    }

    #[test]
    fn an_entry_of_a_server_that_asks_cannot_open_what_it_hides() {
        let scene = Fixture::new("keys");
        let view = |read: &[&str], written: &[&str], denied: &[&str]| {
            scene.context.asking_view(&scene.profile(read, written, denied), "/usr/bin/true")
        };
        let (path, inside) = (scene.at("docs"), scene.at("docs/private"));
        let refused = ViewError::Hidden { path, inside };
        assert_eq!(view(&["docs"], &[], &["docs/private"]), Err(refused.clone()));
        assert_eq!(view(&[], &["docs"], &["docs/private"]), Err(refused));
        assert!(matches!(view(&["share"], &[], &[]), Err(ViewError::Hidden { .. })), "the servers' data");
        view(&["docs"], &["share/servers/own"], &["real"]).unwrap();
    }

    #[test]
    fn a_program_does_not_bring_protected_files_along() {
        let python = |scene: &Fixture| {
            let program = scene.at("venv/bin/python");
            scene.context.asking_view(&Profile::default(), &program)
        };
        let scene = Fixture::new("venv/.ssh");
        let (path, inside) = (scene.home.join("venv").unwrap(), scene.home.join("venv/.ssh").unwrap());
        assert_eq!(python(&scene), Err(ViewError::ContainsProtected { path, inside }));
        assert!(python(&Fixture::new("elsewhere")).is_ok());
    }
}
