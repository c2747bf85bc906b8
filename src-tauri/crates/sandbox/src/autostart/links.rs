//! Resolves paths lexically to find every symlink in them so that each can be made read-only.

use std::{collections::VecDeque, fs};

use super::name_text::{from_os_path, to_os_str};

/// Maximum number of symlinks the kernel follows in one path (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Limits of the symlink search in the home directory: folders, depth, and names per folder.
const MAX_FOLDERS: usize = 256;
const MAX_DEPTH: usize = 2;
const MAX_NAMES: usize = 256;

/// Returns the symlinks that the kernel follows when it resolves a path, then the final target. The target need not
/// exist. Each symlink is identified by its own resolved path.
pub(super) fn resolution_steps(path: &str) -> Vec<String> {
    let mut remaining: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    let (mut resolved, mut steps) = (String::new(), Vec::new());
    while let Some(name) = remaining.pop_front() {
        match name.as_str() {
            "" | "." => {}
            ".." => resolved.truncate(resolved.rfind('/').unwrap_or_default()),
            _ => {
                let next = format!("{resolved}/{name}");
                let Ok(target) = fs::read_link(&*to_os_str(&next)) else {
                    resolved = next;
                    continue;
                };
                let target = from_os_path(&target);
                if target.starts_with('/') {
                    resolved.clear();
                }
                steps.push(next);
                if steps.len() >= MAX_LINKS {
                    return steps;
                }
                target.split('/').rev().for_each(|part| remaining.push_front(part.to_owned()));
            }
        }
    }
    steps.push(if resolved.is_empty() { "/".to_owned() } else { resolved });
    steps
}

/// Returns `true` if a path contains a symlink.
pub(super) fn contains_symlink(path: &str) -> bool {
    resolution_steps(path).len() > 1
}

/// Returns the symlinks in a folder and its subfolders, within limits.
pub(super) fn find_symlinks(folder: &str) -> Vec<String> {
    let (mut links, mut queue) = (Vec::new(), VecDeque::from([(folder.to_owned(), 0)]));
    for _ in 0..MAX_FOLDERS {
        let Some((folder, depth)) = queue.pop_front() else { break };
        for entry in fs::read_dir(&*to_os_str(&folder)).into_iter().flatten().flatten().take(MAX_NAMES) {
            let Ok(kind) = entry.file_type() else { continue };
            let path = from_os_path(&entry.path());
            if kind.is_symlink() {
                links.push(path);
            } else if kind.is_dir() && depth < MAX_DEPTH {
                queue.push_back((path, depth + 1));
            }
        }
    }
    links
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn resolution_steps_list_every_link_and_end_at_a_missing_target() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |path: &str| from_os_path(&base.join(path));
        fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("folder")).unwrap();
        symlink("../folder/missing", base.join("real/hook")).unwrap();
        symlink(base.join("loop"), base.join("loop")).unwrap();
        assert_eq!(resolution_steps(&at("real/x")), [at("real/x")]);
        assert_eq!(
            resolution_steps(&at("folder/hook")),
            [at("folder"), at("real/hook"), at("folder"), at("real/missing")]
        );
        // A `..` is relative to the symlink's target, not to its own folder.
        assert_eq!(resolution_steps(&at("folder/../y")), [at("folder"), at("y")]);
        assert_eq!(resolution_steps(&at("loop")).len(), MAX_LINKS);
        assert_eq!(
            find_symlinks(&at("")),
            find_symlinks(&at(".")).iter().map(|link| link.replace("/./", "/")).collect::<Vec<_>>()
        );
        assert!(find_symlinks(&at("")).contains(&at("real/hook")));
    }
}
