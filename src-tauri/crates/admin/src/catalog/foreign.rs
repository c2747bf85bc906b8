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
const MARK: &str = "keyring:";

/// Accepted keys, which determine the program or the address.
const TAKEN: [&str; 8] = ["command", "args", "env", "type", "url", "serverUrl", "httpUrl", "headers"];

/// Keys that are ignored, because they are for display or only concern agent clients.
const IGNORED: [&str; 4] = ["alwaysAllow", "autoApprove", "description", "disabled"];

/// Keys that only the user may set.
const OURS: [&str; 10] = [
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
pub enum ForeignTextError {
    /// A variable or header refers to a secret that the user did not pass.
    #[error(
        "`{place}` asks for your secret `{secret}`, which may belong to another server; to pass it to this server, add `--secret {key}={secret}` to the `ironcurtain` command"
    )]
    Secret {
        /// Path in the entry, such as `env.API_KEY`.
        place: String,
        /// Name of the variable or header.
        key: String,
        /// Name of the secret.
        secret: String,
    },
    /// A key other than a variable or header refers to a secret.
    #[error("`{0}` contains `keyring:`, which refers to one of your secrets; remove it")]
    Mark(String),
    /// The text sets an option that only the user may set.
    #[error("it sets `{0}`, which only you may decide; remove it, and set it in `mcp-servers.json` yourself")]
    Ours(String),
    /// The entry has an unknown key.
    #[error("unknown key `{0}`; remove it")]
    Unknown(String),
}

/// A validated entry from text that the user did not write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    pub(crate) entry: Map<String, Value>,
    /// Keys that were removed because they have no effect.
    pub(crate) ignored: Vec<String>,
}

/// Validates an entry, removes keys without effect and adds the secrets that the user passed.
///
/// # Errors
/// Returns a [`ForeignTextError`] that names the offending key.
pub(crate) fn checked(
    mut entry: Map<String, Value>,
    given: &GivenSecrets,
) -> Result<Checked, ForeignTextError> {
    let is_ignored = |key: &String| IGNORED.contains(&key.as_str()) || key.starts_with("_comment");
    let ignored: Vec<String> = entry.keys().filter(|key| is_ignored(key)).cloned().collect();
    entry.retain(|key, _| !is_ignored(key));
    if let Some(key) = entry.keys().find(|key| !TAKEN.contains(&key.as_str())) {
        let error =
            if OURS.contains(&key.as_str()) { ForeignTextError::Ours } else { ForeignTextError::Unknown };
        return Err(error(key.clone()));
    }
    let mut others = entry.clone();
    for key in given.keys() {
        let (holder, key, _) = place_of(&entry, key);
        others.get_mut(holder).and_then(Value::as_object_mut).and_then(|values| values.remove(&key));
    }
    for (key, value) in &others {
        names_no_secret(key, value)?;
    }
    give(&mut entry, given);
    Ok(Checked { entry, ignored })
}

/// Sets the variable or header for each secret that the user passed.
pub(super) fn give(entry: &mut Map<String, Value>, given: &GivenSecrets) {
    for (key, secret) in given {
        let (holder, key, kind) = place_of(entry, key);
        let values = entry.entry(holder).or_insert_with(|| json!({}));
        if let Some(values) = values.as_object_mut() {
            values.insert(key, json!(format!("{kind}{MARK}{secret}")));
        }
    }
}

/// Returns `true` if the text contains a reference to a secret.
pub(super) fn mentions_secret(text: &str) -> bool {
    text.to_ascii_lowercase().contains(MARK)
}

fn text_names_no_secret(place: &str, text: &str) -> Result<(), ForeignTextError> {
    if !mentions_secret(text) {
        return Ok(());
    }
    let key = place.strip_prefix("env.").or_else(|| place.strip_prefix("headers."));
    let secret = text.split(' ').next_back().and_then(|word| word.strip_prefix(MARK));
    match (key, secret.map(SecretName::try_from)) {
        (Some(key), Some(Ok(secret))) => Err(ForeignTextError::Secret {
            place: place.to_owned(),
            key: key.to_owned(),
            secret: secret.to_string(),
        }),
        _ => Err(ForeignTextError::Mark(place.to_owned())),
    }
}

fn names_no_secret(place: &str, value: &Value) -> Result<(), ForeignTextError> {
    match value {
        Value::String(text) => text_names_no_secret(place, text),
        Value::Array(items) => items.iter().try_for_each(|item| names_no_secret(place, item)),
        Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
            text_names_no_secret(place, key)?;
            names_no_secret(&format!("{place}.{key}"), value)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Returns the location in an entry for the secret of the `key` variable or header: `env` or `headers`, the key's
/// spelling there, and the text before the secret, such as `Bearer `.
fn place_of(entry: &Map<String, Value>, key: &str) -> (&'static str, String, String) {
    if !is_remote(entry) {
        return ("env", key.to_owned(), String::new());
    }
    let headers = entry.get("headers").and_then(Value::as_object);
    // Header names are case-insensitive.
    let written = headers.and_then(|all| all.iter().find(|(name, _)| name.eq_ignore_ascii_case(key)));
    let word = written.and_then(|(_, value)| value.as_str()?.split_once(' ')).map(|(word, _)| word);
    let is_word = |word: &&str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let kind = match word.filter(is_word) {
        Some(word) => format!("{word} "),
        None if key.eq_ignore_ascii_case("authorization") => "Bearer ".to_owned(),
        None => String::new(),
    };
    ("headers", written.map_or(key, |(name, _)| name).to_owned(), kind)
}

/// Returns `true` if the entry contains the address of a remote server.
pub(super) fn is_remote(entry: &Map<String, Value>) -> bool {
    ["url", "serverUrl", "httpUrl"].iter().any(|key| entry.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(entry: Value, given: &[(&str, &str)]) -> Result<Checked, String> {
        let given = given.iter().map(|(key, name)| ((*key).to_owned(), SecretName::try_from(*name).unwrap()));
        checked(entry.as_object().unwrap().clone(), &given.collect()).map_err(|e| e.to_string())
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
        for (entry, place) in [
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
                format!("`{place}` contains `keyring:`, which refers to one of your secrets; remove it")
            );
        }
    }

    #[test]
    fn secret_replaces_the_header_value_and_keeps_its_scheme() {
        let far = |headers: Value| json!({ "url": "https://a.example/", "headers": headers });
        let header =
            |headers: Value, key: &str| check(far(headers), &[(key, "s")]).unwrap().entry["headers"].clone();
        assert_eq!(header(json!({}), "Authorization"), json!({ "Authorization": "Bearer keyring:s" }));
        let written = json!({ "authorization": "Basic <base64 of your login>" });
        assert_eq!(header(written, "Authorization"), json!({ "authorization": "Basic keyring:s" }));
        let stranger = json!({ "X-Key": "keyring:bank" });
        assert_eq!(header(stranger, "x-key"), json!({ "X-Key": "keyring:s" }));
        let refused = check(far(json!({ "Authorization": "Bearer keyring:bank" })), &[]).unwrap_err();
        assert!(refused.starts_with("`headers.Authorization` asks for your secret `bank`"), "{refused}");
        let bare = check(json!({ "url": "https://a.example/" }), &[("Authorization", "s")]).unwrap();
        assert_eq!(bare.entry["headers"], json!({ "Authorization": "Bearer keyring:s" }));
    }

    #[test]
    fn options_of_the_user_are_rejected() {
        for key in OURS {
            let mut entry = json!({ "command": "c" });
            entry[key] = json!(true);
            let refused = check(entry, &[]).unwrap_err();
            assert!(refused.starts_with(&format!("it sets `{key}`, which only you may decide")), "{refused}");
        }
        assert_eq!(
            check(json!({ "command": "c", "cwd": "/" }), &[]),
            Err("unknown key `cwd`; remove it".to_owned())
        );
        let talks = json!({ "command": "c", "type": "stdio", "description": "safe", "alwaysAllow": ["*"], "_comment": 1 });
        let checked = check(talks, &[]).unwrap();
        assert_eq!(Value::Object(checked.entry), json!({ "command": "c", "type": "stdio" }));
        assert_eq!(checked.ignored, ["description", "alwaysAllow", "_comment"]);
    }
}
