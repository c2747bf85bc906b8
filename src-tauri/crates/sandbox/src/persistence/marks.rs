//! Which files were there and could not be written, so that they are told again at the end.
//!
//! - INVARIANT: an inode number alone says nothing, since it is given to another file when the first one is gone. It counts
//!   together with the time when the file was made, which no program can set; where a file system does not know that, a
//!   descriptor keeps the number from being given away.

use std::{collections::BTreeMap, io, os::fd::OwnedFd};

use rustix::{
    fd::AsFd,
    fs::{AtFlags, CWD, Statx, StatxFlags, makedev, statx},
    io::Errno,
    path::Arg,
};

use crate::place::{Identity, open_plain_end};

/// One file, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    identity: Identity,
    /// When it was made, where that is known.
    born: Option<(i64, u32)>,
}

/// What is asked of the kernel about a file.
pub(crate) fn ask(dir: impl AsFd, name: impl Arg) -> Result<Statx, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    statx(dir, name, flags, StatxFlags::BASIC_STATS | StatxFlags::BTIME)
}

impl Mark {
    pub(crate) fn of(about: &Statx) -> Self {
        let knows_birth = StatxFlags::from_bits_retain(about.stx_mask).contains(StatxFlags::BTIME);
        Self {
            identity: Identity {
                device: makedev(about.stx_dev_major, about.stx_dev_minor),
                inode: about.stx_ino,
            },
            born: knows_birth.then_some((about.stx_btime.tv_sec, about.stx_btime.tv_nsec)),
        }
    }

    /// The mark of what is at `path`, if that can be reached without a symlink, and the descriptor that keeps it true.
    fn at(path: &str) -> io::Result<Option<(Self, Option<OwnedFd>)>> {
        let place = match open_plain_end(CWD, path) {
            Ok(place) => place,
            Err(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => return Err(error.into()),
            Err(_) => return Ok(None),
        };
        let mark = Self::of(&ask(&place, "")?);
        Ok(Some((mark, mark.born.is_none().then_some(place))))
    }
}

/// Those of one root, by the paths at which they were found.
#[derive(Debug, Default)]
pub(super) struct Marks {
    by_path: BTreeMap<String, (Mark, Option<OwnedFd>)>,
    numbers: BTreeMap<Identity, Vec<Mark>>,
}

impl Marks {
    /// What is at these paths now.
    pub(super) fn of<'a>(paths: impl Iterator<Item = &'a String>) -> io::Result<Self> {
        let mut marks = Self::default();
        for path in paths {
            if let Some(found) = Mark::at(path)? {
                marks.by_path.insert(path.clone(), found);
            }
        }
        marks.count();
        Ok(marks)
    }

    /// Those as well, in the place of others at the same paths.
    pub(super) fn extend(&mut self, more: Self) {
        self.by_path.extend(more.by_path);
        self.count();
    }

    /// Whether a file is one of them.
    pub(super) fn have(&self, about: &Statx) -> bool {
        let mark = Mark::of(about);
        self.numbers.get(&mark.identity).is_some_and(|known| known.contains(&mark))
    }

    /// Forgets what is not at its path any more, of those paths.
    pub(super) fn forget_gone(&mut self, paths: &[String]) {
        for path in paths {
            let is_gone =
                |(mark, _): &(Mark, _)| !ask(CWD, path.as_str()).is_ok_and(|about| Mark::of(&about) == *mark);
            if self.by_path.get(path).is_some_and(is_gone) {
                self.by_path.remove(path);
            }
        }
        self.count();
    }

    fn count(&mut self) {
        self.numbers.clear();
        for (mark, _) in self.by_path.values() {
            self.numbers.entry(mark.identity).or_default().push(*mark);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_gets_the_number_of_one_that_is_gone_is_not_taken_for_it() {
        // Unlike others, this file system gives a number away at once.
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        for name in ["gone", "kept"] {
            fs::write(path(name), "").unwrap();
        }
        let mut marks = Marks::of([path("gone"), path("kept")].iter()).unwrap();
        let gone = ask(CWD, path("gone").as_str()).unwrap();
        assert!(marks.have(&gone));

        // The same number, but made at another time.
        let mut reused = gone;
        reused.stx_btime.tv_nsec ^= 1;
        assert!(!marks.have(&reused));

        fs::remove_file(path("gone")).unwrap();
        marks.forget_gone(&[path("gone"), path("kept")]);
        assert!(!marks.have(&gone));
        assert!(marks.have(&ask(CWD, path("kept").as_str()).unwrap()));
    }
}
