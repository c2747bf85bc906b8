//! Finds a folder's repository and its current branch.
//!
//! - The search follows git's rules: it finds `.git` in the folder or its nearest parent, a `.git` file that points
//!   elsewhere, a bare repository, or a linked worktree. Folders that git ignores are ignored, and folders that git
//!   might ignore are an error.
//! - The caller must permit access to each folder before it is read.

use super::UnknownAddress;
use super::files::{MayAccess, exists, has_folder, read, read_unlinked, resolve};
use super::settings::GitSettings;
use ironcurtain_paths::CanonicalPath;

/// Characters that git strips from the end of a file that contains a folder's path.
const LINE_BREAKS: [char; 2] = ['\n', '\r'];

/// Characters that git strips from both ends of a branch name.
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

/// Folders of a repository.
#[derive(Debug)]
pub(super) struct Repository {
    /// Folder of this worktree, as in `GIT_DIR`.
    pub(super) git_dir: CanonicalPath,
    /// Folder shared by all worktrees.
    pub(super) common: CanonicalPath,
    /// Root of the worktree, or `None` for a bare repository.
    top: Option<CanonicalPath>,
}

impl Repository {
    /// Finds the repository that git would use in a folder, or returns `None` if the folder is in no repository.
    pub(super) fn find(
        folder: &CanonicalPath,
        may_access: &MayAccess<'_>,
    ) -> Result<Option<Self>, UnknownAddress> {
        let mut at = Some(folder.clone());
        while let Some(folder_or_parent) = at {
            if let Some(repository) = Self::in_folder(&folder_or_parent, may_access)? {
                return Ok(Some(repository));
            }
            if let Some(bare) = Self::from_git_dir(folder_or_parent.clone(), None, may_access)? {
                return Ok(Some(bare));
            }
            at = folder_or_parent.parent();
        }
        Ok(None)
    }

    /// Returns the current branch's name, or `None` if `HEAD` is detached.
    pub(super) fn branch(
        &self,
        settings: &GitSettings,
        may_access: &MayAccess<'_>,
    ) -> Result<Option<String>, UnknownAddress> {
        let head = read_unlinked(&self.git_dir, "HEAD", may_access)?.ok_or(UnknownAddress::Unparsable)?;
        let is_commit = |text: &str| is_object_name(text, settings);
        let Some(target) = head.strip_prefix("ref:") else {
            return if is_commit(&head) { Ok(None) } else { Err(UnknownAddress::Unparsable) };
        };
        let name = target.trim_matches(BLANKS).strip_prefix("refs/heads/");
        let name = name.filter(|name| is_branch_name(name)).ok_or(UnknownAddress::Unparsable)?;
        // A branch file can be a symbolic reference to another branch.
        match read_unlinked(&self.common, &format!("refs/heads/{name}"), may_access)? {
            Some(text) if !is_commit(&text) => Err(UnknownAddress::IrregularFile),
            Some(_) | None => Ok(Some(name.to_owned())),
        }
    }

    /// Returns `true` if a name could refer to a repository or bundle in the worktree.
    pub(super) fn may_contain(&self, name: &str, may_access: &MayAccess<'_>) -> bool {
        let Some(top) = &self.top else { return true };
        let may_exist =
            |name: &str| exists(top, name) || !resolve(top, name).is_ok_and(|path| may_access(&path));
        may_exist(name) || may_exist(&format!("{name}.git"))
    }

    fn in_folder(folder: &CanonicalPath, may_access: &MayAccess<'_>) -> Result<Option<Self>, UnknownAddress> {
        if !exists(folder, ".git") {
            return Ok(None);
        }
        let git_dir = resolve(folder, ".git")?;
        if git_dir.as_path().is_dir() {
            return Self::from_git_dir(git_dir, Some(folder), may_access);
        }
        let text = read(git_dir.as_path(), may_access)?.ok_or(UnknownAddress::Unparsable)?;
        let gitdir = text.strip_prefix("gitdir: ").ok_or(UnknownAddress::Unparsable)?;
        let git_dir = resolve(folder, gitdir.trim_end_matches(LINE_BREAKS))?;
        Self::from_git_dir(git_dir, Some(folder), may_access)?.ok_or(UnknownAddress::Unparsable).map(Some)
    }

    /// Returns the repository whose files are in this folder, or `None` if files are missing.
    fn from_git_dir(
        git_dir: CanonicalPath,
        top: Option<&CanonicalPath>,
        may_access: &MayAccess<'_>,
    ) -> Result<Option<Self>, UnknownAddress> {
        let has = |name: &str| exists(&git_dir, name);
        if !has("HEAD") || !(has("commondir") || (has("objects") && has("refs"))) {
            return Ok(None);
        }
        if !may_access(&git_dir) {
            return Err(UnknownAddress::NotAllowed);
        }
        let common = match read_unlinked(&git_dir, "commondir", may_access)? {
            None => git_dir.clone(),
            Some(text) => resolve(&git_dir, text.trim_end_matches(LINE_BREAKS))?,
        };
        if !may_access(&common) {
            return Err(UnknownAddress::NotAllowed);
        }
        if !has_folder(&common, "objects") || !has_folder(&common, "refs") {
            return Err(UnknownAddress::IrregularFile);
        }
        Ok(Some(Self { git_dir, common, top: top.cloned() }))
    }
}

/// Returns `true` if `text` is a commit id in the repository's object format.
fn is_object_name(text: &str, settings: &GitSettings) -> bool {
    let digits = if settings.last("extensions.objectformat") == Some("sha256") { 64 } else { 40 };
    let name = text.trim_end_matches(BLANKS);
    name.len() == digits && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns `true` if `name` is a valid branch name. Git ignores branches with other names.
fn is_branch_name(name: &str) -> bool {
    let is_forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let is_valid = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(is_valid)
        && !name.contains(is_forbidden)
        && !name.ends_with('.')
        && !["..", "@{"].iter().any(|s| name.contains(s))
}
