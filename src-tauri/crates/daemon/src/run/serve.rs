//! Serves a run until its program exits, the process that started it disconnects, or the user terminates it.

use super::Run;
use ironcurtain_audit::Event;
use ironcurtain_autostart::SandboxWatch;
use ironcurtain_connection::send;
use ironcurtain_protocol::RunNote;
use ironcurtain_sandbox::{ControlOp, KillHandle, SandboxExit};
use ironcurtain_server::NotesInbox;
use ironcurtain_server::control::SupervisorControl;
use ironcurtain_server::network::RunningProxy;
use ironcurtain_server::served_files::{FilesInbox, ServingFiles};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

/// Maximum time for a sandbox to exit after its connection was closed. A sandbox that takes longer is killed.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Exit status to report for a terminated program, as if `SIGKILL` had killed it.
const KILLED: i32 = 128 + 9;

/// Run that has been started and must now be served.
pub(crate) struct OpenedRun {
    pub(crate) run: Arc<Run>,
    pub(super) control: SupervisorControl,
    pub(super) kill: KillHandle,
    pub(super) exit: oneshot::Receiver<SandboxExit>,
    pub(super) view: UnixStream,
    pub(super) inbox: FilesInbox,
    pub(super) network: (RunningProxy, JoinSet<()>),
    /// Notes for the process that started the run.
    pub(super) starter_notes: NotesInbox,
    /// Task that serves the ssh agent. The task ends with the run.
    pub(super) agent: Option<JoinHandle<()>>,
}

impl OpenedRun {
    /// Serves the run and waits until its sessions have ended, at most [`EXIT_TIMEOUT`]. Then calls `remove` and
    /// reports the exit status to the process that started the run.
    pub(crate) async fn serve(
        self,
        starter: UnixStream,
        sessions_ended: impl Future<Output = ()>,
        remove: impl FnOnce(),
    ) {
        let Self { run, mut control, kill, mut exit, view, inbox, network, starter_notes, agent } = self;
        let FilesInbox { for_view: view_inbox, mut orders } = inbox;
        let (mut starter, to_starter) = starter.into_split();
        let (end_notes, ended) = oneshot::channel();
        let writing_notes = tokio::spawn(write_notes(to_starter, run.started_note(), starter_notes, ended));
        let following_pauses = tokio::spawn(run.clone().follow_pauses());
        let mut serving = ServingFiles::start(&run.files, view, view_inbox);
        let check = control.watch().map(SandboxWatch::mask_check_needed);
        // `exited` is `None` if the sandbox has not exited yet. `end_reason` is set if the run was terminated.
        let mut end_reason = None;
        let exited = loop {
            let checked = async {
                match &check {
                    Some(check) => check.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut exit => break Some(ended.ok()),
                // The sandbox exits after its file view disconnects. It is killed if it does not exit in time.
                () = serving.disconnected() => {
                    let exit = tokio::time::timeout(EXIT_TIMEOUT, &mut exit).await;
                    break exit.ok().map(Result::ok);
                }
                () = run.wait_for_end() => {
                    end_reason = Some("it was ended");
                    break None;
                }
                () = disconnected(&mut starter) => break None,
                Some((order, answer)) = orders.recv() => {
                    // Ignore the error: the receiver is dropped only if the run is ending.
                    let _ = answer.send(control.execute(order).await);
                }
                () = checked => {
                    if control.ask(ControlOp::Check).await.is_err() {
                        break None;
                    }
                    control.watch().iter().for_each(|look| look.masks_restored());
                }
            }
        };
        run.end();
        // Closing the connection terminates the sandbox.
        drop(control);
        kill.kill_after(EXIT_TIMEOUT);
        let exited_by_itself = exited.is_some();
        let exited = match exited {
            Some(exited) => exited,
            // The sandbox is killed after the time limit at the latest.
            None => exit.await.ok(),
        };
        drop(network);
        if let Some(Err(problem)) = futures_util::future::OptionFuture::from(agent).await {
            tracing::error!(%problem, "failed to serve the ssh agent of a run");
        }
        run.network.local().iter().for_each(|services| services.close());
        run.files.mark_exited();
        // The view has exited too, so this completes once all files that it reported are recorded. If they cannot be, the
        // entry about the run's end contains their number.
        if tokio::time::timeout(EXIT_TIMEOUT, serving.disconnected()).await.is_err() {
            tracing::error!(
                session = run.id,
                count = run.files.unrecorded_reads(),
                "failed to record all files that a run has read"
            );
        }
        drop(serving);
        following_pauses.abort();
        // The run's servers are killed when their sessions end. What they wrote belongs to the run.
        if tokio::time::timeout(EXIT_TIMEOUT, sessions_ended).await.is_err() {
            tracing::warn!(session = run.id, "a server of a run is still exiting");
        }
        let status = exited.filter(|_| exited_by_itself).and_then(|exit| exit.status);
        run.close(status).await;
        if status.is_none() {
            end_reason.get_or_insert("its sandbox stopped unexpectedly");
        }
        let note = RunNote::Exited {
            status: status.unwrap_or(KILLED),
            used: run.files.notes.usage(),
            end_reason: run.files.end_reason().or_else(|| end_reason.map(str::to_owned)),
            learned: run.files.profile.learned(),
        };
        // Whoever waits for the run's exit no longer finds it among the active runs.
        remove();
        // Ignore the results: both fail only if the starter has disconnected or does not read.
        let _ = end_notes.send(note);
        let _ = tokio::time::timeout(EXIT_TIMEOUT, writing_notes).await;
    }

    /// Terminates the run, because the process that started it disconnected before [`serve`](Self::serve) was called.
    pub(crate) async fn close_unserved(self) {
        self.run.end();
        drop(self.control);
        self.kill.kill_after(EXIT_TIMEOUT);
        // The sandbox is killed after the time limit at the latest.
        let _ = self.exit.await;
        self.run.files.mark_exited();
        self.run.close(None).await;
    }
}

impl Run {
    fn started_note(&self) -> RunNote {
        RunNote::Started {
            principal: self.principal.server.clone(),
            folder: self.files.working_folder().map(|folder| folder.as_str().to_owned()),
            profile: self.files.profile.plan.profile.name.clone(),
            limitation: self.limitation.clone(),
        }
    }

    async fn close(&self, status: Option<i32>) {
        self.services.grants.end_session(&self.id);
        self.services.broker.end_session(&self.id);
        self.services.autostart.session_ended(&self.id);
        let how =
            status.map_or_else(|| "was ended".to_owned(), |status| format!("exited with status {status}"));
        let unrecorded = match self.files.unrecorded_reads() {
            0 => String::new(),
            count => format!("; number of files that it read and that could not be recorded: {count}"),
        };
        let text = format!("{} {how}{unrecorded}", self.principal.server);
        let entry = self.principal.entry(Event::Session, text);
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record the end of a run");
        }
        self.services.changed();
    }
}

/// Writes notes in order, followed by the final note.
async fn write_notes(
    mut starter: OwnedWriteHalf,
    first: RunNote,
    mut notes: NotesInbox,
    mut ended: oneshot::Receiver<RunNote>,
) -> io::Result<()> {
    send(&mut starter, &first).await?;
    let last = loop {
        tokio::select! {
            biased;
            note = notes.next() => send(&mut starter, &note).await?,
            last = &mut ended => break last,
        }
    };
    match last {
        Ok(last) => send(&mut starter, &last).await,
        // The run was abandoned without a final note.
        Err(_) => Ok(()),
    }
}

/// Completes when the process that started the run disconnects. Discards bytes that it sends.
async fn disconnected(starter: &mut OwnedReadHalf) {
    let mut byte = [0; 64];
    while matches!(starter.read(&mut byte).await, Ok(1..)) {}
}
