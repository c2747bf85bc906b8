//! Values for one argument, in which two policies may differ.
//!
//! - A rule sees of a value only which of its conditions hold for it. For every condition about a role of the argument
//!   there are values for which it holds, values for which it may be meant, and besides some for which none does.
//! - What rules that differ name comes first: it is judged, however much is cut short.

use ironcurtain_policy::HostPattern;
use ironcurtain_policy::ListEntry;
use ironcurtain_policy::{Category, Role, Rule};
use std::collections::HashSet;

/// The most texts for one argument.
const MOST_TEXTS: usize = 5_000;

/// The most pairs of texts for an argument that takes several.
const MOST_PAIRS: usize = 400;

/// Texts for one argument.
#[derive(Default)]
pub(super) struct Texts {
    /// One by one.
    pub(super) single: Vec<String>,
    /// Several together, for what some rule wants to hold for all of them.
    pub(super) several: Vec<Vec<String>>,
    pub(super) cut_short: bool,
}

impl Texts {
    /// Texts for an argument that can carry these roles. Empty when nothing depends on what it holds.
    pub(super) fn of(rules: &[&Rule], roles: &[Role]) -> Self {
        let resource = roles.iter().find(|role| role.is_resource());
        let category = resource.map_or(Category::Opaque, |role| role.category());
        let mut found =
            Collector { category, seen: HashSet::new(), texts: Self::default(), listed: Vec::new() };
        for rule in rules {
            found.named_by(rule, roles);
        }
        if resource.is_some() || !found.texts.single.is_empty() {
            elsewhere(category).iter().for_each(|text| found.add((*text).to_owned()));
        }
        found.texts.pair(&found.listed);
        found.texts
    }

    /// RuleCondition about all values of a role hold for some values together and not for others.
    fn pair(&mut self, listed: &[String]) {
        let pairs = listed.iter().enumerate().flat_map(|(at, one)| {
            let others =
                self.single.iter().filter(move |other| !listed.iter().take(at + 1).any(|l| l == *other));
            others.map(move |other| vec![one.clone(), other.clone()])
        });
        let mut pairs: Vec<Vec<String>> = pairs.take(MOST_PAIRS + 1).collect();
        self.cut_short |= pairs.len() > MOST_PAIRS;
        pairs.truncate(MOST_PAIRS);
        self.several.extend(pairs);
    }
}

/// Values that no rule names; beside paths also one that not even `*` covers, and one that is no place at all.
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
    /// The values named by conditions about all values of a role.
    listed: Vec<String>,
}

impl Collector {
    fn named_by(&mut self, rule: &Rule, roles: &[Role]) {
        let condition = &rule.condition;
        let meets = |named: &[Role]| named.iter().any(|role| roles.contains(role));
        if let Some(paths) = condition.paths.as_ref().filter(|paths| meets(&paths.roles)) {
            self.add(paths.within.to_string());
            if let Ok(inside) = paths.within.join("inside") {
                self.add(inside.to_string());
            }
            // What is moved or removed takes the folder along: a rule that asks or denies may be meant.
            if let Some(above) = paths.within.parent().filter(|_| roles.iter().any(|role| role.descends())) {
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

    /// A text that a value must be, letter by letter. In other letters it may be meant.
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

    /// Adds the values that one condition names, by themselves and all together.
    fn list(&mut self, words: Vec<String>) {
        let category = self.category;
        let spelled = words.into_iter().filter_map(|word| match category {
            Category::Path => word.starts_with('/').then_some(word),
            Category::Url => Some(format!("https://{word}")),
            Category::Identifier | Category::Opaque => Some(word),
        });
        let words: Vec<String> = spelled.take(MOST_TEXTS).collect();
        for word in &words {
            self.add(word.clone());
            if !self.listed.contains(word) && self.listed.len() < MOST_PAIRS {
                self.listed.push(word.clone());
            }
        }
        if words.len() > 2 {
            self.texts.several.push(words);
        }
    }

    fn add(&mut self, text: String) {
        if self.texts.single.len() >= MOST_TEXTS {
            self.texts.cut_short = true;
        } else if self.seen.insert(text.clone()) {
            self.texts.single.push(text);
        }
    }
}

/// Places that a pattern covers, and one that it may be meant for.
fn places(pattern: &HostPattern) -> Vec<String> {
    match pattern {
        HostPattern::Any => vec!["elsewhere.example".to_owned()],
        HostPattern::Below(host) => vec![host.clone(), format!("below.{host}")],
        HostPattern::Exact(place) if place.contains('/') => vec![place.clone(), format!("{place}.git")],
        HostPattern::Exact(place) => vec![place.clone()],
    }
}
