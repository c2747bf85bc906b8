//! Determines a path argument's roles from the tool's effects and the argument's name and description.

use super::context::{Argument, ToolContext};
use super::git::Operation;
use super::intent::Intent;
use super::{Confidence, ProposedArgument};
use ironcurtain_policy::{Category, Role};

/// Proposed roles of a path argument, with a confidence level and a reason.
pub(super) struct PathRoles {
    pub(super) roles: Vec<Role>,
    pub(super) confidence: Confidence,
    pub(super) reason: String,
}

/// Words in the names of paths to which a tool writes.
const OUTPUT_WORDS: [&str; 10] =
    ["output", "out", "dest", "dst", "destination", "save", "export", "download", "outfile", "outdir"];

/// Words in the names of paths to which a move or copy writes.
const DESTINATION_WORDS: [&str; 5] = ["target", "to", "new", "link", "into"];

/// Words in the names of paths that a tool only reads.
const SOURCE_WORDS: [&str; 11] = [
    "source",
    "src",
    "input",
    "from",
    "old",
    "template",
    "attachment",
    "upload",
    "original",
    "reference",
    "origin",
];

/// Words in the names of tools that work on files.
const FILE_WORDS: [&str; 12] = [
    "file",
    "dir",
    "directory",
    "folder",
    "path",
    "filesystem",
    "fs",
    "disk",
    "workspace",
    "document",
    "storage",
    "text",
];

/// Phrases that describe a path to which the tool writes.
const WRITE_PHRASES: [&str; 14] = [
    "to write",
    "to overwrite",
    "to create",
    "to save",
    "to edit",
    "to modify",
    "to update",
    "to append",
    "be written",
    "be overwritten",
    "be created",
    "be saved",
    "be modified",
    "be updated",
];

/// Phrases that describe a path that the tool removes.
const REMOVAL_PHRASES: [&str; 7] =
    ["to delete", "to remove", "to move", "to rename", "be deleted", "be removed", "be moved"];

/// Returns a path argument's roles.
pub(super) fn roles(context: &ToolContext, argument: &Argument<'_>) -> PathRoles {
    if let Some(operation) = context.git {
        return git_roles(operation, argument);
    }
    let PathRoles { mut roles, confidence, reason } = roles_from_tool(context, argument);
    let phrase_roles = [
        (Role::WritePath, argument.has_phrase(&WRITE_PHRASES)),
        (Role::DeletePath, argument.has_phrase(&REMOVAL_PHRASES)),
    ];
    let additional =
        phrase_roles.into_iter().filter(|(role, is_mentioned)| *is_mentioned && !roles.contains(role));
    let additional: Vec<Role> = additional.map(|(role, _)| role).collect();
    if additional.is_empty() {
        return PathRoles { roles, confidence, reason };
    }
    roles.extend(additional);
    let reason = "its description indicates more than the tool's verb".to_owned();
    PathRoles { roles, confidence: Confidence::Low, reason }
}

fn roles_from_tool(context: &ToolContext, argument: &Argument<'_>) -> PathRoles {
    let intent = context.intent;
    if let Some(roles) = roles_from_name(intent, argument) {
        return roles;
    }
    let (mut effects, mut confidence, mut reason) =
        (Effects::default(), Confidence::High, "from the tool's verb");
    effects.read |= intent.read || intent.change || intent.sends || intent.copies || intent.moves;
    effects.write |= intent.write || intent.change;
    effects.delete |= intent.delete || intent.moves;
    if intent.from_description {
        confidence = Confidence::Medium;
        reason = "from the tool's description";
    }
    let has_destination = context.arguments.iter().any(|words| is_destination(words));
    if (intent.moves || intent.copies) && !has_destination {
        effects.write = true;
        confidence = Confidence::Medium;
    }
    let is_about_files = context.has_word(&FILE_WORDS) || context.words.len() < 2;
    if (intent.write || intent.change) && !is_about_files {
        effects.read = true;
        confidence = Confidence::Low;
        reason = "the tool changes something, possibly this";
    }
    if intent.runs {
        effects = Effects { read: true, write: true, delete: true };
        confidence = Confidence::Low;
        reason = "the tool runs a program, which may do anything with it";
    }
    if intent.unknown {
        effects.read = true;
        effects.write = true;
        confidence = Confidence::Low;
        reason = "the tool's effects are unclear";
    }
    if intent.hinted {
        confidence = Confidence::Low;
        reason = "the server declares that the tool makes changes";
    }
    PathRoles { roles: effects.roles(), confidence, reason: reason.to_owned() }
}

/// Returns the roles for a git tool's path argument, which is either the repository or a path that git creates or
/// removes.
fn git_roles(operation: Operation, argument: &Argument<'_>) -> PathRoles {
    const CREATED_PATH_WORDS: [&str; 7] = ["new", "dest", "dst", "destination", "target", "output", "out"];
    let (roles, reason) = if !operation.known {
        (operation.repository(), "git's effects there are unclear")
    } else if argument.is_named(&CREATED_PATH_WORDS) {
        (vec![Role::WritePath], "a path that git creates")
    } else if argument.is_named(&["worktree"]) {
        (operation.worktree(), "files that git checks out or removes")
    } else {
        (operation.repository(), "from the git operation")
    };
    let confidence = if operation.known { Confidence::High } else { Confidence::Low };
    PathRoles { roles, confidence, reason: reason.to_owned() }
}

/// Returns the roles implied by a direction in the argument's name, such as "source". Returns `None` if the name
/// contains no direction.
fn roles_from_name(intent: Intent, argument: &Argument<'_>) -> Option<PathRoles> {
    if intent.only_deletes() || intent.runs || intent.unknown || intent.hinted {
        return None;
    }
    let transfers = intent.moves || intent.copies;
    let (effects, reason) =
        if argument.is_named(&OUTPUT_WORDS) || transfers && argument.is_named(&DESTINATION_WORDS) {
            (
                Effects { write: true, read: intent.change, ..Effects::default() },
                "its name indicates that it is written",
            )
        } else if argument.is_named(&SOURCE_WORDS) && !intent.change {
            let delete = intent.moves || intent.delete;
            (Effects { read: true, delete, ..Effects::default() }, "its name indicates that it is read")
        } else {
            return None;
        };
    Some(PathRoles { roles: effects.roles(), confidence: Confidence::High, reason: reason.to_owned() })
}

/// Returns `true` if an argument's name means the destination of a move or copy.
fn is_destination(words: &[String]) -> bool {
    let is_path = words.last().is_some_and(|word| word != "name");
    is_path
        && words
            .iter()
            .any(|word| OUTPUT_WORDS.contains(&word.as_str()) || DESTINATION_WORDS.contains(&word.as_str()))
}

#[derive(Default)]
struct Effects {
    read: bool,
    write: bool,
    delete: bool,
}

impl Effects {
    fn roles(&self) -> Vec<Role> {
        let all =
            [(self.read, Role::ReadPath), (self.write, Role::WritePath), (self.delete, Role::DeletePath)];
        all.into_iter().filter_map(|(holds, role)| holds.then_some(role)).collect()
    }
}

/// Returns `true` if anything other than the tool's name indicates that the tool recurses into folders.
pub(super) fn is_recursive(context: &ToolContext, arguments: &[ProposedArgument]) -> bool {
    const RECURSION_WORDS: [&str; 4] = ["recursive", "recursively", "depth", "descend"];
    let has_path = arguments.iter().any(|a| a.roles.iter().any(|role| role.category() == Category::Path));
    let has_recursion_word =
        |words: &[String]| words.iter().any(|word| RECURSION_WORDS.contains(&word.as_str()));
    let mentions_recursion =
        context.arguments.iter().any(|words| has_recursion_word(words)) || context.text.contains("recursiv");
    has_path && (mentions_recursion || context.intent.unknown || context.intent.runs)
}
