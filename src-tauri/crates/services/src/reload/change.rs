//! Creates audit entries for configuration changes.

use ironcurtain_audit::{Entry, Event, PolicyChange, PolicyEffect};
use ironcurtain_config::{PolicySnapshot, Servers, SessionSettings};
use ironcurtain_policy::OpenFolder;
use ironcurtain_policy_tools::diff::{Difference, diff, diff_rules};
use std::collections::BTreeSet;

/// Creates the audit entry for a changed policy.
pub(super) fn policy_entry(before: &PolicySnapshot, now: &PolicySnapshot) -> Entry {
    let rules = diff_rules(&before.policy, &now.policy);
    let closed = closed_folders(before, now);
    let mut entry = Entry::new(Event::Policy, summary(before, now, &rules, closed.len()));
    entry.policy_hash = Some(now.hash.clone());
    entry.policy_change = Some(PolicyChange {
        before: before.hash.clone(),
        added: rules.added,
        removed: rules.removed,
        changed: rules.changed,
        closed,
    });
    entry
}

/// Returns the folders to which any server lost some or all access.
fn closed_folders(before: &PolicySnapshot, now: &PolicySnapshot) -> Vec<String> {
    let closed: BTreeSet<String> = before
        .annotations
        .servers()
        .flat_map(|server| {
            let with_current_hosts = now.open_folders(server);
            let stays = move |open: &OpenFolder| {
                with_current_hosts
                    .iter()
                    .any(|now| now.path.contains(&open.path) && (now.writable || !open.writable))
            };
            before.open_folders(server).into_iter().filter(move |open| !stays(open))
        })
        .map(|open| open.path.to_string())
        .collect();
    closed.into_iter().collect()
}

/// Creates the audit entry that describes a policy change's effect, by judging synthetic calls against both policies.
/// Slow if there are many rules.
pub(super) fn effect_entry(before: &PolicySnapshot, now: &PolicySnapshot) -> Entry {
    let difference = diff(&before.policy, &now.policy, &now.annotations);
    let looser = difference.decisions.iter().filter(|change| change.is_looser()).count();
    let stricter = difference.decisions.len() - looser;
    let cut_short = difference.cut_short.len();
    let mut summary = format!("call types with a different decision: {looser} looser, {stricter} stricter");
    if cut_short > 0 {
        summary.push_str(&format!("; the comparison is incomplete for {cut_short} of the tools"));
    }
    let mut entry = Entry::new(Event::Policy, summary);
    entry.policy_hash = Some(now.hash.clone());
    entry.policy_effect = Some(PolicyEffect { before: before.hash.clone(), looser, stricter, cut_short });
    entry
}

/// Creates the audit entry for changed settings or servers.
pub(super) fn settings_entry(before: &SessionSettings, now: &SessionSettings) -> Entry {
    let servers = (before.servers != now.servers).then(|| servers(&before.servers, &now.servers));
    let settings = (before.config != now.config).then(|| "the settings changed".to_owned());
    let all: Vec<String> = servers.into_iter().chain(settings).collect();
    Entry::new(Event::Policy, format!("for new sessions {}", all.join("; ")))
}

fn summary(before: &PolicySnapshot, now: &PolicySnapshot, rules: &Difference, closed: usize) -> String {
    let counts = [("new", &rules.added), ("removed", &rules.removed), ("changed", &rules.changed)];
    let counts = counts.into_iter().filter(|(_, names)| !names.is_empty());
    let mut what: Vec<String> =
        counts.map(|(how, names)| format!("{} {how} {}", names.len(), plural(names.len()))).collect();
    let others = [
        (rules.reordered, "rules reordered"),
        (before.annotations != now.annotations, "changed tool annotations"),
        (before.allowed_hosts != now.allowed_hosts, "changed hosts of servers"),
        (before.protected != now.protected, "changed protected paths"),
    ];
    what.extend(others.into_iter().filter(|(differs, _)| *differs).map(|(_, what)| what.to_owned()));
    if closed > 0 {
        what.push(format!("{closed} {} no longer open", if closed == 1 { "folder" } else { "folders" }));
    }
    if what.is_empty() {
        what.push("no rule changed, only their text or their resolved paths".to_owned());
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
    let all = [("new", missing(before, now)), ("removed", missing(now, before)), ("changed", changed)];
    let all = all.into_iter().filter(|(_, names)| !names.is_empty());
    let all: Vec<String> = all.map(|(how, names)| format!("{how}: {}", names.join(", "))).collect();
    format!("the servers changed ({})", all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::home::Home;
    use serde_json::json;

    /// Returns a policy with one rule for each of `folders` folders. `first` is the first rule's decision.
    fn snapshot(home: &Home, folders: usize, first: &str) -> PolicySnapshot {
        let rule = |at: usize| {
            let then = if at == 0 { first } else { "escalate" };
            let within = json!({ "roles": ["read-path", "write-path", "delete-path"], "within": format!("/srv/{at}") });
            json!({ "name": format!("r{at}"), "if": { "paths": within }, "then": then })
        };
        let policy = json!({ "rules": (0..folders).map(rule).collect::<Vec<_>>() });
        std::fs::write(home.policy().join("compiled-policy.json"), policy.to_string()).unwrap();
        PolicySnapshot::load(home, &Servers::load(home).unwrap()).unwrap()
    }

    #[test]
    fn the_effect_of_a_change_names_incomplete_comparisons() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let home = Home::under(&base.join("ic"), &base);
        home.prepare().unwrap();
        for (folders, cut_short) in [(2, 0), (100, 1)] {
            let (before, now) = (snapshot(&home, folders, "deny"), snapshot(&home, folders, "escalate"));
            let entry = effect_entry(&before, &now);
            let effect = entry.policy_effect.unwrap();
            assert!(effect.looser > 0, "{effect:?}");
            assert_eq!((effect.stricter, effect.cut_short), (0, cut_short), "{}", entry.summary);
            let is_incomplete = entry.summary.ends_with("; the comparison is incomplete for 1 of the tools");
            assert_eq!(is_incomplete, cut_short == 1, "{}", entry.summary);
        }
    }
}
