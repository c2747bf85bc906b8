//! Finds rules that have no effect because earlier rules decide all their calls.
//!
//! - Rules and roles are compared one by one, so the check does not detect a folder that is covered only by several
//!   earlier rules together.
//! - A rule that denies or requires approval by hosts or lists also decides uncertain matches, unlike a less strict
//!   rule.

use super::LintKind;
use ironcurtain_policy::{DomainsCondition, Role, Rule, RuleCondition};

/// Returns a finding if earlier rules decide everything that `rule` covers.
pub(super) fn find(before: &[&Rule], rule: &Rule) -> Option<LintKind> {
    // Calls without resources are judged as a whole rather than by role.
    let opaque =
        rule.condition.roles.as_ref().is_none_or(|roles| roles.iter().any(|role| !role.is_resource()));
    let covers_whole_calls = opaque && rule.condition.paths.is_none() && rule.condition.domains.is_none();
    let mut roles: Vec<Option<Role>> = rule.judged_roles().map(Some).collect();
    if covers_whole_calls {
        roles.push(None);
    }
    let mut deciding_rules: Vec<&Rule> = Vec::new();
    for role in roles {
        let earlier = deciding_rule(before, rule, role)?;
        if !deciding_rules.iter().any(|known| known.name() == earlier.name()) {
            deciding_rules.push(earlier);
        }
    }
    let has_other_decision = deciding_rules.iter().any(|earlier| earlier.then != rule.then);
    (!deciding_rules.is_empty()).then(|| LintKind::Shadowed {
        by: deciding_rules.iter().map(|earlier| earlier.name().to_string()).collect(),
        has_other_decision,
    })
}

/// Returns the earlier rule that decides everything that `rule` covers in a role. A role of `None` means calls
/// without resources.
pub(super) fn deciding_rule<'a>(before: &[&'a Rule], rule: &Rule, role: Option<Role>) -> Option<&'a Rule> {
    before.iter().copied().find(|earlier| covers(&earlier.condition, earlier, rule, role))
}

/// Returns `true` if the rule `earlier` covers everything that `rule` covers in a role. A role of `None` means calls
/// without resources.
fn covers(broad: &RuleCondition, earlier: &Rule, rule: &Rule, role: Option<Role>) -> bool {
    let narrow = &rule.condition;
    let applies = match role {
        Some(role) => earlier.judged_roles().any(|earlier_role| earlier_role == role),
        None => broad.paths.is_none() && broad.domains.is_none() && is_within(&broad.roles, &narrow.roles),
    };
    let has_value_conditions = |condition: &RuleCondition| {
        condition.domains.is_some() || condition.lists.is_some() || condition.reaches_nothing
    };
    let decides_in_doubt =
        earlier.then >= rule.then || !has_value_conditions(broad) || !has_value_conditions(narrow);
    applies
        && decides_in_doubt
        && (!broad.reaches_nothing || narrow.reaches_nothing)
        && is_within(&broad.server, &narrow.server)
        && is_within(&broad.tool, &narrow.tool)
        && broad.paths.as_ref().is_none_or(|broad| {
            narrow.paths.as_ref().is_some_and(|narrow| broad.within.contains(&narrow.within))
        })
        && broad
            .domains
            .as_ref()
            .is_none_or(|broad| narrow.domains.as_ref().is_some_and(|narrow| all_covered(broad, narrow)))
        && broad
            .lists
            .iter()
            .flatten()
            .all(|broad| narrow.lists.iter().flatten().any(|narrow| broad == narrow))
}

fn is_within<T: PartialEq>(broad: &Option<Vec<T>>, narrow: &Option<Vec<T>>) -> bool {
    let Some(broad) = broad else { return true };
    narrow.as_ref().is_some_and(|narrow| narrow.iter().all(|name| broad.contains(name)))
}

fn all_covered(broad: &DomainsCondition, narrow: &DomainsCondition) -> bool {
    narrow.allowed.all().iter().all(|narrow| broad.allowed.all().iter().any(|broad| broad.includes(narrow)))
}
