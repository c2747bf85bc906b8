//! View for a sandbox whose files are served.

use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::ProtectedPaths;
use ironcurtain_sandbox::View;
use std::path::{Path, PathBuf};

/// Top-level folders that the file view does not serve, because the sandbox has its own versions.
const OWN: [&str; 8] = ["/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/tmp", "/usr"];

/// Alternative path of `/etc/machine-id`, which some programs read if the latter does not exist.
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
