//! Folders that hold installed packages and nothing else: a server that is shown its own is shown no document of anybody's.

use std::path::Path;

/// The names of folders that package managers install into.
const INSTALLED: [&str; 3] = ["node_modules", "site-packages", "dist-packages"];

/// Returns `true` if a path is such a folder, or lies in one: by its name, or by what pip or a virtual environment has in it. In doubt it is not.
pub(super) fn holds_packages_alone(path: &Path) -> bool {
    let is_named = |name: &str| INSTALLED.contains(&name);
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
    fn a_folder_of_packages_is_told_from_one_that_holds_anything_else() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str, holds: &[&str]| {
            let folder = dir.path().join(name);
            for inside in holds {
                std::fs::create_dir_all(folder.join(inside)).unwrap();
            }
            holds_packages_alone(&folder)
        };
        assert!(folder("pip", &["mcp", "mcp-1.0.dist-info", "bin"]));
        assert!(folder("venv", &["lib", "pyvenv.cfg"]));
        assert!(folder("node_modules/mcp", &["dist"]));
        assert!(holds_packages_alone(Path::new("/opt/mcp/node_modules")));
        // A project of the person's has packages, and the person's files beside them.
        assert!(!folder("project", &["node_modules", "package.json", "src"]));
        assert!(!folder("notes", &["2026"]));
        assert!(!folder("empty", &[""]));
        assert!(!folder("my_node_modules", &["a"]));
        assert!(!holds_packages_alone(&dir.path().join("missing")));
    }
}
