//! Converts between `file:` URIs and paths (RFC 8089).
//!
//! - Bytes that are not UTF-8 are preserved in both directions.
//! - URIs that are not local absolute paths are rejected: other schemes or hosts, encoded slashes, NUL bytes.

use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};

/// Characters that are percent-encoded in a URI's path.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Returns the path of an MCP root (a `file:` URI or a plain absolute path), or `None` if it is invalid.
pub(crate) fn to_path(uri: &str, home: Option<&Path>) -> Option<PathBuf> {
    let Some(rest) = uri.strip_prefix("file://") else {
        let path = crate::paths::expand_home(uri, home);
        return (path.is_absolute() && !uri.contains('\0')).then_some(path);
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let slash = rest.find('/')?;
    let (host, path) = rest.split_at_checked(slash)?;
    if !(host.is_empty() || host.eq_ignore_ascii_case("localhost")) {
        return None;
    }
    if path.to_ascii_lowercase().contains("%2f") {
        return None;
    }
    let bytes: Vec<u8> = percent_decode_str(path).collect();
    if bytes.contains(&0) {
        return None;
    }
    from_bytes(bytes)
}

/// Returns the `file:` URI of an absolute path.
pub(crate) fn from_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    format!("file://{}", percent_encode(bytes, ENCODED))
}

#[cfg(unix)]
fn from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    Some(PathBuf::from(std::ffi::OsString::from_vec(bytes)))
}

#[cfg(not(unix))]
fn from_bytes(bytes: Vec<u8>) -> Option<PathBuf> {
    let text = String::from_utf8(bytes).ok()?;
    Some(PathBuf::from(text.trim_start_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_paths_convert_both_ways() {
        for (path, uri) in
            [("/a/b", "file:///a/b"), ("/a b/ü#?%", "file:///a%20b/%C3%BC%23%3F%25"), ("/", "file:///")]
        {
            assert_eq!(from_path(Path::new(path)), uri);
            assert_eq!(to_path(uri, None).as_deref(), Some(Path::new(path)));
        }
        assert_eq!(to_path("file://localhost/a", None), Some(PathBuf::from("/a")));
        assert_eq!(to_path("/plain path", None), Some(PathBuf::from("/plain path")));
    }

    #[test]
    fn uris_without_a_local_path_are_refused() {
        for uri in [
            "",
            "relative",
            "file:",
            "file://",
            "file://host/a",
            "file:///a%2Fb",
            "file:///a%00b",
            "https://example.org/a",
        ] {
            assert_eq!(to_path(uri, None), None, "{uri}");
        }
    }

    #[cfg(unix)]
    proptest::proptest! {
        #[test]
        fn any_path_survives(name in proptest::collection::vec(1_u8.., 0..40)) {
            use std::os::unix::ffi::OsStrExt as _;
            let path = Path::new("/").join(std::ffi::OsStr::from_bytes(&name));
            proptest::prop_assert_eq!(to_path(&from_path(&path), None), Some(path));
        }

        #[test]
        fn any_uri_is_survived(uri in ".*") {
            let path = to_path(&format!("file://{uri}"), None);
            proptest::prop_assert!(path.is_none_or(|path| path.is_absolute()));
        }
    }

    #[cfg(unix)]
    #[test]
    fn non_utf8_bytes_survive() {
        let path = to_path("file:///a%FFb", None).expect("a path");
        assert_eq!(path.as_os_str().as_encoded_bytes(), b"/a\xffb");
        assert_eq!(from_path(&path), "file:///a%FFb");
    }
}
