//! Recognizes folders that contain only installed packages. Reading such a folder reveals none of the user's documents.

use std::path::Path;

/// Names of folders into which package managers install.
const PACKAGE_FOLDERS: [&str; 3] = ["node_modules", "site-packages", "dist-packages"];

/// Returns `true` if a path is in a folder of installed packages, judging by folder names or by files that pip or a
/// virtual environment creates.
pub(super) fn is_package_folder(path: &Path) -> bool {
    let is_named = |name: &str| PACKAGE_FOLDERS.contains(&name);
    if path.components().any(|part| part.as_os_str().to_str().is_some_and(is_named)) {
        return true;
    }
    let Ok(entries) = path.read_dir() else { return false };
    let names: Option<Vec<String>> =
        entries.map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    let Some(names) = names else { return false };
    names.iter().any(|name| name == "pyvenv.cfg" || name.ends_with(".dist-info"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_folders_that_contain_only_packages() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str, holds: &[&str]| {
            let folder = dir.path().join(name);
            for inside in holds {
                std::fs::create_dir_all(folder.join(inside)).unwrap();
            }
            is_package_folder(&folder)
        };
        assert!(folder("pip", &["mcp", "mcp-1.0.dist-info", "bin"]));
        assert!(folder("venv", &["lib", "pyvenv.cfg"]));
        assert!(folder("node_modules/mcp", &["dist"]));
        assert!(is_package_folder(Path::new("/opt/mcp/node_modules")));
        // A project folder contains the user's own files next to packages.
        assert!(!folder("project", &["node_modules", "package.json", "src"]));
        assert!(!folder("notes", &["2026"]));
        assert!(!folder("empty", &[""]));
        assert!(!folder("my_node_modules", &["a"]));
        assert!(!is_package_folder(&dir.path().join("missing")));
    }
}
