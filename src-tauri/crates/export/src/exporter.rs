//! Task that sends the log to a collector.
//!
//! - Sends only entries that are on disk, so that no exported entry can be lost in a power failure.
//! - Memory is bounded by one batch. While the collector does not respond, the log itself is the queue.

use crate::backoff::Backoff;
use crate::batch::{Batch, Done};
use crate::delivery::{Collector, DeliveryError};
use crate::endpoint::Endpoint;
use crate::heads::SignedHead;
use crate::metrics::{Covered, converted};
use crate::otlp;
use crate::paths::PathForm;
use crate::reader::Reader;
use crate::state::ExportState;
use ironcurtain_audit::Written;
use ironcurtain_audit::clock::now_ms;
use prost::Message;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of records in a request.
pub(crate) const MOST_RECORDS: usize = 512;

/// Time to wait for more entries before sending a request.
const GATHER: Duration = Duration::from_secs(1);

/// Interval between metrics requests.
const METRICS: Duration = Duration::from_secs(60);

/// Time for the last request at shutdown.
const LAST: Duration = Duration::from_secs(1);

/// Number of consecutive failures after which the user is notified.
const TOLD: u32 = 3;

const NANOS_PER_MS: u64 = 1_000_000;

/// Dependencies and settings of an exporter.
pub struct ExporterParts {
    /// Collector.
    pub endpoint: Endpoint,
    /// Form in which paths are sent.
    pub paths: PathForm,
    /// Maximum size of the unsent part of the log, in bytes.
    pub backlog: u64,
    /// Directory of the log.
    pub log: PathBuf,
    /// Path of the state file.
    pub state: PathBuf,
    /// Id of this device: its public key.
    pub instance: String,
    /// Position up to which entries are on disk, as the log's writer reports it.
    pub synced: watch::Receiver<Written>,
    /// Newest signed head.
    pub head: watch::Receiver<Option<SignedHead>>,
    /// Returns the metrics in the Prometheus text format.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// Called with a message while the collector does not accept entries, and with `None` once it does.
    pub trouble: Box<dyn Fn(Option<String>) + Send + Sync>,
}

impl fmt::Debug for ExporterParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExporterParts").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

/// Task that sends the log to a collector.
pub struct Exporter {
    parts: ExporterParts,
    collector: Collector,
    state: ExportState,
    reader: Reader,
    batch: Batch,
    /// Maximum number of records in the next request, which is lower after a refusal.
    most: usize,
    failures: u32,
    /// `false` until the stored position was compared with the log.
    is_compared: bool,
    /// Start of the period that the metrics cover.
    began_ms: u64,
    metrics_due: Instant,
}

/// Reason why an attempt failed.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error("failed to read the record: {0}")]
    Log(#[from] io::Error),
}

impl Exporter {
    /// Prepares the export. Without a stored state, it starts after the newest entry. Blocks.
    ///
    /// # Errors
    /// Returns a [`DeliveryError`] if a header is invalid.
    pub fn new(parts: ExporterParts) -> Result<Self, DeliveryError> {
        let collector = Collector::new(parts.endpoint.clone())?;
        let state = ExportState::load(&parts.state, &parts.log, parts.backlog);
        let reader = Reader::new(parts.log.clone(), parts.paths.clone(), state.place.clone());
        Ok(Self {
            parts,
            collector,
            state,
            reader,
            batch: Batch::default(),
            most: MOST_RECORDS,
            failures: 0,
            is_compared: false,
            began_ms: now_ms(),
            metrics_due: Instant::now() + METRICS,
        })
    }

    /// Sends entries until `ending` is cancelled, and then one last batch.
    pub async fn run(mut self, ending: CancellationToken) {
        self.store();
        let mut backoff = Backoff::default();
        loop {
            let attempt = tokio::select! {
                () = ending.cancelled() => break,
                attempt = self.next() => attempt,
            };
            let pause = match attempt {
                Ok(()) => {
                    backoff.reset();
                    continue;
                }
                Err(AttemptError::Delivery(problem)) => backoff.next(problem.retry_after()),
                Err(AttemptError::Log(_)) => backoff.next(None),
            };
            tokio::select! {
                () = ending.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        // An unresponsive collector must not delay the shutdown. The rest is sent after the next start.
        if self.failures == 0 {
            self.metrics_due = Instant::now();
            let _ = tokio::time::timeout(LAST, self.send()).await;
        }
    }

    /// Waits until there is something to send, and sends it.
    async fn next(&mut self) -> Result<(), AttemptError> {
        self.due().await;
        let sent = self.send().await;
        match &sent {
            Ok(()) => self.succeeded(),
            Err(problem) => self.failed(problem),
        }
        sent
    }

    /// Completes when there is something to send.
    async fn due(&mut self) {
        while self.is_compared && self.batch.is_empty() {
            let synced = self.parts.synced.borrow_and_update().entries;
            let count = synced.saturating_sub(self.state.place.written.entries);
            if count >= MOST_RECORDS as u64 {
                return;
            }
            if count > 0 || !self.state.lost.is_empty() || self.unsent_head().is_some() {
                return tokio::time::sleep(GATHER).await;
            }
            // A closed channel means that the trusted process is shutting down.
            tokio::select! {
                Ok(()) = self.parts.synced.changed() => {}
                Ok(()) = self.parts.head.changed() => {}
                () = tokio::time::sleep_until(self.metrics_due) => return,
            }
        }
    }

    /// Sends one request with records, and the metrics if they are due.
    async fn send(&mut self) -> Result<(), AttemptError> {
        self.give_up_beyond_limit().await?;
        if self.batch.is_empty() {
            self.read().await?;
        }
        if !self.batch.is_empty() {
            self.send_records().await?;
        }
        if self.metrics_due <= Instant::now() {
            self.metrics_due = Instant::now() + METRICS;
            self.send_metrics().await;
        }
        Ok(())
    }

    async fn send_records(&mut self) -> Result<(), AttemptError> {
        let count = self.batch.len().min(self.most);
        let events: Vec<_> = self.batch.events().take(count).cloned().collect();
        let request = otlp::logs(&events, &self.parts.instance).encode_to_vec();
        let (accepted, refused) = match self.collector.send_logs(request).await {
            Ok(rejected) => (count as u64, rejected.min(count as u64)),
            // One of the records may be at fault, so smaller requests follow.
            Err(problem) if problem.is_refusal() && count > 1 => {
                self.most = count / 2;
                return Ok(());
            }
            Err(problem) if problem.is_refusal() => (1, 1),
            Err(problem) => return Err(problem.into()),
        };
        self.most = (self.most * 2).min(MOST_RECORDS);
        self.state.sent += accepted - refused;
        self.state.refused += refused;
        for done in self.batch.take(count) {
            match done {
                Done::Entry(place) => self.state.place = place,
                Done::Head(entries) => self.state.head = entries,
                // A range that has grown meanwhile is sent again.
                Done::Lost(range) => self.state.lost.retain(|lost| *lost != range),
            }
        }
        self.store();
        Ok(())
    }

    async fn send_metrics(&mut self) {
        let nanos = |ms: u64| ms.saturating_mul(NANOS_PER_MS);
        let covered = Covered { start: nanos(self.began_ms), now: nanos(now_ms()) };
        let metrics = converted(&(self.parts.metrics)(), covered);
        let request = otlp::metrics(metrics, &self.parts.instance).encode_to_vec();
        // A collector may accept only logs. Values are cumulative, so nothing is lost.
        let _ = self.collector.send_metrics(request).await;
    }

    /// Drops the oldest entries if more than the limit is unsent.
    async fn give_up_beyond_limit(&mut self) -> Result<(), AttemptError> {
        if self.reader.behind().await? + self.batch.bytes() <= self.parts.backlog {
            return Ok(());
        }
        self.batch.clear();
        self.reader.skip_to(self.parts.backlog).await?;
        let place = self.reader.place().clone();
        self.state.give_up_until(place);
        self.store();
        Ok(())
    }

    /// Fills the batch with lost ranges, an unsent head and the next entries.
    async fn read(&mut self) -> Result<(), AttemptError> {
        let synced = self.parts.synced.borrow().clone();
        let compared = if self.is_compared { None } else { self.reader.compare().await? };
        self.is_compared = true;
        let found = self.reader.read(synced, MOST_RECORDS).await?;
        for range in compared.into_iter().chain(found.lost) {
            self.state.lose(range);
            self.state.place = self.reader.place().clone();
            self.store();
        }
        let now = now_ms();
        self.state.lost.iter().for_each(|range| self.batch.push_lost(range, now));
        if let Some(head) = self.unsent_head() {
            self.batch.push_head(&head);
        }
        self.batch.push_entries(found.entries);
        Ok(())
    }

    fn unsent_head(&self) -> Option<SignedHead> {
        // A log that was replaced has fewer entries.
        self.parts.head.borrow().clone().filter(|head| head.entries != self.state.head)
    }

    fn succeeded(&mut self) {
        (self.parts.trouble)(None);
        self.failures = 0;
        self.state.failure = None;
        self.state.last_success = Some(now_ms());
    }

    fn failed(&mut self, problem: &AttemptError) {
        self.failures += 1;
        let text = problem.to_string();
        if self.failures >= TOLD {
            (self.parts.trouble)(Some(format!("The record is not exported: {text}.")));
        }
        if self.state.failure.as_ref() != Some(&text) {
            self.state.failure = Some(text);
            self.store();
        }
    }

    fn store(&self) {
        // If the disk is full, the position is stored later. Until then, a restart sends entries again.
        let _ = self.state.write(&self.parts.state);
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("parts", &self.parts).finish_non_exhaustive()
    }
}
