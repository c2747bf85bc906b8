//! `quarantine`: lists, restores and deletes quarantined files.
//!
//! - Describes each action, and performs it only after the user's confirmation or with `--yes`.

use crate::autostart_file;
use crate::connection::Connection;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use anyhow::bail;
use clap::Subcommand;
use ironcurtain_protocol::{AutostartFileChoice, AutostartFileView, Reply, Request, SessionRecordView};
use serde_json::json;
use std::process::ExitCode;

#[derive(Debug, Subcommand)]
pub enum QuarantineAction {
    /// List quarantined files by session.
    List,
    /// Put a file back where the session left it; your programs may run it again.
    PutBack {
        /// Id of the session, as listed.
        session: String,
        /// Path of the file, as listed.
        path: String,
        /// If another file now exists at its path, quarantine that file.
        #[arg(long)]
        exchange: bool,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Delete a file permanently.
    Delete {
        /// Id of the session, as listed.
        session: String,
        /// Path of the file, as listed.
        path: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// Runs the subcommand.
pub fn perform(action: Option<QuarantineAction>, screen: Screen) -> anyhow::Result<ExitCode> {
    match action.unwrap_or(QuarantineAction::List) {
        QuarantineAction::List => {
            let all = fetch_quarantine(&mut Connection::open()?)?;
            screen.show(&text(&all), &json!({ "sessions": all }))?;
            Ok(ExitCode::SUCCESS)
        }
        QuarantineAction::PutBack { session, path, exchange, yes } => {
            let choice = if exchange { AutostartFileChoice::Exchange } else { AutostartFileChoice::PutBack };
            decide((session, path), choice, yes, screen)
        }
        QuarantineAction::Delete { session, path, yes } => {
            decide((session, path), AutostartFileChoice::Delete, yes, screen)
        }
    }
}

fn fetch_quarantine(connection: &mut Connection) -> anyhow::Result<Vec<SessionRecordView>> {
    let Reply::Quarantine(sessions) = connection.ask(Request::Quarantine)? else {
        bail!("unexpected reply from IronCurtain")
    };
    Ok(sessions)
}

fn decide(
    (session, path): (String, String),
    choice: AutostartFileChoice,
    yes: bool,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open()?;
    let all = fetch_quarantine(&mut connection)?;
    let owner = all.iter().find(|one| one.id == session);
    let Some(found) = owner.and_then(|one| one.files.iter().find(|file| file.path == path)) else {
        bail!(
            "session `{session}` has no file `{path}` in quarantine; run `ironcurtain quarantine` to list them"
        );
    };
    if !yes && !screen.confirmed(&confirm_question(found, choice))? {
        screen.note("Nothing was changed.")?;
        return Ok(ExitCode::FAILURE);
    }
    let reply = connection.ask(Request::DecideAutostartFile { session, path, choice })?;
    let message = match choice {
        AutostartFileChoice::Delete => format!("{} was deleted.", found.shown),
        AutostartFileChoice::Keep
        | AutostartFileChoice::Quarantine
        | AutostartFileChoice::PutBack
        | AutostartFileChoice::Exchange => {
            format!("{} was put back. It runs {}.", found.shown, found.when)
        }
    };
    screen.show(&[message.as_str()].into_iter().collect(), &serde_json::to_value(&reply)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the confirmation prompt for a choice.
fn confirm_question(file: &AutostartFileView, choice: AutostartFileChoice) -> String {
    let AutostartFileView { shown, when, .. } = file;
    match choice {
        AutostartFileChoice::Exchange => {
            format!("{shown} will run {when}. The file that is there now will be quarantined. Put it back?")
        }
        AutostartFileChoice::Delete => format!("Delete {shown} from quarantine permanently?"),
        AutostartFileChoice::Keep | AutostartFileChoice::Quarantine | AutostartFileChoice::PutBack => {
            format!("{shown} will run {when}. Put it back?")
        }
    }
}

fn text(sessions: &[SessionRecordView]) -> TextLines {
    let mut out = TextLines::default();
    if sessions.is_empty() {
        out.line("Quarantine is empty.");
        return out;
    }
    for session in sessions {
        out.line(format_args!("{}  {} -> {}", session.id, session.client, session.server));
        session.files.iter().for_each(|one| {
            autostart_file::append_lines(&mut out, one);
            if one.occupied {
                out.line("  there is another file at its path now");
            }
        });
    }
    out.line("To put a file back: ironcurtain quarantine put-back SESSION PATH");
    out.line("To delete a file permanently: ironcurtain quarantine delete SESSION PATH");
    out
}
