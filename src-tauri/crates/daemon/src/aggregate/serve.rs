//! Serving the client of a connection, and the end of it.

use super::upstream::{FromUpstream, Upstream};
use super::{Aggregate, COPIES, Opened};
use crate::listener::{ClientStdio, attend};
use ironcurtain_mcp::client::ClientReader;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// The time for which a client that says no more still gets answers to what it asked before.
const ANSWERS_BOUND: Duration = Duration::from_secs(15);

/// The longest that the end of its sessions is waited for.
pub(super) const END_BOUND: Duration = Duration::from_secs(20);

/// Why it is served no longer.
enum Ending {
    /// The client says no more, and may wait for answers.
    HungUp,
    /// The shim is gone, the person or the trusted process has ended it.
    Over,
    /// Another trusted process takes the place of this one.
    TakenOver,
}

impl Opened {
    /// The name of the connection.
    pub(crate) fn id(&self) -> &str {
        &self.aggregate.id
    }

    /// Serves the client to the end, as a session is served: `shim` is the connection to a shim that waits.
    pub(crate) async fn serve(self, stdio: ClientStdio, shim: Option<UnixStream>) {
        let Self { mut aggregate, mut events, notes, unread, version } = self;
        aggregate.to_client.open_to(stdio.output);
        let memory = aggregate.state.services.memory.allowance(COPIES);
        let mut lines = ClientReader::new(memory, stdio.input, unread, aggregate.to_client.clone(), version);
        let can_move = shim.is_some();
        let hung_up = async {
            match shim {
                Some(shim) => attend(shim, notes).await,
                None => {
                    // Nobody waits for a note to be written.
                    drop(notes);
                    std::future::pending().await
                }
            }
        };
        tokio::pin!(hung_up);
        let ending = tokio::select! {
            ending = aggregate.listen(&mut lines, &mut events) => ending,
            () = &mut hung_up => Ending::Over,
        };
        match ending {
            Ending::HungUp => {
                tokio::select! {
                    () = aggregate.answers_are_out(&mut events) => {}
                    () = &mut hung_up => {}
                }
            }
            Ending::TakenOver => {
                let version = lines.version();
                if let Some(unread) = lines.rest().filter(|_| can_move)
                    && aggregate.moves((&unread, &version), &mut events).await
                {
                    // A shim that does not take the note is gone.
                    let _ = tokio::time::timeout(ANSWERS_BOUND, hung_up).await;
                    return;
                }
            }
            Ending::Over => {}
        }
        aggregate.to_client.close();
        aggregate.upstreams.values_mut().for_each(Upstream::end);
        // What takes longer ends by itself.
        let _ = tokio::time::timeout(END_BOUND, aggregate.until_ended(&mut events)).await;
    }
}

impl Aggregate {
    /// Passes messages to and fro until the connection ends.
    async fn listen(
        &mut self,
        lines: &mut ClientReader,
        events: &mut mpsc::UnboundedReceiver<FromUpstream>,
    ) -> Ending {
        let (shutdown, unread) = (self.state.services.shutdown.clone(), self.unread.clone());
        let mut settings = self.state.services.settings.clone();
        settings.mark_unchanged();
        self.follow();
        let to_client = self.to_client.clone();
        loop {
            let until =
                self.upstreams.values().filter_map(|upstream| upstream.retry).chain(self.waits_until()).min();
            let alarm = async {
                match until {
                    Some(until) => tokio::time::sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            // One line has one answer of ours at most, and a client that does not read them is not read either.
            let said = async {
                drop(unread.acquire().await);
                lines.next().await
            };
            tokio::select! {
                () = shutdown.requested.cancelled() => return Ending::Over,
                () = shutdown.taken_over.cancelled() => match lines.pending() {
                    Some(line) => self.client_says(line).await,
                    None => return Ending::TakenOver,
                },
                () = to_client.closed() => return Ending::Over,
                Ok(()) = settings.changed() => self.follow(),
                // The sender is ours.
                Some(event) = events.recv() => self.happened(event),
                said = said => match said {
                    Ok(Some(said)) => self.client_says(said).await,
                    Ok(None) | Err(_) => return Ending::HungUp,
                },
                () = alarm => self.retry(),
            }
            self.settle().await;
            if self.is_all_ended() {
                return Ending::Over;
            }
        }
    }

    /// Waits until every request of the client is answered and the client has the answers, within a bound.
    async fn answers_are_out(&mut self, events: &mut mpsc::UnboundedReceiver<FromUpstream>) {
        let bound = Instant::now() + ANSWERS_BOUND;
        let answered = async {
            while self.is_any_unanswered() {
                let until = self.waits_until().unwrap_or(bound);
                tokio::select! {
                    Some(event) = events.recv() => self.happened(event),
                    () = tokio::time::sleep_until(until) => {}
                }
                self.settle().await;
            }
            self.to_client.is_written().await;
        };
        // What takes longer is given up.
        let _ = tokio::time::timeout_at(bound, answered).await;
    }

    fn is_any_unanswered(&self) -> bool {
        self.unanswered.is_some()
            || !self.waiting.is_empty()
            || !self.task_lists.is_empty()
            || self.tables.is_any_asked()
    }

    /// Takes what still happens until every session has ended.
    pub(super) async fn until_ended(&mut self, events: &mut mpsc::UnboundedReceiver<FromUpstream>) {
        while !self.running.is_empty() {
            match events.recv().await {
                Some(event) => self.happened(event),
                None => return,
            }
        }
    }
}
