//! Telling what every repository has from what makes git run something.
//!
//! - A clone made in a sandbox is to stay usable: its settings are left when each of them is known to be harmless.

use std::{fs, path::Path};

/// Longer than any settings that git writes by itself.
const LONGEST: u64 = 64 * 1024;

/// Whether git takes a directory for a repository, whatever its name, that has the names `has` says it has. What is missing
/// beside `HEAD` may be in another directory, which `commondir` names.
pub(super) fn is_one(has: impl Fn(&str) -> bool) -> bool {
    has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

/// Whether a part of a repository's directory has nothing in it that git would act upon.
pub(super) fn is_harmless(path: &Path) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let names = || -> Option<Vec<String>> {
        fs::read_dir(path).ok()?.map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    };
    match path.file_name().and_then(|name| name.to_str()) {
        Some("hooks") if found.is_dir() => {
            names().is_some_and(|names| names.iter().all(|name| name.ends_with(".sample")))
        }
        Some("info") if found.is_dir() => {
            names().is_some_and(|names| names.iter().all(|name| name == "exclude" || name == "refs"))
        }
        Some("config") if found.is_file() && found.len() <= LONGEST => {
            fs::read_to_string(path).is_ok_and(|text| settings_are_harmless(&text))
        }
        _ => false,
    }
}

/// Whether every line is a section or a setting of the list; git's other ways of writing them are not understood.
fn settings_are_harmless(text: &str) -> bool {
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
        ("branch", &["remote", "merge", "rebase"]),
    ];
    if value.contains(['\\', '"']) {
        return false;
    }
    if section == "remote" && name == "url" {
        let schemes = ["https://", "http://", "ssh://", "git://", "git@", "/"];
        return schemes.iter().any(|scheme| value.starts_with(scheme));
    }
    HARMLESS.iter().any(|(known, names)| *known == section && names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_writes_by_itself_is_harmless() {
        let text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n# x\n\n[remote \"origin\"]\n\turl = https://example.org/a.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(settings_are_harmless(text));
    }

    #[test]
    fn what_has_git_run_something_is_not() {
        for line in [
            "[core]\nfsmonitor = evil",
            "[core] fsmonitor = evil",
            "[core]\n\tFsMonitor=evil",
            "[core]\nsshCommand = evil",
            "[core]\nhooksPath = x",
            "[core]\nworktree = /",
            "[alias]\nst = !evil",
            "[filter \"x\"]\nclean = evil",
            "[include]\npath = ../x",
            "[includeIf \"gitdir:/\"]\npath = x",
            "[remote \"origin\"]\nurl = ext::sh -c evil",
            "[remote \"origin\"]\nuploadpack = evil",
            "[remote \"origin\"]\nvcs = evil",
            "[core]\nfilemode = true \\\n[core]\nx = y",
            "[core \"]\nfsmonitor=evil",
            "[credential]\nhelper = evil",
        ] {
            assert!(!settings_are_harmless(line), "{line}");
        }
    }
}
