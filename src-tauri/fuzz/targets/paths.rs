//! Any text is a resolvable path or an error. A resolved path is canonical and resolves to itself.

#![no_main]

use ironcurtain_paths::{CanonicalPath, PathKind, Resolver};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let root = CanonicalPath::root();
    if let Ok(path) = CanonicalPath::assume_canonical(text) {
        assert_eq!(path.as_str(), text);
        assert!(root.contains(&path) && path.contains(&path));
        let parts: Vec<&str> = path.components().collect();
        assert_eq!(format!("/{}", parts.join("/")), text);
        assert_eq!(path.file_name(), parts.last().copied());
        if let Some(parent) = path.parent() {
            assert!(parent.strictly_contains(&path) && !path.contains(&parent));
            assert_eq!(parent.join(path.file_name().unwrap()).as_ref(), Ok(&path));
        }
    }
    let base = CanonicalPath::assume_canonical("/usr/lib").unwrap();
    if let Ok(joined) = base.join(text) {
        assert!(base.strictly_contains(&joined));
    }
    let resolver = Resolver::new(CanonicalPath::assume_canonical("/home/ann").unwrap(), base);
    if let Some(expanded) = resolver.expand_home(text) {
        assert!(text.starts_with('~') && expanded.starts_with("/home/ann"));
    }
    // Files below these change all the time.
    let Ok(found) = resolver.resolve(text) else {
        assert!(resolver.locate(text).is_err());
        return;
    };
    if ["/proc", "/sys", "/dev", "/tmp", "/run"].iter().any(|moving| found.path.as_str().starts_with(moving))
    {
        return;
    }
    assert_eq!(CanonicalPath::assume_canonical(found.path.as_str()).as_ref(), Ok(&found.path));
    assert_eq!(resolver.locate(text).unwrap(), found.path);
    let again = resolver.resolve(found.path.as_str()).unwrap();
    assert_eq!((&again.path, again.target, again.links.len()), (&found.path, found.target, 0));
    if found.target != PathKind::Missing {
        assert_eq!(std::fs::canonicalize(found.path.as_path()).unwrap(), found.path.as_path());
    }
});
