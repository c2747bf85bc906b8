//! `servers identity`: decides about grants, data and secrets of a server name that now starts another program.
//!
//! - The decision is made in the user's own files, so nothing that an agent can send to IronCurtain affects it.

use super::change::accepted;
use crate::connection::Connection;
use crate::lines::TextLines;
use crate::problem::Refused;
use crate::screen::Screen;
use clap::Args;
use ironcurtain_admin::identity::{SuspendedServer, kept, suspended};
use ironcurtain_daemon::Home;
use ironcurtain_protocol::Request;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Options of `identity`.
#[derive(Debug, Args)]
pub struct IdentityOptions {
    /// Name of the server. Default: list all servers with something suspended.
    name: Option<String>,
    /// Give everything stored under the name to the new program.
    #[arg(long, requires = "name", conflicts_with = "start_afresh")]
    keep: bool,
    /// Set everything stored under the name aside. Grants are revoked; nothing else is deleted.
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
    screen.show(&describe(&server), &value(&server))?;
    match (options.keep, options.start_afresh) {
        (true, _) => keep(&server, options.yes, screen),
        (false, true) => start_afresh(&server, options.yes, screen),
        (false, false) => Ok(ExitCode::SUCCESS),
    }
}

/// Prints what is already stored under the name of a server to add.
pub fn note_kept(home: &Home, name: &str, screen: Screen) -> anyhow::Result<()> {
    let kept = kept(home, name)?;
    if kept.is_empty() {
        return Ok(());
    }
    screen.note(&format!(
        "Already stored under the name `{name}`: {kept}. Another program gets none of it until you decide: ironcurtain servers \
         identity {name}"
    ))
}

fn list(home: &Home, screen: Screen) -> anyhow::Result<ExitCode> {
    let all = suspended(home)?;
    let mut text = TextLines::default();
    if all.is_empty() {
        text.line("Nothing is suspended: every server is the program that you allowed.");
    }
    for server in &all {
        text.line(format_args!("{}: {}", server.name, server.change));
        text.line(format_args!("  Suspended: {}", server.kept));
    }
    screen.show(&text, &json!({ "suspended": all.iter().map(value).collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(server: &SuspendedServer) -> TextLines {
    let (name, mut text) = (&server.name, TextLines::default());
    text.line(format_args!("{name} is not the program that you allowed before: {}.", server.change));
    text.line(format_args!("Suspended: {}", server.kept));
    for grant in &server.kept.grants {
        text.line(format_args!("  {}, for {}", grant.what, grant.subject.client_name));
    }
    if let Some(data) = &server.kept.data {
        text.line(format_args!("  {}", data.display()));
    }
    text.line(format_args!("To give it to the new program: ironcurtain servers identity {name} --keep"));
    text.line(format_args!("To set it aside: ironcurtain servers identity {name} --start-afresh"));
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
    if !accepted("Set all of it aside?", yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    let revoking = (!server.kept.grants.is_empty()).then(Connection::open).transpose()?;
    let file = server.note_put_aside()?;
    if let Some(mut connection) = revoking {
        for grant in &server.kept.grants {
            match connection.ask(Request::Revoke { grant: grant.id.clone() }) {
                // A refusal means that the grant has ended, which is the goal.
                Err(problem) if !problem.is::<Refused>() => return Err(problem),
                _ => {}
            }
        }
    }
    server.start_afresh()?;
    screen
        .note(&format!("Set aside and listed in `{}`. Restart the server in your client.", file.display()))?;
    Ok(ExitCode::SUCCESS)
}
