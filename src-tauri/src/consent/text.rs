//! Words for people out of foreign text.
//!
//! - Whatever comes in, what goes out has no control or direction-changing character left and a known length.
//! - Nothing here is markup; whoever draws it sets it as plain text.

use ironcurtain_daemon::consent::visible;
use std::path::Path;

/// Longest name of a program, server or tool that is put into a sentence.
const NAME_CHARS: usize = 48;

/// A name for a sentence: one line, short.
pub(crate) fn name(text: &str) -> String {
    isolated(&clip(&line(text), NAME_CHARS))
}

/// Text for one line: every control and direction-changing character is made visible.
pub(crate) fn line(text: &str) -> String {
    visible::line(text)
}

/// Text with every part of it that is written from right to left kept in its own place: neither its order nor that of what stands
/// beside it changes. The marks around it are ours; those of the text itself were made visible before.
pub(crate) fn isolated(text: &str) -> String {
    if !text.contains(is_right_to_left) {
        return text.to_owned();
    }
    let part = |part: &str| match part.strip_suffix('/') {
        Some(name) if name.contains(is_right_to_left) => format!("\u{2068}{name}\u{2069}/"),
        None if part.contains(is_right_to_left) => format!("\u{2068}{part}\u{2069}"),
        Some(_) | None => part.to_owned(),
    };
    text.split_inclusive('/').map(part).collect()
}

/// The code points that Unicode keeps for scripts from right to left, assigned or not.
fn is_right_to_left(c: char) -> bool {
    matches!(
        c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
    )
}

/// Text for several lines: as [`line`], but line ends and tabs stay.
pub(crate) fn block(text: &str, limit: usize) -> String {
    let shown = visible::lines(text);
    let total = shown.chars().count();
    if total <= limit {
        return shown;
    }
    let head: String = shown.chars().take(limit).collect();
    format!("{head}\n\u{2026} {} more characters are not shown here", total.saturating_sub(limit))
}

/// At most `limit` characters, with an ellipsis in place of the rest.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let head: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{head}\u{2026}")
}

/// At most the last `limit` characters, with an ellipsis in place of the rest.
pub(crate) fn tail(text: &str, limit: usize) -> String {
    let left = text.chars().count().saturating_sub(limit);
    if left == 0 {
        return text.to_owned();
    }
    let end: String = text.chars().skip(left + 1).collect();
    format!("\u{2026}{end}")
}

/// A path in two parts: the quiet beginning, and the last two names. The person's home is `~`.
pub(crate) fn path_parts(path: &str, home: &Path) -> (String, String) {
    let short = line(&home_relative(path, home));
    let cut = short.trim_end_matches('/').rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    let (lead, strong) = short.split_at_checked(cut).unwrap_or(("", &short));
    (lead.to_owned(), strong.to_owned())
}

/// The last two names of a path, or all of it where it has no more.
pub(crate) fn last_names(path: &str, home: &Path) -> String {
    let (lead, strong) = path_parts(path, home);
    if lead == "/" { lead + &strong } else { strong }
}

/// A path on one line, the person's home as `~`.
pub(crate) fn short_path(path: &str, home: &Path) -> String {
    line(&home_relative(path, home))
}

fn home_relative(path: &str, home: &Path) -> String {
    // A home of `/` names nothing.
    if home.parent().is_none() {
        return path.to_owned();
    }
    match Path::new(path).strip_prefix(home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_becomes_visible_and_short() {
        assert_eq!(line("a\u{202e}b\0c\nd"), "a\\u{202e}b\\u{0}c\\u{a}d");
        assert_eq!(block("one\n\ttwo\u{7}", 100), "one\n\ttwo\\u{7}");
        assert_eq!(block("abcdef", 4), "abcd\n\u{2026} 2 more characters are not shown here");
        assert_eq!(name(&"x".repeat(4000)).chars().count(), NAME_CHARS);
        assert_eq!(clip("short", 5), "short");
        assert_eq!((tail("short", 5), tail("shorter", 5)), ("short".into(), "\u{2026}rter".into()));
    }

    #[test]
    fn names_from_right_to_left_stay_readable_and_in_their_place() {
        assert_eq!(isolated("~/a/b.txt"), "~/a/b.txt");
        assert_eq!(isolated("~/\u{5e9}\u{5dc}/b.txt"), "~/\u{2068}\u{5e9}\u{5dc}\u{2069}/b.txt");
        assert_eq!(isolated("\u{627}.md"), "\u{2068}\u{627}.md\u{2069}");
        // What turns the order of others is a code before it comes here.
        assert_eq!(isolated(&line("\u{5d0}\u{202e}x")), "\u{2068}\u{5d0}\\u{202e}x\u{2069}");
    }

    #[test]
    fn paths_keep_their_last_two_names_together() {
        let home = Path::new("/home/ada");
        let parts = |p| path_parts(p, home);
        assert_eq!(parts("/home/ada/Documents/tax/a.md"), ("~/Documents/".into(), "tax/a.md".into()));
        assert_eq!(parts("/home/ada/a.md"), (String::new(), "~/a.md".into()));
        assert_eq!(parts("/home/ada"), (String::new(), "~".into()));
        assert_eq!(parts("/home/adam/x/y"), ("/home/adam/".into(), "x/y".into()));
        assert_eq!(parts("/"), (String::new(), "/".into()));
        assert_eq!(path_parts("/etc/passwd", Path::new("/")), ("/".into(), "etc/passwd".into()));
        let last = ["/etc/passwd", "/srv/a/b", "/home/ada/a.md"].map(|path| last_names(path, home));
        assert_eq!(last, ["/etc/passwd", "a/b", "~/a.md"]);
    }
}
