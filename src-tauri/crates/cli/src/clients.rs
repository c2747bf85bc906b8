//! Agent clients: which are there, connecting them and restoring their settings.
//!
//! - Nothing is written before the whole difference was shown and a person said yes, or `--yes` said it for them.

use crate::screen::Screen;
use crate::secrets;
use crate::sheet::Sheet;
use anyhow::bail;
use clap::{Args, Subcommand};
use ironcurtain_admin::clients::{
    ClientChange, ClientReport, ClientState, ClientTarget, Clients, ConnectRequest, EntryUse,
};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::SecretName;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

/// The actions on clients.
#[derive(Debug, Subcommand)]
pub enum ClientsAction {
    /// List the agent clients that are known, and what each starts.
    List {
        /// Those that are not on this machine as well.
        #[arg(long)]
        all: bool,
    },
    /// Give a client entries that start IronCurtain, one for each server.
    Connect {
        /// The client and its entries.
        #[command(flatten)]
        entries: EntryOptions,
        /// Write without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Give a client back what it had.
    Disconnect {
        /// Which client: a name of `clients list`.
        name: String,
        /// Only this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// The settings of this project, in place of yours.
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
        /// Write without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Show what connecting would change, and write nothing.
    Diff {
        /// The client and its entries.
        #[command(flatten)]
        entries: EntryOptions,
    },
}

/// The entries that a client is to have.
#[derive(Debug, Args)]
pub struct EntryOptions {
    /// Which client: a name of `clients list`.
    name: String,
    /// Only this server.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["as_one", "profile", "moving"])]
    server: Option<String>,
    /// One entry for all servers together.
    #[arg(long, conflicts_with_all = ["profile", "moving"])]
    as_one: bool,
    /// One entry for the servers of this profile together.
    #[arg(long, value_name = "NAME", conflicts_with = "moving")]
    profile: Option<String>,
    /// The servers that the client starts itself: each becomes a server of IronCurtain's.
    #[arg(long = "move", id = "moving")]
    moving: bool,
    /// With `--move`, only this server of the client's; it may be written several times.
    #[arg(long, value_name = "NAME", requires = "moving")]
    only: Vec<String>,
    /// The secrets of the servers that move go to the keyring.
    #[arg(long, requires = "moving")]
    move_secrets: bool,
    /// Give the server that moves a secret of yours as this variable. Needs `--only` with one name.
    #[arg(long = "secret", value_name = "KEY=NAME", value_parser = crate::servers::given_secret, requires = "only")]
    secrets: Vec<(String, SecretName)>,
    /// The settings of this project, in place of yours.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

/// Does it.
pub fn perform(action: &ClientsAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let clients = Clients::new(home, &crate::servers::programs()?)?;
    match action {
        ClientsAction::List { all } => list(&clients, *all, screen),
        ClientsAction::Diff { entries } => {
            let change = planned(&clients, entries)?;
            screen.show(&described(&change), &as_json(&change))?;
            Ok(ExitCode::SUCCESS)
        }
        ClientsAction::Connect { entries, yes } => {
            written(&clients, &planned(&clients, entries)?, *yes, screen)
        }
        ClientsAction::Disconnect { name, server, project, yes } => {
            let target = ClientTarget { id: name, project: project.as_deref() };
            written(&clients, &clients.disconnect(target, server.as_deref())?, *yes, screen)
        }
    }
}

fn planned(clients: &Clients, options: &EntryOptions) -> anyhow::Result<ClientChange> {
    let target = ClientTarget { id: &options.name, project: options.project.as_deref() };
    let only = Some(options.only.as_slice()).filter(|only| !only.is_empty());
    let given = options.secrets.iter().cloned().collect();
    if !options.secrets.is_empty() && options.only.len() != 1 {
        bail!("`--secret` is for one server: name that one, and no other, with `--only`");
    }
    let request = match (&options.server, &options.profile) {
        (Some(server), _) => ConnectRequest::Server(server),
        (None, Some(profile)) => ConnectRequest::Profile(profile),
        (None, None) if options.as_one => ConnectRequest::AsOne,
        (None, None) if options.moving => {
            ConnectRequest::Move { secrets: options.move_secrets, only, given: &given }
        }
        (None, None) => ConnectRequest::Each,
    };
    Ok(clients.connect(target, request)?)
}

fn written(clients: &Clients, change: &ClientChange, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    screen.show(&described(change), &as_json(change))?;
    if change.edit.is_empty() || (!yes && screen.is_for_programs()) {
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Write this to `{}`?", change.file.display());
    if !yes && !screen.confirmed(&question)? {
        screen.note("Nothing was written.")?;
        return Ok(ExitCode::FAILURE);
    }
    secrets::keep(&change.secrets)?;
    clients.write(change)?;
    screen.note(&format!("Written. Start {} again, so that it reads its settings.", change.client))?;
    Ok(ExitCode::SUCCESS)
}

fn list(clients: &Clients, all: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let mut reports = clients.survey();
    reports.retain(|report| all || report.state != ClientState::Missing);
    let mut sheet = Sheet::default();
    reports.iter().for_each(|report| reported(&mut sheet, report));
    if reports.is_empty() {
        sheet.line("No agent client was found on this machine. `ironcurtain clients list --all` names those that are known.");
    }
    screen.show(&sheet, &json!({ "clients": reports }))?;
    Ok(ExitCode::SUCCESS)
}

fn reported(sheet: &mut Sheet, report: &ClientReport) {
    let state = match report.state {
        ClientState::Missing => "not on this machine",
        ClientState::NotConnected => "not connected",
        ClientState::Connected => "connected",
        ClientState::Bypassing => "CONNECTED, BUT SOME SERVERS GO PAST THE SHIELD",
        ClientState::Drifted => "STARTS A SHIM THAT IS NOT THIS ONE: connect it again",
        ClientState::Unreadable => "ITS SETTINGS CANNOT BE READ",
    };
    sheet.line(format_args!("{} ({}): {state}", report.id, report.name));
    sheet.line(format_args!("  settings   {}", report.file.display()));
    if let Some(problem) = &report.problem {
        sheet.line(format_args!("  ! {problem}"));
    }
    for entry in &report.entries {
        let way = match &entry.way {
            EntryUse::Shield { server: Some(server), .. } => format!("behind the shield: server {server}"),
            EntryUse::Shield { server: None, profile: Some(profile) } => {
                format!("behind the shield: profile {profile}")
            }
            EntryUse::Shield { server: None, profile: None } => "behind the shield: all servers".to_owned(),
            EntryUse::OtherShim { path } => format!("ANOTHER SHIM: {path}"),
            EntryUse::Server { command } => format!("PAST THE SHIELD: {command}"),
            EntryUse::Remote { url } => format!("PAST THE SHIELD: {url}"),
            EntryUse::Disabled => "switched off".to_owned(),
            EntryUse::Unknown => "of a form that is not known".to_owned(),
        };
        sheet.line(format_args!("  {:<10} {way}", entry.name));
    }
}

fn described(change: &ClientChange) -> Sheet {
    let mut sheet = Sheet::default();
    if change.edit.is_empty() {
        sheet.line(format_args!("{} has what it is to have: nothing to write.", change.client));
    } else {
        sheet.line(format_args!(
            "{}, {}: {}",
            change.client,
            entries(change.names.len()),
            change.file.display()
        ));
        change.shown().lines().for_each(|line| sheet.line(line));
        change.commands.iter().for_each(|command| sheet.line(format_args!("Written by `{command}`.")));
    }
    if let (Some((file, _)), Some(shown)) = (&change.servers, change.servers_shown()) {
        sheet.line(format_args!("{}:", file.display()));
        shown.lines().for_each(|line| sheet.line(line));
    }
    secrets::lines(&change.secrets).for_each(|line| sheet.line(line));
    for left in &change.left {
        sheet.line(format_args!("Stays as it is: `{}`, since {}.", left.name, left.why));
    }
    sheet
}

fn entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn as_json(change: &ClientChange) -> Value {
    let left: Vec<Value> =
        change.left.iter().map(|left| json!({ "name": left.name, "why": left.why.to_string() })).collect();
    json!({
        "client": change.client,
        "file": change.file,
        "entries": change.names,
        "changed": !change.edit.is_empty(),
        "diff": change.shown(),
        "commands": change.commands.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "serversDiff": change.servers_shown(),
        "secrets": secrets::as_json(&change.secrets),
        "left": left,
    })
}
