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
    let unrestricted_roles = unrestricted_roles(before, rule, tools);
    if !unrestricted_roles.is_empty() {
        found.push(("if", LintKind::Everything(unrestricted_roles)));
    }
    found
}

/// Returns the roles for which an allow rule allows any path or host. Omits roles that earlier rules decide.
fn unrestricted_roles(before: &[&Rule], rule: &Rule, tools: &Tools<'_>) -> Vec<Role> {
    let condition = &rule.condition;
    let is_restricted = condition.reaches_nothing
        || condition.paths.is_some()
        || condition.domains.is_some()
        || condition.lists.as_ref().is_some_and(|lists| !lists.is_empty());
    if rule.then != Decision::Allow || is_restricted {
        return Vec::new();
    }
    let tool_roles: Vec<Role> = tools.named_by(condition).flat_map(super::Tool::roles).collect();
    let names_a_target = |role: &Role| match role.category() {
        Category::Path | Category::Url => true,
        Category::Identifier => *role == Role::ProxyDomain,
        Category::Opaque => false,
    };
    let is_undecided = |role: &Role| shadow::deciding_rule(before, rule, Some(*role)).is_none();
    rule.judged_roles()
        .filter(|role| names_a_target(role) && tool_roles.contains(role) && is_undecided(role))
        .collect()
}
