//! Reads the settings in a repository's own configuration files.
//!
//! - An included file's settings apply at the position of the include. Its path is resolved relative to the path under
//!   which the including file was opened, as git does.
//! - Settings that git reads before any include, namely repository extensions, are taken from the file itself.
//! - If a repository redirects its connections or stores remotes outside its configuration, its addresses are reported
//!   as unknown.

use super::UnknownAddress;
use super::files::{MayAccess, exists, is_missing_or_empty, read};
use super::repository::Repository;
use super::run::GitRunner;
use super::settings::GitSettings;
use std::path::Path;

/// Maximum nesting depth of includes, as in git.
const MAX_INCLUDE_DEPTH: usize = 10;

/// Maximum number of settings read for one repository.
const MAX_SETTINGS: usize = 20_000;

/// Reads the settings of a repository.
pub(super) fn read_settings(
    repository: &Repository,
    runner: &GitRunner,
    may_access: &MayAccess<'_>,
) -> Result<GitSettings, UnknownAddress> {
    // Git reads remotes from these folders if the configuration does not contain them.
    for legacy in ["remotes", "branches"] {
        if !is_missing_or_empty(&repository.common, legacy, may_access)? {
            return Err(UnknownAddress::LegacyRemotes);
        }
    }
    let reader = SettingsReader { runner, may_access };
    let mut settings = GitSettings::default();
    let shared = repository.common.as_path().join("config");
    let own_settings = reader.read_file(&shared)?;
    let has_worktrees = has_worktree_settings(&own_settings)?;
    reader.add_with_includes(own_settings, &shared, 0, &mut settings)?;
    if has_worktrees && exists(&repository.git_dir, "config.worktree") {
        let worktree_file = repository.git_dir.as_path().join("config.worktree");
        reader.add_with_includes(reader.read_file(&worktree_file)?, &worktree_file, 0, &mut settings)?;
    }
    match settings.0.iter().find_map(|(key, _)| unsupported_setting(key)) {
        Some(why) => Err(why),
        None => Ok(settings),
    }
}

/// Returns `true` if worktrees have their own settings. Fails if the repository uses an extension that some versions
/// of git do not support, because those versions ignore the repository.
fn has_worktree_settings(own_settings: &GitSettings) -> Result<bool, UnknownAddress> {
    let version = own_settings.last("core.repositoryformatversion");
    let is_known = |(key, value): &(String, Option<String>)| match key.strip_prefix("extensions.") {
        None => true,
        Some("worktreeconfig" | "partialclone" | "preciousobjects" | "noop") => version.is_some(),
        Some("objectformat") => version == Some("1"),
        Some("refstorage") => version == Some("1") && value.as_deref() == Some("files"),
        Some(_) => false,
    };
    if matches!(version, None | Some("0" | "1")) && own_settings.0.iter().all(is_known) {
        own_settings.is_on("extensions.worktreeconfig")
    } else {
        Err(UnknownAddress::UnsupportedFormat)
    }
}

/// Returns the reason why a setting makes the repository's addresses unknown, or `None`.
fn unsupported_setting(key: &str) -> Option<UnknownAddress> {
    let (section, _) = key.split_once('.')?;
    let (before, name) = key.rsplit_once('.')?;
    match (section, name) {
        ("http", "proxy" | "curloptresolve")
        | ("remote", "proxy")
        | ("core", "sshcommand" | "gitproxy")
        | ("fetch", "bundleuri") => Some(UnknownAddress::CustomConnection),
        // If the remote's name is empty, git uses the setting's name as the remote's name.
        ("remote", _) if before == "remote." => Some(UnknownAddress::Unparsable),
        _ => None,
    }
}

struct SettingsReader<'a> {
    runner: &'a GitRunner,
    may_access: &'a MayAccess<'a>,
}

impl SettingsReader<'_> {
    /// Reads one file's settings, without following includes.
    fn read_file(&self, file: &Path) -> Result<GitSettings, UnknownAddress> {
        let text = read(file, self.may_access)?;
        text.map_or(Ok(GitSettings::default()), |text| self.runner.parse_config(text.as_bytes()))
    }

    /// Adds a file's settings, with the settings of included files at the positions of the includes.
    fn add_with_includes(
        &self,
        own_settings: GitSettings,
        file: &Path,
        depth: usize,
        settings: &mut GitSettings,
    ) -> Result<(), UnknownAddress> {
        if depth > MAX_INCLUDE_DEPTH {
            return Err(UnknownAddress::Unparsable);
        }
        for (key, value) in own_settings.0 {
            if key.starts_with("includeif.") {
                return Err(UnknownAddress::ConditionalIncludes);
            }
            if key == "include.path"
                && let (Some(folder), Some(written)) = (file.parent(), &value)
            {
                let included = self.runner.include_path(folder, written)?;
                self.add_with_includes(self.read_file(&included)?, &included, depth + 1, settings)?;
            }
            settings.0.push((key, value));
            if settings.0.len() > MAX_SETTINGS {
                return Err(UnknownAddress::TooLarge);
            }
        }
        Ok(())
    }
}
