//! Finds unprotected secrets in settings and moves them to the keyring. In the file, each secret is replaced with
//! `keyring:NAME`.
//!
//! - A secret is recognized by the name of its variable or header, or by a format that only secrets have. Before the
//!   move, the user sees the location of each secret but not its value.
//! - INVARIANT: a secret is stored in the keyring before it is removed from the file.

use crate::file_edit::{self, FileEditError};
use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{
    Secret, SecretError, SecretName, SecretStore, secret_reference, secret_reference_in_header,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Words in the names of variables and headers whose values are secrets.
const SECRET_WORDS: [&str; 11] = [
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

/// Prefixes of values that are always secrets.
const SECRET_PREFIXES: [&str; 9] =
    ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "ntn_"];

/// Key of the object that contains the servers in agent clients' settings.
const SERVERS_KEY: &str = "mcpServers";

/// Keys of the objects in agent clients' entries that contain variables or headers.
const VARIABLE_KEYS: [&str; 4] = ["env", "envs", "environment", "headers"];

/// An unprotected secret in a server's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlainSecret {
    /// Name of the server.
    pub server: String,
    /// Path in the server's entry, such as `env.API_KEY`.
    pub field_path: String,
    /// Name under which the keyring will store the secret.
    pub name: SecretName,
    keys: [String; 2],
    scheme: String,
    secret: Secret,
}

/// Error from moving secrets.
#[derive(Debug, thiserror::Error)]
pub enum PlainSecretError {
    /// The servers file is invalid, or the server does not exist.
    #[error(transparent)]
    Servers(#[from] ServerChangeError),
    /// The file could not be changed.
    #[error(transparent)]
    File(#[from] FileEditError),
    /// The file changed after it was read.
    #[error(
        "`{0}` has changed since it was read; the secrets are in the keyring, but also still in the file; try again"
    )]
    Changed(PathBuf),
}

/// Planned move of secrets. [`Self::write`] completes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretMigration {
    /// Path of the file that contains the secrets.
    pub file: PathBuf,
    /// Secrets to move.
    pub secrets: Vec<PlainSecret>,
    servers: ServersFile,
    after: String,
}

impl SecretMigration {
    /// Finds the unprotected secrets of a server, or of all servers if `server` is `None`.
    ///
    /// # Errors
    /// Returns a [`PlainSecretError`] if the servers file is invalid or the server does not exist.
    pub fn plan(home: &Home, server: Option<&str>) -> Result<Self, PlainSecretError> {
        let servers = ServersFile::open(home)?;
        if let Some(name) = server {
            servers.server(name)?;
        }
        let is_selected = |name: &str| server.is_none_or(|server| server == name);
        let (after, secrets) = extract_secrets(&servers.file, &servers.text, is_selected)?;
        let after = servers.validate(after)?;
        Ok(Self { file: servers.file.clone(), secrets, servers, after })
    }

    /// Replaces the secrets in the file with references to the keyring. The caller must first store them with
    /// [`store_secrets`].
    ///
    /// # Errors
    /// Returns a [`PlainSecretError`] if the servers file is invalid, has changed or cannot be written.
    pub fn write(&self) -> Result<(), PlainSecretError> {
        let problem = match self.servers.write(&self.after) {
            Ok(()) => return Ok(()),
            Err(problem) => problem,
        };
        // This error tells the user that the secrets are already in the keyring.
        Err(if let ServerChangeError::Changed(file) = problem {
            PlainSecretError::Changed(file)
        } else {
            problem.into()
        })
    }
}

/// Stores the secrets. Blocks while the desktop prompts the user to unlock the keyring.
///
/// # Errors
/// Returns a [`SecretError`] if the store cannot be opened or written.
pub fn store_secrets(store: &SecretStore, secrets: &[PlainSecret]) -> Result<(), SecretError> {
    store.add(secrets.iter().map(|plain| (&plain.name, &plain.secret)))
}

/// Replaces the unprotected secrets of the selected servers in the text. Returns the new text and the secrets.
pub(crate) fn extract_secrets(
    file: &Path,
    text: &str,
    is_selected: impl Fn(&str) -> bool,
) -> Result<(String, Vec<PlainSecret>), FileEditError> {
    let all: Value = serde_json::from_str(text).unwrap_or_default();
    let mut text = text.to_owned();
    let mut secrets = Vec::new();
    // Entries are either inside `mcpServers` or at the top level.
    for wrapper in [Some(SERVERS_KEY), None] {
        let entries = wrapper.map_or(Some(&all), |key| all.get(key)).and_then(Value::as_object);
        for (server, entry) in entries.into_iter().flatten().filter(|(name, _)| is_selected(name)) {
            for plain in secrets_in_entry(server, entry) {
                let [section, key] = &plain.keys;
                let path: Vec<&str> = wrapper.into_iter().chain([server.as_str(), section, key]).collect();
                let value = format!("{}keyring:{}", plain.scheme, plain.name);
                text = file_edit::set(file, &text, &path, &json!(value))?;
                secrets.push(plain);
            }
        }
    }
    Ok((text, secrets))
}

/// Hides the secrets in a text before it is displayed.
pub(crate) fn redact(text: String, secrets: &[Secret]) -> String {
    secrets.iter().fold(text, |text, secret| {
        let escaped = json!(secret.reveal()).to_string();
        text.replace(escaped.trim_matches('"'), "(hidden)").replace(secret.reveal(), "(hidden)")
    })
}

/// Returns the unprotected secrets in an entry so that they can be hidden.
pub(crate) fn secret_values(entry: &Value) -> Vec<Secret> {
    secrets_in_entry("", entry).into_iter().map(|plain| plain.secret).collect()
}

fn secrets_in_entry(server: &str, entry: &Value) -> Vec<PlainSecret> {
    let sections =
        VARIABLE_KEYS.iter().filter_map(|section| Some((*section, entry.get(section)?.as_object()?)));
    let values =
        sections.flat_map(|(section, values)| values.iter().map(move |(key, value)| (section, key, value)));
    values.filter_map(|(section, key, value)| detect_secret(server, section, key, value.as_str()?)).collect()
}

fn detect_secret(server: &str, section: &str, key: &str, value: &str) -> Option<PlainSecret> {
    let is_reference = value.contains("${")
        || secret_reference(value).ok()?.is_some()
        || secret_reference_in_header(value).ok()?.is_some();
    if is_reference || value.contains(|c: char| c.is_control()) {
        return None;
    }
    // The authentication scheme precedes the token.
    let (scheme, text) = match value.split_once(' ') {
        Some((kind, text)) if section == "headers" => (format!("{kind} "), text),
        Some(_) | None => (String::new(), value),
    };
    if text.is_empty() || !(name_indicates_secret(key, text) || has_secret_format(text)) {
        return None;
    }
    let name: String = format!("{server}-{key}")
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' })
        .collect();
    Some(PlainSecret {
        server: server.to_owned(),
        field_path: format!("{section}.{key}"),
        name: SecretName::try_from(name.as_str()).ok()?,
        keys: [section.to_owned(), key.to_owned()],
        scheme,
        secret: Secret::new(text.to_owned()),
    })
}

/// Returns `true` if the name of a variable or header indicates a secret. A value that is a path is not a secret.
fn name_indicates_secret(key: &str, text: &str) -> bool {
    let is_path = ["/", "~", "./"].iter().any(|start| text.starts_with(start));
    let parts = key.to_ascii_uppercase();
    let mut parts = parts.split(|c: char| !c.is_ascii_alphanumeric());
    !is_path && parts.any(|part| SECRET_WORDS.iter().any(|word| part == *word || part.ends_with("TOKEN")))
}

/// Returns `true` if the value has the format of a secret: a known prefix, or a URL with a password.
fn has_secret_format(text: &str) -> bool {
    let has_password = text
        .split_once("://")
        .and_then(|(_, rest)| rest.split_once('@'))
        .is_some_and(|(user, _)| user.contains(':') && !user.contains('/'));
    has_password
        || SECRET_PREFIXES.iter().any(|start| text.starts_with(start) && text.len() > start.len() + 8)
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
    fn plain_secret_is_replaced_by_its_name() {
        let (text, secrets) = extract_secrets(Path::new("f"), &plain_text(), |_| true).unwrap();
        let expected = plain_text()
            .replace("\"t0ken\"", "\"keyring:notes-NOTES_TOKEN\"")
            .replace("Bearer abc.def", "Bearer keyring:far-Authorization");
        assert_eq!(text, expected);
        let paths: Vec<_> =
            secrets.iter().map(|plain| (plain.server.as_str(), plain.field_path.as_str())).collect();
        assert_eq!(paths, [("notes", "env.NOTES_TOKEN"), ("far", "headers.Authorization")]);
        // Moving again changes nothing.
        assert_eq!(extract_secrets(Path::new("f"), &text, |_| true).unwrap(), (text.clone(), vec![]));
        let (one, secrets) = extract_secrets(Path::new("f"), &plain_text(), |name| name == "far").unwrap();
        assert!(one.contains("t0ken") && secrets.len() == 1);
        assert!(!format!("{secrets:?}").contains("abc.def"));
    }

    #[test]
    fn secrets_are_recognized() {
        let found = |key: &str, value: &str| detect_secret("s", "env", key, value).is_some();
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
    fn displayed_text_hides_secrets() {
        let entry = json!({ "env": { "TOKEN": "a\"b-secret", "MODE": "fast" } });
        let shown = redact(format!("{entry}"), &secret_values(&entry));
        assert_eq!(shown, r#"{"env":{"TOKEN":"(hidden)","MODE":"fast"}}"#);
    }
}
