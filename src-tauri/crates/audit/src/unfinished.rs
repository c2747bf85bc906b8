//! Sessions that have a beginning on record and no end, as a trusted process that was killed leaves them.

use crate::volumes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Part of every line about the beginning or the end of a session; in a text, its quotes would be escaped.
const SIGN: &str = "\"event\":\"session\"";

/// Part of every line with which a trusted process begins.
const STARTED: [&str; 2] = ["\"event\":\"daemon\"", "\"summary\":\"the trusted process started\""];

/// The beginning of an end's words.
const END: &str = "the session of ";

/// The number of starts that are looked back to. Each puts the ends on record that the one before it left out; one that was
/// killed before it could leaves them to the next.
const STARTS: usize = 3;

/// A session without an end.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Unfinished {
    /// Its id.
    pub session: String,
    /// The agent client that had it.
    pub client: Option<String>,
    /// The server it was with.
    #[serde(rename = "serverName")]
    pub server: Option<String>,
    /// Words of its entry.
    #[serde(default)]
    summary: String,
}

/// All of them, by name. The first entry of a session is its beginning, the second its end.
///
/// # Errors
/// When the log cannot be read.
pub fn unfinished(dir: &Path) -> io::Result<Vec<Unfinished>> {
    let (mut files, mut starts) = (Vec::new(), 0);
    for volume in volumes::list(dir)?.iter().rev() {
        let volume = volume.open()?;
        let mut lines = BufReader::new(&volume.file);
        let (mut line, mut told) = (Vec::new(), Vec::new());
        while lines.read_until(b'\n', &mut line)? > 0 {
            let text = String::from_utf8_lossy(&line);
            starts += usize::from(STARTED.iter().all(|sign| text.contains(sign)));
            // What is refused has no session.
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
        // The end of one that began further back.
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
    async fn only_a_session_that_began_and_did_not_end_is_unfinished() {
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
