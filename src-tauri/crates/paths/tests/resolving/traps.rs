//! Tests known attacks on path checks.

use ironcurtain_paths::{CanonicalPath, Link, PathError, PathKind, Resolution, Resolver};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use tempfile::TempDir;

/// Temporary canonical folder that contains `home` and `box`. Relative paths start in `box`.
struct Ground {
    _kept: TempDir,
    root: CanonicalPath,
    resolver: Resolver,
}

impl Ground {
    fn new() -> Self {
        let kept = TempDir::new().unwrap();
        let root = fs::canonicalize(kept.path()).unwrap();
        let root = CanonicalPath::assume_canonical(root.to_str().unwrap()).unwrap();
        for folder in ["home", "box", "out"] {
            fs::create_dir(root.join(folder).unwrap()).unwrap();
        }
        let resolver = Resolver::new(root.join("home").unwrap(), root.join("box").unwrap());
        Self { _kept: kept, root, resolver }
    }

    fn at(&self, below: &str) -> CanonicalPath {
        self.root.join(below).unwrap()
    }

    fn raw(&self, below: &str) -> String {
        format!("{}/{below}", self.root)
    }

    fn file(&self, below: &str) {
        fs::write(self.at(below), "x").unwrap();
    }

    fn folder(&self, below: &str) {
        fs::create_dir_all(self.at(below)).unwrap();
    }

    fn link(&self, below: &str, target: impl AsRef<Path>) {
        symlink(target, self.at(below)).unwrap();
    }

    fn resolve(&self, raw: &str) -> Resolution {
        self.resolver.resolve(raw).unwrap()
    }

    /// Resolves a path in this folder and returns the result relative to the folder.
    fn lands(&self, below: &str) -> String {
        let path = self.resolve(&self.raw(below)).path;
        path.as_str().strip_prefix(&format!("{}/", self.root)).unwrap_or(path.as_str()).to_owned()
    }
}

#[test]
fn a_plain_path_is_itself() {
    let ground = Ground::new();
    ground.file("box/a");
    let plain = ground.resolve(&ground.raw("box/a"));
    assert_eq!(
        plain,
        Resolution { path: ground.at("box/a"), links: vec![], target: PathKind::File { bytes: 1 } }
    );
    assert_eq!(ground.resolve(&ground.raw("box")).target, PathKind::Folder);
    assert_eq!(ground.resolve("/").path, CanonicalPath::root());
    assert_eq!(ground.resolve("//").path, CanonicalPath::root());
    assert_eq!(ground.resolve("/../..").path, CanonicalPath::root());
    assert_eq!(ground.resolve("/dev/null").target, PathKind::Special);
}

#[test]
fn a_symlink_is_followed_and_reported() {
    let ground = Ground::new();
    ground.file("out/secret");
    ground.link("box/door", "../out");
    let found = ground.resolve(&ground.raw("box/door/secret"));
    assert_eq!(found.path, ground.at("out/secret"));
    assert_eq!(found.links, [Link { path: ground.at("box/door"), target: "../out".to_owned() }]);
    assert_eq!(found.target, PathKind::File { bytes: 1 });
}

#[test]
fn a_path_with_the_same_prefix_stays_outside() {
    let ground = Ground::new();
    ground.folder("box-evil");
    assert!(!ground.at("box").contains(&ground.resolve(&ground.raw("box-evil")).path));
    assert!(ground.at("box").contains(&ground.resolve(&ground.raw("box/x")).path));
}

#[test]
fn a_dangling_symlink_resolves_to_where_a_write_would_land() {
    let ground = Ground::new();
    ground.link("box/dangling", ground.raw("out/not-yet"));
    ground.link("box/inward", "sub/not-yet");
    assert_eq!(ground.lands("box/dangling"), "out/not-yet");
    assert_eq!(ground.lands("box/dangling/deeper/file"), "out/not-yet/deeper/file");
    assert_eq!(ground.lands("box/inward"), "box/sub/not-yet");
    assert_eq!(ground.resolve(&ground.raw("box/dangling")).target, PathKind::Missing);
    fs::write(ground.at("box/dangling"), "landed").unwrap();
    assert_eq!(fs::read_to_string(ground.at("out/not-yet")).unwrap(), "landed");
}

#[test]
fn a_loop_is_refused() {
    let ground = Ground::new();
    ground.link("box/self", "self");
    ground.link("box/a", "b");
    ground.link("box/b", "a");
    for name in ["box/self", "box/a", "box/a/x"] {
        let refused = ground.resolver.resolve(&ground.raw(name));
        assert!(matches!(refused, Err(PathError::TooManyLinks(_))), "{name}: {refused:?}");
    }
}

#[test]
fn forty_links_are_followed_and_one_more_is_refused_as_by_the_kernel() {
    let ground = Ground::new();
    ground.file("box/l0");
    for at in 1..=41 {
        ground.link(&format!("box/l{at}"), format!("l{}", at - 1));
    }
    assert_eq!(ground.lands("box/l40"), "box/l0");
    assert!(fs::read(ground.at("box/l40")).is_ok());
    assert!(matches!(ground.resolver.resolve(&ground.raw("box/l41")), Err(PathError::TooManyLinks(_))));
    assert!(fs::read(ground.at("box/l41")).is_err());
}

#[test]
fn dot_dot_after_a_symlink_applies_to_its_target() {
    let ground = Ground::new();
    ground.folder("out/deep/er");
    ground.file("out/deep/found");
    ground.file("box/found");
    ground.link("box/door", ground.raw("out/deep/er"));
    assert_eq!(ground.lands("box/door/../found"), "out/deep/found");
    assert_eq!(ground.lands("box/door/../../.."), ground.root.as_str());
}

#[test]
fn dot_dot_after_a_missing_component_removes_it() {
    let ground = Ground::new();
    ground.file("box/file");
    ground.link("box/door", "../out");
    assert_eq!(ground.lands("box/missing/../file"), "box/file");
    assert_eq!(ground.lands("box/missing/deeper/../../door/x"), "out/x");
    assert_eq!(ground.lands("box/missing/../../out"), "out");
    assert_eq!(ground.lands("box/file/../door"), "out");
    assert_eq!(ground.lands("box/file/below/../../door"), "out");
}

#[test]
fn nothing_exists_below_a_file() {
    let ground = Ground::new();
    ground.file("box/file");
    let below = ground.resolve(&ground.raw("box/file/x"));
    assert_eq!((below.path, below.target), (ground.at("box/file/x"), PathKind::Missing));
    assert_eq!(ground.lands("box/file/"), "box/file");
    assert_eq!(ground.lands("box/file/."), "box/file");
}

#[test]
fn a_missing_tail_may_be_a_hundred_deep() {
    let ground = Ground::new();
    ground.link("box/door", "../out");
    let tail = vec!["n"; 100].join("/");
    assert_eq!(ground.lands(&format!("box/door/{tail}/f")), format!("out/{tail}/f"));
}

#[test]
fn resolving_again_detects_a_path_swapped_for_a_symlink() {
    let ground = Ground::new();
    ground.file("box/a");
    ground.file("out/secret");
    let before = ground.resolve(&ground.raw("box/a"));
    fs::remove_file(ground.at("box/a")).unwrap();
    ground.link("box/a", "../out/secret");
    let after = ground.resolve(&ground.raw("box/a"));
    assert_ne!(before.path, after.path);
    assert_eq!(after.path, ground.at("out/secret"));
}

#[test]
fn tilde_expands_to_the_users_own_home_only() {
    let ground = Ground::new();
    assert_eq!(ground.resolve("~").path, ground.at("home"));
    assert_eq!(ground.resolve("~/x/../y").path, ground.at("home/y"));
    assert_eq!(ground.resolve("~/").path, ground.at("home"));
    for other in ["~root/x", "~root", "~~", "~-"] {
        assert!(matches!(ground.resolver.resolve(other), Err(PathError::OtherHome(_))), "{other}");
    }
    assert_eq!(ground.resolve("./~root/x").path, ground.at("box/~root/x"));
    assert_eq!(ground.resolve("a~").path, ground.at("box/a~"));
}

#[test]
fn a_relative_path_starts_in_the_base() {
    let ground = Ground::new();
    ground.link("box/up", "..");
    assert_eq!(ground.resolve("a").path, ground.at("box/a"));
    assert_eq!(ground.resolve(".").path, ground.at("box"));
    assert_eq!(ground.resolve("../out").path, ground.at("out"));
    assert_eq!(ground.resolve("up/out").path, ground.at("out"));
}

#[test]
fn empty_paths_and_nul_are_refused() {
    let ground = Ground::new();
    assert!(matches!(ground.resolver.resolve(""), Err(PathError::Empty)));
    assert!(matches!(ground.resolver.resolve("a\0b"), Err(PathError::Nul(_))));
    assert!(matches!(ground.resolver.resolve("/etc/\0"), Err(PathError::Nul(_))));
}

#[test]
fn names_outside_ascii_are_kept_as_they_are() {
    let ground = Ground::new();
    // Two forms of é, a right-to-left override, a zero-width space, blanks and a newline.
    for name in
        ["\u{e9}.txt", "e\u{301}.txt", "a\u{202e}txt.exe", "zero\u{200b}width", " ", "a\nb", "...", "..x"]
    {
        ground.file(&format!("box/{name}"));
        assert_eq!(ground.lands(&format!("box/{name}")), format!("box/{name}"));
        assert_eq!(ground.resolve(name).target, PathKind::File { bytes: 1 }, "{name:?}");
    }
}

#[test]
fn a_missing_name_that_exists_in_another_unicode_form_is_refused() {
    let ground = Ground::new();
    for (there, missing) in [
        ("priv\u{e9}", "prive\u{301}"),
        ("Keys", "\u{212a}eys"),
        ("\u{212a}it", "Kit"),
        ("a\u{37e}", "a;"),
        ("\u{1fef}", "`"),
    ] {
        ground.folder(&format!("box/{there}"));
        ground.file(&format!("box/{there}/s.txt"));
        for path in [missing.to_owned(), format!("{missing}/s.txt"), format!("{missing}/../x")] {
            let refused = ground.resolver.resolve(&path);
            assert!(matches!(refused, Err(PathError::OtherUnicodeForm { .. })), "{path:?}: {refused:?}");
            let refused = ground.resolver.locate(&path);
            assert!(matches!(refused, Err(PathError::OtherUnicodeForm { .. })), "{path:?}: {refused:?}");
        }
        assert_eq!(ground.resolve(&format!("{there}/s.txt")).target, PathKind::File { bytes: 1 });
        // If neither form exists, the path is missing. If both exist, each resolves to itself.
        assert_eq!(ground.resolve(&format!("{there}/{missing}")).target, PathKind::Missing);
        ground.folder(&format!("box/{missing}"));
        ground.file(&format!("box/{missing}/s.txt"));
        assert_eq!(ground.lands(&format!("box/{missing}/s.txt")), format!("box/{missing}/s.txt"));
    }
}

#[test]
fn a_symlink_to_a_name_that_is_not_text_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let ground = Ground::new();
    ground.link("box/odd", std::ffi::OsStr::from_bytes(b"\xff"));
    assert!(matches!(ground.resolver.resolve(&ground.raw("box/odd")), Err(PathError::NotUtf8(_))));
}

#[test]
fn a_name_too_long_to_exist_is_missing_and_a_path_too_long_to_access_is_refused() {
    let ground = Ground::new();
    let name = "n".repeat(256);
    assert_eq!(ground.lands(&format!("box/{name}")), format!("box/{name}"));
    let mut deep = String::new();
    for _ in 0..30 {
        deep.push_str(&"./".repeat(100));
    }
    assert_eq!(ground.lands(&format!("box/{deep}x")), "box/x");
    // A name can have at most 255 bytes.
    for length in [200, 255] {
        let long = make_deeper_than_a_path_can_name(&ground, length);
        assert!(matches!(ground.resolver.resolve(&long), Err(PathError::Unreadable { .. })));
    }
}

/// Creates folders nested deeper than `PATH_MAX`, with a symlink in the innermost one.
fn make_deeper_than_a_path_can_name(ground: &Ground, length: usize) -> String {
    use rustix::fs::{Mode, OFlags, mkdirat, open, openat, symlinkat};
    let name = "d".repeat(length);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY;
    let mut path = ground.raw("box");
    let mut folder = open(path.as_str(), flags, Mode::empty()).unwrap();
    for _ in 0..25 {
        mkdirat(&folder, name.as_str(), Mode::RWXU).unwrap();
        folder = openat(&folder, name.as_str(), flags, Mode::empty()).unwrap();
        path.push('/');
        path.push_str(&name);
    }
    symlinkat("/etc", &folder, "door").unwrap();
    format!("{path}/door/passwd")
}

#[test]
fn a_folder_without_search_permission_is_refused() {
    let ground = Ground::new();
    ground.folder("box/shut/in");
    fs::set_permissions(ground.at("box/shut"), fs::Permissions::from_mode(0o000)).unwrap();
    let found = ground.resolver.resolve(&ground.raw("box/shut/in"));
    fs::set_permissions(ground.at("box/shut"), fs::Permissions::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        // Root can search every folder.
        assert_eq!(found.unwrap().path, ground.at("box/shut/in"));
    } else {
        assert!(matches!(found, Err(PathError::Unreadable { .. })), "{found:?}");
    }
}

#[test]
fn a_kernel_link_is_refused_and_a_plain_link_in_its_place_is_followed() {
    let ground = Ground::new();
    ground.file("file");
    let file = fs::File::open(ground.at("file").as_path()).unwrap();
    let descriptor = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    ground.link("magic", &descriptor);
    let own = std::process::id();
    for (raw, link) in [
        (descriptor.clone(), descriptor.replace("self", &own.to_string())),
        (ground.raw("magic"), ground.raw("magic")),
        ("/proc/self/cwd".to_owned(), format!("/proc/{own}/cwd")),
        ("/proc/self/root/etc".to_owned(), format!("/proc/{own}/root")),
        ("/proc/self/exe".to_owned(), format!("/proc/{own}/exe")),
        ("/proc/self/ns/mnt".to_owned(), format!("/proc/{own}/ns/mnt")),
    ] {
        match ground.resolver.resolve(&raw) {
            Err(PathError::MagicLink(at)) => assert_eq!(at, link, "{raw}"),
            other => panic!("{raw}: {other:?}"),
        }
        assert!(ground.resolver.locate(&raw).is_err(), "{raw}");
    }
    for (raw, path) in [
        ("/proc/self/status", format!("/proc/{own}/status")),
        ("/proc/mounts", format!("/proc/{own}/mounts")),
    ] {
        assert_eq!(ground.resolve(raw).path.as_str(), path);
    }
}
