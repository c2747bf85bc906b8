//! Names and descriptions of a tool and its arguments, split into words.

use super::clues::contains_word;
use super::intent::Intent;
use super::shape::Shape;
use super::{Tool, git};
use ironcurtain_policy::words;

/// Tool whose arguments are being examined.
pub(super) struct ToolContext {
    /// Words in the server's name.
    pub(super) server: Vec<String>,
    /// Words in the tool's name.
    pub(super) words: Vec<String>,
    /// The tool's description in lower case.
    pub(super) text: String,
    /// Words in the tool's name and description.
    pub(super) all_words: Vec<String>,
    /// The tool's likely effects.
    pub(super) intent: Intent,
    /// Effects on a local git repository, or `None` if the tool does not use git.
    pub(super) git: Option<git::Operation>,
    /// Words in each argument's name.
    pub(super) arguments: Vec<Vec<String>>,
}

/// Services that host repositories.
const FORGE_NAMES: [&str; 8] =
    ["github", "gitlab", "gitea", "forgejo", "bitbucket", "codeberg", "sourcehut", "gitee"];

/// Services that store their own documents, and words for such documents.
const SERVICE_NAMES: [&str; 26] = [
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

impl ToolContext {
    pub(super) fn new(tool: &Tool<'_>, shape: &Shape) -> Self {
        let server = words::split_name(tool.server);
        let name = words::split_name(tool.name);
        let text = tool.description.to_lowercase();
        let arguments: Vec<Vec<String>> =
            shape.fields.iter().map(|(name, _)| words::split_name(name)).collect();
        let intent = Intent::infer(tool, &name, shape);
        let is_forge = has_any(&server, &FORGE_NAMES)
            || has_any(&name, &FORGE_NAMES)
            || has_owner_and_repository_arguments(&arguments);
        let git = if is_forge { None } else { git::Operation::infer(&server, &name, shape, tool.hints) };
        let all_words = name.iter().cloned().chain(words::split_text(&text)).collect();
        Self { server, words: name, text, all_words, intent, git, arguments }
    }

    /// Returns `true` if the tool works on repositories at a hosting service.
    pub(super) fn is_forge(&self) -> bool {
        has_any(&self.server, &FORGE_NAMES)
            || has_any(&self.words, &FORGE_NAMES)
            || has_owner_and_repository_arguments(&self.arguments)
    }

    /// Returns `true` if the tool identifies a hosted repository by owner and name.
    pub(super) fn has_owner_and_repository(&self) -> bool {
        has_owner_and_repository_arguments(&self.arguments)
    }

    /// Returns `true` if the tool works on a service that stores its own documents.
    pub(super) fn is_service(&self) -> bool {
        has_any(&self.server, &SERVICE_NAMES) || self.is_forge()
    }

    /// Returns `true` if the name of the tool or of its server contains one of these words.
    pub(super) fn has_word(&self, wanted: &[&str]) -> bool {
        has_any(&self.words, wanted) || has_any(&self.server, wanted)
    }
}

fn has_any(words: &[String], wanted: &[&str]) -> bool {
    words.iter().any(|word| wanted.contains(&word.as_str()))
}

fn has_owner_and_repository_arguments(arguments: &[Vec<String>]) -> bool {
    let any = |wanted: &[&str]| {
        arguments.iter().any(|words| words.last().is_some_and(|word| wanted.contains(&word.as_str())))
    };
    any(&["owner", "org", "organization"]) && any(&["repo", "repository"])
}

/// Argument that is being examined.
pub(super) struct Argument<'a> {
    pub(super) shape: &'a Shape,
    /// Words in the argument's name.
    pub(super) words: Vec<String>,
    /// Descriptions and titles of the argument and its items, in lower case.
    pub(super) text: String,
    /// Words in `text`.
    pub(super) description_words: Vec<String>,
}

impl<'a> Argument<'a> {
    pub(super) fn new(name: &str, shape: &'a Shape) -> Self {
        let text: String = shape.flat().map(|shape| shape.text.as_str()).collect();
        Self { shape, words: words::split_name(name), description_words: words::split_text(&text), text }
    }

    /// Returns the main word of the name, which is the last word or the word before a preposition. Empty if the name
    /// has no words.
    pub(super) fn head(&self) -> &str {
        const PREPOSITIONS: [&str; 9] = ["to", "for", "from", "of", "in", "into", "with", "at", "by"];
        let at = self.words.iter().skip(1).position(|word| PREPOSITIONS.contains(&word.as_str()));
        let head = match at {
            Some(at) => self.words.get(at),
            None => self.words.last(),
        };
        head.map_or("", String::as_str)
    }

    /// Returns `true` if the argument's name contains one of these words.
    pub(super) fn is_named(&self, wanted: &[&str]) -> bool {
        has_any(&self.words, wanted)
    }

    /// Returns `true` if the argument's name contains a word from `list`, whose words are separated by spaces.
    pub(super) fn is_named_in(&self, list: &str) -> bool {
        self.words.iter().any(|word| contains_word(list, word))
    }

    /// Returns `true` if the argument's descriptions contain one of these words.
    pub(super) fn description_has(&self, wanted: &[&str]) -> bool {
        has_any(&self.description_words, wanted)
    }

    /// Returns `true` if the argument's descriptions contain one of these phrases.
    pub(super) fn has_phrase(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.text.contains(phrase))
    }

    /// Returns the words in the name, joined by spaces.
    pub(super) fn name(&self) -> String {
        self.words.join(" ")
    }
}
