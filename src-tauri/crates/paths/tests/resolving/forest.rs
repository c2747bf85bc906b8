//! Compares path resolution with the kernel's in random trees of folders, files and symlinks.

use ironcurtain_paths::{CanonicalPath, PathError, PathKind, Resolver};
use proptest::prelude::*;
use rustix::fs::{CWD, Mode, OFlags, openat};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

#[derive(Debug, Clone)]
enum Planted {
    Folder(String),
    File(String),
    Link { at: String, target: String },
}

impl Planted {
    fn at(&self) -> &str {
        match self {
            Self::Folder(at) | Self::File(at) | Self::Link { at, .. } => at,
        }
    }
}

/// Returns `true` if the kernel resolves the nearest existing ancestor of `path` to a path inside `root`. Some
/// symlinks lead outside.
fn is_inside(root: &CanonicalPath, path: &CanonicalPath) -> bool {
    let mut above = path.as_path().ancestors().skip(1).filter_map(|above| fs::canonicalize(above).ok());
    above.next().is_some_and(|above| above.starts_with(root))
}

/// Generates a name from a small set so that paths collide.
fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "l"]).prop_map(str::to_owned)
}

fn below() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

/// Generates a path as an agent might write it, including `..` and doubled slashes.
fn written() -> impl Strategy<Value = String> {
    let part = prop_oneof![5 => name(), 2 => Just("..".to_owned()), 1 => Just(".".to_owned()), 1 => Just(String::new())];
    prop::collection::vec(part, 1..8).prop_map(|parts| parts.join("/"))
}

fn planted() -> impl Strategy<Value = Planted> {
    prop_oneof![
        2 => below().prop_map(Planted::Folder),
        1 => below().prop_map(Planted::File),
        3 => (below(), written(), any::<bool>()).prop_map(|(at, target, absolute)| {
            let target = if absolute { format!("ROOT/{target}") } else { target };
            Planted::Link { at, target }
        }),
    ]
}

struct Forest {
    _kept: TempDir,
    root: CanonicalPath,
    resolver: Resolver,
}

impl Forest {
    /// Creates the given entries. Skips those that do not fit into the tree, such as a folder in place of a file.
    fn grow(planted: &[Planted]) -> Self {
        let kept = TempDir::new().unwrap();
        let root = fs::canonicalize(kept.path()).unwrap();
        let root = CanonicalPath::assume_canonical(root.to_str().unwrap()).unwrap();
        let fits = |at: &str| is_inside(&root, &root.join(at).unwrap());
        for planted in planted.iter().filter(|planted| fits(planted.at())) {
            let _does_not_fit = match planted {
                Planted::Folder(at) => fs::create_dir_all(root.join(at).unwrap()),
                Planted::File(at) => fs::File::create_new(root.join(at).unwrap()).map(drop),
                Planted::Link { at, target } => {
                    let target = target.replace("ROOT", root.as_str());
                    let target = if target.is_empty() { ".".to_owned() } else { target };
                    symlink(target, root.join(at).unwrap())
                }
            };
        }
        let resolver = Resolver::new(root.clone(), root.clone());
        Self { _kept: kept, root, resolver }
    }
}

/// Returns the path to which the kernel resolves an existing path.
fn kernel(path: &str) -> Option<String> {
    let opened = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let link = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd())).unwrap();
    Some(link.to_str().unwrap().to_owned())
}

#[test]
fn nothing_is_created_through_a_link_that_leads_out() {
    let outside = TempDir::new().unwrap();
    let outside_path = outside.path().to_str().unwrap().to_owned();
    let link = |at: &str, target: &str| Planted::Link { at: at.to_owned(), target: target.to_owned() };
    let file = |at: &str| Planted::File(at.to_owned());
    let folder = |at: &str| Planted::Folder(at.to_owned());
    let forest = Forest::grow(&[
        link("out", &outside_path),
        link("end", &format!("{outside_path}/end")),
        file("out/file"),
        file("end"),
        folder("out/folder/deep"),
        link("out/link", "x"),
        folder("in"),
        link("way", "in"),
        file("way/file"),
    ]);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    assert!(forest.root.join("in/file").unwrap().as_path().is_file());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn existing_paths_resolve_as_in_the_kernel(
        planted in prop::collection::vec(planted(), 0..14),
        written in written(),
    ) {
        let forest = Forest::grow(&planted);
        let raw = format!("{}/{written}", forest.root);
        let found = forest.resolver.resolve(&raw);
        if let Some(kernel) = kernel(&raw) {
            let found = found.unwrap();
            prop_assert_eq!(found.path.as_str(), kernel);
            prop_assert_ne!(found.target, PathKind::Missing);
        } else if let Ok(found) = found {
            // The kernel rejects the path as written. The resolved path is sent instead. It has no symlinks, so the
            // kernel finds the same file or nothing.
            let sent = kernel_or(&found.path);
            prop_assert_eq!(found.path.as_str(), sent);
        }
    }

    #[test]
    fn a_resolved_path_resolves_to_itself(
        planted in prop::collection::vec(planted(), 0..14),
        written in written(),
    ) {
        let forest = Forest::grow(&planted);
        match forest.resolver.resolve(&written_or_dot(&written)) {
            Ok(found) => {
                let again = forest.resolver.resolve(found.path.as_str()).unwrap();
                prop_assert_eq!(&again.path, &found.path);
                prop_assert_eq!(again.target, found.target);
                prop_assert_eq!(again.links, vec![]);
            }
            Err(error) => prop_assert!(matches!(error, PathError::TooManyLinks(_)), "{error}"),
        }
    }

    #[test]
    fn a_missing_path_lands_in_the_folder_the_kernel_names(
        planted in prop::collection::vec(planted(), 0..14),
        written in written(),
    ) {
        let forest = Forest::grow(&planted);
        let raw = format!("{}/{written}/new", forest.root);
        let parent = format!("{}/{written}/.", forest.root);
        let (Some(folder), None) = (kernel(&parent), kernel(&raw)) else { return Ok(()) };
        let Ok(found) = forest.resolver.resolve(&raw) else { return Ok(()) };
        if found.links.iter().all(|link| link.path.file_name() != Some("new")) {
            prop_assert_eq!(found.path.as_str(), format!("{}/new", folder.trim_end_matches('/')));
            prop_assert_eq!(found.target, PathKind::Missing);
        }
    }

    #[test]
    fn a_file_written_through_the_raw_path_appears_at_the_resolved_one(
        planted in prop::collection::vec(planted(), 0..14),
        written in written(),
    ) {
        let forest = Forest::grow(&planted);
        let raw = format!("{}/{written}", forest.root);
        let found = forest.resolver.resolve(&raw);
        let inside = found.as_ref().is_ok_and(|found| forest.root.strictly_contains(&found.path));
        if inside && fs::write(&raw, "written").is_ok() {
            let path = found.unwrap().path;
            prop_assert_eq!(fs::read_to_string(path.as_path()).unwrap(), "written");
            prop_assert!(!fs::symlink_metadata(path.as_path()).unwrap().is_symlink());
        }
    }
}

fn kernel_or(path: &CanonicalPath) -> String {
    kernel(path.as_str()).unwrap_or_else(|| path.to_string())
}

fn written_or_dot(written: &str) -> String {
    // Makes the path relative and not empty.
    format!("./{written}")
}
