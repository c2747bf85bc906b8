//! Connection to a file view. Receives access requests, and sends answers and permissions.

use super::ServedFiles;
use super::asking::AskedByProgram;
use ironcurtain_mcp::wire::{Line, Lines};
use ironcurtain_sandbox::file_access::{FromView, PermittedAccess, ToView};
use std::collections::HashMap;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum length of a view's message, in bytes. The longest message contains a path and program names.
const MAX_LEN: usize = 64 * 1024;

/// Handles a view's messages until the connection closes, and everything that the view has reported is recorded.
pub(super) async fn serve(
    files: Arc<ServedFiles>,
    view: UnixStream,
    to_view: mpsc::UnboundedReceiver<ToView>,
) -> io::Result<()> {
    let (from, to) = view.into_split();
    let (reads, reports) = mpsc::unbounded_channel();
    let handling =
        async { tokio::join!(handle_messages(&files, from, reads), files.record_reads(reports)).0 };
    let mut handling = pin!(handling);
    // Write concurrently, because the view may stop reading until its questions have been read.
    tokio::select! {
        handled = &mut handling => handled,
        written = write(to, to_view) => {
            // Writing fails only if the view has exited. It may have reported files before.
            handling.await.and(written)
        }
    }
}

/// Handles messages until the connection closes. Passes reported files to `reads`.
async fn handle_messages(
    files: &Arc<ServedFiles>,
    from: OwnedReadHalf,
    reads: mpsc::UnboundedSender<String>,
) -> io::Result<()> {
    let mut lines = Lines::new(from, MAX_LEN);
    // Dropping the set withdraws the questions.
    let (mut asking, mut open) = (JoinSet::new(), HashMap::<u64, AbortHandle>::new());
    loop {
        tokio::select! {
            line = lines.next() => {
                let line = match line? {
                    Some(Line::Whole(line, _)) => line,
                    Some(Line::TooLong { .. } | Line::NoMemory { .. }) => return Err(io::ErrorKind::InvalidData.into()),
                    None => return Ok(()),
                };
                match serde_json::from_slice(&line)? {
                    FromView::Ask { id, path, access, programs } => {
                        let files = files.clone();
                        let asked = AskedByProgram { wanted: PermittedAccess { path, access }, programs };
                        let answering = asking.spawn(async move {
                            let answer = files.decide(asked).await;
                            files.send_to_view(ToView::Answer { id, answer });
                            id
                        });
                        open.insert(id, answering);
                    }
                    // Sending cannot fail: the receiver is dropped only after this sender.
                    FromView::Read { path } => {
                        files.permissions.reads().count_report();
                        let _ = reads.send(path);
                    }
                    FromView::Withdraw { id } => {
                        open.remove(&id).iter().for_each(AbortHandle::abort);
                    }
                    FromView::Reserved { number } => _ = files.reserved.send_replace(number),
                    FromView::Applied { version, complete } => {
                        if complete {
                            files.permissions.applied(version);
                        } else {
                            // The program may still read cached pages of the revoked file, so terminate the sandbox.
                            tracing::error!(session = files.id, "the kernel did not drop the pages of a revoked file in time; terminating the sandbox");
                            files.end();
                        }
                    }
                }
            }
            Some(answered) = asking.join_next() => {
                if let Ok(id) = answered {
                    open.remove(&id);
                }
            }
        }
    }
}

/// Writes messages until the connection or the channel closes.
async fn write(mut to: OwnedWriteHalf, mut messages: mpsc::UnboundedReceiver<ToView>) -> io::Result<()> {
    while let Some(message) = messages.recv().await {
        let mut line = serde_json::to_vec(&message)?;
        line.push(b'\n');
        to.write_all(&line).await?;
    }
    Ok(())
}
