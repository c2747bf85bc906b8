//! Matches the end of a path against a pattern.
//!
//! - `*` matches any characters within a name, and `**` any number of names. Pattern and path are in lower case.

/// Pattern of names with wildcards.
#[derive(Debug)]
pub(super) struct NamePattern {
    parts: Vec<&'static str>,
}

impl NamePattern {
    pub(super) fn new(text: &'static str) -> Self {
        Self { parts: text.split('/').collect() }
    }

    /// Returns the last byte of every path that the pattern matches, or `None` if the paths can end in any byte.
    pub(super) fn last_byte(&self) -> Option<u8> {
        self.parts.last().and_then(|part| part.bytes().next_back()).filter(|byte| *byte != b'*')
    }

    /// Returns the minimum number of path components that the pattern matches.
    pub(super) fn depth(&self) -> usize {
        self.parts.iter().filter(|part| **part != "**").count()
    }

    /// Returns `true` if the pattern matches the end of the path, below a folder that `accepts_base` accepts.
    /// `accepts_base` receives the length of the folder's path.
    pub(super) fn matches_end(&self, path: &str, accepts_base: &dyn Fn(usize) -> bool) -> bool {
        matches_suffix(&self.parts, path, accepts_base)
    }
}

/// Returns `true` if a string contains a wildcard.
pub(super) fn is_pattern(text: &str) -> bool {
    text.contains('*')
}

fn matches_suffix(parts: &[&str], path: &str, accepts_base: &dyn Fn(usize) -> bool) -> bool {
    let Some((last, before)) = parts.split_last() else { return accepts_base(path.len()) };
    let Some((above, name)) = path.rsplit_once('/') else { return *last == "**" && before.is_empty() };
    if *last == "**" {
        return matches_suffix(before, path, accepts_base) || matches_suffix(parts, above, accepts_base);
    }
    matches_name(last, name) && matches_suffix(before, above, accepts_base)
}

/// Returns `true` if a name matches a pattern without `**`.
fn matches_name(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = left.find(part) else { return false };
        left = left.get(at + part.len()..).unwrap_or_default();
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn single_wildcard_stays_in_a_name_and_double_crosses_names() {
        let ends = |pattern: &'static str, path: &str| NamePattern::new(pattern).matches_end(path, &|_| true);
        for (pattern, path) in [
            ("site-packages/*.pth", "/p/site-packages/a.pth"),
            (".venv/**/*.pth", "/p/.venv/a.pth"),
            (".venv/**/*.pth", "/p/.venv/lib/python3.12/site-packages/a.pth"),
            ("python*/x", "/p/python3.12/x"),
            ("a*b*c", "/p/a-b-c"),
        ] {
            assert!(ends(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("site-packages/*.pth", "/p/site-packages/a/b.pth"),
            (".venv/**/*.pth", "/p/venv/a.pth"),
            ("python*/x", "/p/python/3/x"),
            ("a*b*c", "/p/a-c"),
        ] {
            assert!(!ends(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn last_byte_is_that_of_every_match() {
        let last = |pattern: &'static str| NamePattern::new(pattern).last_byte();
        assert_eq!(
            (last("a/*.pth"), last("**/x"), last("python*"), last("a/**")),
            (Some(b'h'), Some(b'x'), None, None)
        );
    }

    #[test]
    fn base_folder_must_be_accepted() {
        let pattern = NamePattern::new(".local/**/*.desktop");
        let ends = |path: &str| pattern.matches_end(path, &|above| path.get(..above) == Some("/home/me"));
        assert!(ends("/home/me/.local/a/b.desktop"));
        assert!(!ends("/home/me/x/.local/a/b.desktop"));
        assert_eq!(pattern.depth(), 2);
    }
}
