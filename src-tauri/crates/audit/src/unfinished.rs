//! Sessions that have a beginning on record and no end, as a trusted process that was killed leaves them.

use ironcurtain_paths::bounded_read;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// Part of every line about the beginning or the end of a session; in a text, its quotes would be escaped.
const SIGN: &str = "\"event\":\"session\"";

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
}

/// All of them, by name. The first entry of a session is its beginning, the second its end.
///
/// # Errors
/// When the log cannot be read.
pub fn unfinished(log: &Path) -> io::Result<Vec<Unfinished>> {
    let mut open = BTreeMap::new();
    let mut lines = BufReader::new(bounded_read::open(log)?);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        // What is refused has no session.
        let about = text.contains(SIGN).then(|| serde_json::from_str::<Unfinished>(&text).ok()).flatten();
        if let Some(about) = about
            && open.remove(&about.session).is_none()
        {
            open.insert(about.session.clone(), about);
        }
        line.clear();
    }
    Ok(open.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Audit, Entry, Event, LOG_NAME};

    #[tokio::test]
    async fn only_a_session_that_began_and_did_not_end_is_unfinished() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(LOG_NAME);
        assert!(unfinished(&log).is_err());
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
        ] {
            audit.record(entry).await.unwrap();
        }
        let expected = Unfinished { session: "b".into(), client: Some("c".into()), server: None };
        assert_eq!(unfinished(&log).unwrap(), [expected]);
    }
}
