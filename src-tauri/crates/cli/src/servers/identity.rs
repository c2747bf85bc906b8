//! `servers identity`: lets the user decide about the grants, data and secrets stored under a server name that now
//! starts a different program.
//!
//! - The decision is stored in the user's files, so no agent's message can change it.

use super::change::accepted;
use crate::connection::Connection;
use crate::error_report::Refused;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use clap::Args;
use ironcurtain_admin::identity::{SuspendedServer, stored_state, suspended};
use ironcurtain_config::home::Home;
use ironcurtain_grants::{Granted, StandingGrant};
use ironcurtain_protocol::Request;
use ironcurtain_server_identity::StoredServerState;
use serde_json::{Map, Value, json};
use std::process::ExitCode;

/// Options of `identity`.
#[derive(Debug, Args)]
pub struct IdentityOptions {
    /// Name of the server. Default: list all servers that have suspended grants or data.
    name: Option<String>,
    /// Transfer everything stored under the name to the new program.
    #[arg(long, requires = "name", conflicts_with = "start_afresh")]
    keep: bool,
    /// Set aside everything stored under the name. Grants are revoked; nothing is deleted.
    #[arg(long, requires = "name")]
    start_afresh: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Shows a server's suspended grants, data and secrets, or stores the user's decision about them.
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

/// Prints everything stored under a new server's name, and which program may use it. Returns the stored items as JSON,
/// or `null` if nothing is stored.
pub fn show_stored_state(home: &Home, name: &str, screen: Screen) -> anyhow::Result<Value> {
    let state = stored_state(home, name)?;
    if state.is_empty() {
        return Ok(Value::Null);
    }
    screen.note(&format!("A server named `{name}` existed before. Kept from it:"))?;
    for line in stored_state_lines(&state) {
        screen.note(&format!("  {line}"))?;
    }
    screen.note(&format!(
        "The same program gets all of it again. Any other program gets none of it: it is blocked until you decide with \
         `ironcurtain servers identity {name}`."
    ))?;
    Ok(stored_state_fields(&state).into())
}

/// Returns a line for each item stored under the name.
fn stored_state_lines(state: &StoredServerState) -> Vec<String> {
    let mut lines: Vec<String> = state.grants.iter().map(grant_line).collect();
    lines.extend(state.data.as_ref().map(|data| format!("its data in {}", data.display())));
    if state.annotated > 0 {
        lines.push(format!("the review of {}", crate::text_lines::counted(state.annotated, "tool")));
    }
    lines.extend(state.secrets.iter().map(|secret| format!("its secret `{secret}`")));
    lines
}

fn grant_line(grant: &StandingGrant) -> String {
    let access = match &grant.what {
        Granted::Files(files) => {
            let access = files.access;
            let words = [(access.read, "read"), (access.write, "write"), (access.delete, "delete")];
            words.iter().filter(|(has, _)| *has).map(|(_, word)| *word).collect::<Vec<_>>().join(", ")
        }
        Granted::Host(_) => "connect to".to_owned(),
        Granted::Tool(_) => "use".to_owned(),
    };
    format!("the permission to {access} {}, for {}", grant.what, grant.subject.client_name)
}

fn stored_state_fields(state: &StoredServerState) -> Map<String, Value> {
    let grants: Vec<&str> = state.grants.iter().map(|grant| grant.id.as_str()).collect();
    let fields = [
        ("grants", json!(grants)),
        ("data", json!(state.data.as_ref().map(|data| data.display().to_string()))),
        ("annotatedTools", json!(state.annotated)),
        ("secrets", json!(state.secrets)),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn list(home: &Home, screen: Screen) -> anyhow::Result<ExitCode> {
    let all = suspended(home)?;
    let mut text = TextLines::default();
    if all.is_empty() {
        text.line("Nothing is suspended: every server is the program that you allowed.");
    }
    for server in &all {
        text.line(format_args!("{}: {}", server.name, server.change));
        text.line(format_args!("  Suspended: {}", server.stored_state));
    }
    screen.show(&text, &json!({ "suspended": all.iter().map(value).collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(server: &SuspendedServer) -> TextLines {
    let (name, mut text) = (&server.name, TextLines::default());
    text.line(format_args!("{name} is not the program that you allowed before: {}.", server.change));
    if let Some(before) = server.previous_program() {
        text.line(format_args!("  old program  {before}"));
    }
    text.line(format_args!("  new program  {}", server.current_program()));
    text.line("Suspended:");
    for line in stored_state_lines(&server.stored_state) {
        text.line(format_args!("  {line}"));
    }
    text.line("Keep it only if you changed or updated the program yourself.");
    text.line(format_args!("To give it to the new program: ironcurtain servers identity {name} --keep"));
    text.line(format_args!("To set it aside: ironcurtain servers identity {name} --start-afresh"));
    text
}

fn value(server: &SuspendedServer) -> Value {
    let mut fields = stored_state_fields(&server.stored_state);
    fields.insert("server".to_owned(), json!(server.name));
    fields.insert("change".to_owned(), json!(server.change));
    fields.insert("oldProgram".to_owned(), json!(server.previous_program()));
    fields.insert("newProgram".to_owned(), json!(server.current_program()));
    fields.into()
}

fn keep(server: &SuspendedServer, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    if !accepted("Give all of it to the new program?", yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    server.keep_state()?;
    screen.note("Kept. Restart the server in your client.")?;
    Ok(ExitCode::SUCCESS)
}

fn start_afresh(server: &SuspendedServer, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    if !accepted("Set all of it aside?", yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    let connection = (!server.stored_state.grants.is_empty()).then(Connection::open).transpose()?;
    let file = server.write_inventory()?;
    if let Some(mut connection) = connection {
        for grant in &server.stored_state.grants {
            match connection.ask(Request::Revoke { grant: grant.id.clone() }) {
                // A refusal means that the grant has already been revoked.
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
