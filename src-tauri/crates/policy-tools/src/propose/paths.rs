//! Determines a path argument's roles from the tool's effects and the argument's name and description.

use super::context::{Argument, Setting};
use super::git::Operation;
use super::intent::Intent;
use super::{Confidence, ProposedArgument};
use ironcurtain_policy::{Category, Role};

/// A path argument's roles, with the confidence in them and the reason.
pub(super) struct PathRoles {
    pub(super) roles: Vec<Role>,
    pub(super) confidence: Confidence,
    pub(super) reason: String,
}

/// Words in the names of paths to which a tool writes.
const ALWAYS_OUT: [&str; 10] =
    ["output", "out", "dest", "dst", "destination", "save", "export", "download", "outfile", "outdir"];

/// Words in the names of paths to which a move or copy writes.
const OUT: [&str; 5] = ["target", "to", "new", "link", "into"];

/// Words in the names of paths that a tool only reads.
const IN: [&str; 11] = [
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
const FILES: [&str; 12] = [
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
const PHRASES_WRITTEN: [&str; 14] = [
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
const PHRASES_REMOVED: [&str; 7] =
    ["to delete", "to remove", "to move", "to rename", "be deleted", "be removed", "be moved"];

/// Returns a path argument's roles.
pub(super) fn roles(setting: &Setting, argument: &Argument<'_>) -> PathRoles {
    if let Some(operation) = setting.git {
        return of_git(operation, argument);
    }
    let PathRoles { mut roles, confidence, reason } = by_the_tool(setting, argument);
    let said = [
        (Role::WritePath, argument.has_phrase(&PHRASES_WRITTEN)),
        (Role::DeletePath, argument.has_phrase(&PHRASES_REMOVED)),
    ];
    let more = said.into_iter().filter(|(role, is_said)| *is_said && !roles.contains(role));
    let more: Vec<Role> = more.map(|(role, _)| role).collect();
    if more.is_empty() {
        return PathRoles { roles, confidence, reason };
    }
    roles.extend(more);
    let reason = "its description indicates more than the tool's verb".to_owned();
    PathRoles { roles, confidence: Confidence::Low, reason }
}

fn by_the_tool(setting: &Setting, argument: &Argument<'_>) -> PathRoles {
    let intent = setting.intent;
    if let Some(roles) = directed(intent, argument) {
        return roles;
    }
    let (mut does, mut confidence, mut reason) = (Does::default(), Confidence::High, "from the tool's verb");
    does.read |= intent.read || intent.change || intent.sends || intent.copies || intent.moves;
    does.write |= intent.write || intent.change;
    does.delete |= intent.delete || intent.moves;
    if intent.described {
        confidence = Confidence::Medium;
        reason = "from the tool's description";
    }
    let is_pair = setting.arguments.iter().any(|words| is_out(words));
    if (intent.moves || intent.copies) && !is_pair {
        does.write = true;
        confidence = Confidence::Medium;
    }
    let about_files = setting.has_word(&FILES) || setting.words.len() < 2;
    if (intent.write || intent.change) && !about_files {
        does.read = true;
        confidence = Confidence::Low;
        reason = "the tool changes something, possibly this";
    }
    if intent.runs {
        does = Does { read: true, write: true, delete: true };
        confidence = Confidence::Low;
        reason = "the tool runs a program, which may do anything with it";
    }
    if intent.unknown {
        does.read = true;
        does.write = true;
        confidence = Confidence::Low;
        reason = "the tool's effects are unclear";
    }
    if intent.hinted {
        confidence = Confidence::Low;
        reason = "the server declares that the tool makes changes";
    }
    PathRoles { roles: does.roles(), confidence, reason: reason.to_owned() }
}

/// Returns the roles for a git tool's path argument, which is either the repository or a path that git creates or
/// removes.
fn of_git(operation: Operation, argument: &Argument<'_>) -> PathRoles {
    const MADE: [&str; 7] = ["new", "dest", "dst", "destination", "target", "output", "out"];
    let (roles, reason) = if !operation.known {
        (operation.repository(), "git's effects there are unclear")
    } else if argument.is_named(&MADE) {
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
fn directed(intent: Intent, argument: &Argument<'_>) -> Option<PathRoles> {
    if intent.only_deletes() || intent.runs || intent.unknown || intent.hinted {
        return None;
    }
    let transfers = intent.moves || intent.copies;
    let (does, reason) = if argument.is_named(&ALWAYS_OUT) || transfers && argument.is_named(&OUT) {
        (
            Does { write: true, read: intent.change, ..Does::default() },
            "its name indicates that it is written",
        )
    } else if argument.is_named(&IN) && !intent.change {
        let delete = intent.moves || intent.delete;
        (Does { read: true, delete, ..Does::default() }, "its name indicates that it is read")
    } else {
        return None;
    };
    Some(PathRoles { roles: does.roles(), confidence: Confidence::High, reason: reason.to_owned() })
}

/// Returns `true` if an argument's name means the destination of a move or copy.
fn is_out(words: &[String]) -> bool {
    let names_one = words.last().is_some_and(|word| word != "name");
    names_one && words.iter().any(|word| ALWAYS_OUT.contains(&word.as_str()) || OUT.contains(&word.as_str()))
}

#[derive(Default)]
struct Does {
    read: bool,
    write: bool,
    delete: bool,
}

impl Does {
    fn roles(&self) -> Vec<Role> {
        let all =
            [(self.read, Role::ReadPath), (self.write, Role::WritePath), (self.delete, Role::DeletePath)];
        all.into_iter().filter_map(|(holds, role)| holds.then_some(role)).collect()
    }
}

/// Returns `true` if anything other than the tool's name indicates that the tool recurses into folders.
pub(super) fn descends(setting: &Setting, arguments: &[ProposedArgument]) -> bool {
    const DEEP: [&str; 4] = ["recursive", "recursively", "depth", "descend"];
    let has_path = arguments.iter().any(|a| a.roles.iter().any(|role| role.category() == Category::Path));
    let deep = |words: &[String]| words.iter().any(|word| DEEP.contains(&word.as_str()));
    let says = setting.arguments.iter().any(|words| deep(words)) || setting.text.contains("recursiv");
    has_path && (says || setting.intent.unknown || setting.intent.runs)
}
