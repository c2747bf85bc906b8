//! Empty files and directories made on the host so that something can be mounted over names that nothing has.
//!
//! - INVARIANT: one is written down before it is made, in a journal that is locked as long as its supervisor lives. Who
//!   starts next removes those of journals that nobody holds.
//! - INVARIANT: only what is as it was made is removed; what the person has written since is theirs.
//! - Several sandboxes may need the same one; the last of them removes it.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::{place::is_at_or_below, state::StateDir};

/// The mode that tells one of ours: nobody may write or run it, whatever the umask left of the rest.
const MODE: u32 = 0o444;

/// Paths, and whether each is a directory.
type Made = BTreeMap<String, bool>;

/// A journal and the descriptor by which it is locked.
type Journal = (PathBuf, File);

/// What is in one: nothing, but where an empty file is not understood.
fn content(path: &str) -> &'static str {
    match path.rsplit_once('/').map_or(path, |(_, name)| name) {
        // A repository whose common directory is itself. Git reads an empty file so, too; others do not.
        "commondir" => ".\n",
        // Agents that find no JSON there do not start, or complain.
        "settings.json" | "settings.local.json" | "hooks.json" => "{}\n",
        _ => "",
    }
}

/// One sandbox's.
#[derive(Debug)]
pub(super) struct Ghosts {
    state: StateDir,
    journal: Option<Journal>,
    ours: Made,
}

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    path: String,
    directory: bool,
}

impl Ghosts {
    /// Removes what dead supervisors have left.
    pub(super) fn open(state: StateDir) -> io::Result<Self> {
        let ghosts = Self { state, journal: None, ours: BTreeMap::new() };
        let _turn = ghosts.state.lock()?;
        ghosts.sweep()?;
        Ok(ghosts)
    }

    /// Makes those of `wanted` that are not there; returns the ones that are now.
    pub(super) fn make(&mut self, wanted: &[(String, bool)], there: &[String]) -> io::Result<Vec<String>> {
        let _turn = self.state.lock()?;
        // A supervisor that is killed holds its journal until its last child has.
        let others = self.sweep()?;
        let shared = there.iter().filter_map(|path| Some((path.clone(), *others.get(path)?)));
        let lines: Vec<(String, bool)> = wanted.iter().cloned().chain(shared).collect();
        if lines.is_empty() {
            return Ok(vec![]);
        }
        self.write_down(&lines)?;
        let mut made = Vec::new();
        for (path, directory) in wanted {
            match make_one(path, *directory) {
                Ok(()) => made.push(path.clone()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => made.push(path.clone()),
                // Where the person cannot write, neither can the sandbox.
                Err(error) if is_closed(&error) => {}
                Err(error) => return Err(io::Error::new(error.kind(), format!("`{path}`: {error}"))),
            }
        }
        Ok(made)
    }

    /// Removes ours at and below `root`, but for what lies at and below one of `kept`; returns which they were.
    pub(super) fn release(&mut self, root: &str, kept: &[&String]) -> io::Result<Vec<String>> {
        let _turn = self.state.lock()?;
        let others = self.others()?;
        let below =
            |path: &String| is_at_or_below(path, root) && !kept.iter().any(|kept| is_at_or_below(path, kept));
        let (gone, kept): (Made, Made) =
            std::mem::take(&mut self.ours).into_iter().partition(|(path, _)| below(path));
        self.ours = kept;
        remove(&gone, &others);
        Ok(gone.into_keys().collect())
    }

    /// Removes all of ours, and what supervisors have left that died meanwhile.
    pub(super) fn release_all(&mut self) -> io::Result<()> {
        let _turn = self.state.lock()?;
        let ours = std::mem::take(&mut self.ours);
        remove(&ours, &self.sweep()?);
        if let Some((path, _)) = self.journal.take() {
            fs::remove_file(path)?;
        }
        Ok(())
    }

    /// Removes what dead supervisors have left, but for what is ours as well; returns what other living ones have.
    fn sweep(&self) -> io::Result<Made> {
        let (live, dead) = self.apart()?;
        for (path, _held) in dead {
            let mut left = lines(&path)?;
            left.retain(|path, _| !self.ours.contains_key(path));
            remove(&left, &live);
            fs::remove_file(path)?;
        }
        Ok(live)
    }

    /// Those of living sandboxes but ours.
    pub(super) fn others(&self) -> io::Result<Made> {
        Ok(self.apart()?.0)
    }

    /// What living supervisors but this one have made, and the journals of dead ones, held. Each is looked at once, since
    /// one can die meanwhile.
    fn apart(&self) -> io::Result<(Made, Vec<Journal>)> {
        let (mut live, mut dead) = (Made::new(), Vec::new());
        for (path, file) in self.journals()? {
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
                dead.push((path, file));
            } else {
                live.extend(lines(&path)?);
            }
        }
        Ok((live, dead))
    }

    fn journals(&self) -> io::Result<Vec<Journal>> {
        let mut journals = Vec::new();
        for entry in fs::read_dir(self.state.below("journals")?)? {
            let path = entry?.path();
            if self.journal.as_ref().is_none_or(|(own, _)| *own != path) {
                journals.push((path.clone(), File::open(&path)?));
            }
        }
        Ok(journals)
    }

    fn write_down(&mut self, new: &[(String, bool)]) -> io::Result<()> {
        let mut text = Vec::new();
        for (path, directory) in new {
            serde_json::to_writer(&mut text, &Line { path: path.clone(), directory: *directory })?;
            text.push(b'\n');
        }
        if self.journal.is_none() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
            let path = self.state.below("journals")?.join(format!("{}-{now}", std::process::id()));
            let file = OpenOptions::new().create_new(true).append(true).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            self.journal = Some((path, file));
        }
        if let Some((_, file)) = &mut self.journal {
            file.write_all(&text)?;
        }
        self.ours.extend(new.iter().cloned());
        Ok(())
    }
}

fn make_one(path: &str, directory: bool) -> io::Result<()> {
    if directory {
        return DirBuilder::new().mode(0o755).create(path);
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)?
        .write_all(content(path).as_bytes())
}

/// Removes what is still as it was made and nobody else needs, what lies deeper first.
fn remove(gone: &Made, needed: &Made) {
    for (path, directory) in gone.iter().rev().filter(|(path, _)| !needed.contains_key(*path)) {
        let made = content(path);
        let path = Path::new(path);
        let Ok(found) = fs::symlink_metadata(path) else { continue };
        // What cannot be removed is the person's, or is not empty any more.
        let _ = if *directory && found.is_dir() {
            fs::remove_dir(path)
        } else if !directory
            && found.is_file()
            && found.mode() & !0o444 & 0o7777 == 0
            && is_made(path, &found, made)
        {
            fs::remove_file(path)
        } else {
            Ok(())
        };
    }
}

/// Whether a file has what it was made with, or what it has at the instant between.
fn is_made(path: &Path, found: &fs::Metadata, made: &str) -> bool {
    found.len() == 0
        || (found.len() == made.len() as u64 && fs::read(path).is_ok_and(|bytes| bytes == made.as_bytes()))
}

fn lines(journal: &Path) -> io::Result<Made> {
    let text = fs::read_to_string(journal)?;
    // A line that was not written whole was followed by nothing.
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    Ok(lines.map(|line| (line.path, line.directory)).collect())
}

fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::NotFound
            | ErrorKind::NotADirectory
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_dead_supervisor_has_made_stays_while_another_needs_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let is_there = |name: &str| fs::symlink_metadata(path(name)).is_ok();
        let uid = rustix::process::getuid().as_raw();
        let state = StateDir::open(&path("state"), uid).unwrap();
        let mut first = Ghosts::open(state.clone()).unwrap();
        let wanted = [(path(".bashrc"), false), (path(".idea"), true)];
        assert_eq!(first.make(&wanted, &[]).unwrap(), [path(".bashrc"), path(".idea")]);
        let mut second = Ghosts::open(state.clone()).unwrap();
        second.make(&[], &[path(".bashrc")]).unwrap();

        drop(first);
        second.make(&[(path(".npmrc"), false)], &[]).unwrap();
        assert!(is_there(".bashrc") && is_there(".npmrc") && !is_there(".idea"));
        second.release_all().unwrap();
        assert!(!is_there(".bashrc") && !is_there(".npmrc"));
        assert_eq!(fs::read_dir(state.below("journals").unwrap()).unwrap().count(), 0);
    }
}
