//! Tests the canonical form of paths, and containment.

use ironcurtain_paths::{CanonicalPath, NotCanonicalError};
use proptest::prelude::*;

fn path(text: &str) -> CanonicalPath {
    CanonicalPath::assume_canonical(text).unwrap()
}

#[test]
fn only_the_canonical_spelling_is_accepted() {
    for text in ["/", "/a", "/a/b c", "/a/..b", "/a/...", "/ünï/日本", "/a\u{202e}b", "/-rf", "/~"] {
        assert_eq!(CanonicalPath::assume_canonical(text).unwrap().as_str(), text);
    }
    for text in ["//", "/a/", "/a//b", "/./a", "/a/.", "/a/../b", "/.."] {
        assert_eq!(CanonicalPath::assume_canonical(text), Err(NotCanonicalError::Form(text.to_owned())));
    }
    for text in ["", "a", "~/a", "./a"] {
        assert_eq!(CanonicalPath::assume_canonical(text), Err(NotCanonicalError::Relative(text.to_owned())));
    }
    for (text, shown) in
        [("/a\0b", "/a\\0b"), ("/\0", "/\\0"), ("/a\0/b", "/a\\0/b"), ("a\0", "a\\0"), ("\0", "\\0")]
    {
        assert_eq!(CanonicalPath::assume_canonical(text), Err(NotCanonicalError::Nul(shown.to_owned())));
    }
}

#[test]
fn stored_paths_are_checked_when_they_are_read() {
    assert_eq!(serde_json::from_str::<CanonicalPath>("\"/a/b\"").unwrap(), path("/a/b"));
    assert_eq!(serde_json::to_string(&path("/a/b")).unwrap(), "\"/a/b\"");
    let refused = serde_json::from_str::<CanonicalPath>("\"/a/../b\"").unwrap_err().to_string();
    assert!(refused.contains("canonical form"), "{refused}");
}

#[test]
fn a_path_with_the_same_prefix_is_not_inside() {
    assert!(!path("/a/b").contains(&path("/a/bc")));
    assert!(path("/a/b").contains(&path("/a/b/c")));
    assert!(path("/a/b").contains(&path("/a/b")));
    assert!(!path("/a/b").strictly_contains(&path("/a/b")));
    assert!(!path("/a/b").contains(&path("/a")));
}

#[test]
fn the_root_contains_everything() {
    assert!(CanonicalPath::root().contains(&path("/")));
    assert!(CanonicalPath::root().contains(&path("/any/thing")));
    assert!(!path("/a").contains(&CanonicalPath::root()));
}

#[test]
fn components_come_outermost_first() {
    let of = |text| path(text).components().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of("/"), [""; 0]);
    assert_eq!(of("/a"), ["a"]);
    assert_eq!(of("/a/ünï c/.d"), ["a", "ünï c", ".d"]);
}

#[test]
fn parents_and_names() {
    assert_eq!(path("/a/b").parent(), Some(path("/a")));
    assert_eq!(path("/a").parent(), Some(CanonicalPath::root()));
    assert_eq!(CanonicalPath::root().parent(), None);
    assert_eq!(path("/a/b").file_name(), Some("b"));
    assert_eq!(CanonicalPath::root().file_name(), None);
    assert_eq!(path("/a").join("b/c").unwrap(), path("/a/b/c"));
    assert_eq!(CanonicalPath::root().join("b").unwrap(), path("/b"));
    assert!(path("/a").join("../b").is_err());
    assert!(path("/a").join("/b").is_err());
}

fn any_path() -> impl Strategy<Value = CanonicalPath> {
    prop::collection::vec("[ab]{1,2}", 0..5).prop_map(|parts| path(&format!("/{}", parts.join("/"))))
}

proptest! {
    #[test]
    fn containing_is_an_order(a in any_path(), b in any_path(), c in any_path()) {
        prop_assert!(a.contains(&a));
        prop_assert!(!(a.contains(&b) && b.contains(&a)) || a == b);
        prop_assert!(!(a.contains(&b) && b.contains(&c)) || a.contains(&c));
        prop_assert_eq!(a.contains(&b), b.as_path().starts_with(a.as_path()));
        prop_assert_eq!(a.strictly_contains(&b), a != b && a.contains(&b));
    }

    #[test]
    fn every_parent_contains_its_child(a in any_path(), name in "[ab]{1,3}") {
        let below = a.join(&name).unwrap();
        prop_assert!(a.strictly_contains(&below));
        prop_assert_eq!(below.parent(), Some(a));
        prop_assert_eq!(below.file_name(), Some(name.as_str()));
    }

    #[test]
    fn any_text_is_accepted_unchanged_or_refused(text in any::<String>()) {
        if let Ok(taken) = CanonicalPath::assume_canonical(&text) {
            prop_assert_eq!(taken.as_str(), text.as_str());
            prop_assert!(text.starts_with('/') && !text.contains('\0'));
        }
    }
}
