//! Plan of hidden, shown and read-only paths in a sandbox's copy of the host's file system.
//!
//! - A [`MountPlan`] is a plain value. It is applied once, in a mount namespace without other processes. Bubblewrap or
//!   a grant copies the mounts afterwards, so no process sees them before the plan is applied.
//! - INVARIANT: a denied path denies the file itself. Symlinks are resolved, and the mount table is searched for every
//!   other path to the same file.
//! - The deepest hidden or re-opened path that contains a file decides. At the same path, hiding takes precedence.

mod apply;
mod resolve;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
};

use rustix::fs::{CWD, fstat};

use crate::{
    autostart::name_text::to_os_str,
    mountinfo::MountInfo,
    nofollow::{FileKind, is_at_or_below, is_below, open_nofollow},
    spec::{Spec, View},
};

pub(crate) use apply::bind_over_itself;
pub(crate) use resolve::{LayoutError, canonicalize, canonicalize_with_kind};

/// Change to one path of a view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathTreatment {
    /// Cover the path with an empty, inaccessible file or folder. `mount_points` are paths below it that are mounted
    /// later.
    Hide { kind: FileKind, mount_points: BTreeMap<String, FileKind> },
    /// Cover a pipe, a socket, or a folder that cannot be searched for pipes and sockets. Skipped if a different kind
    /// of file is at the path when the plan is applied.
    Special,
    /// Show a path inside a hidden tree.
    Reopen { writable: bool },
    /// Bind-mount the path over itself so that it cannot be renamed or removed.
    Pin,
    /// Pin the path, and make its whole tree read-only.
    ReadOnly,
}

impl PathTreatment {
    /// Returns `true` if the change affects visibility, `false` if it affects writability.
    fn affects_visibility(&self) -> bool {
        match self {
            Self::Hide { .. } | Self::Special | Self::Reopen { .. } => true,
            Self::Pin | Self::ReadOnly => false,
        }
    }
}

/// Changes to a view in path order, so each path precedes the paths below it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MountPlan(BTreeMap<String, PathTreatment>);

/// Layout of the host's files in a view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ViewLayout {
    pub(crate) plan: MountPlan,
    /// Writable paths in path order.
    pub(crate) writable: Vec<String>,
    /// Paths that stay visible, because they are mounted over the private `/tmp`.
    pub(crate) shown: Vec<String>,
}

/// Paths that are always hidden: the sockets and secrets of the user's desktop session.
const ALWAYS_HIDDEN: &[&str] = &["/run/user"];

impl ViewLayout {
    /// Determines the layout for `spec` on this host. IronCurtain's own `state_dir` is hidden.
    pub(crate) fn for_spec(spec: &Spec, table: &MountInfo, state_dir: &str) -> Result<Self, LayoutError> {
        let mounted = resolve::mounted(table);
        let mut hidden = BTreeMap::new();
        add_hidden(&mut hidden, &[state_dir], &mounted)?;
        add_hidden(&mut hidden, &spec.hidden, &mounted)?;
        let mount_points = spec.mounts.iter().map(|mount| (mount.path.clone(), RequiredAccess::MountPoint));
        let mut wanted: BTreeMap<String, RequiredAccess> = mount_points.collect();
        let mut layout = Self::default();
        let mut read_only_paths = Vec::new();
        match &spec.view {
            View::Roots { session_dir, programs } => {
                layout.writable.push(session_dir.clone());
                wanted.extend(programs.iter().map(|path| (path.clone(), RequiredAccess::Read)));
            }
            View::Served { session_dir, programs, .. } => {
                layout.writable.extend(session_dir.clone());
                wanted.extend(programs.iter().map(|path| (path.clone(), RequiredAccess::Read)));
            }
            View::HostRead { session_dir, deny_read, allow_read, allow_write, deny_write, .. } => {
                add_hidden(&mut hidden, ALWAYS_HIDDEN, &mounted)?;
                add_hidden(&mut hidden, deny_read, &mounted)?;
                read_only_paths = read_only_targets(deny_write)?;
                for path in allow_write {
                    let is_closed =
                        read_only_paths.iter().chain(deny_write).any(|closed| is_at_or_below(path, closed));
                    if resolve::without_symlinks(path)?.is_some() && !is_closed && !hidden.contains_key(path)
                    {
                        layout.writable.push(path.clone());
                    }
                }
                layout.writable.extend(session_dir.clone());
                layout.writable.sort();
                layout.writable.dedup();
                for path in allow_read {
                    if resolve::without_symlinks(path)?.is_some() && !hidden.contains_key(path) {
                        layout.shown.push(path.clone());
                        wanted.insert(path.clone(), RequiredAccess::Read);
                    }
                }
            }
        }
        wanted.extend(layout.writable.iter().map(|path| (path.clone(), RequiredAccess::Write)));
        layout.plan = MountPlan::hiding_except(&hidden, &wanted)?;
        read_only_paths.into_iter().for_each(|path| layout.plan.set_read_only(path));
        layout.plan.pin_ancestors(&layout.writable);
        Ok(layout)
    }
}

/// Reason a path must exist inside a hidden tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequiredAccess {
    Read,
    Write,
    /// A later mount needs the path as its mount point.
    MountPoint,
}

/// Adds to `hidden` the canonical forms of `paths`, and every other path at which the same files are mounted.
fn add_hidden(
    hidden: &mut BTreeMap<String, FileKind>,
    paths: &[impl AsRef<str>],
    mounted: &[resolve::VisibleMount<'_>],
) -> Result<(), LayoutError> {
    for path in paths {
        let Some((real, kind)) = canonicalize_with_kind(path.as_ref())? else { continue };
        hidden.extend(resolve::aliases(&real, mounted)?.into_iter().map(|alias| (alias, kind)));
        hidden.insert(real, kind);
    }
    Ok(())
}

/// Returns the paths to make read-only: the canonical forms of those `paths` that exist, and the symlinks at `paths`.
fn read_only_targets(paths: &[String]) -> Result<Vec<String>, LayoutError> {
    let mut targets = Vec::new();
    for path in paths {
        // Includes the symlink itself, which could otherwise be replaced.
        targets.extend(canonicalize(path)?);
        targets.extend(resolve::symlink_at(path)?);
    }
    Ok(targets)
}

impl MountPlan {
    /// Creates a plan that hides the `hidden` paths, except for the `wanted` paths inside them.
    fn hiding_except(
        hidden: &BTreeMap<String, FileKind>,
        wanted: &BTreeMap<String, RequiredAccess>,
    ) -> Result<Self, LayoutError> {
        let mut plan = Self::default();
        let paths: BTreeSet<&String> = hidden.keys().chain(wanted.keys()).collect();
        for path in paths {
            let enclosing = plan.enclosing(path).map(|(_, treatment)| treatment);
            match (hidden.get(path), wanted.get(path)) {
                (Some(_), _) if matches!(enclosing, Some(PathTreatment::Hide { .. })) => {}
                (Some(kind), _) => {
                    plan.0.insert(
                        path.clone(),
                        PathTreatment::Hide { kind: *kind, mount_points: BTreeMap::new() },
                    );
                }
                (None, Some(access)) => {
                    let needed = match enclosing {
                        Some(PathTreatment::Hide { .. } | PathTreatment::Special) => true,
                        Some(PathTreatment::Reopen { writable }) => {
                            *access == RequiredAccess::Write && !writable
                        }
                        Some(PathTreatment::Pin | PathTreatment::ReadOnly) | None => false,
                    };
                    let Some((_, kind)) = canonicalize_with_kind(path)?.filter(|_| needed) else { continue };
                    plan.add_mount_point(path, kind);
                    if *access != RequiredAccess::MountPoint {
                        plan.0.insert(
                            path.clone(),
                            PathTreatment::Reopen { writable: *access == RequiredAccess::Write },
                        );
                    }
                }
                (None, None) => {}
            }
        }
        Ok(plan)
    }

    /// Makes a path read-only, unless it is hidden.
    pub(crate) fn set_read_only(&mut self, path: String) {
        if self.is_hidden(&path) {
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

    /// Masks pipes and sockets that are not already hidden.
    pub(crate) fn mask_special(&mut self, paths: Vec<String>) {
        for path in paths {
            if !self.is_hidden(&path) {
                self.0.insert(path, PathTreatment::Special);
            }
        }
    }

    /// Pins a directory, which prevents renaming and removing it.
    pub(crate) fn pin(&mut self, path: String) {
        if self.is_hidden(&path) {
            return;
        }
        self.0.entry(path).or_insert(PathTreatment::Pin);
    }

    /// Pins the folders between a writable root and the hidden or read-only paths in it. The sandbox could otherwise
    /// rename such a folder and create a different folder in its place.
    fn pin_ancestors(&mut self, writable: &[String]) {
        let kept = self.0.iter().filter(|(_, treatment)| {
            matches!(treatment, PathTreatment::Hide { .. } | PathTreatment::ReadOnly)
        });
        let between = kept.flat_map(|(path, _)| {
            let roots = writable.iter().filter(|root| is_below(path, root));
            roots.flat_map(|root| between(root, path).map(str::to_owned))
        });
        between.collect::<BTreeSet<_>>().into_iter().for_each(|path| self.pin(path));
    }

    /// Returns `true` if a path is hidden and not re-opened.
    pub(crate) fn is_hidden(&self, path: &str) -> bool {
        match self.0.get(path).or(self.enclosing(path).map(|(_, treatment)| treatment)) {
            Some(PathTreatment::Hide { .. } | PathTreatment::Special) => true,
            Some(PathTreatment::Reopen { .. }) | None => false,
            // Pinned and read-only paths do not affect visibility.
            Some(PathTreatment::Pin | PathTreatment::ReadOnly) => {
                matches!(self.enclosing(path), Some((_, PathTreatment::Hide { .. })))
            }
        }
    }

    /// Returns the covered and pinned paths with their changes.
    pub(crate) fn masks(&self) -> impl Iterator<Item = (&String, &PathTreatment)> {
        self.0.iter().filter(|(_, treatment)| !matches!(treatment, PathTreatment::Reopen { .. }))
    }

    /// Returns the hidden paths.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &String> {
        self.0
            .iter()
            .filter(|(_, treatment)| matches!(treatment, PathTreatment::Hide { .. }))
            .map(|(path, _)| path)
    }

    /// Creates a plan that hides only the file that currently exists at `path`.
    pub(crate) fn hiding_file(path: &str) -> io::Result<Self> {
        let kind =
            FileKind::from_stat(&fstat(open_nofollow(CWD, &*to_os_str(path))?)?).unwrap_or(FileKind::File);
        Ok(Self([(path.to_owned(), PathTreatment::Hide { kind, mount_points: BTreeMap::new() })].into()))
    }

    /// Makes `paths` read-only in the writable tree at `root`. A parent folder whose name starts with a dot, such as
    /// `.git`, is pinned too, because programs find it by its name.
    pub(crate) fn set_read_only_in(&mut self, root: &str, paths: &[String]) {
        for path in paths.iter().filter(|path| is_below(path, root)) {
            self.set_read_only(path.clone());
            let Some((folder, _)) = path.rsplit_once('/') else { continue };
            if is_below(folder, root) && folder.rsplit('/').next().is_some_and(|name| name.starts_with('.')) {
                self.pin(folder.to_owned());
            }
        }
    }

    /// Makes `paths` read-only in the writable tree at `root` and pins all folders above them.
    pub(crate) fn pin_read_only_in(&mut self, root: &str, paths: &[String]) {
        for path in paths.iter().filter(|path| is_below(path, root)) {
            self.set_read_only(path.clone());
            between(root, path).for_each(|folder| self.pin(folder.to_owned()));
        }
    }

    /// Returns the part of the plan below `path`.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self(
            self.0
                .iter()
                .filter(|(other, _)| is_below(other, path))
                .map(|(path, treatment)| (path.clone(), treatment.clone()))
                .collect(),
        )
    }

    /// Returns the hidden and re-opened paths at or below any of `paths`.
    pub(crate) fn hidden_within(&self, paths: &[String]) -> Self {
        let within = |path: &String| paths.iter().any(|above| is_at_or_below(path, above));
        let steps = self.0.iter().filter(|(path, treatment)| treatment.affects_visibility() && within(path));
        Self(steps.map(|(path, treatment)| (path.clone(), treatment.clone())).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the nearest hidden or re-opened path above `path`, with its change.
    fn enclosing(&self, path: &str) -> Option<(&String, &PathTreatment)> {
        self.0.iter().rev().find(|(above, treatment)| treatment.affects_visibility() && is_below(path, above))
    }

    fn add_mount_point(&mut self, path: &str, kind: FileKind) {
        let Some((enclosing, PathTreatment::Hide { .. })) = self.enclosing(path) else { return };
        let enclosing = enclosing.clone();
        if let Some(PathTreatment::Hide { mount_points, .. }) = self.0.get_mut(&enclosing) {
            mount_points.insert(path.to_owned(), kind);
        }
    }
}

/// Returns the folders between `root` and `path`.
fn between<'a>(root: &'a str, path: &'a str) -> impl Iterator<Item = &'a str> {
    let ends = path.match_indices('/').map(|(end, _)| end).filter(move |end| *end > root.len());
    ends.filter_map(move |end| path.get(..end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_enclosing_path_wins() {
        let mut plan = MountPlan::default();
        let hide = || PathTreatment::Hide { kind: FileKind::Directory, mount_points: BTreeMap::new() };
        plan.0.insert("/home".into(), hide());
        plan.0.insert("/home/u/open".into(), PathTreatment::Reopen { writable: true });
        plan.0.insert("/home/u/open/secret".into(), hide());
        for hidden in ["/home", "/home/u", "/home/u/opened", "/home/u/open/secret", "/home/u/open/secret/x"] {
            assert!(plan.is_hidden(hidden), "{hidden}");
        }
        for shown in ["/", "/homes", "/home/u/open", "/home/u/open/x", "/home/u/open/secrets"] {
            assert!(!plan.is_hidden(shown), "{shown}");
        }
        assert_eq!(plan.below("/home/u/open").0.keys().collect::<Vec<_>>(), ["/home/u/open/secret"]);
    }

    #[test]
    fn folders_above_a_closed_path_are_pinned() {
        let mut plan = MountPlan::default();
        plan.set_read_only("/w/a/b/c".into());
        plan.set_read_only("/elsewhere/d/e".into());
        plan.pin_ancestors(&["/w".into()]);
        let pinned = plan
            .0
            .iter()
            .filter(|(_, treatment)| **treatment == PathTreatment::Pin)
            .map(|(path, _)| path.as_str());
        assert_eq!(pinned.collect::<Vec<_>>(), ["/w/a", "/w/a/b"]);
    }

    #[test]
    fn hidden_stays_hidden_and_read_only_stays_read_only() {
        let mut plan = MountPlan::default();
        plan.0
            .insert("/a".into(), PathTreatment::Hide { kind: FileKind::File, mount_points: BTreeMap::new() });
        plan.set_read_only("/a".into());
        plan.set_read_only("/b".into());
        plan.pin("/b".into());
        plan.pin("/c".into());
        plan.set_read_only("/c".into());
        assert!(plan.is_hidden("/a"));
        let closed = |path: &str| plan.0.get(path) == Some(&PathTreatment::ReadOnly);
        assert!(closed("/b") && closed("/c") && !closed("/a"));
    }
}
