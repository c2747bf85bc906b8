//! Finds rules whose conditions can never hold, and conditions that are probably mistakes.

use super::{LintKind, Tool, Tools};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Decision, JudgedRequest, ListEntry, ProtectedPaths, Role, Rule, RuleCondition};

/// Characters that are wildcards or variables in other programs but literal in a rule's folder.
const WILDCARDS: [char; 3] = ['*', '?', '$'];

/// Returns a field and a reason if a rule can never apply.
pub(super) fn find(
    rule: &Rule,
    tools: &Tools<'_>,
    protected: &ProtectedPaths,
) -> Option<(&'static str, LintKind)> {
    let condition = &rule.condition;
    let dead = |field: &'static str, why: &str| Some((field, LintKind::Dead(why.to_owned())));
    if let Some(field) = empty_field(rule) {
        return dead(field, "is empty, so it never matches");
    }
    let covers_whole_calls = condition.paths.is_none() && condition.domains.is_none();
    if rule.judged_roles().next().is_none() && !covers_whole_calls {
        return dead("if", "its conditions have no role in common");
    }
    if rule.judged_roles().next().is_some() && rule.judged_roles().all(|role| excludes(condition, role)) {
        return dead("if.lists", "no path on the list is in the folder");
    }
    if let Some(within) = rule.within().filter(|within| !rule.is_managed() && protected.covers(within))
        && !rule.denies()
    {
        return Some(("if.paths.within", LintKind::ProtectedFolder(within.clone())));
    }
    // A rule without server and tool names also applies to tools that are annotated later.
    if condition.server.is_none() && condition.tool.is_none() {
        return None;
    }
    // Every server supports these requests, even without annotations.
    if condition.tool.iter().flatten().any(|name| JudgedRequest::parse(name).is_some()) {
        return None;
    }
    let mut named = tools.named_by(condition).peekable();
    if named.peek().is_none() {
        let has_server = |name: &String| tools.0.iter().any(|tool| tool.server == name);
        let servers = condition.server.as_ref();
        let is_server = servers.is_some_and(|servers| !servers.iter().any(has_server));
        let field = if is_server || condition.tool.is_none() { "if.server" } else { "if.tool" };
        return dead(field, "matches no annotated tool");
    }
    if !named.any(|tool| can_cover(rule, tool, covers_whole_calls)) {
        if let Some(skipped) = skipped_tools(rule, tools) {
            return Some(skipped);
        }
        return dead("if.roles", "no matching tool has an argument with these roles");
    }
    None
}

/// Returns a finding if a rule on opaque roles, such as an email address or a commit message, does not apply to some
/// tools because their resources are judged instead.
pub(super) fn skipped_tools(rule: &Rule, tools: &Tools<'_>) -> Option<(&'static str, LintKind)> {
    let condition = &rule.condition;
    let listed = || condition.lists.iter().flatten().flat_map(|list| &list.roles);
    let has_role = |role: Role| {
        condition
            .roles
            .iter()
            .flatten()
            .chain(listed())
            .any(|listed_role| *listed_role == role && role != Role::None)
    };
    if rule.judged_roles().next().is_some() || condition.paths.is_some() || condition.domains.is_some() {
        return None;
    }
    let skipped =
        tools.named_by(condition).filter(|tool| !tool.may_have_no_resource() && tool.roles().any(has_role));
    let skipped: Vec<String> = skipped.map(|tool| format!("{}/{}", tool.server, tool.name)).collect();
    let field = if condition.lists.iter().flatten().next().is_some() { "if.lists" } else { "if.roles" };
    (!skipped.is_empty()).then_some((field, LintKind::SkippedTools(skipped)))
}

/// Returns `true` if a rule can cover a value in any call to a tool. `covers_whole_calls` is `true` if it can cover
/// calls without resources.
fn can_cover(rule: &Rule, tool: &Tool<'_>, covers_whole_calls: bool) -> bool {
    let roles = &rule.condition.roles;
    let has_rule_role = || roles.as_ref().is_none_or(|roles| tool.roles().any(|role| roles.contains(&role)));
    let rule_role = tool.roles().any(|role| rule.judged_roles().any(|rule_role| rule_role == role));
    rule_role || covers_whole_calls && tool.may_have_no_resource() && has_rule_role()
}

/// Returns an empty field that prevents a rule from matching, or `None`. A rule that denies or requires approval by
/// hosts can have uncertain matches even if its list of hosts is empty.
pub(super) fn empty_field(rule: &Rule) -> Option<&'static str> {
    let condition = &rule.condition;
    let is_empty_list = |names: &Option<Vec<String>>| names.as_ref().is_some_and(Vec::is_empty);
    if is_empty_list(&condition.server) {
        return Some("if.server");
    }
    if is_empty_list(&condition.tool) {
        return Some("if.tool");
    }
    if condition.roles.as_ref().is_some_and(Vec::is_empty) {
        return Some("if.roles");
    }
    let allow_hosts = condition.domains.as_ref().filter(|_| rule.then == Decision::Allow);
    if allow_hosts.is_some_and(|domains| domains.allowed.all().is_empty()) {
        return Some("if.domains.allowed");
    }
    condition.lists.iter().flatten().any(|list| list.allowed.is_empty()).then_some("if.lists")
}

/// Returns `true` if a list condition on a role contains no path inside the rule's folder.
fn excludes(condition: &RuleCondition, role: Role) -> bool {
    let Some(paths) = &condition.paths else { return false };
    let is_within = |entry: &ListEntry| match entry {
        ListEntry::Identifier(text) => {
            CanonicalPath::assume_canonical(text).is_ok_and(|path| paths.within.contains(&path))
        }
        // Only entries of the type `identifiers` are paths.
        ListEntry::Domain(_) | ListEntry::Email(_) => true,
    };
    let mut lists = condition.lists.iter().flatten().filter(|list| list.roles.contains(&role));
    lists.any(|list| !list.allowed.iter().any(is_within))
}

/// Finds unknown names, and wildcard characters in folders. A rule whose names are all unknown is reported as
/// dead instead.
pub(super) fn unknown_names(rule: &Rule, tools: &Tools<'_>) -> Vec<(&'static str, LintKind)> {
    let condition = &rule.condition;
    let mut found = Vec::new();
    let unknown = |name: &String| LintKind::UnknownName(name.clone());
    if tools.named_by(condition).next().is_some() {
        let servers = condition.server.iter().flatten();
        let servers = servers.filter(|name| !tools.0.iter().any(|tool| tool.server == *name));
        found.extend(servers.map(|name| ("if.server", unknown(name))));
        let servers_only = RuleCondition { server: condition.server.clone(), ..RuleCondition::default() };
        let names = condition.tool.iter().flatten();
        let names = names.filter(|name| JudgedRequest::parse(name).is_none());
        let names = names.filter(|name| !tools.named_by(&servers_only).any(|tool| tool.name == *name));
        found.extend(names.map(|name| ("if.tool", unknown(name))));
    }
    let written = condition.paths.as_ref().map(|paths| paths.written.as_str()).unwrap_or_default();
    let wildcard = written.chars().find(|letter| WILDCARDS.contains(letter));
    found.extend(wildcard.map(|letter| ("if.paths.within", LintKind::Wildcard(letter))));
    found
}
