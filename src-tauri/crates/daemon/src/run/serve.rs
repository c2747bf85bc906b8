//! Serves a run until its program exits, its starter disconnects or the user ends it.

use super::Run;
use super::link;
use super::profile::SandboxOrder;
use crate::network::Serving;
use crate::server::control::SupervisorControl;
use ironcurtain_audit::Event;
use ironcurtain_autostart::SandboxWatch;
use ironcurtain_connection::send;
use ironcurtain_protocol::RunNote;
use ironcurtain_sandbox::file_access::ToView;
use ironcurtain_sandbox::{ControlOp, KillHandle, SandboxExit};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

/// Time for a sandbox to exit after its connection was closed; then it is killed.
const EXIT_BOUND: Duration = Duration::from_secs(5);

/// Exit status of a program that was ended from outside: that of `SIGKILL`.
const KILLED: i32 = 128 + 9;

/// Opened run that is ready to be served.
pub(crate) struct OpenedRun {
    pub(crate) run: Arc<Run>,
    pub(super) control: SupervisorControl,
    pub(super) kill: KillHandle,
    pub(super) exit: oneshot::Receiver<SandboxExit>,
    pub(super) view: (UnixStream, mpsc::UnboundedReceiver<ToView>),
    pub(super) network: (Serving, JoinSet<()>),
    /// Orders to the sandbox.
    pub(super) orders: mpsc::UnboundedReceiver<SandboxOrder>,
}

impl OpenedRun {
    /// Serves the run, and reports the exit status to its starter.
    pub(crate) async fn serve(self, mut starter: UnixStream) {
        let Self { run, mut control, kill, mut exit, view: (view, for_view), network, mut orders } = self;
        let following = tokio::spawn(run.clone().follow_changes());
        let pausing = tokio::spawn(run.clone().follow_pauses());
        let mut linked = tokio::spawn(link::serve(run.clone(), view, for_view));
        let check = control.look().map(SandboxWatch::check);
        // `None` if the sandbox has not exited yet.
        let exited = loop {
            let checked = async {
                match &check {
                    Some(check) => check.notified().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ended = &mut exit => break Some(ended.ok()),
                // The sandbox exits when its view does. Kill it if it has not exited in time.
                _ = &mut linked => {
                    let exit = tokio::time::timeout(EXIT_BOUND, &mut exit).await;
                    break exit.ok().map(Result::ok);
                }
                () = run.end.cancelled() => break None,
                () = disconnected(&mut starter) => break None,
                Some((order, answer)) = orders.recv() => {
                    // The receiver waits unless the run is ending.
                    let _ = answer.send(control.ask(order).await.ok());
                }
                () = checked => {
                    if control.ask(ControlOp::Check).await.is_err() {
                        break None;
                    }
                    control.look().iter().for_each(|look| look.covered());
                }
            }
        };
        run.end.cancel();
        // Closing the connection ends the sandbox.
        drop(control);
        kill.kill_after(EXIT_BOUND);
        let ended_by_itself = exited.is_some();
        let exited = match exited {
            Some(exited) => exited,
            // It is killed within the bound.
            None => exit.await.ok(),
        };
        drop(network);
        run.network.local().iter().for_each(|services| services.close());
        run.gone.cancel();
        [linked.abort_handle(), following.abort_handle(), pausing.abort_handle()]
            .iter()
            .for_each(AbortHandle::abort);
        let status = exited.filter(|_| ended_by_itself).and_then(|exit| exit.status);
        run.close(status).await;
        // Fails if the starter has disconnected.
        let _ = send(
            &mut starter,
            &RunNote::Exited { status: status.unwrap_or(KILLED), learned: run.profile.learned() },
        )
        .await;
    }

    /// Ends a run whose starter disconnected before it was served.
    pub(crate) async fn unserved(self) {
        self.run.end.cancel();
        drop(self.control);
        self.kill.kill_after(EXIT_BOUND);
        // It is killed within the bound.
        let _ = self.exit.await;
        self.run.gone.cancel();
        self.run.close(None).await;
    }
}

impl Run {
    async fn close(&self, status: Option<i32>) {
        self.services.grants.end_session(&self.id);
        self.services.broker.end_session(&self.id);
        self.services.autostart.ended(&self.id);
        let how =
            status.map_or_else(|| "was ended".to_owned(), |status| format!("exited with status {status}"));
        let entry = self.principal.entry(Event::Session, format!("{} {how}", self.principal.server));
        if let Err(problem) = self.services.audit.record(entry).await {
            tracing::error!(%problem, "failed to record the end of a run");
        }
        self.services.changed();
    }
}

/// Completes when the starter disconnects. It sends nothing.
async fn disconnected(starter: &mut UnixStream) {
    let mut byte = [0; 64];
    while matches!(starter.read(&mut byte).await, Ok(1..)) {}
}
