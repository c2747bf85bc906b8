//! Validates text that the user did not write: a documentation snippet, an address, a bundle or an agent client's
//! settings.
//!
//! - INVARIANT: an entry from such text refers to a secret only if the user passed that secret by name. Otherwise,
//!   the text could send another server's secret to any address.
//! - Such text determines the program or the address. It cannot set options that control the server's access.

use ironcurtain_secrets::SecretName;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Prefix of secret references.
const REFERENCE_PREFIX: &str = "keyring:";

/// Accepted keys, which determine the program or the address.
const ACCEPTED_KEYS: [&str; 8] = ["command", "args", "env", "type", "url", "serverUrl", "httpUrl", "headers"];

/// Keys that are ignored, because they are for display or only concern agent clients.
const IGNORED_KEYS: [&str; 4] = ["alwaysAllow", "autoApprove", "description", "disabled"];

/// Keys that only the user may set.
const RESERVED_KEYS: [&str; 10] = [
    "access",
    "allowedAddresses",
    "fileWrites",
    "passEnv",
    "pin",
    "sampling",
    "sandbox",
    "unannotated",
    "view",
    "worksWith",
];

/// Stored secrets that the user passes to a server, keyed by variable or header.
pub type GivenSecrets = BTreeMap<String, SecretName>;

/// Reason text was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UntrustedEntryError {
    /// A variable or header refers to a secret that the user did not pass.
    #[error(
        "`{path}` asks for your secret `{secret}`, which may belong to another server; to pass it to this server, add `--secret {key}={secret}` to the `ironcurtain` command"
    )]
    Secret {
        /// Path in the entry, such as `env.API_KEY`.
        path: String,
        /// Name of the variable or header.
        key: String,
        /// Name of the secret.
        secret: String,
    },
    /// A key other than a variable or header refers to a secret.
    #[error("`{0}` contains `keyring:`, which refers to one of your secrets; remove it")]
    Reference(String),
    /// The text sets an option that only the user may set.
    #[error("it sets `{0}`, which only you may decide; remove it, and set it in `mcp-servers.json` yourself")]
    ReservedKey(String),
    /// The entry has an unknown key.
    #[error("unknown key `{0}`; remove it")]
    UnknownKey(String),
}

/// A validated entry from text that the user did not write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ValidatedEntry {
    pub(crate) entry: Map<String, Value>,
    /// Keys that were removed because they have no effect.
    pub(crate) ignored: Vec<String>,
}

/// Validates an entry, removes keys without effect and adds the secrets that the user passed.
///
/// # Errors
/// Returns an [`UntrustedEntryError`] that names the offending key.
pub(crate) fn validate(
    mut entry: Map<String, Value>,
    given: &GivenSecrets,
) -> Result<ValidatedEntry, UntrustedEntryError> {
    let is_ignored = |key: &String| IGNORED_KEYS.contains(&key.as_str()) || key.starts_with("_comment");
    let ignored: Vec<String> = entry.keys().filter(|key| is_ignored(key)).cloned().collect();
    entry.retain(|key, _| !is_ignored(key));
    if let Some(key) = entry.keys().find(|key| !ACCEPTED_KEYS.contains(&key.as_str())) {
        let error = if RESERVED_KEYS.contains(&key.as_str()) {
            UntrustedEntryError::ReservedKey
        } else {
            UntrustedEntryError::UnknownKey
        };
        return Err(error(key.clone()));
    }
    let mut unchecked_fields = entry.clone();
    for key in given.keys() {
        let (section, key, _) = secret_location(&entry, key);
        unchecked_fields
            .get_mut(section)
            .and_then(Value::as_object_mut)
            .and_then(|values| values.remove(&key));
    }
    for (key, value) in &unchecked_fields {
        check_value(key, value)?;
    }
    set_secrets(&mut entry, given);
    Ok(ValidatedEntry { entry, ignored })
}

/// Sets the variable or header for each secret that the user passed.
pub(super) fn set_secrets(entry: &mut Map<String, Value>, given: &GivenSecrets) {
    for (key, secret) in given {
        let (section, key, scheme) = secret_location(entry, key);
        let values = entry.entry(section).or_insert_with(|| json!({}));
        if let Some(values) = values.as_object_mut() {
            values.insert(key, json!(format!("{scheme}{REFERENCE_PREFIX}{secret}")));
        }
    }
}

/// Returns `true` if the text contains a reference to a secret.
pub(super) fn mentions_secret(text: &str) -> bool {
    text.to_ascii_lowercase().contains(REFERENCE_PREFIX)
}

fn check_text(path: &str, text: &str) -> Result<(), UntrustedEntryError> {
    if !mentions_secret(text) {
        return Ok(());
    }
    let key = path.strip_prefix("env.").or_else(|| path.strip_prefix("headers."));
    let secret = text.split(' ').next_back().and_then(|word| word.strip_prefix(REFERENCE_PREFIX));
    match (key, secret.map(SecretName::try_from)) {
        (Some(key), Some(Ok(secret))) => Err(UntrustedEntryError::Secret {
            path: path.to_owned(),
            key: key.to_owned(),
            secret: secret.to_string(),
        }),
        _ => Err(UntrustedEntryError::Reference(path.to_owned())),
    }
}

fn check_value(path: &str, value: &Value) -> Result<(), UntrustedEntryError> {
    match value {
        Value::String(text) => check_text(path, text),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(path, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            check_text(path, key)?;
            check_value(&format!("{path}.{key}"), value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Returns the location in an entry for the secret of the `key` variable or header: `env` or `headers`, the key's
/// spelling there, and the text before the secret, such as `Bearer `.
fn secret_location(entry: &Map<String, Value>, key: &str) -> (&'static str, String, String) {
    if !is_remote(entry) {
        return ("env", key.to_owned(), String::new());
    }
    let headers = entry.get("headers").and_then(Value::as_object);
    // Header names are case-insensitive.
    let existing = headers.and_then(|all| all.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)));
    let word = existing.and_then(|(_, value)| value.as_str()?.split_once(' ')).map(|(word, _)| word);
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let scheme = match word.filter(is_word) {
        Some(word) => format!("{word} "),
        None if key.eq_ignore_ascii_case("authorization") => "Bearer ".to_owned(),
        None => String::new(),
    };
    ("headers", existing.map_or(key, |(name, _)| name).to_owned(), scheme)
}

/// Returns `true` if the entry contains the address of a remote server.
pub(super) fn is_remote(entry: &Map<String, Value>) -> bool {
    ["url", "serverUrl", "httpUrl"].iter().any(|key| entry.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: Value, given: &[(&str, &str)]) -> Result<ValidatedEntry, String> {
        let given = given.iter().map(|(key, name)| ((*key).to_owned(), SecretName::try_from(*name).unwrap()));
        validate(entry.as_object().unwrap().clone(), &given.collect()).map_err(|e| e.to_string())
    }

    #[test]
    fn secrets_are_used_only_if_the_user_passes_them() {
        let local = json!({ "command": "c", "env": { "KEY": "keyring:bank" } });
        let wanted = "`env.KEY` asks for your secret `bank`, which may belong to another server; to pass it to this server, add \
            `--secret KEY=bank` to the `ironcurtain` command";
        assert_eq!(check(local.clone(), &[]), Err(wanted.to_owned()));
        assert!(check(local.clone(), &[("OTHER", "bank")]).is_err(), "another variable");
        let given = check(local, &[("KEY", "mine")]).unwrap();
        assert_eq!(
            given.entry["env"],
            json!({ "KEY": "keyring:mine" }),
            "the user's choice, not the author's"
        );
        for (entry, path) in [
            (json!({ "command": "keyring:a" }), "command"),
            (json!({ "command": "c", "args": ["-k", "x=keyring:a"] }), "args"),
            (json!({ "command": "c", "env": { "keyring:a": "v" } }), "env"),
            (json!({ "command": "c", "env": { "K": { "deep": ["KEYRING:a"] } } }), "env.K.deep"),
            (json!({ "url": "https://a.example/?k=keyring:a" }), "url"),
            (json!({ "url": "https://a.example/", "headers": { "X": "keyring:a keyring:" } }), "headers.X"),
        ] {
            let refused = check(entry, &[]).unwrap_err();
            assert_eq!(
                refused,
                format!("`{path}` contains `keyring:`, which refers to one of your secrets; remove it")
            );
        }
    }

    #[test]
    fn secret_replaces_the_header_value_and_keeps_its_scheme() {
        let remote = |headers: Value| json!({ "url": "https://a.example/", "headers": headers });
        let header = |headers: Value, key: &str| {
            check(remote(headers), &[(key, "s")]).unwrap().entry["headers"].clone()
        };
        assert_eq!(header(json!({}), "Authorization"), json!({ "Authorization": "Bearer keyring:s" }));
        let existing = json!({ "authorization": "Basic <base64 of your login>" });
        assert_eq!(header(existing, "Authorization"), json!({ "authorization": "Basic keyring:s" }));
        let stranger = json!({ "X-Key": "keyring:bank" });
        assert_eq!(header(stranger, "x-key"), json!({ "X-Key": "keyring:s" }));
        let refused = check(remote(json!({ "Authorization": "Bearer keyring:bank" })), &[]).unwrap_err();
        assert!(refused.starts_with("`headers.Authorization` asks for your secret `bank`"), "{refused}");
        let bare = check(json!({ "url": "https://a.example/" }), &[("Authorization", "s")]).unwrap();
        assert_eq!(bare.entry["headers"], json!({ "Authorization": "Bearer keyring:s" }));
    }

    #[test]
    fn options_of_the_user_are_rejected() {
        for key in RESERVED_KEYS {
            let mut entry = json!({ "command": "c" });
            entry[key] = json!(true);
            let refused = check(entry, &[]).unwrap_err();
            assert!(refused.starts_with(&format!("it sets `{key}`, which only you may decide")), "{refused}");
        }
        assert_eq!(
            check(json!({ "command": "c", "cwd": "/" }), &[]),
            Err("unknown key `cwd`; remove it".to_owned())
        );
        let typed = json!({ "command": "c", "type": "stdio", "description": "safe", "alwaysAllow": ["*"], "_comment": 1 });
        let validated = check(typed, &[]).unwrap();
        assert_eq!(Value::Object(validated.entry), json!({ "command": "c", "type": "stdio" }));
        assert_eq!(validated.ignored, ["description", "alwaysAllow", "_comment"]);
    }
}
