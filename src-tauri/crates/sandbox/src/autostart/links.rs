//! Resolves paths lexically to find every symlink in them, so that each can be made read-only.

use std::{collections::VecDeque, fs};

use super::name_text::{path_text, raw};

/// Maximum number of symlinks the kernel follows in one path (`MAXSYMLINKS`).
const MAX_LINKS: usize = 40;
/// Limits of the symlink search in the home directory: folders, depth, and names per folder.
const MAX_FOLDERS: usize = 256;
const DEEPEST: usize = 2;
const MAX_NAMES: usize = 256;

/// Returns the symlinks that the kernel follows when it resolves a path, then the final target. The target need not
/// exist. Each symlink is identified by its own resolved path.
pub(super) fn way(path: &str) -> Vec<String> {
    let mut rest: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    let (mut done, mut way) = (String::new(), Vec::new());
    while let Some(name) = rest.pop_front() {
        match name.as_str() {
            "" | "." => {}
            ".." => done.truncate(done.rfind('/').unwrap_or_default()),
            _ => {
                let next = format!("{done}/{name}");
                let Ok(target) = fs::read_link(&*raw(&next)) else {
                    done = next;
                    continue;
                };
                let target = path_text(&target);
                if target.starts_with('/') {
                    done.clear();
                }
                way.push(next);
                if way.len() >= MAX_LINKS {
                    return way;
                }
                target.split('/').rev().for_each(|part| rest.push_front(part.to_owned()));
            }
        }
    }
    way.push(if done.is_empty() { "/".to_owned() } else { done });
    way
}

/// Returns `true` if a path contains a symlink.
pub(super) fn is_linked(path: &str) -> bool {
    way(path).len() > 1
}

/// Returns the symlinks in a folder and its subfolders, within limits.
pub(super) fn links_in(folder: &str) -> Vec<String> {
    let (mut links, mut waiting) = (Vec::new(), VecDeque::from([(folder.to_owned(), 0)]));
    for _ in 0..MAX_FOLDERS {
        let Some((folder, depth)) = waiting.pop_front() else { break };
        for entry in fs::read_dir(&*raw(&folder)).into_iter().flatten().flatten().take(MAX_NAMES) {
            let Ok(kind) = entry.file_type() else { continue };
            let path = path_text(&entry.path());
            if kind.is_symlink() {
                links.push(path);
            } else if kind.is_dir() && depth < DEEPEST {
                waiting.push_back((path, depth + 1));
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
    fn way_lists_every_link_and_ends_at_a_missing_target() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |path: &str| path_text(&base.join(path));
        fs::create_dir(base.join("real")).unwrap();
        symlink("real", base.join("folder")).unwrap();
        symlink("../folder/missing", base.join("real/hook")).unwrap();
        symlink(base.join("loop"), base.join("loop")).unwrap();
        assert_eq!(way(&at("real/x")), [at("real/x")]);
        assert_eq!(
            way(&at("folder/hook")),
            [at("folder"), at("real/hook"), at("folder"), at("real/missing")]
        );
        // A `..` is relative to the symlink's target, not to its own folder.
        assert_eq!(way(&at("folder/../y")), [at("folder"), at("y")]);
        assert_eq!(way(&at("loop")).len(), MAX_LINKS);
        assert_eq!(
            links_in(&at("")),
            links_in(&at(".")).iter().map(|link| link.replace("/./", "/")).collect::<Vec<_>>()
        );
        assert!(links_in(&at("")).contains(&at("real/hook")));
    }
}
