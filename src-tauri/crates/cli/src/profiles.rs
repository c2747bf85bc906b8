//! `profiles`: sets of servers that a client reaches through one entry.

use crate::screen::Screen;
use crate::text_lines::TextLines;
use clap::Subcommand;
use ironcurtain_admin::clients::Clients;
use ironcurtain_admin::profiles::{ServerProfile, profiles, remove_profile, set_profile};
use ironcurtain_config::home::Home;
use ironcurtain_config::{RunProfile, RunProfiles};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List profiles and the clients that use them.
    List,
    /// Create a profile, or change its servers. To use it: `ironcurtain clients connect CLIENT --profile NAME`.
    Set {
        /// Name of the profile.
        name: String,
        /// Servers of the profile.
        #[arg(required = true)]
        servers: Vec<String>,
    },
    /// Remove a profile. A client that uses it starts no server until you connect it again.
    Remove {
        /// Name of the profile.
        name: String,
    },
}

/// Runs the subcommand.
pub fn perform(action: Option<ProfilesAction>, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    match action.unwrap_or(ProfilesAction::List) {
        ProfilesAction::List => {}
        ProfilesAction::Set { name, servers } => {
            let servers: BTreeSet<String> = servers.into_iter().collect();
            set_profile(&home, &name, &servers)?;
        }
        ProfilesAction::Remove { name } => remove_profile(&home, &name)?,
    }
    let clients = Clients::new(home.clone(), &crate::servers::programs()?);
    let all = profiles(&home, &clients.map(|all| all.survey()).unwrap_or_default())?;
    let runs = RunProfiles::load(&home)?;
    let mut out = text(&all);
    out.line("Run profiles:");
    runs.iter().for_each(|profile| out.line(run_profile(profile)));
    let runs: Vec<Value> = runs.iter().map(run_profile_as_json).collect();
    let profiles: Vec<Value> = all.iter().map(as_json).collect();
    screen.show(&out, &json!({ "profiles": profiles, "runProfiles": runs }))?;
    Ok(ExitCode::SUCCESS)
}

fn text(all: &[ServerProfile]) -> TextLines {
    let mut out = TextLines::default();
    if all.is_empty() {
        out.line("There are no profiles. To create one: ironcurtain profiles set NAME SERVER...");
    }
    for ServerProfile { name, servers, missing, clients } in all {
        let servers = servers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        out.line(format_args!("{name}: {servers}"));
        for server in missing {
            out.line(format_args!("  ! the server {server} does not exist"));
        }
        match clients.as_slice() {
            [] => out.line("  not used by any client"),
            clients => out.line(format_args!("  used by {}", clients.join(", "))),
        }
    }
    out
}

fn run_profile(profile: &RunProfile) -> String {
    let title = profile.title.as_deref().unwrap_or("your own profile");
    let measured = profile.measured.as_ref();
    let measured =
        measured.map_or_else(|| "not measured".to_owned(), |version| format!("measured with {version}"));
    format!("  {}: {title} ({measured})", profile.name)
}

fn run_profile_as_json(profile: &RunProfile) -> Value {
    json!({ "name": profile.name, "title": profile.title, "measured": profile.measured })
}

fn as_json(ServerProfile { name, servers, missing, clients }: &ServerProfile) -> Value {
    json!({ "name": name, "servers": servers, "missing": missing, "clients": clients })
}
