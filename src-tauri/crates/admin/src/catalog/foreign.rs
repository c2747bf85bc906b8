//! Text that the user did not write: a maker's snippet, an address, a bundle, the settings of an agent client.
//!
//! - INVARIANT: an entry made from such text names no secret of the user's unless the user gave it one by name, since the name
//!   may be that of another server's secret and the entry says where it is sent.
//! - It says what is started or where a server runs, and sets no option that decides what a server may do.

use ironcurtain_secrets::SecretName;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The mark of a secret's name.
const MARK: &str = "keyring:";

/// The keys that say what is started, or where a server runs.
const TAKEN: [&str; 8] = ["command", "args", "env", "type", "url", "serverUrl", "httpUrl", "headers"];

/// Keys for people and for agent clients, which change nothing here.
const IGNORED: [&str; 4] = ["alwaysAllow", "autoApprove", "description", "disabled"];

/// The options that only the user sets.
const OURS: [&str; 8] =
    ["allowedAddresses", "fileWrites", "passEnv", "sampling", "sandbox", "unannotated", "view", "worksWith"];

/// Secrets that the user gives a server, by the variable or header that each is for.
pub type GivenSecrets = BTreeMap<String, SecretName>;

/// Why a text that the user did not write is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignTextError {
    /// A variable or header names a secret of the user's.
    #[error(
        "`{place}` asks for your secret `{secret}`, which may be another server's; if this server is to have it, pass `--secret {key}={secret}` to `ironcurtain`"
    )]
    Secret {
        /// The place, as `env.API_KEY`.
        place: String,
        /// The variable or header.
        key: String,
        /// The secret.
        secret: String,
    },
    /// A secret is named where none can be.
    #[error("`{0}` contains `keyring:`, which stands for a secret of yours; remove it")]
    Mark(String),
    /// It sets an option of ours.
    #[error("it sets `{0}`, which only you decide; remove it, and set it in `mcp-servers.json` yourself")]
    Ours(String),
    /// It has a key that no entry has.
    #[error("unknown key `{0}`; remove it")]
    Unknown(String),
}

/// An entry from text that the user did not write, after the check.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Checked {
    pub(crate) entry: Map<String, Value>,
    /// The keys that were left out.
    pub(crate) ignored: Vec<String>,
}

/// Checks an entry, leaves out the keys that are ignored, and puts the user's secrets in.
///
/// # Errors
/// [`ForeignTextError`], naming the place.
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

/// Sets the variable or header of each given secret.
pub(super) fn give(entry: &mut Map<String, Value>, given: &GivenSecrets) {
    for (key, secret) in given {
        let (holder, key, kind) = place_of(entry, key);
        let values = entry.entry(holder).or_insert_with(|| json!({}));
        if let Some(values) = values.as_object_mut() {
            values.insert(key, json!(format!("{kind}{MARK}{secret}")));
        }
    }
}

/// Returns `true` for a text with the mark of a secret in it.
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

/// The place of a given secret: the holder, the key as it is written there, and the word before the secret, with its blank.
fn place_of(entry: &Map<String, Value>, key: &str) -> (&'static str, String, String) {
    if !is_remote(entry) {
        return ("env", key.to_owned(), String::new());
    }
    let headers = entry.get("headers").and_then(Value::as_object);
    // The name of a header has no case.
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

/// Returns `true` for an entry of a server that runs elsewhere.
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
    fn a_stranger_s_text_names_no_secret_anywhere_and_the_user_gives_one_by_name() {
        let local = json!({ "command": "c", "env": { "KEY": "keyring:bank" } });
        let wanted = "`env.KEY` asks for your secret `bank`, which may be another server's; if this server is to have it, pass \
            `--secret KEY=bank` to `ironcurtain`";
        assert_eq!(check(local.clone(), &[]), Err(wanted.to_owned()));
        assert!(check(local.clone(), &[("OTHER", "bank")]).is_err(), "another variable");
        let given = check(local, &[("KEY", "mine")]).unwrap();
        assert_eq!(
            given.entry["env"],
            json!({ "KEY": "keyring:mine" }),
            "the user's choice, not the maker's"
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
                format!("`{place}` contains `keyring:`, which stands for a secret of yours; remove it")
            );
        }
    }

    #[test]
    fn a_given_secret_stands_in_its_header_once_with_the_word_before_it() {
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
    fn a_stranger_sets_no_option_of_ours() {
        for key in OURS {
            let mut entry = json!({ "command": "c" });
            entry[key] = json!(true);
            let refused = check(entry, &[]).unwrap_err();
            assert!(refused.starts_with(&format!("it sets `{key}`, which only you decide")), "{refused}");
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
