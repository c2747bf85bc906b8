//! Finds rules that are too broad.

use super::{LintKind, Tools, shadow};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Category, Decision, HostPattern, ListEntry, Role, Rule};

/// Returns the parts of a rule that are too broad, with their fields. Omits parts that earlier rules decide.
pub(super) fn find(
    before: &[&Rule],
    rule: &Rule,
    tools: &Tools<'_>,
    home: &CanonicalPath,
) -> Vec<(&'static str, LintKind)> {
    let mut found = Vec::new();
    if rule.denies() {
        return found;
    }
    let condition = &rule.condition;
    if let Some(within) = rule.within().filter(|within| within.contains(home)) {
        found.push(("if.paths.within", LintKind::BroadFolder(within.clone())));
    }
    let any = |pattern: &HostPattern| *pattern == HostPattern::Any;
    if condition.domains.as_ref().is_some_and(|domains| domains.allowed.all().iter().any(any)) {
        found.push(("if.domains.allowed", LintKind::AnyHost));
    }
    let mut entries = condition.lists.iter().flatten().flat_map(|list| &list.allowed);
    if entries.any(|entry| matches!(entry, ListEntry::Domain(pattern) if any(pattern))) {
        found.push(("if.lists", LintKind::AnyHost));
    }
    let everything = everything(before, rule, tools);
    if !everything.is_empty() {
        found.push(("if", LintKind::Everything(everything)));
    }
    found
}

/// Returns the roles for which an allow rule allows any path or host. Omits roles that earlier rules decide.
fn everything(before: &[&Rule], rule: &Rule, tools: &Tools<'_>) -> Vec<Role> {
    let condition = &rule.condition;
    let narrowed = condition.reaches_nothing
        || condition.paths.is_some()
        || condition.domains.is_some()
        || condition.lists.as_ref().is_some_and(|lists| !lists.is_empty());
    if rule.then != Decision::Allow || narrowed {
        return Vec::new();
    }
    let carried: Vec<Role> = tools.named_by(condition).flat_map(super::Tool::roles).collect();
    let names_a_place = |role: &Role| match role.category() {
        Category::Path | Category::Url => true,
        Category::Identifier => *role == Role::ProxyDomain,
        Category::Opaque => false,
    };
    let opens = |role: &Role| shadow::decider(before, rule, Some(*role)).is_none();
    rule.judged_roles().filter(|role| names_a_place(role) && carried.contains(role) && opens(role)).collect()
}
