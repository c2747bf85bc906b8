//! Connection to the view of a run: questions come in, answers and permissions go out.

use super::Run;
use ironcurtain_sandbox::file_access::{FromView, PermittedAccess, ToView};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Serves a view until the connection is closed.
pub(super) async fn serve(
    run: Arc<Run>,
    view: UnixStream,
    mut to_view: mpsc::UnboundedReceiver<ToView>,
) -> io::Result<()> {
    let (from, mut to) = view.into_split();
    let mut lines = BufReader::new(from).lines();
    // Dropping the set withdraws the questions.
    let (mut asking, mut open) = (JoinSet::new(), HashMap::<u64, AbortHandle>::new());
    loop {
        tokio::select! {
            line = lines.next_line() => {
                let Some(line) = line? else { return Ok(()) };
                match serde_json::from_str(&line)? {
                    FromView::Ask { id, path, access, .. } => {
                        let run = run.clone();
                        let wanted = PermittedAccess { path, access };
                        let answer = asking.spawn(async move {
                            let allowed = run.decide(wanted).await;
                            run.tell(ToView::Answer { id, allowed });
                            id
                        });
                        open.insert(id, answer);
                    }
                    FromView::Withdraw { id } => {
                        open.remove(&id).iter().for_each(AbortHandle::abort);
                    }
                    FromView::Applied { version, complete } => {
                        if !complete {
                            tracing::warn!(run = run.id, "the kernel did not drop the pages of a revoked file in time");
                        }
                        run.permissions.applied(version);
                    }
                }
            }
            Some(answered) = asking.join_next() => {
                if let Ok(id) = answered {
                    open.remove(&id);
                }
            }
            Some(message) = to_view.recv() => {
                let mut line = serde_json::to_vec(&message)?;
                line.push(b'\n');
                to.write_all(&line).await?;
            }
        }
    }
}
