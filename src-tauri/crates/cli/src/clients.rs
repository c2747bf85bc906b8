//! `clients`: lists and connects agent clients, and restores their settings.
//!
//! - Shows the complete diff. Writes only after the user's confirmation or with `--yes`.

use crate::screen::Screen;
use crate::secrets;
use crate::text_lines::TextLines;
use anyhow::bail;
use clap::{Args, Subcommand};
use ironcurtain_admin::clients::{
    ClientChange, ClientReport, ClientState, ClientTarget, Clients, ConnectRequest, EntryTarget,
};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::SecretName;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub enum ClientsAction {
    /// List the agent clients on this machine and the servers that each starts.
    List {
        /// Also list supported clients that are not installed.
        #[arg(long)]
        all: bool,
    },
    /// Add entries to a client's settings that start IronCurtain, one for each server.
    Connect {
        #[command(flatten)]
        entries: EntryOptions,
        /// Write without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Restore a client's previous settings.
    Disconnect {
        /// Client, as named by `clients list`.
        name: String,
        /// Only this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Change this project's settings instead of your user settings.
        #[arg(long, value_name = "DIR")]
        project: Option<PathBuf>,
        /// Write without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Show what connecting would change, without writing it.
    Diff {
        #[command(flatten)]
        entries: EntryOptions,
    },
}

/// Client to connect, and the entries to add to its settings.
#[derive(Debug, Args)]
pub struct EntryOptions {
    /// Client, as named by `clients list`.
    name: String,
    /// Only this server.
    #[arg(long, value_name = "NAME", conflicts_with_all = ["as_one", "profile", "moving"])]
    server: Option<String>,
    /// Add a single entry for all servers.
    #[arg(long, conflicts_with_all = ["profile", "moving"])]
    as_one: bool,
    /// Add a single entry for the servers of this profile.
    #[arg(long, value_name = "NAME", conflicts_with = "moving")]
    profile: Option<String>,
    /// Also run the client's existing servers through IronCurtain.
    #[arg(long = "move", id = "moving")]
    moving: bool,
    /// With `--move`, only this server of the client; can be repeated.
    #[arg(long, value_name = "NAME", requires = "moving")]
    only: Vec<String>,
    /// Move the secrets of these servers to the keyring.
    #[arg(long, requires = "moving")]
    move_secrets: bool,
    /// Pass a stored secret to the moved server as this variable. Requires `--only` with one name.
    #[arg(long = "secret", value_name = "KEY=NAME", value_parser = crate::servers::given_secret, requires = "only")]
    secrets: Vec<(String, SecretName)>,
    /// Change this project's settings instead of your user settings.
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
}

/// Runs the subcommand.
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
        bail!("`--secret` applies to one server; name exactly one with `--only`");
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
    if change.edit.is_empty() || (!yes && screen.is_json()) {
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Write this to `{}`?", change.file.display());
    if !yes && !screen.confirmed(&question)? {
        screen.note("Nothing was written.")?;
        return Ok(ExitCode::FAILURE);
    }
    secrets::save_all(&change.secrets)?;
    clients.write(change)?;
    screen.note(&format!("Written. Restart {} to apply its new settings.", change.client))?;
    Ok(ExitCode::SUCCESS)
}

fn list(clients: &Clients, all: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let mut reports = clients.survey();
    reports.retain(|report| all || report.state != ClientState::Missing);
    let mut out = TextLines::default();
    reports.iter().for_each(|report| reported(&mut out, report));
    if reports.is_empty() {
        out.line("Found no agent client on this machine. To list the supported ones: ironcurtain clients list --all");
    }
    screen.show(&out, &json!({ "clients": reports }))?;
    Ok(ExitCode::SUCCESS)
}

fn reported(out: &mut TextLines, report: &ClientReport) {
    let state = match report.state {
        ClientState::Missing => "not installed",
        ClientState::NotConnected => "not connected",
        ClientState::Connected => "connected",
        ClientState::Bypassing => "CONNECTED, BUT SOME SERVERS BYPASS IRONCURTAIN",
        ClientState::Drifted => "STARTS ANOTHER INSTALLATION OF IRONCURTAIN: connect it again",
        ClientState::Unreadable => "UNREADABLE SETTINGS",
    };
    out.line(format_args!("{} ({}): {state}", report.id, report.name));
    out.line(format_args!("  settings   {}", report.file.display()));
    if let Some(problem) = &report.problem {
        out.line(format_args!("  ! {problem}"));
    }
    for entry in &report.entries {
        let target = match &entry.target {
            EntryTarget::Shim { server: Some(server), .. } => format!("through IronCurtain: server {server}"),
            EntryTarget::Shim { server: None, profile: Some(profile) } => {
                format!("through IronCurtain: profile {profile}")
            }
            EntryTarget::Shim { server: None, profile: None } => {
                "through IronCurtain: all servers".to_owned()
            }
            EntryTarget::OtherShim { path } => format!("ANOTHER INSTALLATION: {path}"),
            EntryTarget::Server { command } => format!("NOT PROTECTED: {command}"),
            EntryTarget::Remote { url } => format!("NOT PROTECTED: {url}"),
            EntryTarget::Disabled => "disabled".to_owned(),
            EntryTarget::Unknown => "unrecognized format".to_owned(),
        };
        out.line(format_args!("  {:<10} {target}", entry.name));
    }
}

fn described(change: &ClientChange) -> TextLines {
    let mut out = TextLines::default();
    if change.edit.is_empty() {
        out.line(format_args!("{} is up to date: nothing to write.", change.client));
    } else {
        out.line(format_args!(
            "{}, {}: {}",
            change.client,
            entries(change.names.len()),
            change.file.display()
        ));
        change.redacted_diff().lines().for_each(|line| out.line(line));
        change.commands.iter().for_each(|command| out.line(format_args!("Written by `{command}`.")));
    }
    if let (Some((file, _)), Some(shown)) = (&change.servers, change.redacted_servers_diff()) {
        out.line(format_args!("{}:", file.display()));
        shown.lines().for_each(|line| out.line(line));
    }
    secrets::lines(&change.secrets).for_each(|line| out.line(line));
    for entry in &change.unmoved {
        out.line(format_args!("Not changed: `{}`, because {}.", entry.name, entry.reason));
    }
    out
}

fn entries(count: usize) -> String {
    if count == 1 { "1 entry".to_owned() } else { format!("{count} entries") }
}

fn as_json(change: &ClientChange) -> Value {
    let left: Vec<Value> = change
        .unmoved
        .iter()
        .map(|entry| json!({ "name": entry.name, "why": entry.reason.to_string() }))
        .collect();
    json!({
        "client": change.client,
        "file": change.file,
        "entries": change.names,
        "changed": !change.edit.is_empty(),
        "diff": change.redacted_diff(),
        "commands": change.commands.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "serversDiff": change.redacted_servers_diff(),
        "secrets": secrets::as_json(&change.secrets),
        "left": left,
    })
}
