//! Values of one argument that two policies may judge differently.
//!
//! - Rules distinguish values only by their conditions. Each condition on one of the argument's roles contributes
//!   values that match it and values whose match is uncertain. Other values match no condition.
//! - Values from differing rules come first, so that they are judged even if the result is incomplete.

use ironcurtain_policy::{Category, HostPattern, ListEntry, Role, Rule};
use std::collections::HashSet;

/// Maximum number of strings to try per argument.
const MAX_TEXTS: usize = 5_000;

/// Maximum number of string pairs to try for an argument that accepts lists.
const MAX_PAIRS: usize = 400;

/// Strings to try for one argument.
#[derive(Default)]
pub(super) struct Texts {
    /// Strings to try individually.
    pub(super) single: Vec<String>,
    /// Lists of strings to try, for conditions that must hold for every value.
    pub(super) several: Vec<Vec<String>>,
    pub(super) cut_short: bool,
}

impl Texts {
    /// Returns strings for an argument with these roles. Empty if no decision depends on them. `descends` is `true`
    /// if a folder may include its contents.
    pub(super) fn of(rules: &[&Rule], roles: &[Role], descends: bool) -> Self {
        let resource = roles.iter().find(|role| role.is_resource());
        let category = resource.map_or(Category::Opaque, |role| role.category());
        let mut found =
            Collector { category, seen: HashSet::new(), texts: Self::default(), listed: Vec::new() };
        for rule in rules {
            found.named_by(rule, roles, descends);
        }
        if resource.is_some() || !found.texts.single.is_empty() {
            elsewhere(category).iter().for_each(|text| found.add((*text).to_owned()));
        }
        found.texts.pair(&found.listed);
        found.texts
    }

    /// Adds pairs that consist of a listed string and another string, for conditions that must hold for every value.
    fn pair(&mut self, listed: &[String]) {
        let pairs = listed.iter().enumerate().flat_map(|(at, one)| {
            let others =
                self.single.iter().filter(move |other| !listed.iter().take(at + 1).any(|l| l == *other));
            others.map(move |other| vec![one.clone(), other.clone()])
        });
        let mut pairs: Vec<Vec<String>> = pairs.take(MAX_PAIRS + 1).collect();
        self.cut_short |= pairs.len() > MAX_PAIRS;
        pairs.truncate(MAX_PAIRS);
        self.several.extend(pairs);
    }
}

/// Returns values that no rule mentions. Except for paths, they include a value that `*` does not cover and an
/// invalid target.
fn elsewhere(category: Category) -> &'static [&'static str] {
    match category {
        Category::Path => &["/elsewhere/file"],
        Category::Url => &["https://elsewhere.example", "https://192.0.2.1", "nowhere:"],
        Category::Identifier | Category::Opaque => &["elsewhere.example", "192.0.2.1", "no host"],
    }
}

struct Collector {
    category: Category,
    seen: HashSet<String>,
    texts: Texts,
    /// Values that conditions on hosts or lists mention.
    listed: Vec<String>,
}

impl Collector {
    fn named_by(&mut self, rule: &Rule, roles: &[Role], descends: bool) {
        let condition = &rule.condition;
        let meets = |named: &[Role]| named.iter().any(|role| roles.contains(role));
        if let Some(paths) = condition.paths.as_ref().filter(|paths| meets(&paths.roles)) {
            self.add(paths.within.to_string());
            if let Ok(inside) = paths.within.join("inside") {
                self.add(inside.to_string());
            }
            // The parent contains the folder, so a rule that denies or requires approval may apply to the parent.
            if let Some(above) = paths.within.parent().filter(|_| descends) {
                self.add(above.to_string());
            }
        }
        if let Some(domains) = condition.domains.as_ref().filter(|domains| meets(&domains.roles)) {
            self.list(domains.allowed.all().iter().flat_map(places).collect());
        }
        for list in condition.lists.iter().flatten().filter(|list| meets(&list.roles)) {
            let mut words = Vec::new();
            for entry in &list.allowed {
                match entry {
                    ListEntry::Domain(pattern) => words.extend(places(pattern)),
                    ListEntry::Email(text) | ListEntry::Identifier(text) => {
                        self.listed_as_is(text, &mut words)
                    }
                }
            }
            self.list(words);
        }
    }

    /// Adds a list entry, and a different spelling of the entry whose match is uncertain.
    fn listed_as_is(&mut self, text: &str, words: &mut Vec<String>) {
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
    fn list(&mut self, words: Vec<String>) {
        let category = self.category;
        let spelled = words.into_iter().filter_map(|word| match category {
            Category::Path => word.starts_with('/').then_some(word),
            Category::Url => Some(format!("https://{word}")),
            Category::Identifier | Category::Opaque => Some(word),
        });
        let words: Vec<String> = spelled.take(MAX_TEXTS).collect();
        for word in &words {
            self.add(word.clone());
            if !self.listed.contains(word) && self.listed.len() < MAX_PAIRS {
                self.listed.push(word.clone());
            }
        }
        if words.len() > 2 {
            self.texts.several.push(words);
        }
    }

    fn add(&mut self, text: String) {
        if self.texts.single.len() >= MAX_TEXTS {
            self.texts.cut_short = true;
        } else if self.seen.insert(text.clone()) {
            self.texts.single.push(text);
        }
    }
}

/// Returns targets that a pattern covers. For a repository, also returns a target that the pattern's author may have
/// meant.
fn places(pattern: &HostPattern) -> Vec<String> {
    match pattern {
        HostPattern::Any => vec!["elsewhere.example".to_owned()],
        HostPattern::Below(host) => vec![host.clone(), format!("below.{host}")],
        HostPattern::Exact(place) if place.contains('/') => vec![place.clone(), format!("{place}.git")],
        HostPattern::Exact(place) => vec![place.clone()],
    }
}
