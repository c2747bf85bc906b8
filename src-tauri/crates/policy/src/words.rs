//! Splits names into words: `repoPath`, `repo_path`, `repo-path` and `repopath` all become `repo` and `path`.

/// Words that some names append without a separator, as in `repopath`.
const COMPOUND_SUFFIXES: [&str; 8] = ["path", "file", "filename", "directory", "folder", "dir", "url", "uri"];
const COMPOUND_PREFIXES: [&str; 4] = ["file", "path", "dir", "folder"];

/// Words that are not compounds, although they end in or resemble one of `COMPOUND_SUFFIXES`.
const NOT_COMPOUNDS: [&str; 5] = ["profile", "xpath", "jsonpath", "direct", "direction"];

/// Words that may follow one of `COMPOUND_PREFIXES` without a separator, as in `filename`.
const PREFIX_FOLLOWERS: [&str; 10] =
    ["name", "id", "type", "size", "path", "list", "content", "root", "key", "mode"];

/// Returns the words in a name, in lower case and singular, without digits.
#[must_use]
pub fn split_name(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let after = letters.get(at + 1);
        let starts = letter.is_uppercase()
            && (before.is_some_and(|c| c.is_lowercase() || c.is_numeric())
                || (before.is_some_and(|c| c.is_uppercase()) && after.is_some_and(|c| c.is_lowercase())));
        if starts || !letter.is_alphabetic() {
            push_word(&mut words, std::mem::take(&mut word));
        }
        if letter.is_alphabetic() {
            word.extend(letter.to_lowercase());
        }
    }
    push_word(&mut words, word);
    words
}

/// Returns the words in a sentence.
#[must_use]
pub fn split_text(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').flat_map(split_name).collect()
}

fn push_word(words: &mut Vec<String>, word: String) {
    if word.is_empty() {
        return;
    }
    let word = singular(&word);
    match split_compound(&word) {
        Some((first, second)) => {
            words.push(first.to_owned());
            push_word(words, second.to_owned());
        }
        None => words.push(word),
    }
}

fn split_compound(word: &str) -> Option<(&str, &str)> {
    if NOT_COMPOUNDS.contains(&word) || COMPOUND_SUFFIXES.contains(&word) && word != "filename" {
        return None;
    }
    let start = COMPOUND_PREFIXES.iter().find_map(|start| {
        let rest = word.strip_prefix(start)?;
        PREFIX_FOLLOWERS.contains(&rest).then(|| word.split_at(start.len()))
    });
    start.or_else(|| {
        COMPOUND_SUFFIXES.iter().find_map(|end| {
            let rest = word.strip_suffix(end)?;
            (rest.len() > 1).then(|| word.split_at(rest.len()))
        })
    })
}

/// Converts an English plural to the singular, with rules that suffice for names in APIs.
fn singular(word: &str) -> String {
    let without = |ending: &str| word.strip_suffix(ending);
    if let Some(stem) = without("ies").filter(|stem| stem.len() > 1) {
        return format!("{stem}y");
    }
    if let Some(stem) = without("es")
        && ["ss", "ch", "sh", "x"].iter().any(|end| stem.ends_with(end))
    {
        return stem.to_owned();
    }
    match without("s") {
        Some(stem) if stem.len() > 1 && !["s", "u", "i"].iter().any(|end| stem.ends_with(end)) => {
            stem.to_owned()
        }
        Some(_) | None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_in_any_style() {
        for (name, words) in [
            ("repo_path", "repo path"),
            ("repoPath", "repo path"),
            ("repopath", "repo path"),
            ("file-paths", "file path"),
            ("filePaths", "file path"),
            ("filepath", "file path"),
            ("filename", "file name"),
            ("HTTPServerURL", "http server url"),
            ("baseurl", "base url"),
            ("path2", "path"),
            ("directories", "directory"),
            ("branches", "branch"),
            ("addresses", "address"),
            ("status", "status"),
            ("profile", "profile"),
            ("outputDir", "output dir"),
            ("fileIds", "file id"),
        ] {
            assert_eq!(split_name(name).join(" "), words, "{name}");
        }
    }
}
