//! Prepares session records for display. Names, paths and text from other programs are escaped.

use super::session_record::{RecordedFile, SessionRecord};
use ironcurtain_audit::FileDecision;
use ironcurtain_protocol::{AutostartFileState, AutostartFileView, SessionRecordView};
use ironcurtain_sandbox::autostart::{ChangeKind, Finding};
use ironcurtain_visible as visible;
use std::collections::BTreeSet;

/// Maximum length of a displayed diff in characters.
const MAX_DIFF_LEN: usize = 4096;

pub(super) fn session_view(id: &str, record: SessionRecord, is_checking: bool) -> SessionRecordView {
    let more = (record.more > 0).then(|| format!("{} more files are not listed", record.more));
    let unfinished = record.unfinished.iter().map(|reason| visible::line(reason));
    let mut files: Vec<AutostartFileView> = record.files.iter().filter_map(file_view).collect();
    // Undecided files come first.
    files.sort_by_key(|file| file.state != AutostartFileState::Undecided);
    SessionRecordView {
        id: id.to_owned(),
        client: visible::line(&record.facts.client),
        server: visible::line(&record.facts.server),
        sandboxed: record.facts.sandboxed,
        remote: record.facts.remote,
        started_ms: record.facts.started_ms,
        ended_ms: record.ended_ms,
        is_scanning: is_checking,
        files,
        unfinished: unfinished.chain(more).collect(),
    }
}

/// Keeps only the last of several files with the same path.
pub(super) fn keep_newest(files: &mut Vec<AutostartFileView>) {
    let mut seen = BTreeSet::new();
    files.reverse();
    files.retain(|file| seen.insert(file.path.clone()));
    files.reverse();
}

/// Prepares one file for display. Returns `None` if the file was removed before the user decided about it.
fn file_view(file: &RecordedFile) -> Option<AutostartFileView> {
    let view = |path: &str, when: &str, state: AutostartFileState| AutostartFileView {
        path: path.to_owned(),
        shown: visible::path(path),
        when: visible::line(when),
        is_new: true,
        diff: None,
        state,
        moved_to: None,
        occupied: false,
        keys: Vec::new(),
        time_ms: file.time_ms,
    };
    let moved_to = file.quarantine_path().map(visible::path);
    let occupied = moved_to.is_some() && file.is_occupied();
    match &file.finding {
        Finding::AutostartFile { path, when, change, diff } => {
            let state = match &file.decided {
                None if file.is_undecided() => AutostartFileState::Undecided,
                None => return None,
                Some(decided) => state(decided),
            };
            let diff = diff.as_deref().map(|diff| visible::lines(&visible::head(diff, MAX_DIFF_LEN)));
            let is_new = match change {
                ChangeKind::New => true,
                ChangeKind::Changed => false,
            };
            Some(AutostartFileView { is_new, diff, moved_to, occupied, ..view(path, when, state) })
        }
        Finding::Quarantined { path, when, moved_to: _ } => {
            let state = file.decided.as_ref().map_or(AutostartFileState::Quarantined, state);
            Some(AutostartFileView { moved_to, occupied, ..view(path, when, state) })
        }
        Finding::Restored { path, keys } => Some(AutostartFileView {
            is_new: false,
            keys: keys.iter().map(|key| visible::line(key)).collect(),
            ..view(path, "when git runs here", AutostartFileState::PutBack)
        }),
        Finding::Unfinished { .. } => None,
    }
}

fn state(decided: &FileDecision) -> AutostartFileState {
    match decided {
        FileDecision::Kept => AutostartFileState::Kept,
        FileDecision::Quarantined { .. } => AutostartFileState::Quarantined,
        FileDecision::Returned => AutostartFileState::Returned,
        FileDecision::Exchanged { .. } => AutostartFileState::Exchanged,
        FileDecision::Deleted => AutostartFileState::Deleted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_file_of_a_path_is_listed() {
        let named = |path: &str, time_ms: u64| {
            let finding = Finding::AutostartFile {
                path: path.to_owned(),
                when: "later".to_owned(),
                change: ChangeKind::New,
                diff: None,
            };
            let decided = Some(FileDecision::Kept);
            file_view(&RecordedFile { finding, decided, time_ms }).unwrap()
        };
        let mut files = vec![named("/a", 1), named("/b", 2), named("/a", 3), named("/c", 4)];
        keep_newest(&mut files);
        let listed: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.time_ms)).collect();
        assert_eq!(listed, [("/b", 2), ("/a", 3), ("/c", 4)]);
    }
}
