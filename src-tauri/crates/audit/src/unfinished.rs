//! Finds sessions whose start is recorded but whose end is not, because the trusted process was killed.

use crate::volumes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Text that every entry about a session contains. It cannot occur inside a string value, because quotes are escaped
/// there.
const SESSION_EVENT: &str = "\"event\":\"session\"";

/// Texts that every entry about the start of the trusted process contains.
const START_TEXTS: [&str; 2] = ["\"event\":\"daemon\"", "\"summary\":\"the trusted process started\""];

/// Prefix of the summary of an entry that records the end of a session.
const END_PREFIX: &str = "the session of ";

/// Number of process starts to look back in the log. When the trusted process starts, it records the end of each
/// session that the previous process left unfinished. If it is killed before that, the next process does so.
const MAX_STARTS: usize = 3;

/// Session without a recorded end.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnfinishedSession {
    /// Id of the session.
    pub session: String,
    /// Name of the agent client.
    pub client: Option<String>,
    /// Name of the server.
    #[serde(rename = "serverName")]
    pub server: Option<String>,
    /// Summary of the session's first entry.
    #[serde(default)]
    summary: String,
}

/// Returns the unfinished sessions, sorted by id. A session's first entry records its start, and its second entry
/// records its end.
///
/// # Errors
/// Returns an error if reading the log fails.
pub fn unfinished_sessions(dir: &Path) -> io::Result<Vec<UnfinishedSession>> {
    let (mut files, mut starts) = (Vec::new(), 0);
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = volume.open()?;
        let mut lines = BufReader::new(&volume.file);
        let (mut line, mut sessions) = (Vec::new(), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            starts += usize::from(START_TEXTS.iter().all(|part| text.contains(part)));
            // A refused session has no id.
            sessions.extend(
                text.contains(SESSION_EVENT)
                    .then(|| serde_json::from_str::<UnfinishedSession>(&text).ok())
                    .flatten(),
            );
            line.clear();
        }
        files.push(sessions);
        if starts >= MAX_STARTS {
            break;
        }
    }
    let mut open = BTreeMap::new();
    for session in files.into_iter().rev().flatten() {
        // This may be the end of a session that started before the searched range.
        let is_end = session.summary.starts_with(END_PREFIX);
        if open.remove(&session.session).is_none() && !is_end {
            open.insert(session.session.clone(), session);
        }
    }
    Ok(open.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audit, Entry, Event};

    #[tokio::test]
    async fn only_a_session_with_a_start_and_no_end_is_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(unfinished_sessions(dir.path()).unwrap(), []);
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        let session = |event, session: Option<&str>, summary: &str| {
            let mut entry = Entry::new(event, summary);
            (entry.session, entry.client) = (session.map(str::to_owned), Some("c".to_owned()));
            entry
        };
        for entry in [
            session(Event::Session, Some("a"), "began"),
            session(Event::Session, Some("b"), "began"),
            session(Event::Decision, Some("b"), "\"event\":\"session\""),
            session(Event::Session, None, "was refused"),
            session(Event::Session, Some("a"), "ended"),
            session(Event::Session, Some("older"), "the session of c ended"),
        ] {
            audit.record(entry).await.unwrap();
        }
        let expected = UnfinishedSession {
            session: "b".into(),
            client: Some("c".into()),
            server: None,
            summary: "began".into(),
        };
        assert_eq!(unfinished_sessions(dir.path()).unwrap(), [expected]);
    }
}
