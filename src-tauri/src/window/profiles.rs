//! Commands for profiles. A profile is a set of servers that a client reaches through one entry.

use super::AppState;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use ironcurtain_admin::clients::Clients;
use ironcurtain_admin::profiles::{ServerProfile, profiles as all_profiles, remove_profile, set_profile};
use ironcurtain_visible as visible;
use serde::Serialize;
use std::collections::BTreeSet;

#[derive(Debug, Serialize)]
pub(super) struct ProfileRow {
    name: String,
    servers: Vec<String>,
    /// Servers of the profile that are not configured.
    missing: Vec<String>,
    /// Display names of the clients that use the profile.
    clients: Vec<&'static str>,
}

pub(super) async fn profiles(state: &AppState) -> Result<Vec<ProfileRow>, CommandError> {
    let trusted = trusted(state)?;
    let all = run_blocking(move || {
        let survey = Clients::new(trusted.home.clone(), &trusted.programs).map(|all| all.survey());
        all_profiles(&trusted.home, &survey.unwrap_or_default())
    });
    let shown = |names: BTreeSet<String>| names.iter().map(|name| visible::line(name)).collect();
    let row = |ServerProfile { name, servers, missing, clients }| ProfileRow {
        name: visible::line(&name),
        servers: shown(servers),
        missing: shown(missing),
        clients,
    };
    Ok(all.await?.into_iter().map(row).collect())
}

pub(super) async fn change_profile(
    state: &AppState,
    name: String,
    servers: BTreeSet<String>,
) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || set_profile(&home, name.trim(), &servers)).await
}

pub(super) async fn delete_profile(state: &AppState, name: String) -> Result<(), CommandError> {
    let home = trusted(state)?.home;
    run_blocking(move || remove_profile(&home, &name)).await
}
