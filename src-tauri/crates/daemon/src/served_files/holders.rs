//! Finds the programs of a sandbox that use a folder, to name them to the user. The unmount itself proves that none does.

use super::processes::inside;
use ironcurtain_paths::CanonicalPath;
use std::fs;
use std::path::PathBuf;

/// Maximum number of programs that are named.
const MOST: usize = 3;

/// Returns the names of the programs that work in a folder, or have a file in it open or mapped.
pub(super) fn holders(supervisor: u32, folder: &CanonicalPath) -> Vec<String> {
    let is_inside = |path: PathBuf| path.starts_with(folder.as_path());
    let holds = |process: &u32| {
        let links = |folder: &str| {
            let entries = fs::read_dir(format!("/proc/{process}/{folder}")).into_iter().flatten().flatten();
            entries.filter_map(|entry| fs::read_link(entry.path()).ok()).collect::<Vec<_>>()
        };
        let own = ["cwd", "root", "exe"].map(|link| fs::read_link(format!("/proc/{process}/{link}")).ok());
        own.into_iter().flatten().chain(links("fd")).chain(links("map_files")).any(is_inside)
    };
    let name = |process: u32| fs::read_to_string(format!("/proc/{process}/comm")).ok();
    let mut names: Vec<String> = inside(supervisor).into_iter().filter(holds).filter_map(name).collect();
    names.iter_mut().for_each(|name| *name = name.trim_end().to_owned());
    names.sort();
    names.dedup();
    names.truncate(MOST);
    names
}
