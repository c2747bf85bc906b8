//! Removes and restores servers and changes which hosts and folders they can access.
//!
//! - If IronCurtain is running, sessions that lose access are closed.

use super::login::logout_text;
use super::programs;
use crate::connection::Connection;
use crate::error_report::Refused;
use crate::screen::Screen;
use crate::secrets::LoginStorage;
use crate::text_lines::{TextLines, counted};
use clap::Args;
use ironcurtain_admin::clients::Clients;
use ironcurtain_admin::entry_permissions::{EntryPermission, EntryPermissionChange};
use ironcurtain_admin::removal::{Removal, restore_server};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_secrets::{Logins, SecretStore};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Options of `open` and `close`.
#[derive(Debug, Args)]
pub struct OpeningOptions {
    /// Name of the server.
    name: String,
    #[command(flatten)]
    what: WhatOptions,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct WhatOptions {
    /// Host: a name, or `*.name` for all its subdomains, followed by `:port` unless the port is 80 or 443.
    #[arg(long)]
    host: Option<String>,
    /// Folder that the server may read.
    #[arg(long, value_name = "DIR")]
    read: Option<PathBuf>,
    /// Folder that the server may read and change.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// Options of `remove`.
#[derive(Debug, Args)]
pub struct RemoveOptions {
    /// Name of the server.
    name: String,
    /// Also revoke its grants.
    #[arg(long)]
    grants: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Removes the server's entry.
pub fn remove(home: &Home, options: &RemoveOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let survey = Clients::new(home.clone(), &programs()?).map(|all| all.survey()).unwrap_or_default();
    let removal = Removal::plan(home, &survey, &options.name)?;
    let mut connection = Connection::open_if_running()?;
    let (sessions, grants) = match &mut connection {
        Some(connection) => sessions_and_grants(connection, &options.name)?,
        None => (Vec::new(), Vec::new()),
    };
    let mut out = TextLines::default();
    out.line(format_args!(
        "{} will be removed. Its entry is kept in {}:",
        removal.name,
        removal.saved_in.display()
    ));
    removal.entry.lines().for_each(|line| out.line(format_args!("  {line}")));
    if !sessions.is_empty() {
        out.line(format_args!("{} will be closed.", counted(sessions.len(), "session")));
    }
    if !grants.is_empty() {
        let grants_note =
            if options.grants { "will be revoked" } else { "will be kept; to revoke, add `--grants`" };
        out.line(format_args!("{} for it {grants_note}.", counted(grants.len(), "grant")));
    }
    for dependent in &removal.clients {
        out.line(format_args!(
            "{}'s entry `{}` still refers to it, and will report that the server does not exist.",
            dependent.client, dependent.entry
        ));
    }
    if !removal.profiles.is_empty() {
        out.line(format_args!("These profiles refer to it: {}.", removal.profiles.join(", ")));
    }
    if Logins::of(&SecretStore::of(&home.state)).record(&removal.name).is_some() {
        out.line("You will be logged out of it.");
    }
    if let Some(data) = &removal.data {
        out.line(format_args!("Its data stays in {}.", data.display()));
    }
    let dependent = |one: &ironcurtain_admin::removal::DependentEntry| json!({ "client": one.client, "entry": one.entry });
    let value = json!({
        "server": removal.name, "sessions": sessions, "grants": grants, "profiles": removal.profiles,
        "clients": removal.clients.iter().map(dependent).collect::<Vec<_>>(), "keptIn": removal.saved_in,
    });
    screen.show(&out, &value)?;
    if !accepted("Remove it?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    // Logs out before the entry is removed, because the entry determines which hosts a logout may contact.
    if Logins::of(&SecretStore::of(&home.state)).record(&removal.name).is_some() {
        match LoginStorage::log_out(home, &removal.name) {
            Ok(ended) => screen.note(&logout_text(&removal.name, ended.as_ref()))?,
            Err(problem) => screen.note(&format!(
                "The login has ended, but its tokens were not deleted: {problem:#}. To delete them, run: ironcurtain servers logout {}",
                removal.name
            ))?,
        }
    }
    removal.write()?;
    if let Some(connection) = &mut connection {
        end(connection, &sessions)?;
        for grant in grants.into_iter().filter(|_| options.grants) {
            connection.ask(Request::Revoke { grant })?;
        }
    }
    screen.note(&format!("Removed. To restore it: ironcurtain servers restore {}", removal.name))?;
    Ok(ExitCode::SUCCESS)
}

/// Restores the entry of a removed server.
pub fn restore(home: &Home, name: &str, screen: Screen) -> anyhow::Result<ExitCode> {
    restore_server(home, name)?;
    let message = format!("Restored {name}. New sessions can use it.");
    screen.show(&[message.as_str()].into_iter().collect(), &json!({ "server": name }))?;
    Ok(ExitCode::SUCCESS)
}

/// Permanently allows a server to access a host or folder.
pub fn open(home: &Home, options: &OpeningOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = EntryPermissionChange::allow(home, &options.name, options.what.opening())?;
    let message = format!("{}.", change.permission.describe(&change.server));
    screen.show(
        &[message.as_str()].into_iter().collect(),
        &json!({ "server": change.server, "opening": change.permission }),
    )?;
    if !accepted("Allow this permanently?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    home.prepare()?;
    change.write()?;
    screen.note("Allowed for new sessions.")?;
    Ok(ExitCode::SUCCESS)
}

/// Revokes a server's permanent access to a host or folder.
pub fn close(home: &Home, options: &OpeningOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = EntryPermissionChange::remove(home, &options.name, options.what.opening())?;
    let mut connection = Connection::open_if_running()?;
    let sessions = match &mut connection {
        Some(connection) => sessions_and_grants(connection, &options.name)?.0,
        None => Vec::new(),
    };
    let mut out = TextLines::default();
    out.line(format_args!("No longer allowed: {}.", change.permission.describe(&change.server)));
    if !sessions.is_empty() {
        out.line(format_args!(
            "{} will be closed so that this takes effect immediately.",
            counted(sessions.len(), "session")
        ));
    }
    screen.show(
        &out,
        &json!({ "server": change.server, "opening": change.permission, "sessions": sessions }),
    )?;
    if !accepted("Stop allowing it?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    change.write()?;
    if let Some(connection) = &mut connection {
        end(connection, &sessions)?;
    }
    screen.note("No longer allowed.")?;
    Ok(ExitCode::SUCCESS)
}

impl WhatOptions {
    fn opening(&self) -> EntryPermission {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        match (&self.host, &self.read, &self.write) {
            (Some(host), _, _) => EntryPermission::Host(host.clone()),
            (None, Some(read), _) => EntryPermission::Read(text(read)),
            (None, None, write) => EntryPermission::Write(write.as_ref().map(text).unwrap_or_default()),
        }
    }
}

/// Returns `true` if the user passed `--yes` or confirms the change.
pub(super) fn accepted(question: &str, yes: bool, screen: Screen) -> anyhow::Result<bool> {
    if yes || screen.confirmed(question)? {
        return Ok(true);
    }
    screen.note("Nothing was written.")?;
    Ok(false)
}

/// Returns the ids of a server's active sessions and grants.
fn sessions_and_grants(
    connection: &mut Connection,
    server: &str,
) -> anyhow::Result<(Vec<String>, Vec<String>)> {
    let (mut sessions, mut grants) = (Vec::new(), Vec::new());
    if let Reply::Sessions(all) = connection.ask(Request::Sessions)? {
        sessions.extend(all.into_iter().filter(|one| one.server == server).map(|one| one.id));
    }
    if let Reply::Grants(all) = connection.ask(Request::Grants)? {
        grants.extend(all.into_iter().filter(|one| one.server == server).map(|one| one.id));
    }
    Ok((sessions, grants))
}

fn end(connection: &mut Connection, sessions: &[String]) -> anyhow::Result<()> {
    for session in sessions {
        match connection.ask(Request::EndSession { session: session.clone() }) {
            // A refusal means that the session is already closing or closed.
            Err(problem) if !problem.is::<Refused>() => {
                return Err(problem.context(
                    "the change was written, but running sessions may still have their previous access",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
