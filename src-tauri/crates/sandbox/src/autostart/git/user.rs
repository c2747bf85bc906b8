//! The user's own git configuration, as git lists it.
//!
//! - Git runs outside any repository, so no repository's configuration is included. Git runs no other program.
//! - The configuration is read again whenever one of its files has changed.

use std::path::Path;

use rustix::fs::CWD;

use super::{
    GitCommand, GitFailure,
    targets::{GitTarget, TargetFinder},
};
use crate::autostart::{
    file_stamp::FileStamp,
    name_table::{INCLUDED_CONFIG, KnownName},
    paths::join,
};

/// Environment variables that select other configuration files.
const VARIABLES: &[&str] =
    &["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"];

/// Files and folders that git reads or runs because the user's configuration refers to them.
#[derive(Clone, Debug, Default)]
pub(in crate::autostart) struct UserConfig {
    pub(in crate::autostart) found: Vec<GitTarget>,
    /// Referenced paths relative to the top of each work tree.
    pub(in crate::autostart) relative: Vec<GitTarget>,
    /// `true` if git timed out or its output was too long.
    pub(in crate::autostart) is_unknown: bool,
    /// Home directory for which the configuration was read.
    home: String,
    files: Vec<(String, Option<FileStamp>)>,
}

impl UserConfig {
    /// Reads the configuration again if `home` differs or a file has changed.
    pub(in crate::autostart) fn refresh(&mut self, home: &str) {
        let is_unchanged = |(path, stamp): &(String, Option<FileStamp>)| stamp_of_target(path) == *stamp;
        if self.home != home || self.is_unknown || !self.files.iter().all(is_unchanged) {
            *self = Self::read(home);
        }
    }

    /// Returns the kind of a reference that applies to every work tree and covers `path`, and the position in `path` at
    /// which the referenced path ends.
    pub(in crate::autostart) fn find_relative(&self, path: &str) -> Option<(KnownName, usize)> {
        self.relative.iter().find_map(|(name, known)| {
            let mut ends = path.match_indices(name.as_str()).map(|(at, name)| (at, at + name.len()));
            let (_, end) = ends.find(|(at, end)| {
                let is_boundary =
                    path.len() == *end || known.folder && path.as_bytes().get(*end) == Some(&b'/');
                is_boundary && path.get(..*at).is_some_and(|above| above.ends_with('/'))
            })?;
            Some((*known, end))
        })
    }

    fn read(home: &str) -> Self {
        let mut finder = TargetFinder::new(Some(home));
        let mut paths =
            vec![join(home, ".gitconfig"), join(home, ".config/git/config"), "/etc/gitconfig".to_owned()];
        let listed = list_settings(home);
        let is_unknown = listed.is_none();
        for (config, key, value) in listed.unwrap_or_default() {
            if !paths.contains(&config) {
                paths.push(config.clone());
            }
            finder.add_setting(&config, &key, &value, None);
        }
        // Any configuration file may be in a folder that a server can write to, or be a symlink into such a folder.
        let mut found: Vec<GitTarget> = paths.iter().map(|path| (path.clone(), INCLUDED_CONFIG)).collect();
        found.append(&mut finder.found);
        paths.extend(
            found
                .iter()
                .filter(|(_, known)| known.name == INCLUDED_CONFIG.name)
                .map(|(path, _)| path.clone()),
        );
        let files = paths.into_iter().map(|path| (path.clone(), stamp_of_target(&path))).collect();
        Self { found, relative: finder.relative, is_unknown, home: home.to_owned(), files }
    }
}

/// Returns the stamp of a file, following symlinks.
fn stamp_of_target(path: &str) -> Option<FileStamp> {
    let real = std::fs::canonicalize(path).ok()?;
    FileStamp::at(CWD, real.to_str()?).ok()
}

/// Returns git's settings as file, key and value. The list is empty if git is not installed or cannot parse the
/// configuration, because git then runs no program. Returns `None` on timeout.
fn list_settings(home: &str) -> Option<Vec<(String, String, String)>> {
    let mut run = GitCommand::new(&["config", "--list", "--show-origin", "--includes", "--null"]);
    run.variable("HOME", home);
    if std::env::var_os("HOME").is_some_and(|own| Path::new(&own) == Path::new(home)) {
        VARIABLES.iter().for_each(|name| run.inherit(name));
    }
    let output = match run.output(&[]) {
        Ok(output) => output,
        Err(GitFailure::Failed) => return Some(vec![]),
        Err(GitFailure::NoResult) => return None,
    };
    let output = String::from_utf8_lossy(&output);
    let mut fields = output.split('\0');
    let mut settings = Vec::new();
    while let (Some(origin), Some(entry)) = (fields.next(), fields.next()) {
        let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
        // Settings from environment variables have no file.
        let Some(path) = origin.strip_prefix("file:") else { continue };
        settings.push((path.to_owned(), key.to_owned(), value.to_owned()));
    }
    Some(settings)
}
