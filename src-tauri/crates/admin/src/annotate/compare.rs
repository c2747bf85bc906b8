//! Compares a draft with the annotations in the file.

use super::entry::{Draft, DraftTool};
use super::schema_equality::same_arguments;
use ironcurtain_policy::{Annotations, ArgumentRoles, ConditionalRoles, Role, ToolAnnotation};
use ironcurtain_policy_tools::propose::Proposal;
use serde_json::Value;

/// Change to a tool's annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationChange {
    /// The tool had no annotation.
    Added,
    /// The annotation is unchanged.
    Unchanged,
    /// The annotation changes.
    Changed {
        /// `true` if the server has changed the tool's argument schema since it was annotated.
        schema_changed: bool,
        /// Descriptions of the changes, by argument.
        arguments: Vec<String>,
    },
    /// The annotation is removed, because the tool can no longer be annotated.
    Removed,
    /// The tool had no annotation and cannot be annotated.
    StillUnannotated,
}

/// Changes that writing a draft would make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnotationChanges {
    /// Change to each listed tool's annotation, in the order of the draft.
    pub tools: Vec<(String, AnnotationChange)>,
    /// Tools that the server no longer lists and whose annotations are kept.
    pub unlisted_kept: Vec<String>,
    /// Tools that the server no longer lists and whose annotations are removed.
    pub unlisted_removed: Vec<String>,
    /// `true` if the server's tool descriptions are the same as when the tools were annotated; `None` if the earlier
    /// descriptions are unknown.
    pub same_descriptions: Option<bool>,
}

impl AnnotationChanges {
    /// Returns the change to a tool's annotation, or `None` if the draft does not list the tool.
    #[must_use]
    pub fn change_of(&self, tool: &str) -> Option<&AnnotationChange> {
        self.tools.iter().find(|(name, _)| name == tool).map(|(_, change)| change)
    }

    /// Returns `true` if writing the draft would change nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.unlisted_removed.is_empty()
            && self.same_descriptions == Some(true)
            && self.tools.iter().all(|(_, change)| {
                matches!(change, AnnotationChange::Unchanged | AnnotationChange::StillUnannotated)
            })
    }
}

impl Draft {
    /// Omits tools with an argument of unknown meaning so that the draft can be written without confirmation. Keeps
    /// a tool whose annotation would not change, because the user has already confirmed it.
    pub fn omit_unclear_tools(&mut self, changes: &AnnotationChanges) {
        for tool in &mut self.tools {
            let is_unchanged = changes.change_of(&tool.listed.name) == Some(&AnnotationChange::Unchanged);
            let unclear = tool.unclear_arguments().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            if !is_unchanged && !unclear.is_empty() {
                let means = if unclear.len() == 1 { "means" } else { "mean" };
                let reason = format!("it is unclear what {} {means}", unclear.join(", "));
                tool.proposal = Proposal::Unsupported { reason };
                tool.is_unclear = true;
            }
        }
    }
}

pub(super) fn compare_draft(
    known: &Annotations,
    new: &Annotations,
    stored: Option<&Value>,
    draft: &Draft,
) -> AnnotationChanges {
    let tools = draft.tools.iter().map(|tool| {
        let name = tool.listed.name.clone();
        let change = compare_tool(known.get(&draft.server, &name), new.get(&draft.server, &name), tool);
        (name, change)
    });
    let listed = |name: &str| draft.tools.iter().any(|tool| tool.listed.name == name);
    let unlisted = known.tools(&draft.server).map(|(name, _)| name.to_owned()).filter(|name| !listed(name));
    let (unlisted_kept, unlisted_removed) = unlisted.partition(|name| new.get(&draft.server, name).is_some());
    let hash = stored.and_then(|stored| stored.get("inputHash")?.as_str());
    AnnotationChanges {
        tools: tools.collect(),
        unlisted_kept,
        unlisted_removed,
        same_descriptions: hash
            .filter(|hash| hash.starts_with("sha256:"))
            .map(|hash| hash == draft.input_hash),
    }
}

fn compare_tool(
    known: Option<&ToolAnnotation>,
    new: Option<&ToolAnnotation>,
    tool: &DraftTool,
) -> AnnotationChange {
    let (known, new) = match (known, new) {
        (None, Some(_)) => return AnnotationChange::Added,
        (None, None) => return AnnotationChange::StillUnannotated,
        (Some(_), None) => return AnnotationChange::Removed,
        (Some(known), Some(new)) => (known, new),
    };
    let declared = known.input_schema.as_ref();
    let schema_changed = declared.is_some_and(|schema| !same_arguments(schema, &tool.listed.input_schema));
    let mut changes = Vec::new();
    for (name, roles) in &new.arguments {
        match known.arguments.iter().find(|(known, _)| known == name) {
            None => changes.push(format!("`{}` is new: {}", &**name, role_names(&roles.default))),
            Some((_, old)) => changes.extend(describe_role_change(name, old, roles)),
        }
    }
    let removed =
        known.arguments.iter().filter(|(name, _)| !new.arguments.iter().any(|(other, _)| other == name));
    changes.extend(removed.map(|(name, _)| format!("`{}` was removed", &**name)));
    match (known.descends, new.descends) {
        (false, true) => changes.push("a folder includes everything in it".to_owned()),
        (true, false) => changes.push("LOOSER, a folder no longer includes what is in it".to_owned()),
        (true, true) | (false, false) => {}
    }
    if changes.is_empty() && !schema_changed && known.input_schema.is_some() {
        return AnnotationChange::Unchanged;
    }
    AnnotationChange::Changed { schema_changed, arguments: changes }
}

fn describe_role_change(name: &str, old: &ArgumentRoles, new: &ArgumentRoles) -> Option<String> {
    if same_roles(&old.default, &new.default) && old.when == new.when {
        return None;
    }
    let looser = if is_looser(old, new) { "LOOSER, " } else { "" };
    Some(format!("`{name}`: {looser}{} instead of {}", describe_roles(new), describe_roles(old)))
}

fn same_roles(one: &[Role], other: &[Role]) -> bool {
    one.iter().all(|role| other.contains(role)) && other.iter().all(|role| one.contains(role))
}

/// Returns `true` if the old roles check a value that the new roles would not check.
///
/// Conditions are not evaluated. If the conditions differ, each old case is compared with each new case.
fn is_looser(old: &ArgumentRoles, new: &ArgumentRoles) -> bool {
    let is_lost =
        |old: &[Role], new: &[Role]| old.iter().any(|role| *role != Role::None && !new.contains(role));
    let same_condition = |(old, new): (&ConditionalRoles, &ConditionalRoles)| {
        old.argument == new.argument && old.condition == new.condition
    };
    if old.when.len() == new.when.len() && old.when.iter().zip(&new.when).all(same_condition) {
        return role_sets(old).zip(role_sets(new)).any(|(old, new)| is_lost(old, new));
    }
    role_sets(old).any(|old| role_sets(new).any(|new| is_lost(old, new)))
}

/// Returns the default roles, followed by the roles for each condition.
fn role_sets(roles: &ArgumentRoles) -> impl Iterator<Item = &[Role]> {
    std::iter::once(&*roles.default).chain(roles.when.iter().map(|guard| &*guard.roles))
}

fn describe_roles(roles: &ArgumentRoles) -> String {
    let mut text = role_names(&roles.default);
    let conditional: Vec<String> = role_sets(roles).skip(1).map(role_names).collect();
    if !conditional.is_empty() {
        text.push_str(&format!(" (under conditions {})", conditional.join("; ")));
    }
    text
}

fn role_names(roles: &[Role]) -> String {
    roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn roles(default: &[&str], when: &[(&str, &[&str])]) -> ArgumentRoles {
        let guard = |(wanted, roles): &(&str, &[&str])| json!({ "condition": { "arg": "m", "equals": wanted }, "roles": roles });
        let when: Vec<Value> = when.iter().map(guard).collect();
        let args = json!({ "m": ["none"], "p": { "default": default, "when": when } });
        let file = json!({ "servers": { "s": { "tools": [{ "toolName": "t", "args": args }] } } });
        let annotations = Annotations::from_json(&file.to_string(), "f").unwrap();
        let tool = annotations.get("s", "t").unwrap();
        tool.arguments.iter().find(|(name, _)| **name == *"p").unwrap().1.clone()
    }

    #[test]
    fn losing_a_role_under_a_condition_is_looser() {
        let (read, write) = (&["read-path"][..], &["read-path", "write-path"][..]);
        let describe = |old: &ArgumentRoles, new: &ArgumentRoles| describe_role_change("p", old, new);
        let deletes = roles(read, &[("x", &["read-path", "delete-path"])]);
        let expected =
            "`p`: LOOSER, read-path instead of read-path (under conditions read-path, delete-path)";
        assert_eq!(describe(&deletes, &roles(read, &[])).unwrap(), expected);
        let looser = [
            (roles(write, &[]), roles(write, &[("x", read)])),
            (roles(write, &[("x", read)]), roles(write, &[("x", &["none"])])),
            (roles(write, &[("x", read)]), roles(write, &[("y", read)])),
            (roles(write, &[]), roles(read, &[])),
        ];
        for (old, new) in looser {
            assert!(describe(&old, &new).unwrap().starts_with("`p`: LOOSER, "), "{old:?} {new:?}");
        }
        let stricter = [
            (roles(write, &[("x", read)]), roles(write, &[])),
            (roles(write, &[("x", &["none"])]), roles(write, &[("x", read)])),
            (roles(read, &[]), roles(write, &[])),
        ];
        for (old, new) in stricter {
            let text = describe(&old, &new).unwrap();
            assert!(!text.contains("LOOSER"), "{text}");
        }
        assert_eq!(describe(&deletes, &deletes), None);
    }
}
