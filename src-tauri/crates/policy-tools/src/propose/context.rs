//! One argument, and the tool it stands in, as words.

use super::clues::is_in;
use super::intent::Intent;
use super::shape::Shape;
use super::{Tool, git};
use ironcurtain_policy::words;

/// A tool, taken apart.
pub(super) struct Setting {
    /// The words of the server's name.
    pub(super) server: Vec<String>,
    /// The words of the tool's name.
    pub(super) words: Vec<String>,
    /// Its description, lower case.
    pub(super) text: String,
    /// The words of its name and of what it is said to do.
    pub(super) said: Vec<String>,
    /// Its likely effects.
    pub(super) intent: Intent,
    /// Its effects on a git repository on this machine.
    pub(super) git: Option<git::Operation>,
    /// The words of its arguments' names.
    pub(super) arguments: Vec<Vec<String>>,
}

/// Services whose files and repositories are theirs, not this machine's.
const FORGES: [&str; 8] =
    ["github", "gitlab", "gitea", "forgejo", "bitbucket", "codeberg", "sourcehut", "gitee"];

/// Words of services that keep documents of their own.
const SERVICES: [&str; 26] = [
    "google",
    "gmail",
    "drive",
    "doc",
    "sheet",
    "slide",
    "calendar",
    "workspace",
    "gdrive",
    "notion",
    "slack",
    "jira",
    "confluence",
    "linear",
    "asana",
    "trello",
    "airtable",
    "dropbox",
    "onedrive",
    "sharepoint",
    "outlook",
    "figma",
    "discord",
    "hubspot",
    "salesforce",
    "zendesk",
];

impl Setting {
    pub(super) fn new(tool: &Tool<'_>, shape: &Shape) -> Self {
        let server = words::of(tool.server);
        let name = words::of(tool.name);
        let text = tool.description.to_lowercase();
        let arguments: Vec<Vec<String>> = shape.fields.iter().map(|(name, _)| words::of(name)).collect();
        let intent = Intent::of(tool, &name, shape);
        let is_forge = names(&server, &FORGES) || names(&name, &FORGES) || has_pair(&arguments);
        let git = if is_forge { None } else { git::Operation::of(&server, &name, shape, tool.hints) };
        let said = name.iter().cloned().chain(words::of_text(&text)).collect();
        Self { server, words: name, text, said, intent, git, arguments }
    }

    /// Returns `true` if it works on repositories of a hosting service.
    pub(super) fn is_forge(&self) -> bool {
        names(&self.server, &FORGES) || names(&self.words, &FORGES) || has_pair(&self.arguments)
    }

    /// Returns `true` if it works on one repository of a hosting service, named by owner and name.
    pub(super) fn has_owner_and_repository(&self) -> bool {
        has_pair(&self.arguments)
    }

    /// Returns `true` if it works on a service that keeps documents of its own.
    pub(super) fn is_service(&self) -> bool {
        names(&self.server, &SERVICES) || self.is_forge()
    }

    /// Returns `true` if the tool's or the server's name has one of these words.
    pub(super) fn speaks_of(&self, wanted: &[&str]) -> bool {
        names(&self.words, wanted) || names(&self.server, wanted)
    }
}

fn names(words: &[String], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(&word.as_str()))
}

fn has_pair(arguments: &[Vec<String>]) -> bool {
    let any = |wanted: &[&str]| {
        arguments.iter().any(|words| words.last().is_some_and(|word| wanted.contains(&word.as_str())))
    };
    any(&["owner", "org", "organization"]) && any(&["repo", "repository"])
}

/// An argument, taken apart.
pub(super) struct Argument<'a> {
    pub(super) shape: &'a Shape,
    /// The words of its name.
    pub(super) words: Vec<String>,
    /// Its descriptions and titles, lower case.
    pub(super) text: String,
    /// The words of what is said of it.
    pub(super) said: Vec<String>,
}

impl<'a> Argument<'a> {
    pub(super) fn new(name: &str, shape: &'a Shape) -> Self {
        let text: String = shape.flat().map(|shape| shape.text.as_str()).collect();
        Self { shape, words: words::of(name), said: words::of_text(&text), text }
    }

    /// The word that says what it is: the last, or the one before a preposition.
    pub(super) fn head(&self) -> &str {
        const PREPOSITIONS: [&str; 9] = ["to", "for", "from", "of", "in", "into", "with", "at", "by"];
        let at = self.words.iter().skip(1).position(|word| PREPOSITIONS.contains(&word.as_str()));
        let head = match at {
            Some(at) => self.words.get(at),
            None => self.words.last(),
        };
        head.map_or("", String::as_str)
    }

    /// Returns `true` if its name has one of these words.
    pub(super) fn is_named(&self, wanted: &[&str]) -> bool {
        names(&self.words, wanted)
    }

    /// Returns `true` if its name has a word of a list.
    pub(super) fn is_named_in(&self, list: &str) -> bool {
        self.words.iter().any(|word| is_in(list, word))
    }

    /// Returns `true` if what is said of it has one of these words.
    pub(super) fn is_said(&self, wanted: &[&str]) -> bool {
        names(&self.said, wanted)
    }

    /// Returns `true` if what is said of it has one of these phrases.
    pub(super) fn tells(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.text.contains(phrase))
    }

    /// The whole name as one text, words joined by one blank.
    pub(super) fn name(&self) -> String {
        self.words.join(" ")
    }
}
