//! Secrets that stand in settings as they are: found, and moved to the keyring, which leaves `keyring:NAME` in their place.
//!
//! - Found by the name of a variable or header, or by a form that only secrets have. A person sees each by its place, never by
//!   itself, before anything moves.
//! - INVARIANT: the keyring has a secret before the file no longer has it.

use crate::file_edit::{self, FileEditError};
use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{Secret, SecretError, SecretName, SecretStore, named, named_in_header};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Parts of names that secrets have.
const WORDS: [&str; 11] = [
    "TOKEN",
    "KEY",
    "APIKEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "PAT",
    "CREDENTIALS",
    "AUTHORIZATION",
    "COOKIE",
];

/// Beginnings that only secrets have.
const BEGINNINGS: [&str; 9] =
    ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ntn_"];

/// The key that entries stand below as their makers print them.
const WRAPPER: &str = "mcpServers";

/// The keys of entries that hold variables or headers, in any client.
const HOLDERS: [&str; 4] = ["env", "envs", "environment", "headers"];

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainSecret {
    /// The server.
    pub server: String,
    /// Its place in the server's entry, as `env.API_KEY`.
    pub place: String,
    /// The name that it will have in the keyring.
    pub name: SecretName,
    keys: [String; 2],
    before: String,
    secret: Secret,
}

/// Why secrets stay where they are.
#[derive(Debug, thiserror::Error)]
pub enum PlainSecretError {
    /// The file of servers is refused, or has no such server.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// It cannot be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// Somebody else wrote it meanwhile.
    #[error("`{0}` was changed meanwhile; it is as it was, and the keyring has the secrets: try again")]
    Changed(PathBuf),
}

/// Secrets of our servers that are ready to be moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMove {
    /// The file that they stand in.
    pub file: PathBuf,
    /// All of them.
    pub secrets: Vec<PlainSecret>,
    servers: ServersFile,
    after: String,
}

impl SecretMove {
    /// The plain secrets of one of our servers, or of all.
    ///
    /// # Errors
    /// [`PlainSecretError`].
    pub fn plan(home: &Home, server: Option<&str>) -> Result<Self, PlainSecretError> {
        let servers = ServersFile::open(home)?;
        if let Some(name) = server {
            servers.server(name)?;
        }
        let is_meant = |name: &str| server.is_none_or(|server| server == name);
        let (after, secrets) = moved(&servers.file, &servers.text, is_meant)?;
        let after = servers.checked(after)?;
        Ok(Self { file: servers.file.clone(), secrets, servers, after })
    }

    /// Writes the file, once the keyring has them ([`keep`]).
    ///
    /// # Errors
    /// [`PlainSecretError`].
    pub fn write(&self) -> Result<(), PlainSecretError> {
        let problem = match self.servers.write(&self.after) {
            Ok(()) => return Ok(()),
            Err(problem) => problem,
        };
        // By then the keyring has them.
        Err(if let ServerChangeError::Changed(file) = problem {
            PlainSecretError::Changed(file)
        } else {
            problem.into()
        })
    }
}

/// Puts them into the store. Waits for the person, who may have to unlock the keyring.
///
/// # Errors
/// [`SecretError`].
pub fn keep(store: &SecretStore, secrets: &[PlainSecret]) -> Result<(), SecretError> {
    store.add(secrets.iter().map(|plain| (&plain.name, &plain.secret)))
}

/// The text of a file of servers without the plain secrets of those that are meant.
pub(crate) fn moved(
    file: &Path,
    text: &str,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(String, Vec<PlainSecret>), FileEditError> {
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let mut text = text.to_owned();
    let mut secrets = Vec::new();
    // As a maker prints it, and as we do.
    for above in [Some(WRAPPER), None] {
        let entries = above.map_or(Some(&all), |key| all.get(key)).and_then(Value::as_object);
        for (server, entry) in entries.into_iter().flatten().filter(|(name, _)| is_meant(name)) {
            for plain in of_entry(server, entry) {
                let [holder, key] = &plain.keys;
                let path: Vec<&str> = above.into_iter().chain([server.as_str(), holder, key]).collect();
                let value = format!("{}keyring:{}", plain.before, plain.name);
                text = file_edit::set(file, &text, &path, &json!(value))?;
                secrets.push(plain);
            }
        }
    }
    Ok((text, secrets))
}

/// A text for people with the plain secrets of an entry hidden.
pub(crate) fn hidden(text: String, secrets: &[Secret]) -> String {
    secrets.iter().fold(text, |text, secret| {
        let escaped = json!(secret.reveal()).to_string();
        text.replace(escaped.trim_matches('"'), "(hidden)").replace(secret.reveal(), "(hidden)")
    })
}

/// The plain secrets of an entry, to be hidden.
pub(crate) fn texts(entry: &Value) -> Vec<Secret> {
    of_entry("", entry).into_iter().map(|plain| plain.secret).collect()
}

fn of_entry(server: &str, entry: &Value) -> Vec<PlainSecret> {
    let holders = HOLDERS.iter().filter_map(|holder| Some((*holder, entry.get(holder)?.as_object()?)));
    let values =
        holders.flat_map(|(holder, values)| values.iter().map(move |(key, value)| (holder, key, value)));
    values.filter_map(|(holder, key, value)| plain(server, holder, key, value.as_str()?)).collect()
}

fn plain(server: &str, holder: &str, key: &str, value: &str) -> Option<PlainSecret> {
    let is_reference =
        value.contains("${") || named(value).ok()?.is_some() || named_in_header(value).ok()?.is_some();
    if is_reference || value.contains(|c: char| c.is_control()) {
        return None;
    }
    // The kind of a token comes before it.
    let (before, text) = match value.split_once(' ') {
        Some((kind, text)) if holder == "headers" => (format!("{kind} "), text),
        Some(_) | None => (String::new(), value),
    };
    if text.is_empty() || !(says_secret(key, text) || looks_secret(text)) {
        return None;
    }
    let name: String = format!("{server}-{key}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    Some(PlainSecret {
        server: server.to_owned(),
        place: format!("{holder}.{key}"),
        name: SecretName::try_from(name.as_str()).ok()?,
        keys: [holder.to_owned(), key.to_owned()],
        before,
        secret: Secret::new(text.to_owned()),
    })
}

/// By its name; the path of a file with one is none.
fn says_secret(key: &str, text: &str) -> bool {
    let is_path = ["/", "~", "./"].iter().any(|start| text.starts_with(start));
    let parts = key.to_ascii_uppercase();
    let mut parts = parts.split(|c: char| !c.is_ascii_alphanumeric());
    !is_path && parts.any(|part| WORDS.iter().any(|word| part == *word || part.ends_with("TOKEN")))
}

/// By its form: a maker's beginning, or an address with a password in it.
fn looks_secret(text: &str) -> bool {
    let has_password = text
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'))
        .is_some_and(|(user, _)| user.contains(':') && !user.contains('/'));
    has_password || BEGINNINGS.iter().any(|start| text.starts_with(start) && text.len() > start.len() + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "notes": { "command": "npx", "env": { "NOTES_TOKEN": "t0ken", "LEVEL": "debug" } }, // mine
  "far": { "url": "https://a.example/mcp", "headers": { "Authorization": "Bearer abc.def", "X-Trace": "on" } }
}"#;

    fn plain_text() -> String {
        TEXT.replace(" // mine", "")
    }

    #[test]
    fn a_plain_secret_leaves_its_name_and_nothing_else_changes() {
        let (text, secrets) = moved(Path::new("f"), &plain_text(), |_| true).unwrap();
        let expected = plain_text()
            .replace("\"t0ken\"", "\"keyring:notes-NOTES_TOKEN\"")
            .replace("Bearer abc.def", "Bearer keyring:far-Authorization");
        assert_eq!(text, expected);
        let places: Vec<_> =
            secrets.iter().map(|plain| (plain.server.as_str(), plain.place.as_str())).collect();
        assert_eq!(places, [("notes", "env.NOTES_TOKEN"), ("far", "headers.Authorization")]);
        // Nothing more the second time.
        assert_eq!(moved(Path::new("f"), &text, |_| true).unwrap(), (text.clone(), vec![]));
        let (one, secrets) = moved(Path::new("f"), &plain_text(), |name| name == "far").unwrap();
        assert!(one.contains("t0ken") && secrets.len() == 1);
        assert!(!format!("{secrets:?}").contains("abc.def"));
    }

    #[test]
    fn only_what_is_a_secret_is_taken_for_one() {
        let found = |key: &str, value: &str| plain("s", "env", key, value).is_some();
        for (key, value) in [
            ("GITHUB_PERSONAL_ACCESS_TOKEN", "x"),
            ("API_KEY", "x"),
            ("apiKey", "x"),
            ("OPTION", "ghp_0123456789abcdef"),
            ("DATABASE_URL", "postgres://u:p4ss@localhost/db"),
        ] {
            assert!(found(key, value), "{key}");
        }
        for (key, value) in [
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/u/key.json"),
            ("KEYBOARD", "de"),
            ("API_KEY", ""),
            ("API_KEY", "keyring:x"),
            ("API_KEY", "${input:key}"),
            ("DATABASE_URL", "postgres://localhost/db"),
            ("MODE", "fast"),
        ] {
            assert!(!found(key, value), "{key}");
        }
    }

    #[test]
    fn what_is_shown_hides_them() {
        let entry = json!({ "env": { "TOKEN": "a\"b-secret", "MODE": "fast" } });
        let shown = hidden(format!("{entry}"), &texts(&entry));
        assert_eq!(shown, r#"{"env":{"TOKEN":"(hidden)","MODE":"fast"}}"#);
    }
}
