//! Determines an argument's meaning. The first rule that applies decides.

use super::clues::{
    OPAQUE, PATH, PERHAPS_PATH, URL, is_an_absolute_path, is_in, is_path_elsewhere, looks_like_a_path,
    looks_like_a_url, mentions_a_path, mentions_another_path,
};
use super::context::{Argument, Setting};
use super::found::Found;
use super::{Confidence, named, unclear};
use ironcurtain_policy::Role;

type Rule = fn(&Setting, &Argument<'_>) -> Option<Found>;

const RULES: [Rule; 16] = [
    named::permission,
    fixed,
    identifier,
    in_hosted_repository,
    shown_absolute,
    in_local_repository,
    formatted,
    named::address,
    named::repository,
    named::mail,
    named::git_word,
    named_path,
    opaque,
    sampled,
    described,
    perhaps_path,
];

/// Returns the meaning of an argument.
pub(super) fn of(setting: &Setting, argument: &Argument<'_>) -> Found {
    RULES.iter().find_map(|rule| rule(setting, argument)).unwrap_or_else(|| unclear::of(setting, argument))
}

/// Recognizes schemas that permit either no strings or only enumerated strings.
fn fixed(_: &Setting, argument: &Argument<'_>) -> Option<Found> {
    if !argument.shape.may_be_text() {
        return Some(Found::none(Confidence::High, "its schema allows only numbers and booleans"));
    }
    let choices = argument.shape.choices()?;
    let names_something = |word: &String| looks_like_a_path(word) || looks_like_a_url(word);
    if choices.iter().any(names_something) {
        return None;
    }
    Some(Found::none(Confidence::High, "its schema enumerates its values"))
}

/// Recognizes ids that a service assigns.
fn identifier(_: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let head = argument.head();
    let is_id = ["id", "uuid", "guid"].contains(&head) && !samples_name_a_path(argument);
    is_id.then(|| Found::none(Confidence::High, format!("`{head}` does not name a judged resource")))
}

/// Recognizes paths in hosted repositories, which are not on this machine.
fn in_hosted_repository(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let local = ["local", "absolute", "disk", "this machine", "your computer", "filesystem", "file system"];
    if !setting.has_owner_and_repository()
        || !argument.is_named_in(PATH)
        || argument.has_phrase(&local)
        || argument.is_named(&["local", "cwd", "workdir", "workspace"])
    {
        return None;
    }
    let reason = "a path in the hosted repository, not on this machine";
    Some(Found::none(Confidence::Medium, reason))
}

/// Recognizes arguments with an absolute path as an enumerated value, example or default, whatever their name.
fn shown_absolute(_: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let mut samples = argument.shape.flat().flat_map(|shape| &shape.samples);
    let of_an_address = URL.contains(&argument.head()) || mentions_another_path(&argument.text);
    let is_path = samples.any(|value| is_an_absolute_path(value)) && !of_an_address;
    is_path.then(|| {
        Found::path(Confidence::Medium, "an enumerated, example or default value is an absolute path")
    })
}

/// Recognizes paths inside a repository that another argument names. A path role would make such paths absolute,
/// which changes their meaning.
fn in_local_repository(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
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
    let operation = setting.git?;
    let is_list = argument.shape.flat().count() > 1;
    let is_file = argument.is_named(&["file", "pathspec"]) || argument.is_named(&["path"]) && is_list;
    let has_repository = setting.arguments.iter().any(|words| {
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
    Some(Found::none(Confidence::Low, reason))
}

/// Recognizes schemas that specify a `format`.
fn formatted(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let formats = argument.shape.flat().flat_map(|shape| &shape.formats);
    formats.map(String::as_str).find_map(|format| {
        let why = || format!("its schema has the format `{format}`");
        match format {
            "uri" | "url" | "uri-reference" | "iri" | "iri-reference" | "uri-template" => {
                Some(Found::new(named::address_meaning(setting), Confidence::High, why()))
            }
            "path" | "file-path" | "directory-path" | "file" | "directory" | "filename" => {
                Some(Found::path(Confidence::High, why()))
            }
            "hostname" | "idn-hostname" => Some(Found::is(Role::ProxyDomain, Confidence::Medium, why())),
            "date" | "date-time" | "time" | "duration" | "uuid" | "regex" | "base64" | "byte" | "binary" => {
                Some(Found::none(Confidence::High, why()))
            }
            _ => None,
        }
    })
}

/// Recognizes names that mean a path.
fn named_path(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let head = argument.head();
    let name = argument.name();
    if mentions_another_path(&name) && mentions_another_path(&argument.text) {
        return Some(Found::none(Confidence::Medium, "a path inside a document or an address, not a file's"));
    }
    if is_in(PATH, head) || is_path_elsewhere(head) {
        return Some(Found::path(Confidence::High, format!("`{head}` names a file or folder")));
    }
    if !(argument.is_named_in(PATH) || argument.words.iter().any(|word| is_path_elsewhere(word))) {
        return None;
    }
    if head == "name" {
        if setting.is_service() {
            return Some(Found::none(Confidence::Medium, "a name within that service"));
        }
        return Some(Found::path(Confidence::Low, "a file or folder name may be a path"));
    }
    if is_in(OPAQUE, head) {
        return mentions_a_path(&argument.text)
            .then(|| Found::path(Confidence::Low, "its description mentions a path"));
    }
    Some(Found::path(Confidence::Medium, "its name mentions a file or folder"))
}

/// Recognizes names whose last word indicates that they do not name a resource.
fn opaque(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let head = argument.head();
    if !is_in(OPAQUE, head) || samples_name_a_path(argument) {
        return None;
    }
    let is_command = ["command", "cmd", "shell"].contains(&head);
    let is_program = ["code", "snippet", "statement", "expression"].contains(&head) && setting.intent.runs;
    let beside =
        |words: &Vec<String>| words.last().is_some_and(|word| ["command", "cmd"].contains(&word.as_str()));
    let is_its_argument =
        ["arg", "argument", "parameter"].contains(&head) && setting.arguments.iter().any(beside);
    if is_command || is_program || is_its_argument {
        let reason = "the server runs it; only the sandbox limits its effects";
        return Some(Found::is(Role::Command, Confidence::Low, reason));
    }
    if ["pattern", "wildcard"].contains(&head) && argument.description_has(&["glob", "wildcard"]) {
        let beside = setting
            .arguments
            .iter()
            .any(|words| *words != argument.words && words.iter().any(|word| is_in(PATH, word)));
        if !beside {
            return Some(Found::path(
                Confidence::Low,
                "a glob pattern without a folder argument may be a path",
            ));
        }
    }
    let is_content = ["content", "text", "body", "message", "data", "query", "prompt"].contains(&head);
    if !is_content && mentions_a_path(&argument.text) && !setting.is_service() {
        return Some(Found::path(Confidence::Low, "its description mentions a path"));
    }
    Some(Found::none(Confidence::High, format!("`{head}` does not name a judged resource")))
}

/// Recognizes defaults, examples and patterns that resemble a path or a URL.
fn sampled(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    if samples_name_a_path(argument) {
        return Some(Found::path(Confidence::Medium, "its example or default is a path"));
    }
    let mut samples = argument.shape.flat().flat_map(|shape| &shape.samples);
    let mut patterns = argument.shape.flat().flat_map(|shape| &shape.patterns);
    if samples.any(|value| looks_like_a_url(value)) || patterns.any(|pattern| pattern.starts_with("^http")) {
        let reason = "its example or pattern is an address";
        return Some(Found::new(named::address_meaning(setting), Confidence::Medium, reason));
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
fn described(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    if mentions_another_path(&argument.text) {
        return None;
    }
    if mentions_a_path(&argument.text) {
        return Some(Found::path(Confidence::Medium, "its description mentions a path"));
    }
    if argument.description_has(&URL) || mentions_a_url(argument) {
        let meaning = named::address_meaning(setting);
        return Some(Found::new(meaning, Confidence::Low, "its description mentions an address"));
    }
    if argument.description_has(&["path", "directory", "folder", "file"]) && !setting.is_service() {
        return Some(Found::path(Confidence::Low, "its description mentions files or folders"));
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
fn perhaps_path(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    const OTHERWISE: [&str; 30] = [
        "id", "name", "slug", "key", "branch", "commit", "ref", "revision", "tag", "language", "currency",
        "user", "channel", "account", "json", "object", "base64", "string", "text", "email", "date", "label",
        "query", "unit", "token", "number", "owner", "city", "sheet", "title",
    ];
    let moves = setting.intent.moves || setting.intent.copies;
    let way = argument.is_named(&["from", "to", "old", "new"]) && moves && argument.words.len() == 1;
    let ends = moves && is_in("source target destination origin", argument.head());
    let place = ["from", "to", "left", "right"].contains(&argument.name().as_str());
    if (way || ends) && setting.has_word(&["file", "directory", "folder", "dir", "path", "filesystem"]) {
        return Some(Found::path(Confidence::High, "source or destination of a moved or copied file"));
    }
    if way {
        return Some(Found::path(Confidence::Low, "source or destination of a move or copy"));
    }
    if !(place || argument.is_named_in(PERHAPS_PATH)) {
        return None;
    }
    let is_made = setting.git.is_some_and(|operation| operation.makes);
    if is_made && argument.is_named(&["dest", "destination", "target", "location"]) {
        return Some(Found::path(Confidence::Medium, "the folder in which git creates the repository"));
    }
    if argument.description_has(&OTHERWISE) || setting.is_service() || setting.git.is_some() {
        return Some(Found::none(Confidence::Medium, "its description does not mention files"));
    }
    Some(Found::path(Confidence::Low, "it may name a file; nothing indicates otherwise"))
}
