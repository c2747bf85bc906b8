//! Prepares untrusted text for display.
//!
//! - The result is limited in length. Control and bidirectional formatting characters are escaped.
//! - The result is plain text, never markup.

use ironcurtain_visible as visible;
use std::path::Path;

/// Maximum length of a program, server or tool name in a sentence, in characters.
const NAME_CHARS: usize = 48;
/// Maximum length of a line in characters before it is broken. The toolkit lays out a whole line at once, so a long
/// line would block the main thread.
const LINE_CHARS: usize = 2_000;
/// Prefix that marks the continuation of a broken line.
const CONTINUATION: &str = "\u{21aa} ";
const LEFT_TO_RIGHT: &str = "\u{200e}";
const ISOLATE: &str = "\u{2068}";
const END_OF_ISOLATE: &str = "\u{2069}";

/// Returns a shortened name on one line.
pub(crate) fn name(text: &str) -> String {
    clip(&line(text), NAME_CHARS)
}

/// Formats text on one line, with control and bidirectional formatting characters escaped.
pub(crate) fn line(text: &str) -> String {
    visible::line(text)
}

/// Isolates each right-to-left run in left-to-right text, so that it cannot reorder the text around it. Adds
/// directional marks, so call it exactly once, on escaped text, and do not shorten the result.
pub(crate) fn isolated(text: &str) -> String {
    text.split_inclusive('\n').map(isolated_line).collect()
}

fn isolated_line(text: &str) -> String {
    if !text.contains(is_right_to_left) {
        return text.to_owned();
    }
    // Without this mark, a renderer would derive the line's direction from its first letter.
    let mut out = String::from(LEFT_TO_RIGHT);
    let mut rest = text;
    while let Some((before, from)) = rest.find(is_right_to_left).and_then(|at| rest.split_at_checked(at)) {
        let (run, after) = from.split_at_checked(run_end(from)).unwrap_or((from, ""));
        out.extend([before, ISOLATE, run, END_OF_ISOLATE]);
        rest = after;
    }
    out + rest
}

/// Adds directional marks to a diff's lines, so that each `+` or `-` stays on the left.
pub(crate) fn signs_first(diff: &str) -> String {
    let line = |line: &str| match line.split_at_checked(1) {
        Some((sign, text)) if text.contains(is_right_to_left) => format!("{sign}{LEFT_TO_RIGHT}{text}"),
        Some(_) | None => line.to_owned(),
    };
    diff.split_inclusive('\n').map(line).collect()
}

/// Returns the byte offset of the end of the right-to-left run at the start of the text.
fn run_end(text: &str) -> usize {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        if is_right_to_left(c) {
            end = at + c.len_utf8();
        } else if !matches!(c, ' ' | '-' | '_') {
            break;
        }
    }
    end
}

/// Returns `true` if Unicode reserves the code point for right-to-left scripts.
fn is_right_to_left(c: char) -> bool {
    matches!(
        c,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}'
            | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}'
    )
}

/// Like [`line`], but keeps line breaks and tabs.
pub(crate) fn block(text: &str) -> String {
    break_lines(&visible::lines(text))
}

/// Breaks lines longer than [`LINE_CHARS`].
fn break_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut length = 0;
    for c in text.chars() {
        if c == '\n' {
            length = 0;
        } else if length == LINE_CHARS {
            out.extend(["\n", CONTINUATION]);
            length = CONTINUATION.chars().count() + 1;
        } else {
            length += 1;
        }
        out.push(c);
    }
    out
}

/// Returns the first `limit` characters, with an ellipsis in place of the rest.
pub(crate) fn clip(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let head: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{head}\u{2026}")
}

/// Returns the last `limit` characters, with an ellipsis in place of the rest.
pub(crate) fn tail(text: &str, limit: usize) -> String {
    let left = text.chars().count().saturating_sub(limit);
    if left == 0 {
        return text.to_owned();
    }
    let end: String = text.chars().skip(left + 1).collect();
    format!("\u{2026}{end}")
}

/// Splits a path before its last two components. The home directory becomes `~`.
pub(crate) fn path_parts(path: &str, home: &Path) -> (String, String) {
    let short = line(&home_relative(path, home));
    let cut = short.trim_end_matches('/').rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    let (lead, strong) = short.split_at_checked(cut).unwrap_or(("", &short));
    (lead.to_owned(), strong.to_owned())
}

/// Returns the last two components of a path.
pub(crate) fn last_names(path: &str, home: &Path) -> String {
    let (lead, strong) = path_parts(path, home);
    if lead == "/" { lead + &strong } else { strong }
}

/// Returns a path on one line. The home directory becomes `~`.
pub(crate) fn short_path(path: &str, home: &Path) -> String {
    line(&home_relative(path, home))
}

fn home_relative(path: &str, home: &Path) -> String {
    // A home directory of `/` is not replaced by `~`.
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
    fn breaks_long_lines_without_losing_text() {
        let long = format!("short\n{}\nlast", "W".repeat(4_500));
        let shown = block(&long);
        assert_eq!(shown.replace("\n\u{21aa} ", ""), long);
        let lengths: Vec<usize> = shown.lines().map(|line| line.chars().count()).collect();
        assert_eq!(lengths, [5, 2_000, 2_000, 504, 4]);
        assert_eq!(block(&shown), shown);
    }

    #[test]
    fn escapes_and_shortens_untrusted_text() {
        assert_eq!(line("a\u{202e}b\0c\nd"), "a\\u{202e}b\\u{0}c\\u{a}d");
        assert_eq!(block("one\n\ttwo\u{7}"), "one\n\ttwo\\u{7}");
        assert_eq!(name(&"x".repeat(4000)).chars().count(), NAME_CHARS);
        assert_eq!(clip("short", 5), "short");
        assert_eq!((tail("short", 5), tail("shorter", 5)), ("short".into(), "\u{2026}rter".into()));
    }

    #[test]
    fn isolates_right_to_left_text() {
        let of = |text: &str| {
            isolated(text).replace('\u{200e}', "LRM").replace('\u{2068}', "<").replace('\u{2069}', ">")
        };
        assert_eq!(of("~/a/b.txt"), "~/a/b.txt");
        assert_eq!(of("~/\u{5e9}\u{5dc}/b.txt"), "LRM~/<\u{5e9}\u{5dc}>/b.txt");
        assert_eq!(of("with x:\n\u{5d0}\nb"), "with x:\nLRM<\u{5d0}>\nb");
        // The file extension stays at the end of the name, before the rest of the sentence.
        assert_eq!(of("\u{627}.md"), "LRM<\u{627}>.md");
        assert_eq!(of("\u{5d0} \u{5d1} may read ~/\u{5d2}"), "LRM<\u{5d0} \u{5d1}> may read ~/<\u{5d2}>");
        // Formatting characters in the input are escaped earlier.
        assert_eq!(signs_first("+\u{5d0}\n-b\n"), "+\u{200e}\u{5d0}\n-b\n");
        assert_eq!(of(&line("\u{5d0}\u{202e}x")), "LRM<\u{5d0}>\\u{202e}x");
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
