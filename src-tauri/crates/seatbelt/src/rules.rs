//! The rules of a profile, one after the other.

use super::{EVERYTHING, SYSTEM, Seatbelt};
use ironcurtain_sandbox::{Mount, MountAccess, View};
use std::collections::{BTreeMap, BTreeSet};

/// A profile in the making.
pub(super) struct SeatbeltRules {
    profile: String,
    parameters: Vec<(String, String)>,
    /// The number of parameters of each kind.
    counts: BTreeMap<&'static str, usize>,
}

/// The rule about one path and all below it, in the order of rules about the same path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Say {
    Read,
    Write,
    Keep,
    Hide,
}

impl SeatbeltRules {
    pub(super) fn new(base: &str) -> Self {
        Self { profile: base.to_owned(), parameters: vec![], counts: BTreeMap::new() }
    }

    pub(super) fn view(&mut self, view: &View, mounts: &[Mount]) {
        let granted = mounts.iter().map(|mount| (mount.path.as_str(), of(mount.access)));
        match view {
            View::Roots { session_dir, programs } => {
                self.profile.push_str(SYSTEM);
                let programs = each(programs, Say::Read);
                let all: Vec<_> =
                    programs.chain(granted).chain([(session_dir.as_str(), Say::Write)]).collect();
                let mut above = BTreeSet::new();
                for (path, say) in sorted(all) {
                    for folder in folders_above(path) {
                        if above.insert(folder) {
                            let folder = self.parameter("ABOVE", folder);
                            self.rule(&format!("(allow file-read-metadata (literal {folder}))"));
                        }
                    }
                    self.say("(allow file-read* (subpath ", "READ", path);
                    if say == Say::Write {
                        self.say("(allow file-write* (subpath ", "WRITE", path);
                    }
                }
            }
            View::HostRead {
                session_dir,
                deny_read,
                allow_read,
                allow_write,
                deny_write,
                private_tmp: _,
            } => {
                self.profile.push_str(EVERYTHING);
                let hidden = each(deny_read, Say::Hide).chain(each(deny_write, Say::Keep));
                let shown = each(allow_read, Say::Read).chain(each(allow_write, Say::Write));
                let session = session_dir.iter().map(|dir| (dir.as_str(), Say::Write));
                for (path, say) in sorted(hidden.chain(shown).chain(session).chain(granted).collect()) {
                    match say {
                        Say::Read => self.say("(allow file-read* (subpath ", "READ", path),
                        Say::Write => self.say("(allow file-read* file-write* (subpath ", "WRITE", path),
                        Say::Keep => self.say("(deny file-write* file-link (subpath ", "KEPT", path),
                        Say::Hide => {
                            self.say("(deny file-read* file-write* file-link (subpath ", "HIDDEN", path)
                        }
                    }
                }
                self.fix_above(deny_read.iter().chain(deny_write));
            }
        }
    }

    /// A folder above what is denied keeps its name, or what is denied could be had under another one.
    fn fix_above<'a>(&mut self, denied: impl Iterator<Item = &'a String>) {
        let above: BTreeSet<&str> = denied.flat_map(|path| folders_above(path)).collect();
        for folder in above {
            self.say("(deny file-write-unlink (literal ", "FIXED", folder);
        }
    }

    /// Keeps paths from being written, whatever is granted around them.
    pub(super) fn close(&mut self, closed: &[String]) {
        closed.iter().for_each(|path| self.say("(deny file-write* file-link (subpath ", "CLOSED", path));
        self.fix_above(closed.iter());
    }

    pub(super) fn proxy(&mut self, port: u16) {
        self.parameters.push(("PROXY_PORT".to_owned(), port.to_string()));
        self.rule(
            "(allow network-outbound (remote tcp (string-append \"localhost:\" (param \"PROXY_PORT\"))))",
        );
    }

    pub(super) fn finish(self) -> Seatbelt {
        Seatbelt { profile: self.profile, parameters: self.parameters }
    }

    fn say(&mut self, rule: &str, kind: &'static str, path: &str) {
        let path = self.parameter(kind, path);
        self.rule(&format!("{rule}{path}))"));
    }

    fn rule(&mut self, rule: &str) {
        self.profile.push_str(rule);
        self.profile.push('\n');
    }

    /// Passes a value, and gives what stands for it.
    fn parameter(&mut self, kind: &'static str, value: &str) -> String {
        let count = self.counts.entry(kind).or_default();
        let name = format!("{kind}_{count}");
        *count += 1;
        let stands_for = format!("(param \"{name}\")");
        self.parameters.push((name, value.to_owned()));
        stands_for
    }
}

fn of(access: MountAccess) -> Say {
    match access {
        MountAccess::ReadOnly => Say::Read,
        MountAccess::ReadWrite => Say::Write,
    }
}

fn each(paths: &[String], say: Say) -> impl Iterator<Item = (&str, Say)> {
    paths.iter().map(move |path| (path.as_str(), say))
}

/// From the shallow to the deep; what denies comes last among equals.
fn sorted(mut all: Vec<(&str, Say)>) -> Vec<(&str, Say)> {
    all.sort_by_key(|(path, say)| (path.matches('/').count(), *say));
    all
}

/// The folders that a path lies in, without the root.
fn folders_above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').filter(|(at, _)| *at > 0).filter_map(|(at, _)| path.get(..at))
}
