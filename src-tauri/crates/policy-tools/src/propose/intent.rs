//! A tool's likely effects, derived from the verbs in its name, its modes and flags, and the server's hints.
//!
//! - The effects of several verbs are combined. Words that are both verbs and nouns count only if there are no other
//!   verbs.
//! - The server's hints and description can only add effects to those that the name implies.

use super::clues::contains_word;
use super::shape::Shape;
use super::{ProposalHints, Tool};
use ironcurtain_policy::words;

/// A tool's likely effects. Several can apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Intent {
    pub(super) read: bool,
    /// Creates or replaces files.
    pub(super) write: bool,
    /// Changes existing content (which also requires reading it), or opens it so that later calls can change it.
    pub(super) change: bool,
    pub(super) delete: bool,
    pub(super) moves: bool,
    pub(super) copies: bool,
    /// Sends local data to another machine.
    pub(super) sends: bool,
    /// Runs an argument as a program.
    pub(super) runs: bool,
    /// `true` if there is no evidence of the tool's effects.
    pub(super) unknown: bool,
    /// `true` if the description is the only evidence.
    pub(super) from_description: bool,
    /// `true` if the hints or the description added effects to those that the name implies.
    pub(super) hinted: bool,
}

/// Words, separated by spaces, and the effect that they imply.
type Verb = (&'static str, fn(&mut Intent));

const VERBS: [Verb; 8] = [
    (
        "read get list ls show view search find stat info describe count query lookup browse load \
        parse inspect compare cat grep glob exist analyze analyse validate lint explain summarize \
        summarise watch walk fetch retrieve peek preview check verify detect is has display head \
        tail",
        |intent| intent.read = true,
    ),
    (
        "write create make mkdir save put add touch generate init initialize download export render \
        screenshot store dump new build compile backup mount clone",
        |intent| intent.write = true,
    ),
    (
        "edit update append modify replace insert change apply refactor restore rewrite fix prepend \
        overwrite truncate chmod chown convert resize set merge upsert import sync toggle open \
        connect use manage",
        |intent| intent.change = true,
    ),
    (
        "delete remove rm rmdir purge unlink trash erase wipe prune drop destroy uninstall discard \
        clear clean",
        |intent| intent.delete = true,
    ),
    ("move mv rename relocate", |intent| intent.moves = true),
    ("copy cp duplicate archive zip tar compress extract unzip untar link symlink", |intent| {
        intent.copies = true;
    }),
    ("send upload post publish push attach share forward submit", |intent| {
        intent.sends = true;
    }),
    ("run execute exec eval evaluate invoke call shell spawn launch command bash", |intent| {
        intent.runs = true
    }),
];

/// Words that are nouns as often as verbs. Used only if the name contains no verb.
const AMBIGUOUS_VERBS: [Verb; 2] = [
    ("log tree diff status blame report history metadata content stat", |intent| intent.read = true),
    ("patch format sort tag record test", |intent| intent.change = true),
];

/// Names of arguments that select the operation.
const OPERATION_ARGUMENTS: [&str; 8] =
    ["mode", "action", "operation", "op", "command", "subcommand", "method", "verb"];

impl Intent {
    pub(super) fn infer(tool: &Tool<'_>, name: &[String], shape: &Shape) -> Self {
        let mut intent = Self::default();
        intent.add_verbs(name, &VERBS);
        for (argument, shape) in &shape.fields {
            let words = words::split_name(argument);
            if shape.is_boolean() {
                intent.add_verbs(&words, DESTRUCTIVE);
            } else if words.last().is_some_and(|word| OPERATION_ARGUMENTS.contains(&word.as_str())) {
                let choices = shape.choices().unwrap_or_default();
                choices.iter().for_each(|choice| intent.add_verbs(&words::split_name(choice), &VERBS));
            }
        }
        if intent == Self::default() {
            intent.add_verbs(name, &AMBIGUOUS_VERBS);
        }
        if intent == Self::default() {
            intent.add_verbs(&description_verbs(tool.description), &VERBS);
            intent.from_description = intent != Self::default();
            intent.unknown = !intent.from_description;
        } else if intent.only_reads() {
            intent.add_verbs(&description_verbs(tool.description), CHANGING);
            intent.hinted = !intent.only_reads();
        }
        intent.add_hints(tool.hints);
        intent
    }

    /// Returns `true` if the tool only reads.
    pub(super) fn only_reads(self) -> bool {
        self == Self { read: true, from_description: self.from_description, ..Self::default() }
    }

    /// Returns `true` if the tool only deletes.
    pub(super) fn only_deletes(self) -> bool {
        self == Self { delete: true, from_description: self.from_description, ..Self::default() }
    }

    fn add_verbs(&mut self, words: &[String], verbs: &[Verb]) {
        for word in words {
            for (known, set) in verbs {
                if contains_word(known, word) {
                    set(self);
                }
            }
        }
    }

    /// Adds the effects that the hints declare. Ignores hints that say that a tool changes nothing.
    fn add_hints(&mut self, hints: ProposalHints) {
        if !hints.declare_changes() || !(self.unknown || self.only_reads()) {
            return;
        }
        self.hinted = true;
        self.change = true;
        self.delete |= hints.destructive == Some(true);
    }
}

/// Returns the first word of a tool's description, and each word that follows "and", "or" or "then" in its first
/// sentence.
fn description_verbs(description: &str) -> Vec<String> {
    const CONJUNCTIONS: [&str; 3] = ["and", "or", "then"];
    let sentence = description.trim().split(['.', '\n', ';']).next().unwrap_or_default();
    let words = words::split_text(sentence);
    let joined = words
        .windows(2)
        .filter(|pair| pair.first().is_some_and(|word| CONJUNCTIONS.contains(&word.as_str())));
    words.iter().take(1).chain(joined.filter_map(|pair| pair.get(1))).cloned().collect()
}

/// Verbs that imply more than reading.
const CHANGING: &[Verb] = VERBS.split_at(1).1;

/// Verbs that imply deleting. A flag of the tool can add this effect.
const DESTRUCTIVE: &[Verb] = VERBS.split_at(3).1.split_at(1).0;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn intent(name: &str, hints: ProposalHints) -> Intent {
        let schema = json!({ "type": "object", "properties": {
            "mode": { "type": "string", "enum": ["list", "rename"] },
            "purge": { "type": "boolean" },
        } });
        let schema = if name == "manage_it" { schema } else { json!({ "type": "object" }) };
        let tool = Tool { server: "s", name, description: "", input_schema: &schema, hints };
        Intent::infer(&tool, &words::split_name(name), &Shape::flatten(&schema))
    }

    #[test]
    fn verbs_modes_and_switches_add_up_and_hints_only_tighten() {
        let none = ProposalHints::default();
        assert!(intent("read_file", none).only_reads());
        assert!(intent("deleteFile", none).only_deletes());
        let several = intent("manage_it", none);
        assert!(several.read && several.change && several.moves && several.delete);
        assert!(intent("frobnicate", none).unknown);
        let harmless = ProposalHints { read_only: Some(true), destructive: Some(false) };
        assert_eq!(intent("frobnicate", harmless), intent("frobnicate", none));
        assert_eq!(intent("delete_file", harmless), intent("delete_file", none));
        let destructive = ProposalHints { read_only: Some(false), destructive: Some(true) };
        let read = intent("read_file", destructive);
        assert!(read.read && read.change && read.delete && read.hinted);
        // A destructive tool does more than read, regardless of `readOnlyHint`.
        let alone = ProposalHints { read_only: None, destructive: Some(true) };
        assert_eq!(intent("read_file", alone), read);
        assert_eq!(
            intent("read_file", ProposalHints { read_only: Some(true), destructive: Some(true) }),
            read
        );
        assert_eq!(
            intent("read_file", ProposalHints { read_only: None, destructive: Some(false) }),
            intent("read_file", none)
        );
    }
}
