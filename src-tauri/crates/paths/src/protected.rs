//! The paths that no agent reads, and those that no agent changes: what gives away every other lock. All of it is data, a line
//! each, with the place where it is documented.
//!
//! - Spelled, not resolved: the caller resolves each, and adds the folders of its own.
//! - Platforms are not told apart: a path that another platform has costs nothing here.
//! - Every sandbox is made from this list, too; it knows nothing of policies.

mod clients;
mod logins;
mod machine;
mod stores;

use crate::CanonicalPath;

/// One line of the lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownPath {
    /// The path: below the home, of the machine, or below any folder, as its list says.
    pub path: &'static str,
    /// The thing that is there, for people.
    pub what: &'static str,
    /// The documentation of that: a manual page, a project's own documentation, or the source that reads it.
    pub source: &'static str,
}

const fn known(path: &'static str, what: &'static str, source: &'static str) -> KnownPath {
    KnownPath { path, what, source }
}

/// Paths that nobody may read or change: keys, logins, stores of passwords and what programs remember, in this home and of the
/// machine.
#[must_use]
pub fn secrets(home: &CanonicalPath) -> Vec<CanonicalPath> {
    let machine =
        machine::MACHINE.iter().filter_map(|known| CanonicalPath::assume_canonical(known.path).ok());
    [logins::LOGINS, stores::STORES].into_iter().flat_map(|list| below(home, list)).chain(machine).collect()
}

/// Those of [`secrets`] that are keys and logins, in this home.
#[must_use]
pub fn logins(home: &CanonicalPath) -> Vec<CanonicalPath> {
    below(home, logins::LOGINS).collect()
}

/// The configuration of agents' clients in this home: who writes it has a client start programs that we do not see.
#[must_use]
pub fn clients(home: &CanonicalPath) -> Vec<CanonicalPath> {
    below(home, clients::IN_HOME).collect()
}

/// The names by which clients are told in a project what to start: who opens a folder that has one starts those programs.
pub const IN_PROJECT: &[KnownPath] = clients::IN_PROJECT;

fn below(home: &CanonicalPath, list: &'static [KnownPath]) -> impl Iterator<Item = CanonicalPath> {
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
    fn every_line_is_a_canonical_path_says_what_and_where_from_and_stands_once() {
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
    fn no_line_lies_in_a_folder_in_which_people_work() {
        // To make a file in a folder that holds a protected path is refused, whether that is there or not.
        for folder in
            ["Desktop", "Documents", "Downloads", "Music", "Pictures", "Public", "Templates", "Videos", "src"]
        {
            let folder = path(&format!("/home/ann/{folder}"));
            let inside = secrets(&path("/home/ann")).into_iter().find(|secret| folder.contains(secret));
            assert_eq!(inside, None, "{folder}");
        }
    }

    #[test]
    fn the_logins_of_every_client_and_of_browsers_in_all_channels_are_among_the_secrets() {
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
