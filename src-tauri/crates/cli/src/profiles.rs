//! Profiles: sets of servers behind one entry of a client.

use crate::screen::Screen;
use crate::sheet::Sheet;
use clap::Subcommand;
use ironcurtain_admin::clients::Clients;
use ironcurtain_admin::profiles::{ServerProfile, profiles, remove_profile, set_profile};
use ironcurtain_config::home::Home;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::ExitCode;

/// The actions on profiles.
#[derive(Debug, Subcommand)]
pub enum ProfilesAction {
    /// List them, and the clients that are given each.
    List,
    /// Make one, or give one other servers. `ironcurtain clients connect NAME --profile PROFILE` gives it to a client.
    Set {
        /// Its name.
        name: String,
        /// Its servers.
        #[arg(required = true)]
        servers: Vec<String>,
    },
    /// Remove one. A client that is given it starts nothing until it is connected anew.
    Remove {
        /// Its name.
        name: String,
    },
}

/// Does it.
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
    screen.show(&text(&all), &json!({ "profiles": all.iter().map(as_json).collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn text(all: &[ServerProfile]) -> Sheet {
    let mut sheet = Sheet::default();
    if all.is_empty() {
        sheet.line("There is no profile. `ironcurtain profiles set NAME SERVER...` makes one.");
    }
    for ServerProfile { name, servers, missing, clients } in all {
        let servers = servers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        sheet.line(format_args!("{name}: {servers}"));
        for server in missing {
            sheet.line(format_args!("  ! there is no server {server}"));
        }
        match clients.as_slice() {
            [] => sheet.line("  no client is given it"),
            clients => sheet.line(format_args!("  given to {}", clients.join(", "))),
        }
    }
    sheet
}

fn as_json(ServerProfile { name, servers, missing, clients }: &ServerProfile) -> Value {
    json!({ "name": name, "servers": servers, "missing": missing, "clients": clients })
}
