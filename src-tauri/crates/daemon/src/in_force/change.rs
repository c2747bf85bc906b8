//! How a change of what is in force is told in the audit log.

use super::Settings;
use crate::audit::{Entry, Event, PolicyChange, PolicyEffect};
use crate::config::Servers;
use crate::law::Law;
use ironcurtain_policy::diff::{Difference, diff, diff_rules};

/// Another law.
pub(super) fn of_law(before: &Law, now: &Law) -> Entry {
    let rules = diff_rules(&before.policy, &now.policy);
    let mut entry = Entry::new(Event::Policy, summary(before, now, &rules));
    entry.policy_hash = Some(now.hash.clone());
    entry.policy_change = Some(PolicyChange {
        before: before.hash.clone(),
        added: rules.added,
        removed: rules.removed,
        changed: rules.changed,
    });
    entry
}

/// What that comes to: made-up calls are judged by both, which takes a while when there are many rules.
pub(super) fn effect(before: &Law, now: &Law) -> Entry {
    let changes = diff(&before.policy, &now.policy, &now.annotations, &now.home).decisions;
    let looser = changes.iter().filter(|change| change.is_looser()).count();
    let stricter = changes.len() - looser;
    let summary = format!("kinds of calls that come out otherwise: {looser} looser, {stricter} stricter");
    let mut entry = Entry::new(Event::Policy, summary);
    entry.policy_hash = Some(now.hash.clone());
    entry.policy_effect = Some(PolicyEffect { before: before.hash.clone(), looser, stricter });
    entry
}

/// Other settings, or other servers.
pub(super) fn of_settings(before: &Settings, now: &Settings) -> Entry {
    let servers = (before.servers != now.servers).then(|| servers(&before.servers, &now.servers));
    let settings = (before.config != now.config).then(|| "the settings changed".to_owned());
    let all: Vec<String> = servers.into_iter().chain(settings).collect();
    Entry::new(Event::Policy, format!("for new sessions {}", all.join("; ")))
}

fn summary(before: &Law, now: &Law, rules: &Difference) -> String {
    let counts = [("new", &rules.added), ("gone", &rules.removed), ("changed", &rules.changed)];
    let counts = counts.into_iter().filter(|(_, names)| !names.is_empty());
    let mut what: Vec<String> =
        counts.map(|(how, names)| format!("{} {how} {}", names.len(), plural(names.len()))).collect();
    let others = [
        (rules.reordered, "another order of the rules"),
        (before.annotations != now.annotations, "other annotations of tools"),
        (before.gates != now.gates, "other hosts of servers"),
        (before.protected != now.protected, "other protected paths"),
    ];
    what.extend(others.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what.to_owned()));
    if what.is_empty() {
        what.push("the same rules, written or resolved in another way".to_owned());
    }
    format!("the policy changed: {}", what.join(", "))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "rule" } else { "rules" }
}

fn servers(before: &Servers, now: &Servers) -> String {
    let missing = |from: &Servers, of: &Servers| -> Vec<String> {
        let missing = of.names().filter(|name| from.find(Some(name)).is_none());
        missing.map(|name| format!("`{name}`")).collect()
    };
    let differs = |name: &&str| {
        before.find(Some(name)).is_some_and(|server| now.find(Some(name)).is_some_and(|new| new != server))
    };
    let changed: Vec<String> = now.names().filter(differs).map(|name| format!("`{name}`")).collect();
    let all = [("new", missing(before, now)), ("gone", missing(now, before)), ("changed", changed)];
    let all = all.into_iter().filter(|(_, names)| !names.is_empty());
    let all: Vec<String> = all.map(|(how, names)| format!("{how}: {}", names.join(", "))).collect();
    format!("the servers changed ({})", all.join("; "))
}
