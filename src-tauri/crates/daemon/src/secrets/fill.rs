//! Filling secrets in where settings name them.

use super::{Secret, SecretError, SecretName, SecretNameError, SecretStore, in_time, named, named_in_header};
use std::collections::BTreeMap;

/// Why a value cannot be filled in.
#[derive(Debug, thiserror::Error)]
#[error("`{place}`: {source}")]
pub struct UnfilledError {
    /// Its place in the entry, as `env.API_KEY`.
    pub place: String,
    /// Why not.
    pub source: SecretError,
}

/// Variables with their secrets filled in.
///
/// # Errors
/// [`UnfilledError`], for the first that has none.
pub async fn filled_env(
    store: &SecretStore,
    env: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Secret>, UnfilledError> {
    filled(store, env, "env", |value| Ok(named(value)?.map(|name| ("", name)))).await
}

/// Headers with their secrets filled in.
///
/// # Errors
/// As [`filled_env`].
pub async fn filled_headers(
    store: &SecretStore,
    headers: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Secret>, UnfilledError> {
    filled(store, headers, "headers", named_in_header).await
}

async fn filled(
    store: &SecretStore,
    values: &BTreeMap<String, String>,
    of: &str,
    reference: impl Fn(&str) -> Result<Option<(&str, SecretName)>, SecretNameError>,
) -> Result<BTreeMap<String, Secret>, UnfilledError> {
    let mut all = BTreeMap::new();
    let mut wanted = Vec::new();
    for (key, value) in values {
        let unfilled = |source| UnfilledError { place: format!("{of}.{key}"), source };
        match reference(value).map_err(|problem| unfilled(problem.into()))? {
            None => drop(all.insert(key.clone(), Secret::new(value.clone()))),
            Some((before, name)) => wanted.push((key.clone(), before.to_owned(), name)),
        }
    }
    let Some((first, ..)) = wanted.first() else { return Ok(all) };
    let unfilled = |key: &str, source| UnfilledError { place: format!("{of}.{key}"), source };
    let names: Vec<SecretName> = wanted.iter().map(|(_, _, name)| name.clone()).collect();
    let store = store.clone();
    let look_up = move || Ok(names.iter().map(|name| store.get(name)).collect::<Vec<_>>());
    let found = in_time(look_up).await.map_err(|problem| unfilled(first, problem))?;
    for ((key, before, _), found) in wanted.iter().zip(found) {
        let secret = found.map_err(|problem| unfilled(key, problem))?;
        all.insert(key.clone(), Secret::new(format!("{before}{}", secret.reveal())));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[tokio::test]
    async fn plain_values_need_no_keyring() {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let filled = filled_env(&SecretStore::of(Path::new("/nonexistent")), &env).await.unwrap();
        assert_eq!(filled.get("A").unwrap().reveal(), "1");
    }
}
