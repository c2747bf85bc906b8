//! Selects a connection's servers: all enabled servers, or those in a profile.

use ironcurtain_config::{Server as ServerConfig, SessionSettings};
use std::collections::BTreeMap;

/// Returns the selected servers by name. Empty if the profile does not exist.
pub(crate) fn selected(settings: &SessionSettings, profile: Option<&str>) -> BTreeMap<String, ServerConfig> {
    let profile = profile.map(|name| settings.config.profiles.get(name));
    let is_selected = |name: &str| match profile {
        None => true,
        Some(servers) => servers.is_some_and(|servers| servers.contains(name)),
    };
    let servers = settings.servers.iter().filter(|server| is_selected(&server.name));
    servers.map(|server| (server.name.clone(), server.clone())).collect()
}

/// Returns an error message if no profile has this name, or `None` if one does.
#[must_use]
pub fn unknown_profile(settings: &SessionSettings, name: &str) -> Option<String> {
    if settings.config.profiles.contains_key(name) {
        return None;
    }
    let known: Vec<String> = settings.config.profiles.keys().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Some(format!(
        "no profile is named `{name}`; existing profiles: {known}; pass one of them to `--profile`, or add `{name}` to `profiles` in `config.json`"
    ))
}
