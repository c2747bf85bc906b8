//! Finds a folder's repository and its current branch.
//!
//! - The search follows git's rules: it finds `.git` in the folder or its nearest parent, a `.git` file that points
//!   elsewhere, a bare repository, or a linked worktree. Folders that git ignores are ignored, and folders that git
//!   might ignore are an error.
//! - The caller must permit access to each folder before it is read.

use super::UnknownAddress;
use super::files::{MayLook, has_folder, is_there, read, read_unlinked, resolve};
use super::settings::GitSettings;
use ironcurtain_paths::CanonicalPath;

/// Characters that git strips from the end of a file that contains a folder's path.
const LINE_ENDS: [char; 2] = ['\n', '\r'];

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
        may_look: &MayLook<'_>,
    ) -> Result<Option<Self>, UnknownAddress> {
        let mut at = Some(folder.clone());
        while let Some(here) = at {
            if let Some(place) = Self::in_folder(&here, may_look)? {
                return Ok(Some(place));
            }
            if let Some(bare) = Self::at(here.clone(), None, may_look)? {
                return Ok(Some(bare));
            }
            at = here.parent();
        }
        Ok(None)
    }

    /// Returns the current branch's name, or `None` if `HEAD` is detached.
    pub(super) fn branch(
        &self,
        settings: &GitSettings,
        may_look: &MayLook<'_>,
    ) -> Result<Option<String>, UnknownAddress> {
        let head = read_unlinked(&self.git_dir, "HEAD", may_look)?.ok_or(UnknownAddress::NotUnderstood)?;
        let is_commit = |text: &str| is_object_name(text, settings);
        let Some(target) = head.strip_prefix("ref:") else {
            return if is_commit(&head) { Ok(None) } else { Err(UnknownAddress::NotUnderstood) };
        };
        let name = target.trim_matches(BLANKS).strip_prefix("refs/heads/");
        let name = name.filter(|name| is_branch_name(name)).ok_or(UnknownAddress::NotUnderstood)?;
        // A branch file can be a symbolic reference to another branch.
        match read_unlinked(&self.common, &format!("refs/heads/{name}"), may_look)? {
            Some(text) if !is_commit(&text) => Err(UnknownAddress::NotPlain),
            Some(_) | None => Ok(Some(name.to_owned())),
        }
    }

    /// Returns `true` if a name could refer to a repository or bundle in the worktree.
    pub(super) fn may_hold(&self, name: &str, may_look: &MayLook<'_>) -> bool {
        let Some(top) = &self.top else { return true };
        let may_be =
            |name: &str| is_there(top, name) || !resolve(top, name).is_ok_and(|path| may_look(&path));
        may_be(name) || may_be(&format!("{name}.git"))
    }

    fn in_folder(folder: &CanonicalPath, may_look: &MayLook<'_>) -> Result<Option<Self>, UnknownAddress> {
        if !is_there(folder, ".git") {
            return Ok(None);
        }
        let git_dir = resolve(folder, ".git")?;
        if git_dir.as_path().is_dir() {
            return Self::at(git_dir, Some(folder), may_look);
        }
        let text = read(git_dir.as_path(), may_look)?.ok_or(UnknownAddress::NotUnderstood)?;
        let named = text.strip_prefix("gitdir: ").ok_or(UnknownAddress::NotUnderstood)?;
        let git_dir = resolve(folder, named.trim_end_matches(LINE_ENDS))?;
        Self::at(git_dir, Some(folder), may_look)?.ok_or(UnknownAddress::NotUnderstood).map(Some)
    }

    /// Returns the repository whose files are in this folder, or `None` if files are missing.
    fn at(
        git_dir: CanonicalPath,
        top: Option<&CanonicalPath>,
        may_look: &MayLook<'_>,
    ) -> Result<Option<Self>, UnknownAddress> {
        let has = |name: &str| is_there(&git_dir, name);
        if !has("HEAD") || !(has("commondir") || (has("objects") && has("refs"))) {
            return Ok(None);
        }
        if !may_look(&git_dir) {
            return Err(UnknownAddress::NotAllowed);
        }
        let common = match read_unlinked(&git_dir, "commondir", may_look)? {
            None => git_dir.clone(),
            Some(text) => resolve(&git_dir, text.trim_end_matches(LINE_ENDS))?,
        };
        if !may_look(&common) {
            return Err(UnknownAddress::NotAllowed);
        }
        if !has_folder(&common, "objects") || !has_folder(&common, "refs") {
            return Err(UnknownAddress::NotPlain);
        }
        Ok(Some(Self { git_dir, common, top: top.cloned() }))
    }
}

/// Returns `true` if a text is a commit id in the repository's object format.
fn is_object_name(text: &str, settings: &GitSettings) -> bool {
    let digits = if settings.last("extensions.objectformat") == Some("sha256") { 64 } else { 40 };
    let name = text.trim_end_matches(BLANKS);
    name.len() == digits && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns `true` if git accepts a text as a branch name. Git ignores branches with other names.
fn is_branch_name(name: &str) -> bool {
    let odd = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let fits = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    name.split('/').all(fits)
        && !name.contains(odd)
        && !name.ends_with('.')
        && !["..", "@{"].iter().any(|s| name.contains(s))
}
