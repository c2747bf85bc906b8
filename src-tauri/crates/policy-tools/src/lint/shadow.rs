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
    let whole = opaque && rule.condition.paths.is_none() && rule.condition.domains.is_none();
    let mut parts: Vec<Option<Role>> = rule.judged_roles().map(Some).collect();
    if whole {
        parts.push(None);
    }
    let mut by: Vec<&Rule> = Vec::new();
    for part in parts {
        let above = decider(before, rule, part)?;
        if !by.iter().any(|known| known.name() == above.name()) {
            by.push(above);
        }
    }
    let otherwise = by.iter().any(|above| above.then != rule.then);
    (!by.is_empty()).then(|| LintKind::Shadowed {
        by: by.iter().map(|above| above.name().to_string()).collect(),
        otherwise,
    })
}

/// Returns the earlier rule that decides everything that `rule` covers in a role. A role of `None` means calls
/// without resources.
pub(super) fn decider<'a>(before: &[&'a Rule], rule: &Rule, role: Option<Role>) -> Option<&'a Rule> {
    before.iter().copied().find(|above| covers(&above.condition, above, rule, role))
}

/// Returns `true` if the rule `above` covers everything that `rule` covers in a role. A role of `None` means calls
/// without resources.
fn covers(wide: &RuleCondition, above: &Rule, rule: &Rule, role: Option<Role>) -> bool {
    let narrow = &rule.condition;
    let speaks = match role {
        Some(role) => above.judged_roles().any(|spoken| spoken == role),
        None => wide.paths.is_none() && wide.domains.is_none() && is_within(&wide.roles, &narrow.roles),
    };
    let by_values = |condition: &RuleCondition| {
        condition.domains.is_some() || condition.lists.is_some() || condition.reaches_nothing
    };
    let decides_in_doubt = above.then >= rule.then || !by_values(wide) || !by_values(narrow);
    speaks
        && decides_in_doubt
        && (!wide.reaches_nothing || narrow.reaches_nothing)
        && is_within(&wide.server, &narrow.server)
        && is_within(&wide.tool, &narrow.tool)
        && wide.paths.as_ref().is_none_or(|wide| {
            narrow.paths.as_ref().is_some_and(|narrow| wide.within.contains(&narrow.within))
        })
        && wide
            .domains
            .as_ref()
            .is_none_or(|wide| narrow.domains.as_ref().is_some_and(|narrow| all_covered(wide, narrow)))
        && wide.lists.iter().flatten().all(|wide| narrow.lists.iter().flatten().any(|narrow| wide == narrow))
}

fn is_within<T: PartialEq>(wide: &Option<Vec<T>>, narrow: &Option<Vec<T>>) -> bool {
    let Some(wide) = wide else { return true };
    narrow.as_ref().is_some_and(|narrow| narrow.iter().all(|name| wide.contains(name)))
}

fn all_covered(wide: &DomainsCondition, narrow: &DomainsCondition) -> bool {
    narrow.allowed.all().iter().all(|narrow| wide.allowed.all().iter().any(|wide| wide.includes(narrow)))
}
