//! Replaces references to secrets in settings with the secrets.

use super::{
    Secret, SecretError, SecretMask, SecretName, SecretNameError, SecretStore, secret_reference,
    secret_reference_in_header, with_unlock_timeout,
};
use ironcurtain_audit::names_a_secret;
use std::collections::BTreeMap;

/// Error for a setting whose secret is not available.
#[derive(Debug, thiserror::Error)]
#[error("`{field}`: {source}")]
pub struct FillError {
    /// Location of the setting in the server's entry, such as `env.API_KEY`.
    pub field: String,
    /// Reason the secret is not available.
    pub source: SecretError,
}

/// Settings with their secrets inserted.
#[derive(Debug, Default)]
pub struct FilledSettings {
    /// Value of each setting, by name.
    pub values: BTreeMap<String, Secret>,
    /// Mask that replaces these secrets in the server's output.
    pub mask: SecretMask,
}

/// Returns environment variables with their secrets inserted.
///
/// # Errors
/// Returns [`FillError`] for the first secret that is not available.
pub async fn fill_env(
    store: &SecretStore,
    env: &BTreeMap<String, String>,
) -> Result<FilledSettings, FillError> {
    fill(store, env, "env", |value| Ok(secret_reference(value)?.map(|name| ("", name)))).await
}

/// Returns HTTP headers with their secrets inserted.
///
/// # Errors
/// Returns the same errors as [`fill_env`].
pub async fn fill_headers(
    store: &SecretStore,
    headers: &BTreeMap<String, String>,
) -> Result<FilledSettings, FillError> {
    fill(store, headers, "headers", secret_reference_in_header).await
}

/// Returns the value of one setting, with its secret inserted. `section` and `key` name the setting in errors.
///
/// # Errors
/// Returns the same errors as [`fill_env`].
pub async fn fill_setting(
    store: &SecretStore,
    (section, key): (&str, &str),
    value: &str,
) -> Result<Secret, FillError> {
    let values = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let fill =
        fill(store, &values, section, |value| Ok(secret_reference(value)?.map(|name| ("", name)))).await?;
    Ok(fill.values.into_values().next().unwrap_or_else(|| Secret::new(String::new())))
}

async fn fill(
    store: &SecretStore,
    values: &BTreeMap<String, String>,
    section: &str,
    reference: impl Fn(&str) -> Result<Option<(&str, SecretName)>, SecretNameError>,
) -> Result<FilledSettings, FillError> {
    let mut all = FilledSettings::default();
    let mut wanted = Vec::new();
    let mut secrets = Vec::new();
    for (key, value) in values {
        let fill_error = |source| FillError { field: format!("{section}.{key}"), source };
        match reference(value).map_err(|problem| fill_error(problem.into()))? {
            None => {
                // A plain value is also masked if the setting's name suggests a secret. In `Bearer TOKEN`, only the
                // token is secret.
                let token = value.rsplit(' ').next().filter(|_| names_a_secret(key));
                secrets.extend(token.map(|token| Secret::new(token.to_owned())));
                all.values.insert(key.clone(), Secret::new(value.clone()));
            }
            Some((before, name)) => wanted.push((key.clone(), before.to_owned(), name)),
        }
    }
    let Some((first, ..)) = wanted.first() else {
        all.mask = SecretMask::of(&secrets);
        return Ok(all);
    };
    let fill_error = |key: &str, source| FillError { field: format!("{section}.{key}"), source };
    let names: Vec<SecretName> = wanted.iter().map(|(_, _, name)| name.clone()).collect();
    let store = store.clone();
    let look_up = move || Ok(names.iter().map(|name| store.get(name)).collect::<Vec<_>>());
    let found = with_unlock_timeout(look_up).await.map_err(|problem| fill_error(first, problem))?;
    for ((key, before, _), found) in wanted.iter().zip(found) {
        let secret = found.map_err(|problem| fill_error(key, problem))?;
        all.values.insert(key.clone(), Secret::new(format!("{before}{}", secret.reveal())));
        secrets.push(secret);
    }
    all.mask = SecretMask::of(&secrets);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[tokio::test]
    async fn plain_values_need_no_keyring() {
        let env = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        let fill = fill_env(&SecretStore::of(Path::new("/nonexistent")), &env).await.unwrap();
        assert_eq!(fill.values.get("A").unwrap().reveal(), "1");
    }

    #[tokio::test]
    async fn a_plain_value_that_is_named_as_a_secret_is_masked() {
        let section = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let store = SecretStore::of(Path::new("/nonexistent"));
        let masked = |fill: FilledSettings| fill.mask.apply(b"got plain-token-1").into_owned();
        let headers = fill_headers(&store, &section("X-API-Key", "Bearer plain-token-1")).await.unwrap();
        assert_eq!(masked(headers), b"got [secret]");
        let other = fill_env(&store, &section("FOLDER", "plain-token-1")).await.unwrap();
        assert_eq!(masked(other), b"got plain-token-1");
    }
}
