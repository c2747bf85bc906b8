//! Sessions, and the files they left that run later.

use crate::arguments::SessionOptions;
use crate::connection::Connection;
use crate::left_file;
use crate::print;
use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::bail;
use ironcurtain_protocol::{LeftChoice, LeftState, Reply, Request, SessionRecordView};
use std::io::{self, Write};
use std::process::ExitCode;

/// Live sessions, and the ended ones that left files which wait for the person's word.
pub fn all(screen: Screen) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open()?;
    let live = connection.ask(Request::Sessions)?;
    let behind = connection.ask(Request::LeftBehind)?;
    let mut sheet = print::text(&live);
    if let Reply::LeftBehind(sessions) = &behind {
        sessions.iter().for_each(|session| sheet.line(left_behind(session)));
    }
    let mut json = serde_json::to_value(&live)?;
    if let (Some(json), serde_json::Value::Object(more)) =
        (json.as_object_mut(), serde_json::to_value(&behind)?)
    {
        json.extend(more);
    }
    screen.show(&sheet, &json)?;
    Ok(ExitCode::SUCCESS)
}

/// One session, after what the person wants done with its files.
pub fn one(options: SessionOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let mut connection = Connection::open()?;
    let SessionOptions { id: session, keep, quarantine } = options;
    let kept = keep.into_iter().map(|path| (path, LeftChoice::Keep));
    for (path, choice) in kept.chain(quarantine.into_iter().map(|path| (path, LeftChoice::Quarantine))) {
        connection.ask(Request::DecideLeft { session: session.clone(), path, choice })?;
    }
    let reply = connection.ask(Request::Session { session })?;
    let Reply::Session(found) = &reply else { bail!("IronCurtain said something else than was asked for") };
    screen.show(&text(found), &serde_json::to_value(&reply)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Tells which sandboxes are still being looked at.
pub fn still_looked_at(words: &[String]) {
    let sheet: Sheet =
        words.iter().map(|words| format!("Looking for files that run later: {words} ...")).collect();
    // Nobody is left to tell if this fails.
    let _ = io::stderr().write_all(sheet.as_str().as_bytes());
}

fn left_behind(session: &SessionRecordView) -> String {
    format!(
        "{}  {} -> {}  ended; {}",
        session.id,
        session.client,
        session.server,
        print::left(waiting(session))
    )
}

fn waiting(session: &SessionRecordView) -> usize {
    session.files.iter().filter(|file| file.state == LeftState::Left).count()
}

fn text(session: &SessionRecordView) -> Sheet {
    let mut sheet = Sheet::default();
    let sandboxed = print::contained(session.sandboxed, session.remote);
    sheet.line(format_args!("{}  {} -> {}  {sandboxed}", session.id, session.client, session.server));
    let state = if session.ended_ms.is_some() { "ended" } else { "not ended" };
    let looking = if session.looking { "; still being looked at" } else { "" };
    sheet.line(format_args!("  state      {state}{looking}"));
    sheet.line(match waiting(session) {
        0 if session.files.is_empty() => "This session left no file that can run code later.".to_owned(),
        0 => "Nothing that this session left waits for your word.".to_owned(),
        count => format!("This session {}.", print::left(count)),
    });
    session.files.iter().for_each(|one| left_file::lines(&mut sheet, one));
    session.unfinished.iter().for_each(|why| sheet.line(format_args!("  ! NOT ALL WAS LOOKED AT: {why}")));
    if waiting(session) > 0 {
        let id = &session.id;
        sheet.line(format_args!(
            "Keep one with `ironcurtain session {id} --keep PATH`, or put it where nothing runs it with"
        ));
        sheet.line(format_args!("`ironcurtain session {id} --quarantine PATH`."));
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::LeftFileView;

    #[test]
    fn a_list_names_each_file_and_no_file_writes_lines_of_its_own() {
        let file = |path: &str, state: LeftState| LeftFileView {
            path: path.into(),
            shown: path.into(),
            when: "when you commit in this repository".into(),
            is_new: true,
            diff: Some("+evil\u{1b}[2J\n+more".into()),
            state,
            moved_to: (state == LeftState::Quarantined).then(|| "/q/1/x".into()),
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
            looking: false,
            files: vec![
                file("/p/.husky/pre-commit", LeftState::Left),
                file("/p/.envrc", LeftState::Quarantined),
            ],
            unfinished: vec!["`/p/deep` is too deep".into()],
        };
        let expected = "s1  claude -> git  sandboxed\n  state      ended\n\
            This session left 1 file that can run code later.\n\
            /p/.husky/pre-commit\n  new; it runs when you commit in this repository\n  | +evil\\u{1b}[2J\n  | +more\n\
            /p/.envrc\n  new; it runs when you commit in this repository\n  moved to /q/1/x\n  | +evil\\u{1b}[2J\n  | +more\n  \
            ! NOT ALL WAS LOOKED AT: `/p/deep` is too deep\n\
            Keep one with `ironcurtain session s1 --keep PATH`, or put it where nothing runs it with\n\
            `ironcurtain session s1 --quarantine PATH`.\n";
        assert_eq!(text(&session).as_str(), expected);
    }
}
