//! Replaces references to secrets in settings with the secrets.

use super::{
    Secret, SecretError, SecretMask, SecretName, SecretNameError, SecretStore, in_time, named,
    named_in_header,
};
use ironcurtain_audit::names_a_secret;
use std::collections::BTreeMap;

/// Error for a setting whose secret is not available.
#[derive(Debug, thiserror::Error)]
#[error("`{place}`: {source}")]
pub struct UnfilledError {
    /// Location of the setting in the server's entry, such as `env.API_KEY`.
    pub place: String,
    /// Reason the secret is not available.
    pub source: SecretError,
}

/// Settings with their secrets inserted.
#[derive(Debug, Default)]
pub struct Filled {
    /// Value of each setting, by name.
    pub values: BTreeMap<String, Secret>,
    /// Mask that replaces these secrets in the server's output.
    pub mask: SecretMask,
}

/// Returns environment variables with their secrets inserted.
///
/// # Errors
/// Returns [`UnfilledError`] for the first secret that is not available.
pub async fn filled_env(
    store: &SecretStore,
    env: &BTreeMap<String, String>,
) -> Result<Filled, UnfilledError> {
    filled(store, env, "env", |value| Ok(named(value)?.map(|name| ("", name)))).await
}

/// Returns HTTP headers with their secrets inserted.
///
/// # Errors
/// Returns the same errors as [`filled_env`].
pub async fn filled_headers(
    store: &SecretStore,
    headers: &BTreeMap<String, String>,
) -> Result<Filled, UnfilledError> {
    filled(store, headers, "headers", named_in_header).await
}

/// Returns the value of one setting, with its secret inserted. `section` and `key` name the setting in errors.
///
/// # Errors
/// Returns the same errors as [`filled_env`].
pub async fn filled_setting(
    store: &SecretStore,
    (section, key): (&str, &str),
    value: &str,
) -> Result<Secret, UnfilledError> {
    let values = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let filled = filled(store, &values, section, |value| Ok(named(value)?.map(|name| ("", name)))).await?;
    Ok(filled.values.into_values().next().unwrap_or_else(|| Secret::new(String::new())))
}

async fn filled(
    store: &SecretStore,
    values: &BTreeMap<String, String>,
    of: &str,
    reference: impl Fn(&str) -> Result<Option<(&str, SecretName)>, SecretNameError>,
) -> Result<Filled, UnfilledError> {
    let mut all = Filled::default();
    let mut wanted = Vec::new();
    let mut secrets = Vec::new();
    for (key, value) in values {
        let unfilled = |source| UnfilledError { place: format!("{of}.{key}"), source };
        match reference(value).map_err(|problem| unfilled(problem.into()))? {
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
    let unfilled = |key: &str, source| UnfilledError { place: format!("{of}.{key}"), source };
    let names: Vec<SecretName> = wanted.iter().map(|(_, _, name)| name.clone()).collect();
    let store = store.clone();
    let look_up = move || Ok(names.iter().map(|name| store.get(name)).collect::<Vec<_>>());
    let found = in_time(look_up).await.map_err(|problem| unfilled(first, problem))?;
    for ((key, before, _), found) in wanted.iter().zip(found) {
        let secret = found.map_err(|problem| unfilled(key, problem))?;
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
        let filled = filled_env(&SecretStore::of(Path::new("/nonexistent")), &env).await.unwrap();
        assert_eq!(filled.values.get("A").unwrap().reveal(), "1");
    }

    #[tokio::test]
    async fn a_plain_value_that_is_named_as_a_secret_is_masked() {
        let of = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let store = SecretStore::of(Path::new("/nonexistent"));
        let masked = |filled: Filled| filled.mask.apply(b"got plain-token-1").into_owned();
        let headers = filled_headers(&store, &of("X-API-Key", "Bearer plain-token-1")).await.unwrap();
        assert_eq!(masked(headers), b"got [secret]");
        let other = filled_env(&store, &of("FOLDER", "plain-token-1")).await.unwrap();
        assert_eq!(masked(other), b"got plain-token-1");
    }
}
