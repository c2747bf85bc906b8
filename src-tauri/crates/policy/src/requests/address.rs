//! Resource URIs, each of which names either a file or something known only to the server.
//!
//! - URI parsers disagree: some strip spaces and control characters before or inside the scheme, some unwrap
//!   `<URL:...>` or a nested scheme, and only some decode `%2e`. A URI that any of them could take for a file is
//!   accepted only if all of them find the same file.

use ironcurtain_paths::CanonicalPath;

/// Maximum length of a URI in an error message, in characters.
const MAX_SHOWN_LEN: usize = 200;

/// The only accepted prefix of a file URI.
const FILE: &str = "file://";

/// Resource to which a URI refers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceAddress {
    /// A file, with its absolute path.
    File(String),
    /// Something else, known only to the server.
    Other,
}

/// Reason a URI is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The scheme contains characters that some parsers skip. Those parsers would find a different scheme.
    #[error("the scheme of `{0}` has invalid characters")]
    Scheme(String),
    /// Different parsers may find different files.
    #[error(
        "`{0}` is a file URI that servers interpret differently; write `file:///`, then the absolute path without \
         `%`, `?`, `#`, `\\`, `.` and `..`, or use one of the server's tools"
    )]
    Ambiguous(String),
}

impl ResourceAddress {
    /// Parses a URI.
    ///
    /// # Errors
    /// Returns [`AddressError`] if parsers could find different files.
    pub fn parse(uri: &str) -> Result<Self, AddressError> {
        if !has_plain_scheme(uri) {
            return Err(AddressError::Scheme(for_message(uri)));
        }
        if !names_a_file(uri) {
            return Ok(Self::Other);
        }
        let path = uri.strip_prefix(FILE).filter(|path| is_plain(path));
        path.map(|path| Self::File(path.to_owned())).ok_or_else(|| AddressError::Ambiguous(for_message(uri)))
    }
}

/// Returns the `file:` URI in which all parsers find this path, or `None` if no such URI exists.
#[must_use]
pub fn file_address(path: &CanonicalPath) -> Option<String> {
    is_plain(path.as_str()).then(|| format!("{FILE}{path}"))
}

/// Returns `true` if parsers find the same path whether or not they decode the URI.
fn is_plain(path: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '%' | '?' | '#' | '\\');
    let is_trimmed = path.trim() == path && !path.ends_with('\u{feff}');
    let has_dots = || path.split('/').any(|part| part == "." || part == "..");
    path.starts_with('/') && !path.contains("//") && is_trimmed && !path.chars().any(is_odd) && !has_dots()
}

/// Returns `true` if everything before the first colon is visible ASCII, which parsers do not skip.
fn has_plain_scheme(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or(uri, |(scheme, _)| scheme);
    scheme.chars().all(|c| c.is_ascii_graphic())
}

/// Returns `true` if the scheme or a nested scheme is `file`.
fn names_a_file(uri: &str) -> bool {
    let before_path = uri.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let Some((schemes, _)) = before_path.rsplit_once(':') else { return false };
    schemes.split([':', '+', '<']).any(|scheme| scheme.trim().eq_ignore_ascii_case("file"))
}

/// Returns the first [`MAX_SHOWN_LEN`] characters of a URI, with invisible ones escaped.
fn for_message(uri: &str) -> String {
    let cut = uri.chars().take(MAX_SHOWN_LEN);
    cut.flat_map(|c| if c.is_ascii_graphic() || c == ' ' { vec![c] } else { c.escape_unicode().collect() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_uri_is_accepted_in_one_spelling_only() {
        let file = |uri: &str| ResourceAddress::parse(uri).map_err(|problem| problem.to_string());
        for path in ["/etc/passwd", "/home/ann/a b.txt", "/caf\u{e9}", "/a:b"] {
            assert_eq!(file(&format!("file://{path}")), Ok(ResourceAddress::File(path.into())), "{path}");
        }
        for uri in [
            "FILE:///etc/passwd",
            "file:/etc/passwd",
            "file:etc",
            "file://localhost/etc/passwd",
            "file:////etc/passwd",
            "file:///a//b",
            "file:\\\\host\\share",
            "file:///a\\b",
            "file:///%65tc/passwd",
            "file:///a?b",
            "file:///a#b",
            "file:///a/../b",
            "file:///a/.",
            "file:///a ",
            "file:///a\tb",
            "url:file:///etc/passwd",
            "<URL:file:///etc/passwd>",
            "jar:file:/a.jar!/b",
            "git+file:///a",
        ] {
            let problem = file(uri).unwrap_err();
            assert!(
                problem.contains("` is a file URI that servers interpret differently"),
                "{uri}: {problem}"
            );
        }
    }

    #[test]
    fn a_scheme_that_some_parsers_clean_is_refused() {
        for uri in [
            " file:///etc/passwd",
            "\u{1}file:///etc/passwd",
            "\u{0}file:/x",
            "fi\tle:///etc/passwd",
            "fi\r\nle:/etc/passwd",
            "file\t:///etc/passwd",
            "\u{feff}file:///etc/passwd",
            "\u{a0}file:/x",
            "\u{200b}file:/x",
            "\u{7f}file:/x",
            "no scheme",
        ] {
            let problem = ResourceAddress::parse(uri).unwrap_err().to_string();
            assert!(problem.ends_with("` has invalid characters"), "{uri:?}: {problem}");
            assert!(!problem.contains(['\t', '\n', '\0']), "{problem:?}");
        }
    }

    #[test]
    fn other_addresses_are_the_servers_own() {
        for uri in ["https://example.org/file:x", "memo://file/1", "my_notes://a b", "demo:profile:1", "note"]
        {
            assert_eq!(ResourceAddress::parse(uri), Ok(ResourceAddress::Other), "{uri}");
        }
    }

    #[test]
    fn the_uri_of_a_path_parses_as_that_path() {
        let path = |text: &str| CanonicalPath::assume_canonical(text).unwrap();
        assert_eq!(file_address(&path("/a/b c")).as_deref(), Some("file:///a/b c"));
        assert_eq!(file_address(&path("/a%20b")), None);
        assert_eq!(file_address(&path("/a?b")), None);
    }
}
