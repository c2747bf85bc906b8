//! Search conditions.

use crate::{Entry, FileFinding, Status};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::Path;

/// Maximum number of characters to search in a string.
const MAX_LEN: usize = 2000;

/// Search conditions. An entry must meet all conditions that are set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Words that must all occur. A `*` at the end of a word matches any continuation.
    pub text: Option<String>,
    /// Name of the server.
    pub server: Option<String>,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Id of the session.
    pub session: Option<String>,
    /// Name of the client.
    pub client: Option<String>,
    /// Path that the entry affects, or a folder that contains such a path.
    pub path: Option<String>,
    /// Decision of the policy.
    pub decision: Option<Status>,
    /// Earliest time, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// Latest time, in milliseconds since the Unix epoch.
    pub until_ms: Option<u64>,
}

impl Filter {
    /// Returns `true` if an entry meets all conditions.
    #[must_use]
    pub fn matches(&self, entry: &Entry) -> bool {
        let matches_field =
            |wanted: &Option<String>, found: &Option<String>| wanted.is_none() || wanted == found;
        let status = entry.policy_decision.as_ref().map(|decision| &decision.status);
        matches_field(&self.server, &entry.server_name)
            && matches_field(&self.tool, &entry.tool_name)
            && matches_field(&self.session, &entry.session)
            && matches_field(&self.client, &entry.client)
            && self.decision.as_ref().is_none_or(|wanted| Some(wanted) == status)
            && self.since_ms.is_none_or(|since| entry.timestamp >= since)
            && self.until_ms.is_none_or(|until| entry.timestamp <= until)
            && self
                .path
                .as_ref()
                .is_none_or(|path| affected_paths(entry).any(|p| Path::new(p).starts_with(path)))
            && self.has_words(entry)
    }

    fn has_words(&self, entry: &Entry) -> bool {
        let Some(text) = &self.text else { return true };
        let words = words_of(entry);
        search_words(text).iter().all(|(word, is_prefix)| match is_prefix {
            true => words.range(word.clone()..).next().is_some_and(|next| next.starts_with(word)),
            false => words.contains(word),
        })
    }
}

/// Conditions of an index query. They select every entry that could match the filter.
pub(super) struct IndexConditions {
    /// Full-text query; `None` selects every entry.
    pub(super) query: Option<String>,
    pub(super) since: u64,
    pub(super) until: u64,
    /// Sequence number below which entries are selected.
    pub(super) before: u64,
}

impl IndexConditions {
    pub(super) fn from_filter(filter: &Filter) -> Self {
        let fields = [
            ("server", filter.server.as_deref()),
            ("tool", filter.tool.as_deref()),
            ("session", filter.session.as_deref()),
            ("client", filter.client.as_deref()),
            ("path", filter.path.as_deref().map(without_slash)),
            ("decision", filter.decision.as_ref().map(Status::as_str)),
        ];
        let keys = fields.into_iter().filter_map(|(field, value)| Some(index_key(field, value?)));
        // The words consist of letters and digits, so they need no escaping.
        let words = filter.text.iter().flat_map(|text| search_words(text));
        let words = words.map(|(word, is_prefix)| format!("\"{word}\"{}", if is_prefix { " *" } else { "" }));
        let terms: Vec<String> = keys.chain(words).collect();
        Self {
            query: (!terms.is_empty()).then(|| terms.join(" AND ")),
            since: filter.since_ms.unwrap_or(0),
            until: filter.until_ms.unwrap_or(u64::MAX),
            before: u64::MAX,
        }
    }
}

/// Returns the text that the index stores for an entry.
pub(super) fn index_text(entry: &Entry) -> String {
    let status = entry.policy_decision.as_ref().map(|decision| decision.status.as_str());
    let fields = [
        ("server", entry.server_name.as_deref()),
        ("tool", entry.tool_name.as_deref()),
        ("session", entry.session.as_deref()),
        ("client", entry.client.as_deref()),
        ("decision", status),
    ];
    let keys = fields.into_iter().filter_map(|(field, value)| Some(index_key(field, value?)));
    let folders: BTreeSet<&Path> =
        affected_paths(entry).flat_map(|path| Path::new(path).ancestors()).collect();
    let folders = folders.into_iter().map(|folder| index_key("path", &folder.to_string_lossy()));
    keys.chain(folders).chain(words_of(entry)).collect::<Vec<_>>().join(" ")
}

/// Returns the index term that represents a field's value.
fn index_key(field: &str, value: &str) -> String {
    let digest = Sha256::new().chain_update(field).chain_update("\n").chain_update(value).finalize();
    let digits: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("k{digits}")
}

fn without_slash(path: &str) -> &str {
    let shorter = path.trim_end_matches('/');
    if shorter.is_empty() { path } else { shorter }
}

/// Splits a search text into words. A word's flag is `true` if the word is a prefix.
fn search_words(text: &str) -> Vec<(String, bool)> {
    let each = text.split_whitespace().flat_map(|given| {
        let is_prefix = given.ends_with('*');
        let words: Vec<String> = words(given).collect();
        let last = words.len().saturating_sub(1);
        words
            .into_iter()
            .enumerate()
            .map(move |(at, word)| (word, is_prefix && at == last))
            .collect::<Vec<_>>()
    });
    each.collect()
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn words_of(entry: &Entry) -> BTreeSet<String> {
    let (mut all, decision) = (BTreeSet::new(), entry.policy_decision.as_ref());
    let mut add_words = |text: &str| {
        let end = text.char_indices().nth(MAX_LEN).map_or(text.len(), |(at, _)| at);
        all.extend(words(text.get(..end).unwrap_or_default()));
    };
    let names = [
        &entry.session,
        &entry.client,
        &entry.server_name,
        &entry.tool_name,
        &entry.method,
        &entry.host,
        &entry.question_id,
        &entry.grant_id,
    ];
    names.into_iter().flatten().for_each(|text| add_words(text));
    add_words(&entry.summary);
    affected_paths(entry).chain(entry.addresses.iter().map(String::as_str)).for_each(&mut add_words);
    decision.iter().flat_map(|decision| [&decision.rule, &decision.reason]).for_each(|text| add_words(text));
    let results =
        [entry.escalation_result.as_ref().map(|r| r.as_str()), entry.result.as_ref().map(|r| r.as_str())];
    results.into_iter().flatten().for_each(&mut add_words);
    entry
        .arguments
        .iter()
        .flat_map(|arguments| arguments.values())
        .for_each(|value| collect_strings(value, &mut add_words));
    all
}

fn collect_strings(value: &Value, add_words: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => add_words(text),
        Value::Array(items) => items.iter().for_each(|item| collect_strings(item, add_words)),
        Value::Object(fields) => fields.values().for_each(|value| collect_strings(value, add_words)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns all paths that an entry affects.
fn affected_paths(entry: &Entry) -> impl Iterator<Item = &str> {
    let found = entry.finding.as_ref().and_then(|finding| match finding {
        FileFinding::Quarantined { path, .. }
        | FileFinding::Restored { path, .. }
        | FileFinding::InPlace { path, .. } => Some(path.as_str()),
        FileFinding::ScanIncomplete { .. } => None,
    });
    entry.paths.iter().map(String::as_str).chain(entry.path.as_deref()).chain(found)
}
