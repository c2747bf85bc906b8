//! The `ironcurtain` command: the trusted process without a display, and a person's own look at what it does.

mod arguments;
mod connection;
mod policy;
mod print;
mod run;
mod servers;

use arguments::{Arguments, AuditAction, Command, GrantsAction};
use clap::Parser;
use connection::Connection;
use ironcurtain_protocol::{Reply, Request};
use std::io::{self, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match perform(arguments) {
        Ok(code) => code,
        Err(problem) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(io::stderr(), "ironcurtain: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn perform(arguments: Arguments) -> anyhow::Result<ExitCode> {
    let request = match arguments.command {
        Command::Policy { action } => return policy::perform(&action, arguments.json),
        Command::Servers { action } => return servers::perform(&action, arguments.json),
        Command::Daemon(options) => return run::daemon(&options).map(|()| ExitCode::SUCCESS),
        Command::Status => Request::Status,
        Command::Sessions => Request::Sessions,
        Command::Stop => Request::Shutdown,
        Command::Grants { action: None | Some(GrantsAction::List) } => Request::Grants,
        Command::Grants { action: Some(GrantsAction::Revoke { id }) } => Request::Revoke { grant: id },
        Command::Audit { action: None } => Request::Activity { limit: arguments::DEFAULT_TAIL },
        Command::Audit { action: Some(AuditAction::Tail { lines }) } => Request::Activity { limit: lines },
        Command::Audit { action: Some(AuditAction::Verify) } => Request::VerifyAudit,
    };
    let reply = Connection::open()?.ask(request)?;
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &reply)?;
        writeln!(out)?;
    } else {
        write!(out, "{}", print::text(&reply))?;
    }
    Ok(code(&reply))
}

/// A failure, and a log that does not hold, are told by the exit status too.
fn code(reply: &Reply) -> ExitCode {
    match reply {
        Reply::Failed { .. } => ExitCode::FAILURE,
        Reply::Audit(check) if !check.intact => ExitCode::FAILURE,
        Reply::Status(_)
        | Reply::Sessions(_)
        | Reply::Grants(_)
        | Reply::Revoked { .. }
        | Reply::Done
        | Reply::Activity(_)
        | Reply::Audit(_) => ExitCode::SUCCESS,
    }
}
