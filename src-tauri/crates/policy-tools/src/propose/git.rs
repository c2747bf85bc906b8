//! Effects of git subcommands on a repository, derived from the words in a tool's name.

use super::ProposalHints;
use super::shape::Shape;
use ironcurtain_policy::{Role, words};

/// Effects of a tool on a repository and its working tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Operation {
    write: bool,
    delete: bool,
    write_history: bool,
    delete_history: bool,
    /// `true` if the tool's name contains a known git subcommand.
    pub(super) known: bool,
    /// `true` if the tool creates a repository at the given path.
    pub(super) creates: bool,
}

const NO_EFFECTS: Operation = Operation {
    write: false,
    delete: false,
    write_history: false,
    delete_history: false,
    known: false,
    creates: false,
};

type Subcommand = (&'static [&'static str], fn(&mut Operation));

const SUBCOMMANDS: [Subcommand; 8] = [
    (
        &[
            "status",
            "log",
            "diff",
            "show",
            "blame",
            "grep",
            "ls",
            "describe",
            "shortlog",
            "cat",
            "list",
            "get",
            "read",
            "history",
            "changelog",
            "search",
            "reflog",
        ],
        |_| (),
    ),
    (
        &[
            "add", "stage", "unstage", "commit", "tag", "branch", "remote", "fetch", "config", "note",
            "push", "create",
        ],
        |operation| operation.write_history = true,
    ),
    (
        &[
            "checkout",
            "switch",
            "pull",
            "merge",
            "cherry",
            "pick",
            "revert",
            "apply",
            "am",
            "stash",
            "submodule",
            "rebase",
        ],
        |operation| {
            operation.write = true;
            operation.write_history = true;
        },
    ),
    (&["restore"], |operation| operation.write = true),
    (&["reset"], |operation| {
        operation.write = true;
        operation.write_history = true;
        operation.delete_history = true;
    }),
    (&["clone", "init"], |operation| {
        operation.write = true;
        operation.creates = true;
    }),
    (&["clean", "rm", "mv"], |operation| operation.delete = true),
    (&["gc", "prune", "filter", "expire", "rewrite"], |operation| {
        operation.write_history = true;
        operation.delete_history = true;
    }),
];

/// Words that mean removal. The subcommand determines which object is removed.
const REMOVAL_WORDS: [&str; 5] = ["delete", "remove", "drop", "prune", "clear"];

/// Subcommands that operate on references.
const REFERENCE_WORDS: [&str; 6] = ["branch", "tag", "stash", "remote", "reflog", "note"];

impl Operation {
    /// Returns a tool's effects on a git repository, or `None` if the tool does not use git.
    pub(super) fn infer(
        server: &[String],
        tool: &[String],
        shape: &Shape,
        hints: ProposalHints,
    ) -> Option<Self> {
        let is_git = |words: &[String]| words.iter().any(|word| word == "git");
        if !is_git(server) && !is_git(tool) {
            return None;
        }
        let mut operation = NO_EFFECTS;
        let mut words: Vec<String> = tool.iter().filter(|word| *word != "git").cloned().collect();
        operation.add_verbs(&words);
        for (name, shape) in &shape.fields {
            if let Some(choices) = shape.choices() {
                words.extend(choices.iter().flat_map(|choice| words::split_name(choice)));
            } else if shape.is_boolean() {
                words.extend(
                    words::split_name(name).into_iter().filter(|word| REMOVAL_WORDS.contains(&word.as_str())),
                );
            }
        }
        operation.add_removals(&words);
        operation.add_hints(hints);
        Some(operation)
    }

    fn add_verbs(&mut self, words: &[String]) {
        for word in words {
            for (known, set) in SUBCOMMANDS {
                if known.contains(&word.as_str()) {
                    self.known = true;
                    set(self);
                }
            }
        }
        let has = |wanted: &str| words.iter().any(|word| word == wanted);
        if has("worktree") {
            self.known = true;
            self.write = true;
            self.write_history = true;
        }
    }

    fn add_removals(&mut self, words: &[String]) {
        let any = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        if any(&["worktree"]) && any(&REMOVAL_WORDS) {
            self.delete = true;
        } else if any(&REFERENCE_WORDS) && any(&REMOVAL_WORDS) {
            self.write_history = true;
            self.delete_history = true;
        } else if !self.known {
            self.write = true;
            self.write_history = true;
            let removes = any(&REMOVAL_WORDS);
            self.delete |= removes;
            self.delete_history |= removes;
        }
    }

    /// Adds the effects that the hints declare. Trusts only hints that say that a tool changes or destroys something.
    fn add_hints(&mut self, hints: ProposalHints) {
        let harmless = !(self.write || self.delete || self.write_history || self.delete_history);
        if hints.declare_changes() && (harmless || !self.known) {
            let destroys = hints.destructive == Some(true);
            *self = Self {
                write: true,
                write_history: true,
                delete: destroys,
                delete_history: destroys,
                ..*self
            };
        }
    }

    /// Returns the roles for a path in the working tree.
    pub(super) fn worktree(self) -> Vec<Role> {
        Self { write_history: false, delete_history: false, ..self }.repository()
    }

    /// Returns the roles for the repository's path.
    pub(super) fn repository(self) -> Vec<Role> {
        let all = [
            (!self.creates, Role::ReadPath),
            (self.write, Role::WritePath),
            (self.delete, Role::DeletePath),
            (self.write_history, Role::WriteHistory),
            (self.delete_history, Role::DeleteHistory),
        ];
        all.into_iter().filter_map(|(holds, role)| holds.then_some(role)).collect()
    }
}
