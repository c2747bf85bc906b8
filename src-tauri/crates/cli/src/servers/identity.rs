//! Deciding about what is kept under the name of a server that is another program now.
//!
//! - Decided in the user's own files: nothing that an agent can send to IronCurtain decides.

use super::change::accepted;
use crate::connection::Connection;
use crate::problem::Refused;
use crate::screen::Screen;
use crate::sheet::Sheet;
use clap::Args;
use ironcurtain_admin::identity::{SuspendedServer, kept, suspended};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::Request;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Options of `identity`.
#[derive(Debug, Args)]
pub struct IdentityOptions {
    /// The server; without one, all are listed of which something is suspended.
    name: Option<String>,
    /// Give what is kept under the name to the new program.
    #[arg(long, requires = "name", conflicts_with = "start_afresh")]
    keep: bool,
    /// Put aside what is kept under the name. Nothing is deleted, but its grants are revoked.
    #[arg(long, requires = "name")]
    start_afresh: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Shows what is suspended, or decides about it.
pub fn perform(home: &Home, options: &IdentityOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let Some(name) = &options.name else { return list(home, screen) };
    let server = match SuspendedServer::named(home, name) {
        Ok(server) => server,
        Err(problem) if options.keep || options.start_afresh => return Err(problem.into()),
        Err(_) => return list(home, screen),
    };
    screen.show(&sheet(&server), &value(&server))?;
    match (options.keep, options.start_afresh) {
        (true, _) => keep(&server, options.yes, screen),
        (false, true) => start_afresh(&server, options.yes, screen),
        (false, false) => Ok(ExitCode::SUCCESS),
    }
}

/// Says what is kept under the name of a server that is to be added.
pub fn note_kept(home: &Home, name: &str, screen: Screen) -> anyhow::Result<()> {
    let kept = kept(home, name)?;
    if kept.is_empty() {
        return Ok(());
    }
    screen.note(&format!(
        "Kept under the name `{name}` already: {kept}. Another program gets none of it until you decide: `ironcurtain servers \
         identity {name}`."
    ))
}

fn list(home: &Home, screen: Screen) -> anyhow::Result<ExitCode> {
    let all = suspended(home)?;
    let mut text = Sheet::default();
    if all.is_empty() {
        text.line("Nothing is suspended: each server is the program that you allowed.");
    }
    for server in &all {
        text.line(format_args!("{}: {}", server.name, server.change));
        text.line(format_args!("  Suspended: {}", server.kept));
    }
    screen.show(&text, &json!({ "suspended": all.iter().map(value).collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn sheet(server: &SuspendedServer) -> Sheet {
    let (name, mut text) = (&server.name, Sheet::default());
    text.line(format_args!("{name} is not the program that you allowed before: {}.", server.change));
    text.line(format_args!("Suspended: {}", server.kept));
    for grant in &server.kept.grants {
        text.line(format_args!("  {}, for {}", grant.what, grant.subject.client_name));
    }
    if let Some(data) = &server.kept.data {
        text.line(format_args!("  {}", data.display()));
    }
    text.line(format_args!("To give it to the new program: `ironcurtain servers identity {name} --keep`."));
    text.line(format_args!("To put it aside: `ironcurtain servers identity {name} --start-afresh`."));
    text
}

fn value(server: &SuspendedServer) -> Value {
    json!({
        "server": server.name,
        "change": server.change,
        "grants": server.kept.grants.iter().map(|grant| grant.id.as_str()).collect::<Vec<_>>(),
        "data": server.kept.data.as_ref().map(|data| data.display().to_string()),
        "annotatedTools": server.kept.annotated,
        "secrets": server.kept.secrets,
    })
}

fn keep(server: &SuspendedServer, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    if !accepted("Give all of it to the new program?", yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    server.keep()?;
    screen.note("Kept. Restart the server in your client.")?;
    Ok(ExitCode::SUCCESS)
}

fn start_afresh(server: &SuspendedServer, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    if !accepted("Put all of it aside?", yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    let revoking = (!server.kept.grants.is_empty()).then(Connection::open).transpose()?;
    let file = server.note_put_aside()?;
    if let Some(mut connection) = revoking {
        for grant in &server.kept.grants {
            match connection.ask(Request::Revoke { grant: grant.id.clone() }) {
                // One that ended meanwhile is what is wanted.
                Err(problem) if !problem.is::<Refused>() => return Err(problem),
                _ => {}
            }
        }
    }
    server.start_afresh()?;
    screen
        .note(&format!("Put aside, and noted in `{}`. Restart the server in your client.", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
