//! `sessions` and `session`: list sessions, and apply the user's choices about autostart files that they left behind.

use crate::arguments::SessionArguments;
use crate::connection::Connection;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use crate::{autostart_file, reply_text};
use anyhow::bail;
use ironcurtain_protocol::{AutostartFileChoice, AutostartFileState, Reply, Request, SessionRecordView};
use std::io::{self, Write};
use std::process::ExitCode;

/// Prints the active sessions, and the closed sessions that left behind files that the user has not decided about.
pub fn all(screen: Screen) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open()?;
    let live = connection.ask(Request::Sessions)?;
    let autostart_files = connection.ask(Request::AutostartFiles)?;
    let mut out = reply_text::text(&live);
    if let Reply::AutostartFiles(sessions) = &autostart_files {
        sessions.iter().for_each(|session| out.line(summary_line(session)));
    }
    let mut json = serde_json::to_value(&live)?;
    if let (Some(json), serde_json::Value::Object(extra)) =
        (json.as_object_mut(), serde_json::to_value(&autostart_files)?)
    {
        json.extend(extra);
    }
    screen.show(&out, &json)?;
    Ok(ExitCode::SUCCESS)
}

/// Applies the user's choices to a session's files, then prints the session.
pub fn one(options: SessionArguments, screen: Screen) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open()?;
    let SessionArguments { id: session, keep, quarantine } = options;
    let keeps = keep.into_iter().map(|path| (path, AutostartFileChoice::Keep));
    for (path, choice) in
        keeps.chain(quarantine.into_iter().map(|path| (path, AutostartFileChoice::Quarantine)))
    {
        connection.ask(Request::DecideAutostartFile { session: session.clone(), path, choice })?;
    }
    let reply = connection.ask(Request::Session { session })?;
    let Reply::Session(found) = &reply else { bail!("unexpected reply from IronCurtain") };
    screen.show(&text(found), &serde_json::to_value(&reply)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the sandboxes whose scan is still running.
pub fn print_remaining_scans(words: &[String]) {
    let out: TextLines = words
        .iter()
        .map(|words| format!("Scanning for files that other programs may run: {words} ..."))
        .collect();
    // A failure to write to standard error cannot be reported.
    let _ = io::stderr().write_all(out.as_str().as_bytes());
}

fn summary_line(session: &SessionRecordView) -> String {
    format!(
        "{}  {} -> {}  ended; {}",
        session.id,
        session.client,
        session.server,
        reply_text::left_files(undecided_count(session))
    )
}

fn undecided_count(session: &SessionRecordView) -> usize {
    session.files.iter().filter(|file| file.state == AutostartFileState::Undecided).count()
}

fn text(session: &SessionRecordView) -> TextLines {
    let mut out = TextLines::default();
    let sandboxed = reply_text::sandbox_state(session.sandboxed, session.remote);
    out.line(format_args!("{}  {} -> {}  {sandboxed}", session.id, session.client, session.server));
    let state = if session.ended_ms.is_some() { "ended" } else { "not ended" };
    let scan_state = if session.is_scanning { "; still being scanned" } else { "" };
    out.line(format_args!("  state      {state}{scan_state}"));
    out.line(match undecided_count(session) {
        0 if session.files.is_empty() => "This session left no files that can run code later.".to_owned(),
        0 => "You have decided about every file that this session left.".to_owned(),
        count => format!("This session {}.", reply_text::left_files(count)),
    });
    session.files.iter().for_each(|one| autostart_file::append_lines(&mut out, one));
    session.unfinished.iter().for_each(|why| out.line(format_args!("  ! NOT FULLY SCANNED: {why}")));
    if undecided_count(session) > 0 {
        let id = &session.id;
        out.line(format_args!("To keep a file: ironcurtain session {id} --keep PATH"));
        out.line(format_args!("To quarantine a file: ironcurtain session {id} --quarantine PATH"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::AutostartFileView;

    #[test]
    fn listed_files_cannot_add_lines() {
        let file = |path: &str, state: AutostartFileState| AutostartFileView {
            path: path.into(),
            shown: path.into(),
            when: "when you commit in this repository".into(),
            is_new: true,
            diff: Some("+evil\u{1b}[2J\n+more".into()),
            state,
            moved_to: (state == AutostartFileState::Quarantined).then(|| "/q/1/x".into()),
            occupied: false,
            keys: vec![],
            time_ms: 0,
        };
        let session = SessionRecordView {
            id: "s1".into(),
            client: "claude".into(),
            server: "git".into(),
            sandboxed: true,
            remote: false,
            started_ms: 0,
            ended_ms: Some(1),
            is_scanning: false,
            files: vec![
                file("/p/.husky/pre-commit", AutostartFileState::Undecided),
                file("/p/.envrc", AutostartFileState::Quarantined),
            ],
            unfinished: vec!["`/p/deep` is too deep".into()],
        };
        let expected = "s1  claude -> git  sandboxed\n  state      ended\n\
            This session left 1 file that can run code later.\n\
            /p/.husky/pre-commit\n  new; it runs when you commit in this repository\n  | +evil\\u{1b}[2J\n  | +more\n\
            /p/.envrc\n  new; it runs when you commit in this repository\n  moved to /q/1/x\n  | +evil\\u{1b}[2J\n  | +more\n  \
            ! NOT FULLY SCANNED: `/p/deep` is too deep\n\
            To keep a file: ironcurtain session s1 --keep PATH\n\
            To quarantine a file: ironcurtain session s1 --quarantine PATH\n";
        assert_eq!(text(&session).as_str(), expected);
    }
}
