//! `servers identity`: lets the user decide about the grants, data and secrets stored under a server name that now
//! starts a different program.
//!
//! - The decision is stored in the user's files, so no agent's message can change it.

use super::change::accepted;
use crate::connection::Connection;
use crate::lines::TextLines;
use crate::problem::Refused;
use crate::screen::Screen;
use clap::Args;
use ironcurtain_admin::identity::{SuspendedServer, kept, suspended};
use ironcurtain_config::home::Home;
use ironcurtain_grants::{Granted, StandingGrant};
use ironcurtain_protocol::Request;
use ironcurtain_server_identity::KeptUnderName;
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
pub fn note_kept(home: &Home, name: &str, screen: Screen) -> anyhow::Result<Value> {
    let kept = kept(home, name)?;
    if kept.is_empty() {
        return Ok(Value::Null);
    }
    screen.note(&format!("A server named `{name}` existed before. Kept from it:"))?;
    for line in kept_lines(&kept) {
        screen.note(&format!("  {line}"))?;
    }
    screen.note(&format!(
        "The same program gets all of it again. Any other program gets none of it: it is blocked until you decide with \
         `ironcurtain servers identity {name}`."
    ))?;
    Ok(kept_fields(&kept).into())
}

/// Returns a line for each item stored under the name.
fn kept_lines(kept: &KeptUnderName) -> Vec<String> {
    let mut lines: Vec<String> = kept.grants.iter().map(grant_line).collect();
    lines.extend(kept.data.as_ref().map(|data| format!("its data in {}", data.display())));
    if kept.annotated > 0 {
        lines.push(format!("the review of {}", crate::lines::counted(kept.annotated, "tool")));
    }
    lines.extend(kept.secrets.iter().map(|secret| format!("its secret `{secret}`")));
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

fn kept_fields(kept: &KeptUnderName) -> Map<String, Value> {
    let grants: Vec<&str> = kept.grants.iter().map(|grant| grant.id.as_str()).collect();
    let fields = [
        ("grants", json!(grants)),
        ("data", json!(kept.data.as_ref().map(|data| data.display().to_string()))),
        ("annotatedTools", json!(kept.annotated)),
        ("secrets", json!(kept.secrets)),
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
        text.line(format_args!("  Suspended: {}", server.kept));
    }
    screen.show(&text, &json!({ "suspended": all.iter().map(value).collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn describe(server: &SuspendedServer) -> TextLines {
    let (name, mut text) = (&server.name, TextLines::default());
    text.line(format_args!("{name} is not the program that you allowed before: {}.", server.change));
    if let Some(before) = server.before() {
        text.line(format_args!("  old program  {before}"));
    }
    text.line(format_args!("  new program  {}", server.now()));
    text.line("Suspended:");
    for line in kept_lines(&server.kept) {
        text.line(format_args!("  {line}"));
    }
    text.line("Keep it only if you changed or updated the program yourself.");
    text.line(format_args!("To give it to the new program: ironcurtain servers identity {name} --keep"));
    text.line(format_args!("To set it aside: ironcurtain servers identity {name} --start-afresh"));
    text
}

fn value(server: &SuspendedServer) -> Value {
    let mut fields = kept_fields(&server.kept);
    fields.insert("server".to_owned(), json!(server.name));
    fields.insert("change".to_owned(), json!(server.change));
    fields.insert("oldProgram".to_owned(), json!(server.before()));
    fields.insert("newProgram".to_owned(), json!(server.now()));
    fields.into()
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
