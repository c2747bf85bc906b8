//! Finds arguments that make a call worse than its verb says, such as `force` on a push. Pure.
//!
//! - Names are compared word by word, so `force_with_lease` and `forcePush` contain `force`.
//! - An option such as `--force` in a list counts as well, and so does `hard` as the value of a `mode` argument.
//! - An argument with a role never counts: its text is data.
//! - A flag is left out of the list of other arguments only if its value is a boolean. Any other value is shown there
//!   in full.

use super::{CallEffects, ConsequenceLines};
use crate::Consequence;
use ironcurtain_policy::{ResolvedCall, Resource, Role, Verb, words};
use serde_json::Value;

/// Argument that makes effects with certain verbs worse.
struct Flag {
    /// Words that the argument's name contains.
    name: &'static str,
    /// `true` if the argument makes effects worse when it is on, `false` if it does so when it is off.
    is_on: bool,
    verbs: &'static [Verb],
    /// Verb that replaces a milder verb.
    worse: Option<Verb>,
    effect: &'static str,
}

const PUSHES: &[Verb] = &[Verb::Push, Verb::ForcePush];
const IN_REPOSITORIES: &[Verb] = &[Verb::Record, Verb::Commit, Verb::Forget];
const WRITES: &[Verb] = &[Verb::Create, Verb::Write, Verb::Change, Verb::Move];
const ELSEWHERE: &[Verb] = &[Verb::Publish, Verb::Share];

const FORCED: Flag =
    Flag { worse: Some(Verb::ForcePush), ..flag("force", PUSHES, "history there is overwritten") };
const DELETED: Flag = flag("delete", PUSHES, "the branch there is deleted");

const FLAGS: [Flag; 17] = [
    FORCED,
    DELETED,
    Flag {
        worse: Some(Verb::ForcePush),
        ..flag("mirror", PUSHES, "branches there that are not here are deleted")
    },
    flag("prune", PUSHES, "branches there that are not here are deleted"),
    flag("all", PUSHES, "all branches"),
    flag("amend", IN_REPOSITORIES, "replaces the last commit"),
    flag("hard", IN_REPOSITORIES, "discards uncommitted changes"),
    flag("force", IN_REPOSITORIES, "skips safety checks"),
    flag("no verify", IN_REPOSITORIES, "skips the checks before a commit"),
    flag("delete", IN_REPOSITORIES, "deletes a branch or tag"),
    flag("recursive", &[Verb::Delete], "with everything in it"),
    flag("force", &[Verb::Delete], "skips safety checks"),
    flag("overwrite", WRITES, "replaces what exists"),
    Flag { is_on: false, ..flag("private", ELSEWHERE, "anyone can see it") },
    flag("public", ELSEWHERE, "anyone can see it"),
    flag("trash", &[Verb::Use], "moves it to the trash"),
    flag("archived", &[Verb::Use], "moves it to the trash"),
];

const fn flag(name: &'static str, verbs: &'static [Verb], effect: &'static str) -> Flag {
    Flag { name, is_on: true, verbs, worse: None, effect }
}

impl<'a> CallEffects<'a> {
    /// Adds the effects of flags to the lines that they make worse.
    pub(super) fn flags(&self, output: &mut ConsequenceLines<'a>) {
        if self.verb_of_name().is_some_and(Verb::is_read_only) {
            return;
        }
        // Only the first flag that an argument sets takes effect: a forced push is not also an unsafe commit.
        let mut used: Vec<&String> = Vec::new();
        for flag in &FLAGS {
            let found: Vec<_> = set(self.call, flag).filter(|(name, _)| !used.contains(name)).collect();
            if found.is_empty() || !worsen(output, flag) {
                continue;
            }
            let matching = found.iter().filter(|(_, value)| **value == Value::Bool(flag.is_on));
            output.arguments.extend(matching.map(|(name, _)| name.as_str()));
            used.extend(found.iter().map(|(name, _)| name));
        }
        for branch in self.values_with_role(Role::BranchName) {
            let Resource::Text(text) = &branch.value else { continue };
            // Git reads `+main` as a forced update of main, and `:main` as its deletion.
            let flag = match text.chars().next() {
                Some('+') => &FORCED,
                Some(':') => &DELETED,
                Some(_) | None => continue,
            };
            worsen(output, flag);
        }
    }
}

/// Returns the arguments that set a flag.
fn set<'a>(call: &'a ResolvedCall, flag: &'static Flag) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let has_words = |text: &str| {
        let words = words::split_name(text);
        flag.name.split(' ').all(|wanted| words.iter().any(|word| word == wanted))
    };
    call.transport_arguments().iter().filter(move |(name, value)| {
        let has_role = call.given().iter().any(|given| **call.argument(given) == **name);
        let is_set = !value.is_null() && is_truthy(value) == flag.is_on && has_words(name);
        let is_kind = words::split_name(name)
            .iter()
            .any(|word| ["mode", "type", "visibility"].contains(&word.as_str()));
        let is_chosen = is_kind && value.as_str().is_some_and(has_words);
        !has_role && (is_set || flag.is_on && (is_chosen || options(value).any(has_words)))
    })
}

/// Returns the options, such as `--force`, in a value.
fn options(value: &Value) -> impl Iterator<Item = &str> {
    let items = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    items.iter().filter_map(Value::as_str).filter(|text| text.starts_with("--"))
}

/// Returns `false` for null, `false`, zero, an empty string or array, and words such as "off".
fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !["", "0", "false", "no", "off"].contains(&text.to_lowercase().as_str()),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Object(_) => true,
    }
}

/// Applies a flag to the lines that have one of its verbs. Returns `false` if there are no such lines.
fn worsen(output: &mut ConsequenceLines<'_>, flag: &Flag) -> bool {
    let mut is_meant = false;
    for Consequence { verb, note, .. } in
        output.lines.iter_mut().filter(|line| flag.verbs.contains(&line.verb))
    {
        is_meant = true;
        *verb = flag.worse.unwrap_or(*verb);
        match note {
            Some(note) if note.contains(flag.effect) => {}
            Some(note) => note.push_str(&format!("; {}", flag.effect)),
            None => *note = Some(flag.effect.to_owned()),
        }
    }
    is_meant
}
