//! Records that the user restores a run's folder. The command-line program restores the files itself.

use super::stopping::{record, requested_by};
use super::{Requester, failed};
use crate::daemon_state::DaemonState;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_protocol::{ErrorCode, Reply};
use ironcurtain_visible as visible;

/// Records that `count` paths are about to be restored, or, with `failures`, that they were restored except for that
/// number.
pub(super) async fn undo(
    state: &DaemonState,
    session: String,
    folder: &str,
    (count, failures): (usize, Option<usize>),
    requester: Requester,
) -> Reply {
    let folder = visible::line(folder);
    let summary = match failures {
        None => format!("paths of `{folder}` are to be restored: {count}"),
        Some(failures) => {
            format!("paths of `{folder}` were restored: {}, failed: {failures}", count - failures.min(count))
        }
    };
    let mut entry = Entry::new(Event::Undo, format!("{summary}, {}", requested_by(requester)));
    entry.session = Some(session);
    match record(state, entry).await {
        Ok(()) => Reply::Done,
        Err(problem) => failed(ErrorCode::Storage, problem.to_string()),
    }
}
