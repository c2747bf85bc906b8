//! Paths that no agent may read or change, because they give access to everything else. Each entry names its source.
//!
//! - The paths are not resolved. The caller resolves them and adds IronCurtain's own folders.
//! - The lists contain the paths of all platforms. A path of a different platform does no harm, because it does not
//!   exist.
//! - Sandboxes hide the same paths, independently of the policy.

mod clients;
mod logins;
mod machine;
mod stores;

use crate::CanonicalPath;

/// Known path, with its description and source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPath {
    /// Absolute path, path relative to the home directory, or path relative to any folder, depending on the list.
    pub path: &'static str,
    /// Description of the file, for the user.
    pub what: &'static str,
    /// Source of the path: a manual page, the project's documentation, or the code that accesses it.
    pub source: &'static str,
}

const fn known(path: &'static str, what: &'static str, source: &'static str) -> KnownPath {
    KnownPath { path, what, source }
}

/// Returns the paths that no agent may read or change: keys, logins, password stores and program state, in this home
/// directory and elsewhere on the machine.
#[must_use]
pub fn secrets(home: &CanonicalPath) -> Vec<CanonicalPath> {
    let machine =
        machine::MACHINE.iter().filter_map(|known| CanonicalPath::assume_canonical(known.path).ok());
    [logins::LOGINS, stores::STORES].into_iter().flat_map(|list| in_home(home, list)).chain(machine).collect()
}

/// Returns the keys and logins in this home directory, a subset of [`secrets`].
#[must_use]
pub fn logins(home: &CanonicalPath) -> Vec<CanonicalPath> {
    in_home(home, logins::LOGINS).collect()
}

/// Returns the paths of agent clients' configurations in this home directory. A process that can write there can make
/// a client start programs outside a sandbox.
#[must_use]
pub fn clients(home: &CanonicalPath) -> Vec<CanonicalPath> {
    in_home(home, clients::IN_HOME).collect()
}

/// Paths, relative to any folder, of files from which a client starts programs when it opens the folder.
pub const IN_PROJECT: &[KnownPath] = clients::IN_PROJECT;

fn in_home(home: &CanonicalPath, list: &'static [KnownPath]) -> impl Iterator<Item = CanonicalPath> {
    let home = home.clone();
    list.iter().filter_map(move |known| home.join(known.path).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> CanonicalPath {
        CanonicalPath::assume_canonical(text).unwrap()
    }

    #[test]
    fn every_entry_is_canonical_described_sourced_and_unique() {
        let home = path("/home/ann");
        let lists = [logins::LOGINS, stores::STORES, machine::MACHINE];
        let all = secrets(&home);
        assert_eq!(all.len(), lists.iter().map(|list| list.len()).sum::<usize>());
        for (at, path) in all.iter().enumerate() {
            assert!(!all[..at].contains(path), "{path} stands twice");
            let around = all.iter().find(|other| other.strictly_contains(path));
            assert_eq!(around, None, "{path} is in another one");
            assert!(!path.contains(&home), "{path} would close the home");
        }
        assert_eq!(clients(&home).len(), clients::IN_HOME.len());
        let lists = lists.into_iter().chain([clients::IN_HOME, clients::IN_PROJECT]);
        for known in lists.flatten() {
            assert!(!known.what.is_empty() && !known.source.is_empty(), "{}", known.path);
            assert!(!known.what.ends_with('.') && !known.source.ends_with('.'), "{}", known.path);
        }
    }

    #[test]
    fn no_entry_is_in_a_common_work_folder() {
        // A call that creates a folder is denied if the folder would contain a protected path, even if that path does
        // not exist.
        for folder in
            ["Desktop", "Documents", "Downloads", "Music", "Pictures", "Public", "Templates", "Videos", "src"]
        {
            let folder = path(&format!("/home/ann/{folder}"));
            let inside = secrets(&path("/home/ann")).into_iter().find(|secret| folder.contains(secret));
            assert_eq!(inside, None, "{folder}");
        }
    }

    #[test]
    fn secrets_include_the_logins_of_every_client_and_browser() {
        let all = secrets(&path("/home/ann"));
        for below in [
            ".claude/.credentials.json",
            ".claude.json",
            ".codex/auth.json",
            ".config/Cursor/User/globalStorage/state.vscdb",
            ".config/cursor/auth.json",
            ".cursor/cli-config.json",
            ".config/Claude/config.json",
            ".gemini/oauth_creds.json",
            ".gemini/gemini-credentials.json",
            ".continue/auth.json",
            ".copilot/mcp-oauth-config/server.json",
            ".local/share/crush/crush.json",
            ".config/github-copilot/apps.json",
            ".config/gh/hosts.yml",
            ".config/glab-cli/config.yml",
            ".config/google-chrome/Default/Cookies",
            ".config/google-chrome-beta/Default/Cookies",
            ".config/google-chrome-unstable/Default/Cookies",
            ".config/google-chrome-canary/Default/Cookies",
            ".config/microsoft-edge/Default/Login Data",
            ".config/microsoft-edge-beta/Default/Login Data",
            ".config/microsoft-edge-dev/Default/Login Data",
            ".config/microsoft-edge-canary/Default/Login Data",
            ".var/app/com.google.Chrome/config/google-chrome",
            ".var/app/org.mozilla.firefox/.mozilla",
            "snap/firefox/common/.mozilla",
            "snap/chromium/common/chromium",
            ".var/app/com.getmailspring.Mailspring/config",
            ".var/app/org.mozilla.Thunderbird/.thunderbird/profiles.ini",
            "snap/thunderbird/common/.thunderbird",
            ".pulumi/credentials.json",
            ".cloudflared/cert.pem",
            ".vnc/passwd",
            ".terraform.d/credentials.tfrc.json",
            ".cargo/credentials.toml",
            ".gem/credentials",
            ".m2/settings.xml",
            ".composer/auth.json",
            ".config/rclone/rclone.conf",
            ".password-store/a.gpg",
            ".bash_history",
            ".rediscli_history",
            ".local/share/fish/fish_history",
        ] {
            let path = path(&format!("/home/ann/{below}"));
            assert!(all.iter().any(|secret| secret.contains(&path)), "{path}");
        }
    }
}
