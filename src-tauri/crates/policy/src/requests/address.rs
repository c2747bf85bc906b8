//! The address of a resource: a file, or something that only its server knows.
//!
//! - Readers of addresses disagree: some strip spaces and control characters before the scheme or take them out of it,
//!   some unwrap `<URL:...>` or the scheme inside another one, some decode `%2e` and some do not. An address that any of
//!   them could take for a file is a file that all of them read alike, or it is refused.

use ironcurtain_paths::CanonicalPath;

/// The longest part of an address that an error repeats, in characters.
const LONGEST_SHOWN: usize = 200;

/// The only beginning of a file's address that is taken.
const FILE: &str = "file://";

/// An address, by what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceAddress {
    /// A file, by its absolute path.
    File(String),
    /// Anything else.
    Other,
}

/// Why an address is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Some reader may pass over a character of the scheme, and find another one.
    #[error("the scheme of `{0}` has characters that no scheme has")]
    Scheme(String),
    /// Two readers may find two different files.
    #[error(
        "`{0}` is a file's address that servers read differently; write `file:///`, then the absolute path without \
         `%`, `?`, `#`, `\\`, `.` and `..`, or use a tool of the server"
    )]
    Ambiguous(String),
}

impl ResourceAddress {
    /// Reads an address.
    ///
    /// # Errors
    /// [`AddressError`], if some reader could take it for another file than others do.
    pub fn parse(uri: &str) -> Result<Self, AddressError> {
        if !has_plain_scheme(uri) {
            return Err(AddressError::Scheme(shown(uri)));
        }
        if !names_a_file(uri) {
            return Ok(Self::Other);
        }
        let path = uri.strip_prefix(FILE).filter(|path| is_plain(path));
        path.map(|path| Self::File(path.to_owned())).ok_or_else(|| AddressError::Ambiguous(shown(uri)))
    }
}

/// Returns the address of a file that all readers take for this path; nothing where there is none.
#[must_use]
pub fn file_address(path: &CanonicalPath) -> Option<String> {
    is_plain(path.as_str()).then(|| format!("{FILE}{path}"))
}

/// Returns `true` if a path means itself in an address, decoded or not.
fn is_plain(path: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '%' | '?' | '#' | '\\');
    let is_trimmed = path.trim() == path && !path.ends_with('\u{feff}');
    let has_dots = || path.split('/').any(|part| part == "." || part == "..");
    path.starts_with('/') && !path.contains("//") && is_trimmed && !path.chars().any(is_odd) && !has_dots()
}

/// Returns `true` if all before the first colon is visible ASCII, of which a reader passes over nothing.
fn has_plain_scheme(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or(uri, |(scheme, _)| scheme);
    scheme.chars().all(|c| c.is_ascii_graphic())
}

/// Returns `true` if the scheme, or one that it wraps, is `file`.
fn names_a_file(uri: &str) -> bool {
    let before_path = uri.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let Some((schemes, _)) = before_path.rsplit_once(':') else { return false };
    schemes.split([':', '+', '<']).any(|scheme| scheme.trim().eq_ignore_ascii_case("file"))
}

/// The beginning of an address, with what does not show as itself escaped.
fn shown(uri: &str) -> String {
    let cut = uri.chars().take(LONGEST_SHOWN);
    cut.flat_map(|c| if c.is_ascii_graphic() || c == ' ' { vec![c] } else { c.escape_unicode().collect() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_in_one_spelling_and_every_other_is_refused() {
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
                problem.contains("` is a file's address that servers read differently"),
                "{uri}: {problem}"
            );
        }
    }

    #[test]
    fn a_scheme_that_some_readers_clean_is_refused() {
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
            assert!(problem.ends_with("` has characters that no scheme has"), "{uri:?}: {problem}");
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
    fn what_is_written_for_a_path_is_read_as_that_path() {
        let path = |text: &str| CanonicalPath::assume_canonical(text).unwrap();
        assert_eq!(file_address(&path("/a/b c")).as_deref(), Some("file:///a/b c"));
        assert_eq!(file_address(&path("/a%20b")), None);
        assert_eq!(file_address(&path("/a?b")), None);
    }
}
