//! What is known about who put a file where a cover was.
//!
//! - While a path is covered, nothing in the sandbox can rename another file over it, or take it away. So the first such
//!   change is from outside; whatever follows before the sandbox has ended may be the sandbox's.
//! - INVARIANT: what is not known counts as the sandbox's doing.

use std::collections::BTreeMap;

use rustix::fs::inotify::ReadFlags;

use super::watch::Name;

/// What has happened to names, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Traces {
    names: BTreeMap<Name, Trace>,
    /// Not everything was told.
    incomplete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trace {
    /// Another file was renamed over it, and nothing else.
    Replaced,
    /// What it had was taken away from it, and nothing else.
    Vacant,
    /// Anything else.
    Touched,
}

impl Traces {
    /// Something happened in a folder, to a name that is watched or to another.
    pub(super) fn add(&mut self, folder: i32, name: Option<&[u8]>, what: ReadFlags) {
        match name {
            Some(name) => {
                let name = (folder, name.to_owned());
                let now = next(self.names.get(&name).copied(), what);
                self.names.insert(name, now);
            }
            // It may be another name for the same file.
            None if what.contains(ReadFlags::CREATE) => {
                let here = self.names.iter_mut().filter(|((other, _), _)| *other == folder);
                here.for_each(|(_, trace)| *trace = Trace::Touched);
            }
            None => {}
        }
    }

    /// Not everything was told.
    pub(super) fn lose(&mut self) {
        self.incomplete = true;
    }

    /// Whether nothing but such a change from outside, or nothing at all, has happened to a name.
    pub(super) fn is_untouched(&self, name: &Name) -> bool {
        self.names.get(name) != Some(&Trace::Touched) && !self.incomplete
    }
}

fn next(before: Option<Trace>, what: ReadFlags) -> Trace {
    let taken = what.intersects(ReadFlags::MOVED_FROM | ReadFlags::DELETE);
    match before {
        None if what.contains(ReadFlags::MOVED_TO) => Trace::Replaced,
        None | Some(Trace::Replaced) if taken => Trace::Vacant,
        None | Some(Trace::Replaced | Trace::Vacant | Trace::Touched) => Trace::Touched,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAME: ReadFlags = ReadFlags::MOVED_TO;
    const WENT: ReadFlags = ReadFlags::MOVED_FROM;
    const WRITTEN: ReadFlags = ReadFlags::CLOSE_WRITE;

    fn is_untouched(events: &[(&str, ReadFlags)]) -> bool {
        let mut traces = Traces::default();
        for (name, what) in events {
            traces.add(1, (*name == "config").then_some(name.as_bytes()), *what);
        }
        traces.is_untouched(&(1, b"config".to_vec()))
    }

    #[test]
    fn what_was_renamed_over_it_or_comes_later_is_untouched() {
        assert!(is_untouched(&[]));
        assert!(is_untouched(&[("config", CAME)]));
        assert!(is_untouched(&[("config", WENT)]));
        assert!(is_untouched(&[("config", ReadFlags::DELETE)]));
        assert!(is_untouched(&[("lock", ReadFlags::CREATE), ("lock", WRITTEN), ("config", CAME)]));
    }

    #[test]
    fn what_the_sandbox_could_have_made_of_it_is_not() {
        assert!(!is_untouched(&[("config", CAME), ("config", WRITTEN)]));
        assert!(!is_untouched(&[("config", WRITTEN), ("config", CAME)]));
        assert!(!is_untouched(&[("config", CAME), ("config", CAME)]));
        assert!(!is_untouched(&[("config", WENT), ("config", CAME)]));
        assert!(!is_untouched(&[("config", WENT), ("config", ReadFlags::CREATE)]));
        assert!(!is_untouched(&[("config", CAME), ("other", ReadFlags::CREATE)]));
    }

    #[test]
    fn what_was_not_told_is_not_known() {
        let mut traces = Traces::default();
        traces.add(1, Some(b"config"), CAME);
        traces.lose();
        assert!(!traces.is_untouched(&(1, b"config".to_vec())));
    }
}
