//! Which of the things that sandboxes told are on record.

use crate::regular;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// What every line has that is about such a thing; in a text, its quotes would be escaped.
const SIGN: &str = "\"reportId\":\"";

/// The names of all that are.
///
/// # Errors
/// When the log cannot be read.
pub(crate) fn reports(log: &Path) -> io::Result<BTreeSet<String>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct About {
        report_id: String,
    }
    let lines = BufReader::new(regular::open(log)?).lines();
    let about = lines.filter(|line| line.as_ref().map_or(true, |line| line.contains(SIGN)));
    // One that is none is not on record.
    let names = about.filter_map(|line| {
        line.map(|line| serde_json::from_str::<About>(&line).ok().map(|about| about.report_id)).transpose()
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::{Audit, Entry, Event, LOG_NAME};
    use crate::troubles::Troubles;

    #[tokio::test]
    async fn a_name_counts_where_it_is_one_and_not_in_a_text() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join(LOG_NAME);
        assert!(reports(&log).is_err());
        let audit = Audit::open(dir.path(), Troubles::default()).unwrap();
        let mut told = Entry::new(Event::Server, "told");
        told.report_id = Some("1-2-0/0".to_owned());
        audit.record(told).await.unwrap();
        audit.record(Entry::new(Event::Session, "{\"reportId\":\"forged\"}")).await.unwrap();
        assert_eq!(reports(&log).unwrap().into_iter().collect::<Vec<_>>(), ["1-2-0/0"]);
    }
}
