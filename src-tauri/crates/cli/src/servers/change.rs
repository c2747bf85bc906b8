//! Changing servers that are there: taking one out and putting it back, opening hosts and folders to it and closing them.
//!
//! - Where a change takes something away, sessions that still have it are ended, if IronCurtain runs.

use super::programs;
use crate::connection::Connection;
use crate::problem::Refused;
use crate::screen::Screen;
use crate::sheet::{Sheet, counted};
use clap::Args;
use ironcurtain_admin::clients::Clients;
use ironcurtain_admin::openings::{Opening, OpeningChange};
use ironcurtain_admin::removal::{Removal, put_back};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{Reply, Request};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// A host or a folder of a server's.
#[derive(Debug, Args)]
pub struct OpeningOptions {
    /// The server.
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
    /// A host: a name, or `*.name` for all below it, with `:port` where it is not 80 or 443.
    #[arg(long)]
    host: Option<String>,
    /// A folder that it may read.
    #[arg(long, value_name = "DIR")]
    read: Option<PathBuf>,
    /// A folder that it may read and change.
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
}

/// Options of `remove`.
#[derive(Debug, Args)]
pub struct RemoveOptions {
    /// The server.
    name: String,
    /// Take back what was granted for it as well.
    #[arg(long)]
    grants: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Takes a server out.
pub fn remove(home: &Home, options: &RemoveOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let survey = Clients::new(home.clone(), &programs()?).map(|all| all.survey()).unwrap_or_default();
    let removal = Removal::plan(home, &survey, &options.name)?;
    let mut connection = Connection::open_if_running()?;
    let (sessions, grants) = match &mut connection {
        Some(connection) => of_server(connection, &options.name)?,
        None => (Vec::new(), Vec::new()),
    };
    let mut sheet = Sheet::default();
    sheet.line(format_args!(
        "{} goes, with this entry, which is kept in {}:",
        removal.name,
        removal.kept_in.display()
    ));
    removal.entry.lines().for_each(|line| sheet.line(format_args!("  {line}")));
    if !sessions.is_empty() {
        sheet.line(format_args!("{} of it end.", counted(sessions.len(), "session")));
    }
    if !grants.is_empty() {
        let fate = if options.grants { "is taken back" } else { "stays; `--grants` takes it back" };
        sheet.line(format_args!("What was granted for it ({}) {fate}.", counted(grants.len(), "grant")));
    }
    for naming in &removal.clients {
        sheet.line(format_args!(
            "The entry `{}` of {} still starts it, and will say that there is no such server.",
            naming.entry, naming.client
        ));
    }
    if !removal.profiles.is_empty() {
        sheet.line(format_args!("These profiles name it: {}.", removal.profiles.join(", ")));
    }
    if let Some(data) = &removal.data {
        sheet.line(format_args!("What it kept stays in {}.", data.display()));
    }
    let naming =
        |one: &ironcurtain_admin::removal::NamingEntry| json!({ "client": one.client, "entry": one.entry });
    let value = json!({
        "server": removal.name, "sessions": sessions, "grants": grants, "profiles": removal.profiles,
        "clients": removal.clients.iter().map(naming).collect::<Vec<_>>(), "keptIn": removal.kept_in,
    });
    screen.show(&sheet, &value)?;
    if !accepted("Take it out?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    removal.write()?;
    if let Some(connection) = &mut connection {
        end(connection, &sessions)?;
        for grant in grants.into_iter().filter(|_| options.grants) {
            connection.ask(Request::Revoke { grant })?;
        }
    }
    screen.note(&format!("It is out. `ironcurtain servers restore {}` puts it back.", removal.name))?;
    Ok(ExitCode::SUCCESS)
}

/// Puts a server back that was taken out.
pub fn restore(home: &Home, name: &str, screen: Screen) -> anyhow::Result<ExitCode> {
    put_back(home, name)?;
    let told = format!("{name} is back as it was. Sessions that begin from now on can have it.");
    screen.show(&[told.as_str()].into_iter().collect(), &json!({ "server": name }))?;
    Ok(ExitCode::SUCCESS)
}

/// Opens a host or folder to a server for good.
pub fn open(home: &Home, options: &OpeningOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = OpeningChange::open(home, &options.name, options.what.opening())?;
    let told = format!("{}.", change.opening.words(&change.server));
    screen.show(
        &[told.as_str()].into_iter().collect(),
        &json!({ "server": change.server, "opening": change.opening }),
    )?;
    if !accepted("Open it for good?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    home.prepare()?;
    change.write()?;
    screen.note("It is open to sessions that begin from now on.")?;
    Ok(ExitCode::SUCCESS)
}

/// Closes one again.
pub fn close(home: &Home, options: &OpeningOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = OpeningChange::close(home, &options.name, options.what.opening())?;
    let mut connection = Connection::open_if_running()?;
    let sessions = match &mut connection {
        Some(connection) => of_server(connection, &options.name)?.0,
        None => Vec::new(),
    };
    let mut sheet = Sheet::default();
    sheet.line(format_args!("No longer: {}.", change.opening.words(&change.server)));
    if !sessions.is_empty() {
        sheet.line(format_args!(
            "{} of it end, so that this holds at once.",
            counted(sessions.len(), "session")
        ));
    }
    screen
        .show(&sheet, &json!({ "server": change.server, "opening": change.opening, "sessions": sessions }))?;
    if !accepted("Close it?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    change.write()?;
    if let Some(connection) = &mut connection {
        end(connection, &sessions)?;
    }
    screen.note("It is closed.")?;
    Ok(ExitCode::SUCCESS)
}

impl WhatOptions {
    fn opening(&self) -> Opening {
        let text = |path: &PathBuf| path.to_string_lossy().into_owned();
        match (&self.host, &self.read, &self.write) {
            (Some(host), _, _) => Opening::Host(host.clone()),
            (None, Some(read), _) => Opening::Read(text(read)),
            (None, None, write) => Opening::Write(write.as_ref().map(text).unwrap_or_default()),
        }
    }
}

/// Returns `true` if the person says yes, or has said it with `--yes`.
pub(super) fn accepted(question: &str, yes: bool, screen: Screen) -> anyhow::Result<bool> {
    if yes || screen.confirmed(question)? {
        return Ok(true);
    }
    screen.note("Nothing was written.")?;
    Ok(false)
}

/// The live sessions of a server, and the grants for it.
fn of_server(connection: &mut Connection, server: &str) -> anyhow::Result<(Vec<String>, Vec<String>)> {
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
            // One that has ended meanwhile, or ends with all of IronCurtain, is what is wanted.
            Err(problem) if !problem.is::<Refused>() => {
                return Err(problem
                    .context("it is written, and sessions that began before may still have what they had"));
            }
            _ => {}
        }
    }
    Ok(())
}
