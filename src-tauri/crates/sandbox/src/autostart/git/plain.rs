//! Recognizes harmless configurations, such as those that git writes, without running git.
//!
//! - INVARIANT: each line of a harmless configuration is a listed section or setting in the simplest syntax. All other
//!   configurations are checked with git.

const HARMLESS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
        ],
    ),
    ("extensions", &["objectformat", "refstorage"]),
    ("user", &["name", "email"]),
    ("init", &["defaultbranch"]),
    ("remote", &["fetch", "tagopt"]),
    ("branch", &["merge", "rebase"]),
];

/// Returns `true` if this configuration is known not to make git run any program, `false` if that is unknown.
pub(super) fn is_harmless(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(lines_are_harmless)
}

fn lines_are_harmless(text: &str) -> bool {
    let mut section = String::new();
    text.lines().map(str::trim).all(|line| {
        if line.is_empty() || line.starts_with(['#', ';']) {
            return true;
        }
        if let Some(header) = line.strip_prefix('[') {
            let Some(header) = header.strip_suffix(']') else { return false };
            section = header.split([' ', '.']).next().unwrap_or_default().to_ascii_lowercase();
            return !header.contains([']', '\\']);
        }
        let (name, value) = line.split_once('=').unwrap_or((line, ""));
        is_harmless_setting(&section, &name.trim().to_ascii_lowercase(), value.trim())
    })
}

fn is_harmless_setting(section: &str, name: &str, value: &str) -> bool {
    if value.contains(['\\', '"']) {
        return false;
    }
    if section == "remote" && name == "url" {
        let schemes = ["https://", "http://", "ssh://", "git://", "git@", "/"];
        return schemes.iter().any(|scheme| value.starts_with(scheme));
    }
    if section == "branch" && name == "remote" {
        return value.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    }
    HARMLESS.iter().any(|(known, names)| *known == section && names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_written_by_git_are_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n# x\n\n[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(is_harmless(text.as_bytes()));
    }

    #[test]
    fn unknown_lines_are_not_harmless() {
        for line in [
            "[core]\nfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[alias]\nst = !evil",
            "[remote \"origin\"]\nurl = ext::sh -c evil",
            "[branch \"m\"]\nremote = ext::sh -c evil",
            "[core]\nfilemode = true \\\n[core]\nx = y",
            "[core \"]\nfsmonitor=evil",
        ] {
            assert!(!is_harmless(line.as_bytes()), "{line}");
        }
    }
}
