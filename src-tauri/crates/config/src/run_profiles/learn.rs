//! Proposes a profile based on the files that the user allowed in a run.

use super::RunProfile;
use super::plan::is_sidecar;
use ironcurtain_grants::GrantLimits;
use ironcurtain_paths::CanonicalPath;
use std::collections::BTreeSet;

/// Folders in the home directory in which each program has its own folder.
const SHARED_FOLDERS: [&str; 4] = [".config/", ".local/share/", ".local/state/", ".cache/"];

/// A file that the user allowed in a run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LearnedAccess {
    /// Absolute path of the file.
    pub path: String,
    /// `true` if the run changed, created or removed the file.
    pub is_changed: bool,
}

/// Returns a profile with this name that gives access to the files. For a file in a program's own folder, such as
/// `~/.config/NAME`, it gives access to that folder, unless the folder contains a protected path. For other files, it
/// gives access to the file only.
#[must_use]
pub fn propose_profile(name: &str, used: &[LearnedAccess], limits: &GrantLimits<'_>) -> RunProfile {
    let changed: BTreeSet<&str> =
        used.iter().filter(|used| used.is_changed).map(|used| used.path.as_str()).collect();
    let profile_path = |path: &str| {
        let folder = own_folder(path, limits.home).filter(|folder| limits.may_be_granted(folder));
        folder.map_or_else(
            || with_tilde(path, limits.home),
            |folder| format!("{}/", with_tilde(folder.as_str(), limits.home)),
        )
    };
    let is_temporary = |path: &str| changed.iter().any(|file| is_sidecar(file, path));
    let settings: BTreeSet<String> =
        changed.iter().filter(|path| !is_temporary(path)).map(|path| profile_path(path)).collect();
    let is_covered = |path: &String| {
        settings.contains(path)
            || settings.iter().any(|folder| folder.ends_with('/') && path.starts_with(folder))
    };
    let read = used.iter().filter(|used| !used.is_changed && !is_temporary(&used.path));
    let read: BTreeSet<String> =
        read.map(|used| profile_path(&used.path)).filter(|path| !is_covered(path)).collect();
    RunProfile {
        schema_version: 1,
        name: name.to_owned(),
        settings: settings.into_iter().collect(),
        read: read.into_iter().collect(),
        ..RunProfile::default()
    }
}

/// Returns the folder of a single program that contains the file, such as `~/.config/NAME`.
fn own_folder(path: &str, home: &CanonicalPath) -> Option<CanonicalPath> {
    let below = path.strip_prefix(home.as_str())?.strip_prefix('/')?;
    let shared = SHARED_FOLDERS.iter().find(|shared| below.starts_with(*shared)).copied().unwrap_or_default();
    let (name, _) = below.strip_prefix(shared)?.split_once('/')?;
    let is_own = !shared.is_empty() || (name.starts_with('.') && name.len() > 1);
    is_own.then(|| home.join(&format!("{shared}{name}")).ok()).flatten()
}

fn with_tilde(path: &str, home: &CanonicalPath) -> String {
    let below = path.strip_prefix(home.as_str()).filter(|below| below.starts_with('/'));
    below.map_or_else(|| path.to_owned(), |below| format!("~{below}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_programs_are_proposed_whole_and_others_file_by_file() {
        let at = |path: &str| CanonicalPath::assume_canonical(path).unwrap();
        let (home, protected) = (at("/home/u"), [at("/home/u/.mix/token")]);
        let limits = GrantLimits { home: &home, protected: &protected };
        let used = [
            ("/home/u/.tool/a", true),
            ("/home/u/.tool/b", false),
            ("/home/u/.config/tool/settings.json", true),
            ("/home/u/.local/share/other/x/y", false),
            ("/home/u/.mix/plain", true),
            ("/home/u/.tool.json", true),
            ("/home/u/.tool.json.tmp.7", true),
            ("/home/u/docs/notes.txt", false),
            ("/srv/data/list", false),
        ];
        let used = used.map(|(path, is_changed)| LearnedAccess { path: path.into(), is_changed });
        let profile = propose_profile("tool", &used, &limits);
        assert_eq!(profile.settings, ["~/.config/tool/", "~/.mix/plain", "~/.tool.json", "~/.tool/"]);
        assert_eq!(profile.read, ["/srv/data/list", "~/.local/share/other/", "~/docs/notes.txt"]);
        // The proposed profile must be valid.
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(RunProfile::given("p.json".as_ref(), &text).unwrap(), profile);
    }
}
