//! Determines an argument's meaning. The first rule that applies decides.

use super::clues::{
    AMBIGUOUS_PATH_WORDS, OPAQUE_WORDS, PATH_WORDS, URL_WORDS, contains_word, is_absolute_path,
    is_foreign_path_word, looks_like_a_path, looks_like_a_url, mentions_a_path, mentions_non_file_path,
};
use super::context::{Argument, ToolContext};
use super::inference::Inference;
use super::{Confidence, by_name, fallback};
use ironcurtain_policy::Role;

type Rule = fn(&ToolContext, &Argument<'_>) -> Option<Inference>;

const RULES: [Rule; 16] = [
    by_name::permission,
    fixed,
    identifier,
    in_hosted_repository,
    absolute_sample,
    in_local_repository,
    formatted,
    by_name::address,
    by_name::repository,
    by_name::mail,
    by_name::git_term,
    named_path,
    opaque,
    sampled,
    described,
    perhaps_path,
];

/// Returns the meaning of an argument.
pub(super) fn infer(context: &ToolContext, argument: &Argument<'_>) -> Inference {
    RULES
        .iter()
        .find_map(|rule| rule(context, argument))
        .unwrap_or_else(|| fallback::infer(context, argument))
}

/// Recognizes schemas that permit either no strings or only enumerated strings.
fn fixed(_: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    if !argument.shape.can_be_string() {
        return Some(Inference::none(Confidence::High, "its schema allows only numbers and booleans"));
    }
    let choices = argument.shape.choices()?;
    let is_path_or_url = |word: &String| looks_like_a_path(word) || looks_like_a_url(word);
    if choices.iter().any(is_path_or_url) {
        return None;
    }
    Some(Inference::none(Confidence::High, "its schema enumerates its values"))
}

/// Recognizes ids that a service assigns.
fn identifier(_: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let head = argument.head();
    let is_id = ["id", "uuid", "guid"].contains(&head) && !samples_name_a_path(argument);
    is_id.then(|| Inference::none(Confidence::High, format!("`{head}` does not name a judged resource")))
}

/// Recognizes paths in hosted repositories, which are not on this machine.
fn in_hosted_repository(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let local = ["local", "absolute", "disk", "this machine", "your computer", "filesystem", "file system"];
    if !context.has_owner_and_repository()
        || !argument.is_named_in(PATH_WORDS)
        || argument.has_phrase(&local)
        || argument.is_named(&["local", "cwd", "workdir", "workspace"])
    {
        return None;
    }
    let reason = "a path in the hosted repository, not on this machine";
    Some(Inference::none(Confidence::Medium, reason))
}

/// Recognizes arguments with an absolute path as an enumerated value, example or default, whatever their name.
fn absolute_sample(_: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let mut samples = argument.shape.flat().flat_map(|shape| &shape.samples);
    let is_address = URL_WORDS.contains(&argument.head()) || mentions_non_file_path(&argument.text);
    let is_path = samples.any(|value| is_absolute_path(value)) && !is_address;
    is_path.then(|| {
        Inference::path(Confidence::Medium, "an enumerated, example or default value is an absolute path")
    })
}

/// Recognizes paths inside a repository that another argument names. A path role would make such paths absolute,
/// which changes their meaning.
fn in_local_repository(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    const INSIDE: [&str; 9] = [
        "relative to the repo",
        "relative to repo",
        "relative to the root of the repo",
        "relative to the git",
        "within the repo",
        "inside the repo",
        "in the repository",
        "pathspec",
        "paths to limit",
    ];
    const REPOSITORY: [&str; 6] = ["repo", "repository", "path", "cwd", "directory", "dir"];
    let operation = context.git?;
    let is_list = argument.shape.flat().count() > 1;
    let is_file = argument.is_named(&["file", "pathspec"]) || argument.is_named(&["path"]) && is_list;
    let has_repository = context.arguments.iter().any(|words| {
        *words != argument.words && words.last().is_some_and(|word| REPOSITORY.contains(&word.as_str()))
    });
    if !operation.known || !has_repository || !(argument.has_phrase(&INSIDE) || is_file) {
        return None;
    }
    if argument.has_phrase(&["absolute"])
        || argument.is_named(&["repo", "repository", "worktree", "dir", "directory"])
    {
        return None;
    }
    let reason = "a name inside the repository, whose path is judged; a path role would make it absolute";
    Some(Inference::none(Confidence::Low, reason))
}

/// Recognizes schemas that specify a `format`.
fn formatted(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let formats = argument.shape.flat().flat_map(|shape| &shape.formats);
    formats.map(String::as_str).find_map(|format| {
        let why = || format!("its schema has the format `{format}`");
        match format {
            "uri" | "url" | "uri-reference" | "iri" | "iri-reference" | "uri-template" => {
                Some(Inference::new(by_name::address_meaning(context), Confidence::High, why()))
            }
            "path" | "file-path" | "directory-path" | "file" | "directory" | "filename" => {
                Some(Inference::path(Confidence::High, why()))
            }
            "hostname" | "idn-hostname" => {
                Some(Inference::role(Role::ProxyDomain, Confidence::Medium, why()))
            }
            "date" | "date-time" | "time" | "duration" | "uuid" | "regex" | "base64" | "byte" | "binary" => {
                Some(Inference::none(Confidence::High, why()))
            }
            _ => None,
        }
    })
}

/// Recognizes names that mean a path.
fn named_path(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let head = argument.head();
    let name = argument.name();
    if mentions_non_file_path(&name) && mentions_non_file_path(&argument.text) {
        return Some(Inference::none(
            Confidence::Medium,
            "a path inside a document or an address, not a file's",
        ));
    }
    if contains_word(PATH_WORDS, head) || is_foreign_path_word(head) {
        return Some(Inference::path(Confidence::High, format!("`{head}` names a file or folder")));
    }
    if !(argument.is_named_in(PATH_WORDS) || argument.words.iter().any(|word| is_foreign_path_word(word))) {
        return None;
    }
    if head == "name" {
        if context.is_service() {
            return Some(Inference::none(Confidence::Medium, "a name within that service"));
        }
        return Some(Inference::path(Confidence::Low, "a file or folder name may be a path"));
    }
    if contains_word(OPAQUE_WORDS, head) {
        return mentions_a_path(&argument.text)
            .then(|| Inference::path(Confidence::Low, "its description mentions a path"));
    }
    Some(Inference::path(Confidence::Medium, "its name mentions a file or folder"))
}

/// Recognizes names whose last word indicates that they do not name a resource.
fn opaque(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let head = argument.head();
    if !contains_word(OPAQUE_WORDS, head) || samples_name_a_path(argument) {
        return None;
    }
    let is_command = ["command", "cmd", "shell"].contains(&head);
    let is_program = ["code", "snippet", "statement", "expression"].contains(&head) && context.intent.runs;
    let names_command =
        |words: &Vec<String>| words.last().is_some_and(|word| ["command", "cmd"].contains(&word.as_str()));
    let is_its_argument =
        ["arg", "argument", "parameter"].contains(&head) && context.arguments.iter().any(names_command);
    if is_command || is_program || is_its_argument {
        let reason = "the server runs it; only the sandbox limits its effects";
        return Some(Inference::role(Role::Command, Confidence::Low, reason));
    }
    if ["pattern", "wildcard"].contains(&head) && argument.description_has(&["glob", "wildcard"]) {
        let has_path_argument = context.arguments.iter().any(|words| {
            *words != argument.words && words.iter().any(|word| contains_word(PATH_WORDS, word))
        });
        if !has_path_argument {
            return Some(Inference::path(
                Confidence::Low,
                "a glob pattern without a folder argument may be a path",
            ));
        }
    }
    let is_content = ["content", "text", "body", "message", "data", "query", "prompt"].contains(&head);
    if !is_content && mentions_a_path(&argument.text) && !context.is_service() {
        return Some(Inference::path(Confidence::Low, "its description mentions a path"));
    }
    Some(Inference::none(Confidence::High, format!("`{head}` does not name a judged resource")))
}

/// Recognizes defaults, examples and patterns that resemble a path or a URL.
fn sampled(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    if samples_name_a_path(argument) {
        return Some(Inference::path(Confidence::Medium, "its example or default is a path"));
    }
    let mut samples = argument.shape.flat().flat_map(|shape| &shape.samples);
    let mut patterns = argument.shape.flat().flat_map(|shape| &shape.patterns);
    if samples.any(|value| looks_like_a_url(value)) || patterns.any(|pattern| pattern.starts_with("^http")) {
        let reason = "its example or pattern is an address";
        return Some(Inference::new(by_name::address_meaning(context), Confidence::Medium, reason));
    }
    None
}

fn samples_name_a_path(argument: &Argument<'_>) -> bool {
    let mut samples = argument.shape.flat().flat_map(|shape| &shape.samples);
    let mut patterns = argument.shape.flat().flat_map(|shape| &shape.patterns);
    samples.any(|value| looks_like_a_path(value))
        || patterns.any(|pattern| {
            ["^/", "^\\/", "^~", "^(/", "^\\.?/"].iter().any(|start| pattern.starts_with(start))
        })
}

/// Recognizes descriptions that mention a path or a URL.
fn described(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    if mentions_non_file_path(&argument.text) {
        return None;
    }
    if mentions_a_path(&argument.text) {
        return Some(Inference::path(Confidence::Medium, "its description mentions a path"));
    }
    if argument.description_has(&URL_WORDS) || mentions_a_url(argument) {
        let meaning = by_name::address_meaning(context);
        return Some(Inference::new(meaning, Confidence::Low, "its description mentions an address"));
    }
    if argument.description_has(&["path", "directory", "folder", "file"]) && !context.is_service() {
        return Some(Inference::path(Confidence::Low, "its description mentions files or folders"));
    }
    None
}

fn mentions_a_url(argument: &Argument<'_>) -> bool {
    argument
        .text
        .split_whitespace()
        .any(|word| looks_like_a_url(word.trim_start_matches(['"', '\'', '(', '`'])))
}

/// Recognizes names that often mean a file, unless there is evidence against it.
fn perhaps_path(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    const NON_FILE_WORDS: [&str; 30] = [
        "id", "name", "slug", "key", "branch", "commit", "ref", "revision", "tag", "language", "currency",
        "user", "channel", "account", "json", "object", "base64", "string", "text", "email", "date", "label",
        "query", "unit", "token", "number", "owner", "city", "sheet", "title",
    ];
    let moves = context.intent.moves || context.intent.copies;
    let is_direction = argument.is_named(&["from", "to", "old", "new"]) && moves && argument.words.len() == 1;
    let is_end = moves && contains_word("source target destination origin", argument.head());
    let is_side = ["from", "to", "left", "right"].contains(&argument.name().as_str());
    if (is_direction || is_end)
        && context.has_word(&["file", "directory", "folder", "dir", "path", "filesystem"])
    {
        return Some(Inference::path(Confidence::High, "source or destination of a moved or copied file"));
    }
    if is_direction {
        return Some(Inference::path(Confidence::Low, "source or destination of a move or copy"));
    }
    if !(is_side || argument.is_named_in(AMBIGUOUS_PATH_WORDS)) {
        return None;
    }
    let is_created = context.git.is_some_and(|operation| operation.creates);
    if is_created && argument.is_named(&["dest", "destination", "target", "location"]) {
        return Some(Inference::path(Confidence::Medium, "the folder in which git creates the repository"));
    }
    if argument.description_has(&NON_FILE_WORDS) || context.is_service() || context.git.is_some() {
        return Some(Inference::none(Confidence::Medium, "its description does not mention files"));
    }
    Some(Inference::path(Confidence::Low, "it may name a file; nothing indicates otherwise"))
}
