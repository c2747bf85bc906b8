//! Values of one argument that two policies may judge differently.
//!
//! - Rules distinguish values only by their conditions. Each condition on one of the argument's roles contributes
//!   values that match it and values whose match is uncertain. Other values match no condition.
//! - Values from differing rules come first so that they are judged even if the result is incomplete.

use ironcurtain_policy::{Category, HostPattern, ListEntry, Role, Rule};
use std::collections::HashSet;

/// Maximum number of strings to try per argument.
const MAX_STRINGS: usize = 5_000;

/// Maximum number of string pairs to try for an argument that accepts lists.
const MAX_PAIRS: usize = 400;

/// Strings to try for one argument.
#[derive(Default)]
pub(super) struct ProbeStrings {
    /// Strings to try individually.
    pub(super) single: Vec<String>,
    /// Lists of strings to try, for conditions that must hold for every value.
    pub(super) lists: Vec<Vec<String>>,
    pub(super) cut_short: bool,
}

impl ProbeStrings {
    /// Returns strings for an argument with these roles. Empty if no decision depends on them. `descends` is `true`
    /// if a folder may include its contents.
    pub(super) fn collect(rules: &[&Rule], roles: &[Role], descends: bool) -> Self {
        let resource = roles.iter().find(|role| role.is_resource());
        let category = resource.map_or(Category::Opaque, |role| role.category());
        let mut collector =
            Collector { category, seen: HashSet::new(), probes: Self::default(), listed: Vec::new() };
        for rule in rules {
            collector.add_rule_values(rule, roles, descends);
        }
        if resource.is_some() || !collector.probes.single.is_empty() {
            unmentioned_values(category).iter().for_each(|text| collector.add((*text).to_owned()));
        }
        collector.probes.add_pairs(&collector.listed);
        collector.probes
    }

    /// Adds pairs that consist of a listed string and another string, for conditions that must hold for every value.
    fn add_pairs(&mut self, listed: &[String]) {
        let pairs = listed.iter().enumerate().flat_map(|(at, first)| {
            let others =
                self.single.iter().filter(move |other| !listed.iter().take(at + 1).any(|l| l == *other));
            others.map(move |other| vec![first.clone(), other.clone()])
        });
        let mut pairs: Vec<Vec<String>> = pairs.take(MAX_PAIRS + 1).collect();
        self.cut_short |= pairs.len() > MAX_PAIRS;
        pairs.truncate(MAX_PAIRS);
        self.lists.extend(pairs);
    }
}

/// Returns values that no rule mentions. Except for paths, they include a value that `*` does not cover and an
/// invalid target.
fn unmentioned_values(category: Category) -> &'static [&'static str] {
    match category {
        Category::Path => &["/elsewhere/file"],
        Category::Url => &["https://elsewhere.example", "https://192.0.2.1", "nowhere:"],
        Category::Identifier | Category::Opaque => &["elsewhere.example", "192.0.2.1", "no host"],
    }
}

struct Collector {
    category: Category,
    seen: HashSet<String>,
    probes: ProbeStrings,
    /// Values that conditions on hosts or lists mention.
    listed: Vec<String>,
}

impl Collector {
    fn add_rule_values(&mut self, rule: &Rule, roles: &[Role], descends: bool) {
        let condition = &rule.condition;
        let has_common_role = |named: &[Role]| named.iter().any(|role| roles.contains(role));
        if let Some(paths) = condition.paths.as_ref().filter(|paths| has_common_role(&paths.roles)) {
            self.add(paths.within.to_string());
            if let Ok(inside) = paths.within.join("inside") {
                self.add(inside.to_string());
            }
            // The parent contains the folder, so a rule that denies or requires approval may apply to the parent.
            if let Some(parent) = paths.within.parent().filter(|_| descends) {
                self.add(parent.to_string());
            }
        }
        if let Some(domains) = condition.domains.as_ref().filter(|domains| has_common_role(&domains.roles)) {
            self.add_condition_values(domains.allowed.all().iter().flat_map(covered_targets).collect());
        }
        for list in condition.lists.iter().flatten().filter(|list| has_common_role(&list.roles)) {
            let mut words = Vec::new();
            for entry in &list.allowed {
                match entry {
                    ListEntry::Domain(pattern) => words.extend(covered_targets(pattern)),
                    ListEntry::Email(text) | ListEntry::Identifier(text) => {
                        self.add_list_entry(text, &mut words)
                    }
                }
            }
            self.add_condition_values(words);
        }
    }

    /// Adds a list entry, and a different spelling of the entry whose match is uncertain.
    fn add_list_entry(&mut self, text: &str, words: &mut Vec<String>) {
        match self.category {
            Category::Url => {
                self.add(text.to_owned());
                self.listed.push(text.to_owned());
            }
            Category::Opaque => words.extend([text.to_owned(), text.to_uppercase()]),
            Category::Path | Category::Identifier => words.push(text.to_owned()),
        }
    }

    /// Adds a condition's values, each on its own and all together.
    fn add_condition_values(&mut self, words: Vec<String>) {
        let category = self.category;
        let values = words.into_iter().filter_map(|word| match category {
            Category::Path => word.starts_with('/').then_some(word),
            Category::Url => Some(format!("https://{word}")),
            Category::Identifier | Category::Opaque => Some(word),
        });
        let words: Vec<String> = values.take(MAX_STRINGS).collect();
        for word in &words {
            self.add(word.clone());
            if !self.listed.contains(word) && self.listed.len() < MAX_PAIRS {
                self.listed.push(word.clone());
            }
        }
        if words.len() > 2 {
            self.probes.lists.push(words);
        }
    }

    fn add(&mut self, text: String) {
        if self.probes.single.len() >= MAX_STRINGS {
            self.probes.cut_short = true;
        } else if self.seen.insert(text.clone()) {
            self.probes.single.push(text);
        }
    }
}

/// Returns targets that a pattern covers. For a repository, also returns a target that the pattern's author may have
/// meant.
fn covered_targets(pattern: &HostPattern) -> Vec<String> {
    match pattern {
        HostPattern::Any => vec!["elsewhere.example".to_owned()],
        HostPattern::WithSubdomains(host) => vec![host.clone(), format!("below.{host}")],
        HostPattern::Exact(target) if target.contains('/') => vec![target.clone(), format!("{target}.git")],
        HostPattern::Exact(target) => vec![target.clone()],
    }
}
