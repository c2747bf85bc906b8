//! Glob patterns for searches and exclusions, with the reference server's semantics.
//!
//! - Paths are relative and use `/` as the separator. `*` also matches names that start with a dot.
//! - Time and memory are proportional to the lengths of the pattern and path, so no pattern makes a search hang.

mod braces;
mod segment;

use self::segment::Segment;

/// Maximum length of a pattern in bytes. Longer patterns match nothing.
const LENGTH_LIMIT: usize = 64 * 1024;

/// Parsed pattern.
pub(super) struct Glob {
    negated: bool,
    alternatives: Vec<Vec<Part>>,
}

enum Part {
    /// `**`, which matches any number of names.
    AnyDepth,
    /// Pattern for a single name.
    Name(Segment),
}

impl Glob {
    pub(super) fn new(pattern: &str) -> Self {
        let nothing = Self { negated: false, alternatives: Vec::new() };
        if pattern.is_empty() || pattern.starts_with('#') || pattern.len() > LENGTH_LIMIT {
            return nothing;
        }
        let positive = pattern.trim_start_matches('!');
        let negations = pattern.len().saturating_sub(positive.len());
        let alternatives = braces::expand(positive).iter().filter_map(|pattern| parts(pattern)).collect();
        Self { negated: negations % 2 == 1, alternatives }
    }

    /// Returns `true` if the pattern matches a relative path.
    pub(super) fn matches(&self, path: &Names) -> bool {
        self.alternatives.iter().any(|parts| matches(parts, &path.0)) != self.negated
    }
}

/// Relative path, split into names once for matching against many patterns.
pub(super) struct Names(Vec<Vec<char>>);

impl Names {
    pub(super) fn new(path: &str) -> Self {
        Self(path.split('/').map(|name| name.chars().collect()).collect())
    }
}

/// Returns the patterns that exclude entries from a tree. A plain name excludes entries at any depth.
pub(super) fn excluding_from_tree(pattern: &str) -> Vec<Glob> {
    if pattern.contains('*') || pattern.is_empty() {
        return vec![Glob::new(pattern)];
    }
    let anywhere = [pattern.to_owned(), format!("**/{pattern}"), format!("**/{pattern}/**")];
    anywhere.iter().map(|pattern| Glob::new(pattern)).collect()
}

/// Splits a pattern without braces into parts, or returns `None` if it cannot match any relative path.
fn parts(pattern: &str) -> Option<Vec<Part>> {
    if pattern.starts_with('/') || pattern.ends_with('/') {
        return None;
    }
    let mut strings: Vec<&str> = Vec::new();
    for text in pattern.split('/').filter(|text| !text.is_empty()) {
        let previous = strings.last().copied().unwrap_or_default();
        match text {
            "**" if previous == "**" => {}
            ".." if !matches!(previous, "" | ".." | "." | "**") => {
                strings.pop();
            }
            _ => strings.push(text),
        }
    }
    let part = |text| match text {
        "**" => Some(Part::AnyDepth),
        // Relative paths never contain these names.
        "." | ".." => None,
        _ => Some(Part::Name(Segment::new(text))),
    };
    strings.into_iter().map(part).collect()
}

/// Returns `true` if the parts match all names. Tracks all reachable positions at once instead of backtracking.
fn matches(parts: &[Part], names: &[Vec<char>]) -> bool {
    let mut positions = vec![false; names.len().saturating_add(1)];
    if let Some(start) = positions.first_mut() {
        *start = true;
    }
    let last = parts.len().saturating_sub(1);
    for (index, part) in parts.iter().enumerate() {
        let mut next = vec![false; positions.len()];
        match part {
            Part::AnyDepth => {
                let mut reached = false;
                for (from, to) in positions.iter().zip(&mut next) {
                    // A trailing `**` must match at least one name.
                    *to = reached || (*from && index < last);
                    reached |= *from;
                }
            }
            Part::Name(segment) => {
                for ((from, to), name) in positions.iter().zip(next.iter_mut().skip(1)).zip(names) {
                    *to = *from && segment.matches(name);
                }
            }
        }
        positions = next;
    }
    positions.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_the_reference_does() {
        for (pattern, path, matched) in [
            ("*", "a", true),
            ("*", "a/b", false),
            ("*", ".a", true),
            ("**", "a/b", true),
            ("a/**", "a/b/c", true),
            ("a/**", "a", false),
            ("**/b", "b", true),
            ("**/b", "a/c/b", true),
            ("a/**/b", "a/b", true),
            ("?", "é", true),
            ("[!a-c]", "d", true),
            ("[!a-c]", "b", false),
            ("{a,b/c}", "b/c", true),
            ("{a}", "a", false),
            ("n{1..3}", "n2", true),
            ("!a", "b", true),
            ("!a", "a", false),
            ("#a", "#a", false),
            ("a/../b", "b", true),
            ("/a", "a", false),
            ("a/", "a", false),
            ("@(a|b)c", "bc", true),
            ("!(a)", "a", true),
        ] {
            assert_eq!(Glob::new(pattern).matches(&Names::new(path)), matched, "{pattern} {path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_pattern_is_handled(pattern in ".{0,40}", odd in "[*?@!+(){}|,./\\\\a0\\[\\]-]{0,60}", path in ".{0,40}") {
            for pattern in [pattern, odd] {
                Glob::new(&pattern).matches(&Names::new(&path));
            }
        }

        #[test]
        fn a_plain_name_matches_itself_alone(name in "[a-z]{1,9}", other in "[a-z]{1,9}") {
            let glob = Glob::new(&name);
            proptest::prop_assert!(glob.matches(&Names::new(&name)));
            proptest::prop_assert_eq!(glob.matches(&Names::new(&other)), name == other);
        }
    }

    #[test]
    fn hostile_patterns_are_fast() {
        let path = Names::new(&"a".repeat(200));
        for pattern in [
            "*a".repeat(100) + "b",
            "+(+(+(a*)*)*)b".repeat(10),
            "a".to_owned() + &"!(".repeat(8) + "b" + &")".repeat(8) + "c",
            "{b,c}".repeat(200),
            "{".repeat(5000),
        ] {
            assert!(!Glob::new(&pattern).matches(&path));
        }
        assert!(!Glob::new(&"**/a/".repeat(1000)).matches(&Names::new(&"a/".repeat(500))));
    }
}
