//! Compares a draft with the annotations in the file.

use super::declared::same_arguments;
use super::entry::{Draft, DraftTool};
use ironcurtain_policy::{Annotations, ArgumentRoles, ConditionalRoles, Role, ToolAnnotation};
use ironcurtain_policy_tools::propose::Proposal;
use serde_json::Value;

/// Change to a tool's annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnnotationChange {
    /// The tool had no annotation.
    New,
    /// The annotation is unchanged.
    Same,
    /// The annotation changes.
    Other {
        /// `true` if the server has changed the tool's argument schema since it was annotated.
        schema_changed: bool,
        /// Descriptions of the changes, by argument.
        arguments: Vec<String>,
    },
    /// The annotation is removed, because the tool can no longer be annotated.
    LeftOut,
    /// The tool had no annotation and cannot be annotated.
    StillLeftOut,
}

/// Changes that writing a draft would make.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnnotationChanges {
    /// Change to each listed tool's annotation, in the order of the draft.
    pub tools: Vec<(String, AnnotationChange)>,
    /// Tools that the server no longer lists and whose annotations are kept.
    pub unseen: Vec<String>,
    /// Tools that the server no longer lists and whose annotations are removed.
    pub gone: Vec<String>,
    /// `true` if the server's tool descriptions are the same as when the tools were annotated; `None` if the earlier
    /// descriptions are unknown.
    pub unchanged: Option<bool>,
}

impl AnnotationChanges {
    /// Returns the change to a tool's annotation, or `None` if the draft does not list the tool.
    #[must_use]
    pub fn of(&self, tool: &str) -> Option<&AnnotationChange> {
        self.tools.iter().find(|(name, _)| name == tool).map(|(_, change)| change)
    }

    /// Returns `true` if writing the draft would change nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty()
            && self.unchanged == Some(true)
            && self
                .tools
                .iter()
                .all(|(_, change)| matches!(change, AnnotationChange::Same | AnnotationChange::StillLeftOut))
    }
}

impl Draft {
    /// Omits tools with an argument of unknown meaning, so that the draft can be written without confirmation. Keeps
    /// a tool whose annotation would not change, because the user has already confirmed it.
    pub fn leave_out_unknown(&mut self, changes: &AnnotationChanges) {
        for tool in &mut self.tools {
            let stays = changes.of(&tool.listed.name) == Some(&AnnotationChange::Same);
            let unknown = tool.unknown().map(|name| format!("`{name}`")).collect::<Vec<_>>();
            if !stays && !unknown.is_empty() {
                let means = if unknown.len() == 1 { "means" } else { "mean" };
                let reason = format!("it is unclear what {} {means}", unknown.join(", "));
                tool.proposal = Proposal::LeftOut { reason };
                tool.is_unclear = true;
            }
        }
    }
}

pub(super) fn changes(
    known: &Annotations,
    new: &Annotations,
    stored: Option<&Value>,
    draft: &Draft,
) -> AnnotationChanges {
    let tools = draft.tools.iter().map(|tool| {
        let name = tool.listed.name.clone();
        let change = change(known.get(&draft.server, &name), new.get(&draft.server, &name), tool);
        (name, change)
    });
    let listed = |name: &str| draft.tools.iter().any(|tool| tool.listed.name == name);
    let unlisted = known.tools(&draft.server).map(|(name, _)| name.to_owned()).filter(|name| !listed(name));
    let (unseen, gone) = unlisted.partition(|name| new.get(&draft.server, name).is_some());
    let hash = stored.and_then(|stored| stored.get("inputHash")?.as_str());
    AnnotationChanges {
        tools: tools.collect(),
        unseen,
        gone,
        unchanged: hash.filter(|hash| hash.starts_with("sha256:")).map(|hash| hash == draft.input_hash),
    }
}

fn change(
    known: Option<&ToolAnnotation>,
    new: Option<&ToolAnnotation>,
    tool: &DraftTool,
) -> AnnotationChange {
    let (known, new) = match (known, new) {
        (None, Some(_)) => return AnnotationChange::New,
        (None, None) => return AnnotationChange::StillLeftOut,
        (Some(_), None) => return AnnotationChange::LeftOut,
        (Some(known), Some(new)) => (known, new),
    };
    let declared = known.input_schema.as_ref();
    let schema_changed = declared.is_some_and(|schema| !same_arguments(schema, &tool.listed.input_schema));
    let mut words = Vec::new();
    for (name, roles) in &new.arguments {
        match known.arguments.iter().find(|(known, _)| known == name) {
            None => words.push(format!("`{}` is new: {}", &**name, names(&roles.default))),
            Some((_, old)) => words.extend(other_roles(name, old, roles)),
        }
    }
    let gone = known.arguments.iter().filter(|(name, _)| !new.arguments.iter().any(|(kept, _)| kept == name));
    words.extend(gone.map(|(name, _)| format!("`{}` was removed", &**name)));
    match (known.descends, new.descends) {
        (false, true) => words.push("a folder includes everything in it".to_owned()),
        (true, false) => words.push("LOOSER, a folder no longer includes what is in it".to_owned()),
        (true, true) | (false, false) => {}
    }
    if words.is_empty() && !schema_changed && known.input_schema.is_some() {
        return AnnotationChange::Same;
    }
    AnnotationChange::Other { schema_changed, arguments: words }
}

fn other_roles(name: &str, old: &ArgumentRoles, new: &ArgumentRoles) -> Option<String> {
    if same(&old.default, &new.default) && old.when == new.when {
        return None;
    }
    let looser = if is_looser(old, new) { "LOOSER, " } else { "" };
    Some(format!("`{name}`: {looser}{} instead of {}", told(new), told(old)))
}

fn same(one: &[Role], other: &[Role]) -> bool {
    one.iter().all(|role| other.contains(role)) && other.iter().all(|role| one.contains(role))
}

/// Returns `true` if the old roles check a value that the new roles would not check.
///
/// Conditions are not evaluated. If the conditions differ, each old case is compared with each new case.
fn is_looser(old: &ArgumentRoles, new: &ArgumentRoles) -> bool {
    let lost = |old: &[Role], new: &[Role]| old.iter().any(|role| *role != Role::None && !new.contains(role));
    let alike = |(old, new): (&ConditionalRoles, &ConditionalRoles)| {
        old.argument == new.argument && old.condition == new.condition
    };
    if old.when.len() == new.when.len() && old.when.iter().zip(&new.when).all(alike) {
        return ways(old).zip(ways(new)).any(|(old, new)| lost(old, new));
    }
    ways(old).any(|old| ways(new).any(|new| lost(old, new)))
}

/// Returns the default roles, followed by the roles for each condition.
fn ways(roles: &ArgumentRoles) -> impl Iterator<Item = &[Role]> {
    std::iter::once(&*roles.default).chain(roles.when.iter().map(|guard| &*guard.roles))
}

fn told(roles: &ArgumentRoles) -> String {
    let mut told = names(&roles.default);
    let under: Vec<String> = ways(roles).skip(1).map(names).collect();
    if !under.is_empty() {
        told.push_str(&format!(" (under conditions {})", under.join("; ")));
    }
    told
}

fn names(roles: &[Role]) -> String {
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
        let told = |old: &ArgumentRoles, new: &ArgumentRoles| other_roles("p", old, new);
        let deletes = roles(read, &[("x", &["read-path", "delete-path"])]);
        let lost = "`p`: LOOSER, read-path instead of read-path (under conditions read-path, delete-path)";
        assert_eq!(told(&deletes, &roles(read, &[])).unwrap(), lost);
        let looser = [
            (roles(write, &[]), roles(write, &[("x", read)])),
            (roles(write, &[("x", read)]), roles(write, &[("x", &["none"])])),
            (roles(write, &[("x", read)]), roles(write, &[("y", read)])),
            (roles(write, &[]), roles(read, &[])),
        ];
        for (old, new) in looser {
            assert!(told(&old, &new).unwrap().starts_with("`p`: LOOSER, "), "{old:?} {new:?}");
        }
        let stricter = [
            (roles(write, &[("x", read)]), roles(write, &[])),
            (roles(write, &[("x", &["none"])]), roles(write, &[("x", read)])),
            (roles(read, &[]), roles(write, &[])),
        ];
        for (old, new) in stricter {
            let told = told(&old, &new).unwrap();
            assert!(!told.contains("LOOSER"), "{told}");
        }
        assert_eq!(told(&deletes, &deletes), None);
    }
}
