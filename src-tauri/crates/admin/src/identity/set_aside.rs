//! Sets aside everything that is stored under a server name, without deleting it.

use super::{IdentityChangeError, SuspendedServer};
use crate::file_edit;
use crate::servers_file::{ServerChangeError, ServersFile};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_config::home::{Home, private_dir};
use ironcurtain_config::read;
use ironcurtain_paths::random_name;
use ironcurtain_policy::{Annotations, defaults};
use ironcurtain_secrets::{Logins, SecretStore, secret_reference, secret_reference_in_header};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Records the state that will be set aside in `put-aside.json` and returns the file's path.
pub(super) fn write_inventory(server: &SuspendedServer) -> Result<PathBuf, IdentityChangeError> {
    let home = &server.home;
    let file = home.config.join("put-aside.json");
    let text = read(&file)?.unwrap_or_else(|| "[]".to_owned());
    let parse_error = |source| IdentityChangeError::Parse { file: file.clone(), source };
    let mut inventory: Vec<Value> = serde_json::from_str(&text).map_err(parse_error)?;
    let grants = server.stored_state.grants.iter().map(|grant| {
        json!({ "client": grant.subject.client, "what": grant.what.to_string(), "provenance": grant.provenance })
    });
    inventory.push(json!({
        "server": server.name,
        "atMs": now_ms(),
        "was": server.owner.as_ref().and_then(|owner| serde_json::from_str::<Value>(owner).ok()),
        "grants": grants.collect::<Vec<_>>(),
        "annotations": annotations(home, &server.name)?,
        "secrets": secret_references(home, &server.name)?,
        "data": server.stored_state.data.as_ref().map(|_| home.set_aside_data()),
    }));
    let text = serde_json::to_string_pretty(&inventory).map_err(parse_error)? + "\n";
    file_edit::replace(&file, &text)?;
    Ok(file)
}

/// Removes the annotations and the references to secrets from their files and moves the data folder.
pub(super) fn set_aside(server: &SuspendedServer) -> Result<(), IdentityChangeError> {
    let (home, name) = (&server.home, server.name.as_str());
    if annotations(home, name)?.is_some() {
        let (file, text) = annotations_file(home)?;
        let text = file_edit::remove(&file, &text, &["servers", name])?;
        let checked = Annotations::from_json(&text, &file.display().to_string());
        checked.map_err(ironcurtain_config::SnapshotError::from)?;
        private_dir(&home.policy())?;
        file_edit::replace(&file, &text)?;
    }
    for (key, field) in secret_references(home, name)?.into_iter().flat_map(field_paths) {
        let servers = ServersFile::open(home)?;
        let (keys, _) = servers.entry(name)?;
        let keys: Vec<&str> = keys.iter().map(String::as_str).chain([key.as_str(), field.as_str()]).collect();
        servers.write(&servers.without(&keys)?)?;
    }
    if server.stored_state.login {
        // The login's tokens are never sent to a different address.
        Logins::of(&SecretStore::of(&home.state)).remove_record(name)?;
    }
    if let Some(data) = &server.stored_state.data {
        let (target, move_error) =
            (home.set_aside_data(), |source| IdentityChangeError::Move { path: data.clone(), source });
        private_dir(&target)?;
        let unique = format!("{name}-{}", random_name().map_err(move_error)?);
        std::fs::rename(data, target.join(unique)).map_err(move_error)?;
        private_dir(data)?;
    }
    Ok(())
}

fn annotations_file(home: &Home) -> Result<(PathBuf, String), IdentityChangeError> {
    let file = home.policy().join("tool-annotations.json");
    let text = read(&file)?.unwrap_or_else(|| defaults::ANNOTATIONS_JSON.to_owned());
    Ok((file, text))
}

fn annotations(home: &Home, name: &str) -> Result<Option<Value>, IdentityChangeError> {
    let (file, text) = annotations_file(home)?;
    let all: Value =
        serde_json::from_str(&text).map_err(|source| IdentityChangeError::Parse { file, source })?;
    Ok(all.get("servers").and_then(|servers| servers.get(name)).cloned())
}

/// Returns the variables and headers in a server's entry that refer to secrets, or an empty map if the server has no
/// entry.
fn secret_references(home: &Home, name: &str) -> Result<Map<String, Value>, IdentityChangeError> {
    let entry = match ServersFile::open(home)?.entry(name) {
        Ok((_, entry)) => entry,
        Err(ServerChangeError::Unknown(_)) => return Ok(Map::new()),
        Err(problem) => return Err(problem.into()),
    };
    let is_reference = |key: &str, value: &str| match key {
        "env" => matches!(secret_reference(value), Ok(Some(_))),
        _ => matches!(secret_reference_in_header(value), Ok(Some(_))),
    };
    let mut all = Map::new();
    for key in ["env", "headers"] {
        let fields = entry.get(key).and_then(Value::as_object).into_iter().flatten();
        let fields = fields.filter(|(_, value)| value.as_str().is_some_and(|value| is_reference(key, value)));
        let fields: Map<String, Value> =
            fields.map(|(field, value)| (field.clone(), value.clone())).collect();
        if !fields.is_empty() {
            all.insert(key.to_owned(), Value::Object(fields));
        }
    }
    Ok(all)
}

fn field_paths((key, fields): (String, Value)) -> Vec<(String, String)> {
    let fields = fields.as_object().into_iter().flatten();
    fields.map(|(field, _)| (key.clone(), field.clone())).collect()
}
