//! Finds the folder to which a file or symlink redirects git.

use std::os::fd::OwnedFd;

use rustix::fs::readlinkat;

use crate::autostart::{
    git,
    name_text::{from_os_bytes, to_os_str},
    paths::{file_name, parent},
};

/// Target of a file that redirects git to another folder.
pub(super) enum RedirectTarget {
    /// No folder, for example because the file is incomplete.
    Nothing,
    At(String),
    Unknown,
}

pub(super) fn redirect_target(dir: &OwnedFd, path: &str, now: Option<&[u8]>) -> RedirectTarget {
    let link;
    let text = match now {
        Some(now) => std::str::from_utf8(now).ok(),
        None => {
            link = readlinkat(dir, &*to_os_str(file_name(path)), Vec::new())
                .ok()
                .map(|link| from_os_bytes(link.as_bytes()));
            link.as_deref()
        }
    };
    let Some(text) = text else { return RedirectTarget::Unknown };
    let text = text.trim_end_matches(['\n', '\r']);
    let target = if file_name(path).eq_ignore_ascii_case(".git") && now.is_some() {
        text.strip_prefix("gitdir:").map(str::trim_start)
    } else {
        Some(text)
    };
    match target {
        _ if text.is_empty() => RedirectTarget::Nothing,
        // Git ignores a `.git` file without `gitdir:`.
        None => RedirectTarget::Nothing,
        Some(target) => {
            git::resolve(parent(path), target).map_or(RedirectTarget::Unknown, RedirectTarget::At)
        }
    }
}

/// Returns `true` if the existing part of a path contains no symlinks.
pub(super) fn has_no_symlinks(path: &str) -> bool {
    path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]).all(|end| {
        let metadata = path.get(..end).map(|path| std::fs::symlink_metadata(&*to_os_str(path)));
        !metadata.is_some_and(|metadata| metadata.is_ok_and(|metadata| metadata.is_symlink()))
    })
}
