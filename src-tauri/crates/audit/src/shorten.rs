//! Limits the length of a line by cutting long input from the client. A placeholder states how much was cut.
//!
//! - INVARIANT: a cut argument contains the same kind of placeholder as a redacted one so that it is not mistaken for
//!   the value that the policy evaluated.

use crate::Entry;
use serde_json::{Map, Value};
use std::io::{self, Write};

/// Maximum length of a summary, reason or name in bytes.
const MAX_TEXT_LEN: usize = 2048;

/// Maximum total length of an entry's paths in bytes.
const MAX_PATHS_LEN: usize = 64 * 1024;

/// Maximum total length of an entry's roots in bytes.
const MAX_ROOTS_LEN: usize = 4 * 1024;

/// Maximum length of an entry's arguments as JSON, in bytes.
const MAX_ARGUMENTS_LEN: usize = 64 * 1024;

/// Maximum number of addresses in an entry.
const MAX_ADDRESSES: usize = 64;

impl Entry {
    /// Cuts all fields that exceed their limits.
    pub(super) fn shorten(&mut self) {
        let names = [
            &mut self.request_id,
            &mut self.session,
            &mut self.client,
            &mut self.server_name,
            &mut self.tool_name,
            &mut self.method,
            &mut self.host,
            &mut self.path,
        ];
        names.into_iter().flatten().for_each(cut);
        cut(&mut self.summary);
        if let Some(decision) = &mut self.policy_decision {
            cut(&mut decision.rule);
            cut(&mut decision.reason);
        }
        cut_list(&mut self.paths, MAX_PATHS_LEN, "paths");
        cut_list(&mut self.roots, MAX_ROOTS_LEN, "roots");
        let max_len = self.addresses.iter().take(MAX_ADDRESSES).map(String::len).sum();
        cut_list(&mut self.addresses, max_len, "addresses");
        if let Some(arguments) = &mut self.arguments {
            cut_arguments(arguments);
        }
    }
}

fn cut(text: &mut String) {
    if text.len() > MAX_TEXT_LEN {
        let kept = text.floor_char_boundary(MAX_TEXT_LEN);
        let rest = text.len() - kept;
        text.truncate(kept);
        text.push_str(&format!("[cut: {rest} bytes more]"));
    }
}

/// Keeps as many of the first items as fit into `max_len` bytes.
fn cut_list(list: &mut Vec<String>, max_len: usize, unit: &str) {
    let mut remaining = max_len;
    let fit = |text: &String| {
        let rest = remaining.checked_sub(text.len());
        remaining = rest.unwrap_or(remaining);
        rest.is_some()
    };
    let kept = list.iter().map(fit).take_while(|fits| *fits).count();
    let rest = list.len() - kept;
    if rest > 0 {
        list.truncate(kept);
        list.push(format!("[cut: {rest} {unit} more]"));
    }
}

/// Keeps the arguments that fit. Reduces the others to their names or, if the names do not fit either, to their number.
fn cut_arguments(arguments: &mut Map<String, Value>) {
    if length(&*arguments) <= MAX_ARGUMENTS_LEN {
        return;
    }
    let mut remaining = MAX_ARGUMENTS_LEN;
    let mut dropped = 0_usize;
    let mut kept = Map::new();
    for (name, value) in std::mem::take(arguments) {
        let (name_bytes, bytes) = (length(&name), length(&value));
        let mark = Value::from(format!("[cut: {bytes} bytes]"));
        let fits = [(value, bytes), (mark.clone(), length(&mark))].into_iter().find_map(|(value, bytes)| {
            // Also counts the colon and the comma.
            let rest = remaining.checked_sub(name_bytes + bytes + 2)?;
            Some((value, rest))
        });
        match fits {
            Some((value, rest)) => {
                remaining = rest;
                kept.insert(name, value);
            }
            None => dropped += 1,
        }
    }
    if dropped > 0 {
        let mark = format!("[cut: {dropped} arguments more]");
        kept.insert(mark.clone(), Value::from(mark));
    }
    *arguments = kept;
}

/// Returns the length of a value as JSON, in bytes.
fn length(value: &impl serde::Serialize) -> usize {
    let mut counter = ByteCounter(0);
    // A value that cannot be serialized counts as too long.
    serde_json::to_writer(&mut counter, value).map_or(usize::MAX / 4, |()| counter.0)
}

/// Writer that discards its input and counts the bytes.
struct ByteCounter(usize);

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecidedBy, Event, PolicyDecision, is_marked};

    fn shortened(change: impl FnOnce(&mut Entry)) -> Entry {
        let mut entry = Entry::new(Event::Decision, "x");
        change(&mut entry);
        entry.shorten();
        assert!(length(&entry) < 1024 * 1024, "{}", length(&entry));
        entry
    }

    #[test]
    fn short_entries_stay_unchanged() {
        let fill = |entry: &mut Entry| {
            entry.paths = vec!["/a".to_owned(); 100];
            entry.addresses = vec!["10.0.0.1".to_owned(); 64];
            entry.arguments = serde_json::json!({ "path": ["/a", "ä"], "n": 1 }).as_object().cloned();
            entry.tool_name = Some("t".repeat(2048));
        };
        let mut expected = Entry::new(Event::Decision, "x");
        fill(&mut expected);
        assert_eq!(shortened(fill), expected);
    }

    #[test]
    fn long_texts_and_many_paths_are_cut_with_a_mark() {
        let long = || "ä".repeat(10_000_000);
        let entry = shortened(|entry| {
            entry.summary = long();
            entry.tool_name = Some(long());
            entry.policy_decision = Some(PolicyDecision::deny(DecidedBy::Rule, &long(), &long()));
            entry.paths = vec!["/a".repeat(500); 10_000];
            entry.addresses = vec!["10.0.0.1".to_owned(); 10_000];
        });
        assert!(entry.summary.ends_with("ä[cut: 19997952 bytes more]"), "{}", entry.summary);
        assert!(entry.policy_decision.unwrap().reason.ends_with("bytes more]"));
        assert_eq!((entry.paths.len(), entry.paths[65].as_str()), (66, "[cut: 9935 paths more]"));
        assert_eq!((entry.addresses.len(), entry.addresses[64].as_str()), (65, "[cut: 9936 addresses more]"));
    }

    #[test]
    fn arguments_that_are_too_long_are_marked() {
        let entry = shortened(|entry| {
            let many: Vec<String> = (0..100_000).map(|n| format!("/a/{n}")).collect();
            entry.arguments = serde_json::json!({ "path": "/a", "paths": many }).as_object().cloned();
        });
        let arguments = entry.arguments.unwrap();
        assert_eq!(arguments["path"], "/a");
        assert!(is_marked(&arguments["paths"]), "{}", arguments["paths"]);

        let entry = shortened(|entry| {
            let many = (0..100_000).map(|n| (format!("argument-{n}"), Value::from(1)));
            entry.arguments = Some(many.collect());
        });
        let arguments = entry.arguments.unwrap();
        let (mark, value) = arguments.iter().find(|(name, _)| name.starts_with("[cut: ")).unwrap();
        assert!(is_marked(value) && mark.ends_with(" arguments more]"), "{mark}");
    }
}
