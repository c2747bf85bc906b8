//! What a draft changes of what is annotated already.

use super::entry::{Draft, DraftTool};
use ironcurtain_policy::{Annotations, ArgumentRoles, Role, ToolAnnotation};
use serde_json::Value;

/// What becomes of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was not annotated.
    New,
    /// It stays as it is.
    Same,
    /// Its annotation is another.
    Other {
        /// Whether the server describes its arguments differently since it was annotated.
        schema_changed: bool,
        /// In words, one for each argument.
        arguments: Vec<String>,
    },
    /// It was annotated, and cannot be any more.
    LeftOut,
    /// It was not annotated, and cannot be.
    StillLeftOut,
}

/// What a draft changes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// For each tool of the draft, in its order.
    pub tools: Vec<(String, Change)>,
    /// Annotated tools that the server does not list any more.
    pub gone: Vec<String>,
    /// Whether the server says the very same of its tools as when they were annotated; nothing when that was not kept.
    pub unchanged: Option<bool>,
}

impl Changes {
    /// Whether writing the draft would change nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.gone.is_empty()
            && self.unchanged == Some(true)
            && self.tools.iter().all(|(_, change)| matches!(change, Change::Same | Change::StillLeftOut))
    }
}

pub(super) fn changes(
    known: &Annotations,
    new: &Annotations,
    stored: Option<&Value>,
    draft: &Draft,
) -> Changes {
    let tools = draft.tools.iter().map(|tool| {
        let name = tool.listed.name.clone();
        let change = change(known.get(&draft.server, &name), new.get(&draft.server, &name), tool);
        (name, change)
    });
    let listed = |name: &str| draft.tools.iter().any(|tool| tool.listed.name == name);
    let gone = known.tools(&draft.server).map(|(name, _)| name).filter(|name| !listed(name));
    let hash = stored.and_then(|stored| stored.get("inputHash")?.as_str());
    Changes {
        tools: tools.collect(),
        gone: gone.map(str::to_owned).collect(),
        unchanged: hash.filter(|hash| hash.starts_with("sha256:")).map(|hash| hash == draft.input_hash),
    }
}

fn change(known: Option<&ToolAnnotation>, new: Option<&ToolAnnotation>, tool: &DraftTool) -> Change {
    let (known, new) = match (known, new) {
        (None, Some(_)) => return Change::New,
        (None, None) => return Change::StillLeftOut,
        (Some(_), None) => return Change::LeftOut,
        (Some(known), Some(new)) => (known, new),
    };
    let schema_changed =
        known.input_schema.as_ref().is_some_and(|schema| *schema != tool.listed.input_schema);
    let mut words = Vec::new();
    for (name, roles) in &new.arguments {
        match known.arguments.iter().find(|(known, _)| known == name) {
            None => words.push(format!("`{}` is new: {}", &**name, names(&roles.default))),
            Some((_, old)) => words.extend(other_roles(name, old, roles)),
        }
    }
    let gone = known.arguments.iter().filter(|(name, _)| !new.arguments.iter().any(|(kept, _)| kept == name));
    words.extend(gone.map(|(name, _)| format!("`{}` is gone", &**name)));
    match (known.descends, new.descends) {
        (false, true) => words.push("a folder stands for all that is in it".to_owned()),
        (true, false) => words.push("LOOSER, a folder stands for itself only".to_owned()),
        (true, true) | (false, false) => {}
    }
    if words.is_empty() && !schema_changed && known.input_schema.is_some() {
        return Change::Same;
    }
    Change::Other { schema_changed, arguments: words }
}

fn other_roles(name: &str, old: &ArgumentRoles, new: &ArgumentRoles) -> Option<String> {
    if same(&old.default, &new.default) && old.when == new.when {
        return None;
    }
    let under = if old.when.is_empty() { "" } else { " under conditions" };
    let looser = if is_looser(&old.default, &new.default) { "LOOSER, " } else { "" };
    Some(format!("`{name}`: {looser}{} instead of {}{under}", names(&new.default), names(&old.default)))
}

fn same(one: &[Role], other: &[Role]) -> bool {
    one.iter().all(|role| other.contains(role)) && other.iter().all(|role| one.contains(role))
}

/// Whether something is not judged any more that was.
fn is_looser(old: &[Role], new: &[Role]) -> bool {
    old.iter().any(|role| *role != Role::None && !new.contains(role))
}

fn names(roles: &[Role]) -> String {
    roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(", ")
}
