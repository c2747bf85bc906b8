//! Files in quarantine: which there are, putting one back, and deleting one.
//!
//! - Nothing is put back or deleted before it was said what that does and a person said yes, or `--yes` said it for them.

use crate::connection::Connection;
use crate::left_file;
use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::bail;
use clap::Subcommand;
use ironcurtain_protocol::{LeftChoice, LeftFileView, Reply, Request, SessionRecordView};
use serde_json::json;
use std::process::ExitCode;

/// The actions on files in quarantine.
#[derive(Debug, Subcommand)]
pub enum QuarantineAction {
    /// List them, by the session that left them.
    List,
    /// Put one back where it was left: programs of yours run it from there as before.
    PutBack {
        /// Id of the session, as listed.
        session: String,
        /// The file, as listed.
        path: String,
        /// Move what stands there now to quarantine in its place.
        #[arg(long)]
        exchange: bool,
        /// Do it without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Delete one for good.
    Delete {
        /// Id of the session, as listed.
        session: String,
        /// The file, as listed.
        path: String,
        /// Do it without asking.
        #[arg(long)]
        yes: bool,
    },
}

/// Does it.
pub fn perform(action: Option<QuarantineAction>, screen: Screen) -> anyhow::Result<ExitCode> {
    match action.unwrap_or(QuarantineAction::List) {
        QuarantineAction::List => {
            let all = listed(&mut Connection::open()?)?;
            screen.show(&text(&all), &json!({ "sessions": all }))?;
            Ok(ExitCode::SUCCESS)
        }
        QuarantineAction::PutBack { session, path, exchange, yes } => {
            let choice = if exchange { LeftChoice::Exchange } else { LeftChoice::PutBack };
            decide((session, path), choice, yes, screen)
        }
        QuarantineAction::Delete { session, path, yes } => {
            decide((session, path), LeftChoice::Delete, yes, screen)
        }
    }
}

fn listed(connection: &mut Connection) -> anyhow::Result<Vec<SessionRecordView>> {
    let Reply::Quarantine(sessions) = connection.ask(Request::Quarantine)? else {
        bail!("IronCurtain said something else than was asked for")
    };
    Ok(sessions)
}

fn decide(
    (session, path): (String, String),
    choice: LeftChoice,
    yes: bool,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open()?;
    let all = listed(&mut connection)?;
    let of_session = all.iter().find(|one| one.id == session);
    let Some(found) = of_session.and_then(|one| one.files.iter().find(|file| file.path == path)) else {
        bail!("session `{session}` has no file `{path}` in quarantine; `ironcurtain quarantine` lists them");
    };
    if !yes && !screen.confirmed(&says(found, choice))? {
        screen.note("Nothing was done.")?;
        return Ok(ExitCode::FAILURE);
    }
    let reply = connection.ask(Request::DecideLeft { session, path, choice })?;
    let told = match choice {
        LeftChoice::Delete => format!("{} is deleted.", found.shown),
        LeftChoice::Keep | LeftChoice::Quarantine | LeftChoice::PutBack | LeftChoice::Exchange => {
            format!("{} is back. It runs {}.", found.shown, found.when)
        }
    };
    screen.show(&[told.as_str()].into_iter().collect(), &serde_json::to_value(&reply)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The question before it is done.
fn says(file: &LeftFileView, choice: LeftChoice) -> String {
    let LeftFileView { shown, when, .. } = file;
    match choice {
        LeftChoice::Exchange => {
            format!("{shown} is put back, and runs {when}. What stands there now goes to quarantine. Do it?")
        }
        LeftChoice::Delete => format!("{shown} is deleted from quarantine for good. Delete it?"),
        LeftChoice::Keep | LeftChoice::Quarantine | LeftChoice::PutBack => {
            format!("{shown} is put back, and runs {when}. Put it back?")
        }
    }
}

fn text(sessions: &[SessionRecordView]) -> Sheet {
    let mut sheet = Sheet::default();
    if sessions.is_empty() {
        sheet.line("Nothing is in quarantine.");
        return sheet;
    }
    for session in sessions {
        sheet.line(format_args!("{}  {} -> {}", session.id, session.client, session.server));
        session.files.iter().for_each(|one| {
            left_file::lines(&mut sheet, one);
            if one.occupied {
                sheet.line("  something else stands at its path now");
            }
        });
    }
    sheet
        .line("Put one back with `ironcurtain quarantine put-back SESSION PATH`, or delete it for good with");
    sheet.line("`ironcurtain quarantine delete SESSION PATH`.");
    sheet
}
