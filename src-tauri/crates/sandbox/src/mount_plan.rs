//! The plan of what a sandbox is shown: the host's tree with parts hidden, re-opened, and closed for writing.
//!
//! - A [`MountPlan`] is a plain value, made once; it is applied in a mount namespace that nobody else is in, from which
//!   bubblewrap, or a grant, then copies. So a copy is never seen without it.
//! - INVARIANT: what is denied counts by what it really is: symlinks are resolved, and every further mount of the same
//!   file system that leads there is found in the kernel's table.
//! - Of hidden and re-opened paths the deepest decides; at the same path, what denies.

mod apply;
mod resolve;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use rustix::fs::{CWD, fstat};

use crate::{
    autostart::name_text::raw,
    mountinfo::MountInfo,
    place::{FileKind, is_at_or_below, is_below, open_plain_end},
    spec::{Spec, View},
};

pub(crate) use apply::over_itself;
pub(crate) use resolve::{LayoutError, real, real_kind};

/// The treatment of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTreatment {
    /// Put something empty and closed over it; `points` are the paths below it that something is mounted on later.
    Hide { kind: FileKind, points: BTreeMap<String, FileKind> },
    /// Put something empty and closed over a pipe or a socket, or a folder that cannot be searched for such. Nothing where
    /// another kind of file stands by now.
    Special,
    /// Show again what was hidden with the tree around it.
    Reopen { writable: bool },
    /// Make it a mount of its own, which cannot be renamed or removed.
    Pin,
    /// The same, and close it and all below for writing.
    ReadOnly,
}

impl PathTreatment {
    /// True when it says what is shown, and not what is written.
    fn shows(&self) -> bool {
        match self {
            Self::Hide { .. } | Self::Special | Self::Reopen { .. } => true,
            Self::Pin | Self::ReadOnly => false,
        }
    }
}

/// Steps by path, so that a path comes before those below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountPlan(BTreeMap<String, PathTreatment>);

/// A view of the host, ready to be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewLayout {
    pub(crate) plan: MountPlan,
    /// Writable paths in path order.
    pub(crate) writable: Vec<String>,
    /// Paths to be shown on top of a private `/tmp`.
    pub(crate) shown: Vec<String>,
}

/// Never shown: sockets and secrets of the person's desktop session.
const ALWAYS_HIDDEN: &[&str] = &["/run/user"];

impl ViewLayout {
    /// Looks at the host and works out the view that `spec` asks for; `state_dir` is ours, and is hidden.
    pub(crate) fn of(spec: &Spec, table: &MountInfo, state_dir: &str) -> Result<Self, LayoutError> {
        let mounted = resolve::mounted(table);
        let mut hidden = BTreeMap::new();
        hide(&mut hidden, &[state_dir], &mounted)?;
        let points = spec.mounts.iter().map(|mount| (mount.path.clone(), Want::Point));
        let mut wanted: BTreeMap<String, Want> = points.collect();
        let mut layout = Self::default();
        let mut read_only_paths = Vec::new();
        match &spec.view {
            View::Roots { session_dir, .. } => layout.writable.push(session_dir.clone()),
            View::HostRead { session_dir, deny_read, allow_read, allow_write, deny_write, .. } => {
                hide(&mut hidden, ALWAYS_HIDDEN, &mounted)?;
                hide(&mut hidden, deny_read, &mounted)?;
                read_only_paths = closed(deny_write)?;
                for path in allow_write {
                    let is_closed =
                        read_only_paths.iter().chain(deny_write).any(|closed| is_at_or_below(path, closed));
                    if resolve::plain(path)?.is_some() && !is_closed && !hidden.contains_key(path) {
                        layout.writable.push(path.clone());
                    }
                }
                layout.writable.extend(session_dir.clone());
                layout.writable.sort();
                layout.writable.dedup();
                for path in allow_read {
                    if resolve::plain(path)?.is_some() && !hidden.contains_key(path) {
                        layout.shown.push(path.clone());
                        wanted.insert(path.clone(), Want::Read);
                    }
                }
            }
        }
        wanted.extend(layout.writable.iter().map(|path| (path.clone(), Want::Write)));
        layout.plan = MountPlan::showing(&hidden, &wanted)?;
        read_only_paths.into_iter().for_each(|path| layout.plan.set_read_only(path));
        layout.plan.hold(&layout.writable);
        Ok(layout)
    }
}

/// The reason for a path to be there although what is around it may be hidden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Read,
    Write,
    /// Something is mounted on it later.
    Point,
}

/// Adds what `paths` really are, under every path that leads there.
fn hide(
    hidden: &mut BTreeMap<String, FileKind>,
    paths: &[impl AsRef<str>],
    mounted: &[resolve::VisibleMount<'_>],
) -> Result<(), LayoutError> {
    for path in paths {
        let Some((real, kind)) = real_kind(path.as_ref())? else { continue };
        hidden.extend(resolve::aliases(&real, mounted)?.into_iter().map(|alias| (alias, kind)));
        hidden.insert(real, kind);
    }
    Ok(())
}

/// The existing ones of `paths`, to be closed for writing.
fn closed(paths: &[String]) -> Result<Vec<String>, LayoutError> {
    let mut there = Vec::new();
    for path in paths {
        // A symlink at its end could be exchanged, so it is closed as well as what it leads to.
        there.extend(real(path)?);
        there.extend(resolve::link(path)?);
    }
    Ok(there)
}

impl MountPlan {
    /// Hides and shows again.
    fn showing(
        hidden: &BTreeMap<String, FileKind>,
        wanted: &BTreeMap<String, Want>,
    ) -> Result<Self, LayoutError> {
        let mut plan = Self::default();
        let paths: BTreeSet<&String> = hidden.keys().chain(wanted.keys()).collect();
        for path in paths {
            let around = plan.around(path).map(|(_, step)| step);
            match (hidden.get(path), wanted.get(path)) {
                (Some(_), _) if matches!(around, Some(PathTreatment::Hide { .. })) => {}
                (Some(kind), _) => {
                    plan.0.insert(path.clone(), PathTreatment::Hide { kind: *kind, points: BTreeMap::new() });
                }
                (None, Some(want)) => {
                    let needed = match around {
                        Some(PathTreatment::Hide { .. } | PathTreatment::Special) => true,
                        Some(PathTreatment::Reopen { writable }) => *want == Want::Write && !writable,
                        Some(PathTreatment::Pin | PathTreatment::ReadOnly) | None => false,
                    };
                    let Some((_, kind)) = real_kind(path)?.filter(|_| needed) else { continue };
                    plan.add_point(path, kind);
                    if *want != Want::Point {
                        plan.0.insert(path.clone(), PathTreatment::Reopen { writable: *want == Want::Write });
                    }
                }
                (None, None) => {}
            }
        }
        Ok(plan)
    }

    /// Closes a path for writing, unless it is hidden altogether.
    pub(crate) fn set_read_only(&mut self, path: String) {
        if self.hides(&path) {
            return;
        }
        match self.0.get(&path) {
            Some(PathTreatment::Hide { .. } | PathTreatment::Special | PathTreatment::ReadOnly) => {}
            Some(PathTreatment::Reopen { .. }) => {
                self.0.insert(path, PathTreatment::Reopen { writable: false });
            }
            Some(PathTreatment::Pin) | None => {
                self.0.insert(path, PathTreatment::ReadOnly);
            }
        }
    }

    /// Masks pipes and sockets, unless they are hidden already.
    pub(crate) fn mask_special(&mut self, paths: Vec<String>) {
        for path in paths {
            if !self.hides(&path) {
                self.0.insert(path, PathTreatment::Special);
            }
        }
    }

    /// Keeps a directory from being renamed or removed.
    pub(crate) fn pin(&mut self, path: String) {
        if self.hides(&path) {
            return;
        }
        self.0.entry(path).or_insert(PathTreatment::Pin);
    }

    /// Pins what lies between a writable root and something in it that is hidden or closed: renamed away with it, another
    /// could be put in its place.
    fn hold(&mut self, writable: &[String]) {
        let kept = self
            .0
            .iter()
            .filter(|(_, step)| matches!(step, PathTreatment::Hide { .. } | PathTreatment::ReadOnly));
        let between = kept.flat_map(|(path, _)| {
            let roots = writable.iter().filter(|root| is_below(path, root));
            roots.flat_map(|root| between(root, path).map(str::to_owned))
        });
        between.collect::<BTreeSet<_>>().into_iter().for_each(|path| self.pin(path));
    }

    /// True when a path is hidden and not shown again.
    pub(crate) fn hides(&self, path: &str) -> bool {
        match self.0.get(path).or(self.around(path).map(|(_, step)| step)) {
            Some(PathTreatment::Hide { .. } | PathTreatment::Special) => true,
            Some(PathTreatment::Reopen { .. }) | None => false,
            // Closed for writing says nothing about what is around it.
            Some(PathTreatment::Pin | PathTreatment::ReadOnly) => {
                matches!(self.around(path), Some((_, PathTreatment::Hide { .. })))
            }
        }
    }

    /// The paths that something is put over, and what it is.
    pub(crate) fn masks(&self) -> impl Iterator<Item = (&String, &PathTreatment)> {
        self.0.iter().filter(|(_, step)| !matches!(step, PathTreatment::Reopen { .. }))
    }

    /// The paths that are hidden.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|(_, step)| matches!(step, PathTreatment::Hide { .. })).map(|(path, _)| path)
    }

    /// The plan that hides what is at `path` now, and no more.
    pub(crate) fn hiding(path: &str) -> io::Result<Self> {
        let kind = FileKind::of(&fstat(open_plain_end(CWD, &*raw(path))?)?).unwrap_or(FileKind::File);
        Ok(Self([(path.to_owned(), PathTreatment::Hide { kind, points: BTreeMap::new() })].into()))
    }

    /// Closes `paths` in the writable tree at `root`. The folder of such a path is kept where it is if its name says what is in
    /// it, as `.git` does: renamed away with what is closed in it, another could take its place.
    pub(crate) fn close_in(&mut self, root: &str, paths: &[String]) {
        for path in paths.iter().filter(|path| is_below(path, root)) {
            self.set_read_only(path.clone());
            let Some((folder, _)) = path.rsplit_once('/') else { continue };
            if is_below(folder, root) && folder.rsplit('/').next().is_some_and(|name| name.starts_with('.')) {
                self.pin(folder.to_owned());
            }
        }
    }

    /// Closes `paths` in the writable tree at `root`, and keeps every folder on the way where it is.
    pub(crate) fn keep_in(&mut self, root: &str, paths: &[String]) {
        for path in paths.iter().filter(|path| is_below(path, root)) {
            self.set_read_only(path.clone());
            between(root, path).for_each(|folder| self.pin(folder.to_owned()));
        }
    }

    /// The part of this that concerns the tree below `path`.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(other, _)| is_below(other, path))
                .map(|(path, step)| (path.clone(), step.clone()))
                .collect(),
        )
    }

    /// The part of this that is hidden, or shown again, at or below one of `paths`.
    pub(crate) fn hidden_within(&self, paths: &[String]) -> Self {
        let within = |path: &String| paths.iter().any(|above| is_at_or_below(path, above));
        let steps = self.0.iter().filter(|(path, step)| step.shows() && within(path));
        Self(steps.map(|(path, step)| (path.clone(), step.clone())).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The hidden or re-opened path nearest above `path`.
    fn around(&self, path: &str) -> Option<(&String, &PathTreatment)> {
        self.0.iter().rev().find(|(above, step)| step.shows() && is_below(path, above))
    }

    fn add_point(&mut self, path: &str, kind: FileKind) {
        let Some((around, PathTreatment::Hide { .. })) = self.around(path) else { return };
        let around = around.clone();
        if let Some(PathTreatment::Hide { points, .. }) = self.0.get_mut(&around) {
            points.insert(path.to_owned(), kind);
        }
    }
}

/// The folders below `root` that `path` lies in.
fn between<'a>(root: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    let ends = path.match_indices('/').map(|(end, _)| end).filter(move |end| *end > root.len());
    ends.filter_map(move |end| path.get(..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_path_around_decides() {
        let mut plan = MountPlan::default();
        let hide = || PathTreatment::Hide { kind: FileKind::Directory, points: BTreeMap::new() };
        plan.0.insert("/home".into(), hide());
        plan.0.insert("/home/u/open".into(), PathTreatment::Reopen { writable: true });
        plan.0.insert("/home/u/open/secret".into(), hide());
        for hidden in ["/home", "/home/u", "/home/u/opened", "/home/u/open/secret", "/home/u/open/secret/x"] {
            assert!(plan.hides(hidden), "{hidden}");
        }
        for shown in ["/", "/homes", "/home/u/open", "/home/u/open/x", "/home/u/open/secrets"] {
            assert!(!plan.hides(shown), "{shown}");
        }
        assert_eq!(plan.below("/home/u/open").0.keys().collect::<Vec<_>>(), ["/home/u/open/secret"]);
    }

    #[test]
    fn what_leads_to_a_closed_path_is_pinned() {
        let mut plan = MountPlan::default();
        plan.set_read_only("/w/a/b/c".into());
        plan.set_read_only("/elsewhere/d/e".into());
        plan.hold(&["/w".into()]);
        let pinned =
            plan.0.iter().filter(|(_, step)| **step == PathTreatment::Pin).map(|(path, _)| path.as_str());
        assert_eq!(pinned.collect::<Vec<_>>(), ["/w/a", "/w/a/b"]);
    }

    #[test]
    fn what_is_hidden_stays_hidden_and_what_is_frozen_frozen() {
        let mut plan = MountPlan::default();
        plan.0.insert("/a".into(), PathTreatment::Hide { kind: FileKind::File, points: BTreeMap::new() });
        plan.set_read_only("/a".into());
        plan.set_read_only("/b".into());
        plan.pin("/b".into());
        plan.pin("/c".into());
        plan.set_read_only("/c".into());
        assert!(plan.hides("/a"));
        let closed = |path: &str| plan.0.get(path) == Some(&PathTreatment::ReadOnly);
        assert!(closed("/b") && closed("/c") && !closed("/a"));
    }
}
