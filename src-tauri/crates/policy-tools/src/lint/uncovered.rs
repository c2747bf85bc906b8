//! Finds tools and roles that no rule covers.
//!
//! - Findings are based on generated calls, so a conditional role is considered only in calls that meet its condition.

use super::{LintFinding, LintKind, Tool, dead};
use crate::diff::role_sets;
use ironcurtain_policy::{Annotations, Category, Policy, Role, RoleSet, Rule};
use std::fmt;

/// Calls that are denied because no rule covers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gap {
    /// All calls to a tool that has no resources.
    Call,
    /// Calls without a resource to a tool that can have resources.
    EmptyCall,
    /// Calls with a value that has this role.
    Role(Role),
}

/// Returns one tool's gaps as findings.
pub(super) fn find(policy: &Policy, annotations: &Annotations, tool: &Tool<'_>) -> Vec<LintFinding> {
    // Calls that list the allowed folders are always allowed.
    if tool.server == "filesystem" && tool.name == "list_allowed_directories" {
        return Vec::new();
    }
    let rules = policy.rules_for(tool.server, tool.name);
    // A rule for servers that reach nothing does not decide on calls to other servers.
    let may_cover = |rule: &&Rule| dead::empty_field(rule).is_none() && !rule.condition.reaches_nothing;
    let rules: Vec<&Rule> = rules.filter(may_cover).collect();
    let mut gaps = Vec::new();
    for role_set in role_sets(annotations, tool.server, tool.name, tool.annotation) {
        let mut resources = role_set.iter().filter(|role| role.is_resource()).peekable();
        if resources.peek().is_none() && !rules.iter().any(|rule| covers_calls(rule, role_set)) {
            let has_resource_role = tool.roles().any(Role::is_resource);
            gaps.push(if has_resource_role { Gap::EmptyCall } else { Gap::Call });
        }
        for role in resources {
            if !rules.iter().any(|rule| rule.judged_roles().any(|rule_role| rule_role == role)) {
                gaps.push(Gap::Role(role));
            }
        }
    }
    let mut findings = Vec::new();
    for gap in gaps {
        let kind = LintKind::Uncovered(gap);
        let finding = LintFinding { rule: None, field: format!("{}/{}", tool.server, tool.name), kind };
        if !findings.contains(&finding) {
            findings.push(finding);
        }
    }
    findings
}

/// Returns `true` if a rule can cover a call without resources.
fn covers_calls(rule: &Rule, role_set: RoleSet) -> bool {
    let condition = &rule.condition;
    condition.paths.is_none()
        && condition.domains.is_none()
        && condition.roles.as_ref().is_none_or(|roles| roles.iter().any(|role| role_set.contains(*role)))
}

impl fmt::Display for Gap {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let role = match self {
            Self::Call => return formatter.write_str("always denied: no rule covers it"),
            Self::EmptyCall => {
                let why = "denied if it names no file or address: no rule covers that case";
                return formatter.write_str(why);
            }
            Self::Role(role) => role,
        };
        let denied = match role.category() {
            Category::Path => "denied outside the session folder and granted paths",
            Category::Url => "denied if its server can reach the host, unless granted",
            Category::Identifier | Category::Opaque => "denied",
        };
        write!(formatter, "{denied}: no rule covers its role `{role}`")
    }
}
