//! Expands path patterns to existing paths. `*` and `?` match within a name, `[...]` matches one character, and `**`
//! matches any depth.
//!
//! - Paths created after the expansion are not covered.
//! - When denying, directories behind symlinks are searched, matches are denied at their real path, and directories
//!   that cannot be listed count as matches. When allowing, none of this applies.

use std::{
    collections::BTreeSet,
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Maximum number of paths that a pattern can expand to.
const MAX_COUNT: usize = 100_000;

/// Reason a pattern is not supported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathPatternError {
    #[error("a pattern must begin with a literal directory; searching all of `/` is not supported")]
    SearchesRoot,
    #[error("`**` must stand alone between slashes")]
    PartialDoubleStar,
    #[error("a pattern that ends in a slash matches nothing; remove the slash")]
    TrailingSlash,
    #[error("the pattern matches more than {MAX_COUNT} paths; use a directory instead")]
    TooMany,
}

/// Purpose of an expansion. An uncertain match counts as a match for denying, but not for allowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternPurpose {
    Deny,
    Allow,
}

/// Returns `true` if a path contains pattern characters.
pub fn is_pattern(path: &str) -> bool {
    path.contains(['*', '?', '[', ']'])
}

/// Returns the existing paths that match a pattern relative to the literal path `base`. An empty `base` means `/`.
pub fn expand(base: &str, pattern: &str, purpose: PatternPurpose) -> Result<Vec<PathBuf>, PathPatternError> {
    if pattern.ends_with('/') {
        return Err(PathPatternError::TrailingSlash);
    }
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    let literal_count = parts.iter().take_while(|part| !is_pattern(part)).count();
    if literal_count == 0 && base.is_empty() {
        return Err(PathPatternError::SearchesRoot);
    }
    if parts.iter().any(|part| part.contains("**") && *part != "**") {
        return Err(PathPatternError::PartialDoubleStar);
    }
    let (literal_parts, rest) = parts.split_at_checked(literal_count).unwrap_or((&parts, &[]));
    let mut search = PatternSearch { purpose, found: BTreeSet::new(), seen: BTreeSet::new() };
    search.search(&PathBuf::from(format!("{base}/{}", literal_parts.join("/"))), rest)?;
    Ok(search.found.into_iter().collect())
}

struct PatternSearch {
    purpose: PatternPurpose,
    found: BTreeSet<PathBuf>,
    /// Device and inode of each visited directory, with the length of the remaining pattern. Prevents endless
    /// recursion through symlinks.
    seen: BTreeSet<(u64, u64, usize)>,
}

impl PatternSearch {
    fn search(&mut self, dir: &Path, parts: &[&str]) -> Result<(), PathPatternError> {
        let Some((part, rest)) = parts.split_first() else { return Ok(()) };
        let found = match self.purpose {
            PatternPurpose::Deny => fs::metadata(dir),
            PatternPurpose::Allow => fs::symlink_metadata(dir),
        };
        let Ok(found) = found else { return Ok(()) };
        if !found.is_dir() || !self.seen.insert((found.dev(), found.ino(), parts.len())) {
            return Ok(());
        }
        if *part == "**" {
            // `**` also matches zero directories.
            self.search(dir, rest)?;
        }
        let entries = match fs::read_dir(dir).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
            Ok(entries) => entries,
            Err(_) if self.purpose == PatternPurpose::Deny => return self.add(dir.to_owned()),
            Err(_) => return Ok(()),
        };
        for entry in entries {
            let name = entry.file_name();
            // A name that is not UTF-8 could match any pattern.
            let unknown = *part == "**" || self.purpose == PatternPurpose::Deny;
            let covered = name.to_str().map_or(unknown, |name| *part == "**" || matches(part, name));
            if !covered {
                continue;
            }
            let path = entry.path();
            if *part == "**" {
                if rest.is_empty() {
                    self.add(path.clone())?;
                }
                self.search(&path, parts)?;
            } else if rest.is_empty() {
                self.add(path)?;
            } else {
                self.search(&path, rest)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf) -> Result<(), PathPatternError> {
        self.found.insert(path);
        if self.found.len() > MAX_COUNT { Err(PathPatternError::TooMany) } else { Ok(()) }
    }
}

/// Returns `true` if one component of a pattern matches a name.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
    // Positions in the pattern and in the name, and the last star with the position up to which it matches.
    let (mut pattern_position, mut name_position, mut star) = (0, 0, None);
    while let Some(character) = name.get(name_position) {
        if pattern.get(pattern_position) == Some(&'*') {
            star = Some((pattern_position, name_position));
            pattern_position += 1;
        } else if let Some(next) = match_one(pattern.get(pattern_position..).unwrap_or_default(), *character)
        {
            pattern_position += next;
            name_position += 1;
        } else if let Some((from, matched_to)) = star {
            star = Some((from, matched_to + 1));
            pattern_position = from + 1;
            name_position = matched_to + 1;
        } else {
            return false;
        }
    }
    pattern.get(pattern_position..).unwrap_or_default().iter().all(|rest| *rest == '*')
}

/// Returns the number of pattern characters that match `character`, or `None` if they do not match.
fn match_one(pattern: &[char], character: char) -> Option<usize> {
    match pattern {
        ['?', ..] => Some(1),
        ['[', inside @ ..] => match parse_set(inside) {
            Some((set, length)) => set_contains(set, character).then_some(length + 2),
            None => (character == '[').then_some(1),
        },
        [first, ..] => (*first == character).then_some(1),
        [] => None,
    }
}

/// Returns the characters between brackets and their number. Returns `None` if there is no closing bracket: the `[` is
/// then literal.
fn parse_set(inside: &[char]) -> Option<(&[char], usize)> {
    let first = usize::from(matches!(inside, ['!' | '^', ..]));
    let end = inside.iter().skip(first + 1).position(|character| *character == ']')? + first + 1;
    Some((inside.get(..end)?, end))
}

fn set_contains(set: &[char], character: char) -> bool {
    let (is_negated, set) = match set {
        ['!' | '^', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut rest = set;
    let mut is_listed = false;
    while let [first, rest_of_set @ ..] = rest {
        rest = match rest_of_set {
            ['-', last, rest_of_set @ ..] => {
                is_listed |= (*first..=*last).contains(&character);
                rest_of_set
            }
            _ => {
                is_listed |= *first == character;
                rest_of_set
            }
        };
    }
    is_listed != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name) in [
            ("*", ".env"),
            ("*.pem", "a.pem"),
            ("a*b*c", "axbbxc"),
            ("?x", "éx"),
            ("[a-c]1", "b1"),
            ("[!a]", "b"),
            ("[x", "[x"),
            ("[]]", "]"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("*.pem", "a.pemx"),
            ("?", ""),
            ("?", "ab"),
            ("a*b", "ac"),
            ("[a-c]", "d"),
            ("[!a]", "a"),
            ("[^a]", "a"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn existing_paths_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for file in ["a/.env", "a/b/.env", "a/b/c/.env", "x/y", "a/b/build/out"] {
            let path = base.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("..", base.join("a/b/up")).unwrap();
        std::os::unix::fs::symlink(base.join("a/b"), base.join("x/link")).unwrap();
        let found = |pattern: &str, purpose| -> BTreeSet<String> {
            let found = expand(base.to_str().unwrap(), pattern, purpose).unwrap();
            // A match behind a symlink is returned as its real path.
            let real = found.iter().map(|path| path.canonicalize().unwrap());
            real.map(|path| path.strip_prefix(&base).unwrap().display().to_string()).collect()
        };
        let set = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>();
        let (deny, allow) = (PatternPurpose::Deny, PatternPurpose::Allow);
        assert_eq!(found("a/*/.env", deny), set(&["a/b/.env"]));
        let all = set(&["a/.env", "a/b/.env", "a/b/c/.env"]);
        assert_eq!((found("a/**/.env", deny), found("a/**/.env", allow)), (all.clone(), all.clone()));
        assert_eq!((found("x/**/.env", deny), found("x/**/.env", allow)), (all, set(&[])));
        assert_eq!(
            (found("**/build", deny), found("**/build", allow)),
            (set(&["a/b/build"]), set(&["a/b/build"]))
        );
        assert_eq!(found("none/**", deny), set(&[]));
    }

    #[test]
    fn unsupported_patterns_are_refused() {
        assert_eq!(expand("", "/**/*.pem", PatternPurpose::Deny), Err(PathPatternError::SearchesRoot));
        assert_eq!(expand("", "/opt*/x", PatternPurpose::Deny), Err(PathPatternError::SearchesRoot));
        assert_eq!(expand("", "/a/**.pem", PatternPurpose::Deny), Err(PathPatternError::PartialDoubleStar));
        assert_eq!(expand("", "/a/*/", PatternPurpose::Deny), Err(PathPatternError::TrailingSlash));
    }
}
