//! Finds sessions whose start is recorded but whose end is not, because the trusted process was killed.

use crate::volumes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Text that every entry about a session contains. It cannot occur inside a string value, because quotes are escaped
/// there.
const SIGN: &str = "\"event\":\"session\"";

/// Texts that every entry about the start of the trusted process contains.
const STARTED: [&str; 2] = ["\"event\":\"daemon\"", "\"summary\":\"the trusted process started\""];

/// Prefix of the summary of an entry that records the end of a session.
const END: &str = "the session of ";

/// Number of process starts to look back in the log. When the trusted process starts, it records the end of each
/// session that the previous process left unfinished. If it is killed before that, the next process does so.
const STARTS: usize = 3;

/// Session without a recorded end.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
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
pub fn unfinished(dir: &Path) -> io::Result<Vec<Unfinished>> {
    let (mut files, mut starts) = (Vec::new(), 0);
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = volume.open()?;
        let mut lines = BufReader::new(&volume.file);
        let (mut line, mut told) = (Vec::new(), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            starts += usize::from(STARTED.iter().all(|sign| text.contains(sign)));
            // A refused session has no id.
            told.extend(
                text.contains(SIGN).then(|| serde_json::from_str::<Unfinished>(&text).ok()).flatten(),
            );
            line.clear();
        }
        files.push(told);
        if starts >= STARTS {
            break;
        }
    }
    let mut open = BTreeMap::new();
    for about in files.into_iter().rev().flatten() {
        // This may be the end of a session that started before the searched range.
        let is_end = about.summary.starts_with(END);
        if open.remove(&about.session).is_none() && !is_end {
            open.insert(about.session.clone(), about);
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
        assert_eq!(unfinished(dir.path()).unwrap(), []);
        let audit = Audit::open(dir.path(), |_| ()).unwrap();
        let about = |event, session: Option<&str>, summary: &str| {
            let mut entry = Entry::new(event, summary);
            (entry.session, entry.client) = (session.map(str::to_owned), Some("c".to_owned()));
            entry
        };
        for entry in [
            about(Event::Session, Some("a"), "began"),
            about(Event::Session, Some("b"), "began"),
            about(Event::Decision, Some("b"), "\"event\":\"session\""),
            about(Event::Session, None, "was refused"),
            about(Event::Session, Some("a"), "ended"),
            about(Event::Session, Some("older"), "the session of c ended"),
        ] {
            audit.record(entry).await.unwrap();
        }
        let expected = Unfinished {
            session: "b".into(),
            client: Some("c".into()),
            server: None,
            summary: "began".into(),
        };
        assert_eq!(unfinished(dir.path()).unwrap(), [expected]);
    }
}
