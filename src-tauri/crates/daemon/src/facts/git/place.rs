//! Where a repository keeps its configuration, and reading it from there without git.
//!
//! - Found as git finds it: `.git` in the folder or the nearest one above, a `.git` file that leads elsewhere, a bare
//!   repository, a linked worktree.
//! - Each folder and file that is read must be one that may be looked at, a regular file and not too big. It is opened
//!   without following a link and without waiting.

use super::Unknown;
use super::run::Runner;
use super::settings::Settings;
use ironcurtain_paths::{CanonicalPath, Resolver};
use rustix::fs::{FileType, Mode, OFlags};
use std::io::Read;

/// The most bytes of one file.
const MOST_BYTES: u64 = 1024 * 1024;

/// How deep files may include each other, as git has it.
const DEEPEST: usize = 10;

/// Whether a place may be looked at.
type MayLook<'a> = dyn Fn(&CanonicalPath) -> bool + 'a;

/// A repository's own folders.
#[derive(Debug)]
pub(super) struct Place {
    /// What `GIT_DIR` would be.
    pub(super) git_dir: CanonicalPath,
    /// What all its worktrees share.
    common: CanonicalPath,
}

impl Place {
    /// The repository that git would find from a folder.
    pub(super) fn find(folder: &CanonicalPath, may_look: &MayLook<'_>) -> Result<Option<Self>, Unknown> {
        let mut at = Some(folder.clone());
        while let Some(here) = at {
            let inside = here.as_path().join(".git");
            if inside.symlink_metadata().is_ok() {
                return Self::of(&here, may_look).map(Some);
            }
            let bare = |name: &str| here.as_path().join(name).exists();
            if bare("HEAD") && bare("objects") && bare("refs") {
                return Self::at(here, may_look).map(Some);
            }
            at = here.parent();
        }
        Ok(None)
    }

    /// Its settings, with what its files include.
    pub(super) fn settings(&self, runner: &Runner, may_look: &MayLook<'_>) -> Result<Settings, Unknown> {
        let mut settings = Settings::default();
        include(&resolve(&self.common, "config")?, runner, may_look, 0, &mut settings)?;
        if settings.is_on("extensions.worktreeconfig") {
            include(&resolve(&self.git_dir, "config.worktree")?, runner, may_look, 0, &mut settings)?;
        }
        if settings.last("extensions.refstorage").is_some_and(|storage| storage != "files") {
            return Err(Unknown::NotPlain);
        }
        Ok(settings)
    }

    /// The branch that is checked out.
    pub(super) fn branch(&self, may_look: &MayLook<'_>) -> Result<Option<String>, Unknown> {
        let Some(head) = read(&resolve(&self.git_dir, "HEAD")?, may_look)? else { return Ok(None) };
        let head = String::from_utf8(head).map_err(|_| Unknown::NotUnderstood)?;
        let target = head.strip_prefix("ref:").map(str::trim);
        Ok(target.and_then(|name| name.strip_prefix("refs/heads/")).map(str::to_owned))
    }

    fn of(folder: &CanonicalPath, may_look: &MayLook<'_>) -> Result<Self, Unknown> {
        let git_dir = resolve(folder, ".git")?;
        if git_dir.as_path().is_dir() {
            return Self::at(git_dir, may_look);
        }
        let text = read(&git_dir, may_look)?.ok_or(Unknown::NotUnderstood)?;
        let text = String::from_utf8(text).map_err(|_| Unknown::NotUnderstood)?;
        let named = text.strip_prefix("gitdir:").ok_or(Unknown::NotUnderstood)?;
        Self::at(resolve(folder, named.trim())?, may_look)
    }

    fn at(git_dir: CanonicalPath, may_look: &MayLook<'_>) -> Result<Self, Unknown> {
        if !may_look(&git_dir) {
            return Err(Unknown::NotAllowed);
        }
        let common = match read(&resolve(&git_dir, "commondir")?, may_look)? {
            None => git_dir.clone(),
            Some(text) => {
                let text = String::from_utf8(text).map_err(|_| Unknown::NotUnderstood)?;
                resolve(&git_dir, text.trim())?
            }
        };
        if may_look(&common) { Ok(Self { git_dir, common }) } else { Err(Unknown::NotAllowed) }
    }
}

/// Adds the settings of a file, those of included files in their places.
fn include(
    file: &CanonicalPath,
    runner: &Runner,
    may_look: &MayLook<'_>,
    depth: usize,
    settings: &mut Settings,
) -> Result<(), Unknown> {
    if depth > DEEPEST {
        return Err(Unknown::NotUnderstood);
    }
    let Some(text) = read(file, may_look)? else { return Ok(()) };
    for (key, value) in runner.spelled_out(&text)?.0 {
        if key.starts_with("includeif.") {
            return Err(Unknown::Conditional);
        }
        if key == "include.path"
            && let (Some(beside), Some(path)) = (file.parent(), &value)
        {
            let included = runner.included(&beside, path)?;
            include(&included, runner, may_look, depth + 1, settings)?;
        }
        settings.0.push((key, value));
    }
    Ok(())
}

/// The content of a file; nothing when it is not there.
fn read(path: &CanonicalPath, may_look: &MayLook<'_>) -> Result<Option<Vec<u8>>, Unknown> {
    if !may_look(path) {
        return Err(Unknown::NotAllowed);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path.as_path(), flags, Mode::empty()) {
        Ok(file) => file,
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(_) => return Err(Unknown::NotPlain),
    };
    let found = rustix::fs::fstat(&file).map_err(|_| Unknown::NotPlain)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Err(Unknown::NotPlain);
    }
    let mut content = Vec::new();
    let mut bounded = std::fs::File::from(file).take(MOST_BYTES + 1);
    bounded.read_to_end(&mut content).map_err(|_| Unknown::NotPlain)?;
    if content.len() as u64 > MOST_BYTES {
        return Err(Unknown::TooBig);
    }
    Ok(Some(content))
}

/// Where a name leads from a folder; a `~` is a letter like any other.
fn resolve(folder: &CanonicalPath, name: &str) -> Result<CanonicalPath, Unknown> {
    let name = if name.starts_with('~') { format!("./{name}") } else { name.to_owned() };
    let resolver = Resolver::new(folder.clone(), folder.clone());
    resolver.resolve(&name).map(|found| found.path).map_err(|_| Unknown::NotPlain)
}
