//! Reads the settings in a repository's own configuration files.
//!
//! - An included file's settings apply at the position of the include. Its path is resolved relative to the path under
//!   which the including file was opened, as git does.
//! - Settings that git reads before any include, namely repository extensions, are taken from the file itself.
//! - If a repository redirects its connections or stores remotes outside its configuration, its addresses are reported
//!   as unknown.

use super::UnknownAddress;
use super::files::{MayLook, is_empty, is_there, read};
use super::repository::Repository;
use super::run::GitRunner;
use super::settings::GitSettings;
use std::path::Path;

/// Maximum nesting depth of includes, as in git.
const DEEPEST: usize = 10;

/// Maximum number of settings read for one repository.
const MAX_COUNT: usize = 20_000;

/// Reads the settings of a repository.
pub(super) fn read_settings(
    place: &Repository,
    runner: &GitRunner,
    may_look: &MayLook<'_>,
) -> Result<GitSettings, UnknownAddress> {
    // Git reads remotes from these folders if the configuration does not contain them.
    for legacy in ["remotes", "branches"] {
        if !is_empty(&place.common, legacy, may_look)? {
            return Err(UnknownAddress::Legacy);
        }
    }
    let reader = SettingsReader { runner, may_look };
    let mut settings = GitSettings::default();
    let shared = place.common.as_path().join("config");
    let own = reader.alone(&shared)?;
    let has_worktrees = has_worktree_settings(&own)?;
    reader.with_included(own, &shared, 0, &mut settings)?;
    if has_worktrees && is_there(&place.git_dir, "config.worktree") {
        let of_worktree = place.git_dir.as_path().join("config.worktree");
        reader.with_included(reader.alone(&of_worktree)?, &of_worktree, 0, &mut settings)?;
    }
    match settings.0.iter().find_map(|(key, _)| objection(key)) {
        Some(why) => Err(why),
        None => Ok(settings),
    }
}

/// Returns `true` if worktrees have their own settings. Fails if the repository uses an extension that some versions
/// of git do not support, because those versions ignore the repository.
fn has_worktree_settings(own: &GitSettings) -> Result<bool, UnknownAddress> {
    let version = own.last("core.repositoryformatversion");
    let is_known = |(key, value): &(String, Option<String>)| match key.strip_prefix("extensions.") {
        None => true,
        Some("worktreeconfig" | "partialclone" | "preciousobjects" | "noop") => version.is_some(),
        Some("objectformat") => version == Some("1"),
        Some("refstorage") => version == Some("1") && value.as_deref() == Some("files"),
        Some(_) => false,
    };
    if matches!(version, None | Some("0" | "1")) && own.0.iter().all(is_known) {
        own.is_on("extensions.worktreeconfig")
    } else {
        Err(UnknownAddress::Foreign)
    }
}

/// Returns the reason why a setting makes the repository's addresses unknown, or `None`.
fn objection(key: &str) -> Option<UnknownAddress> {
    let (section, _) = key.split_once('.')?;
    let (before, name) = key.rsplit_once('.')?;
    match (section, name) {
        ("http", "proxy" | "curloptresolve")
        | ("remote", "proxy")
        | ("core", "sshcommand" | "gitproxy")
        | ("fetch", "bundleuri") => Some(UnknownAddress::Connected),
        // If the remote's name is empty, git uses the setting's name as the remote's name.
        ("remote", _) if before == "remote." => Some(UnknownAddress::NotUnderstood),
        _ => None,
    }
}

struct SettingsReader<'a> {
    runner: &'a GitRunner,
    may_look: &'a MayLook<'a>,
}

impl SettingsReader<'_> {
    /// Reads one file's settings, without following includes.
    fn alone(&self, file: &Path) -> Result<GitSettings, UnknownAddress> {
        let text = read(file, self.may_look)?;
        text.map_or(Ok(GitSettings::default()), |text| self.runner.spelled_out(text.as_bytes()))
    }

    /// Adds a file's settings, with the settings of included files at the positions of the includes.
    fn with_included(
        &self,
        own: GitSettings,
        file: &Path,
        depth: usize,
        settings: &mut GitSettings,
    ) -> Result<(), UnknownAddress> {
        if depth > DEEPEST {
            return Err(UnknownAddress::NotUnderstood);
        }
        for (key, value) in own.0 {
            if key.starts_with("includeif.") {
                return Err(UnknownAddress::Conditional);
            }
            if key == "include.path"
                && let (Some(beside), Some(written)) = (file.parent(), &value)
            {
                let included = self.runner.included(beside, written)?;
                self.with_included(self.alone(&included)?, &included, depth + 1, settings)?;
            }
            settings.0.push((key, value));
            if settings.0.len() > MAX_COUNT {
                return Err(UnknownAddress::TooBig);
            }
        }
        Ok(())
    }
}
