//! Task that sends the log to a collector.
//!
//! - Sends only entries that are on disk so that a power failure cannot remove an exported entry from the log.
//! - Memory is bounded by one batch. While the collector does not respond, the log itself acts as the queue.

use crate::backoff::{Backoff, random, spread};
use crate::batch::{Batch, StateChange};
use crate::delivery::{Collector, DeliveryError};
use crate::endpoint::Endpoint;
use crate::heads::SignedHead;
use crate::metrics::{MetricPeriod, convert};
use crate::otlp;
use crate::paths::PathForm;
use crate::reader::Reader;
use crate::state::{ExportState, StateWriter};
use futures_util::future::BoxFuture;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{ChainPosition, LostRange};
use ironcurtain_tls::StreamDialer;
use prost::Message;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Maximum number of records in a request.
pub(crate) const MAX_RECORDS: usize = 512;

/// Time to wait for more entries before sending a request.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Maximum interval between metrics requests. The mean is 60 s.
const METRICS_INTERVAL: Duration = Duration::from_secs(80);

/// Time limit at shutdown, applied once to the request in flight and once to the remaining entries.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of consecutive failures before the user is notified.
const FAILURES_BEFORE_NOTICE: u32 = 3;

const NANOS_PER_MS: u64 = 1_000_000;

/// Dependencies and settings of an exporter.
pub struct ExporterParts {
    /// Collector.
    pub endpoint: Endpoint,
    /// Reads the credentials again and returns the collector's endpoint, or `None` if the credentials are not
    /// available.
    pub renew_endpoint: Box<dyn Fn() -> BoxFuture<'static, Option<Endpoint>> + Send + Sync>,
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
    /// Position up to which entries are on disk, as reported by the log's writer.
    pub synced: watch::Receiver<ChainPosition>,
    /// Newest signed head.
    pub head: watch::Receiver<Option<SignedHead>>,
    /// Returns the metrics in the Prometheus text format.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// Called with a message while the collector does not accept entries, and with `None` once the collector accepts
    /// them again.
    pub report_trouble: Box<dyn Fn(Option<String>) + Send + Sync>,
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
    writer: StateWriter,
    reader: Reader,
    batch: Batch,
    /// Maximum number of records in the next request. A refusal lowers it.
    max_records: usize,
    failures: u32,
    /// Start of the period that the metrics cover.
    started_ms: u64,
    metrics_due: Instant,
    /// Returns random numbers from 0 to 1, used to spread the load from many devices.
    random: Box<dyn FnMut() -> f64 + Send>,
}

/// Error returned when an attempt fails.
#[derive(Debug, thiserror::Error)]
enum AttemptError {
    #[error(transparent)]
    Delivery(#[from] DeliveryError),
    #[error("failed to read the record: {0}")]
    Log(#[from] io::Error),
}

impl Exporter {
    /// Prepares an export that continues from `state`.
    ///
    /// # Errors
    /// Returns a [`DeliveryError`] if a header is invalid.
    pub fn new(parts: ExporterParts, state: ExportState) -> Result<Self, DeliveryError> {
        let collector = Collector::new(parts.endpoint.clone(), StreamDialer::default())?;
        let writer = StateWriter::new(parts.state.clone());
        let reader = Reader::new(parts.log.clone(), parts.paths.clone(), state.position.clone());
        Ok(Self {
            parts,
            collector,
            state,
            writer,
            reader,
            batch: Batch::default(),
            max_records: MAX_RECORDS,
            failures: 0,
            started_ms: now_ms(),
            metrics_due: Instant::now() + spread(METRICS_INTERVAL, random()),
            random: Box::new(random),
        })
    }

    /// Returns this exporter with a different dialer and a different source of random numbers from 0 to 1.
    #[must_use]
    pub fn with_simulation(
        mut self,
        dialer: StreamDialer,
        mut random: impl FnMut() -> f64 + Send + 'static,
    ) -> Self {
        self.collector.dialer = dialer;
        self.metrics_due = Instant::now() + spread(METRICS_INTERVAL, random());
        Self { random: Box::new(random), ..self }
    }

    /// Sends entries until `shutdown` is cancelled, then sends the remaining entries.
    pub async fn run(mut self, shutdown: CancellationToken) {
        let mut backoff = Backoff::default();
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = self.wait_until_due() => {}
            }
            let shutdown_expired = async {
                shutdown.cancelled().await;
                tokio::time::sleep(SHUTDOWN_TIMEOUT).await;
            };
            let attempt = tokio::select! {
                // The request in flight is sent again after the next start.
                () = shutdown_expired => return,
                attempt = self.attempt() => attempt,
            };
            let pause = match attempt {
                Ok(()) => {
                    backoff.reset();
                    continue;
                }
                Err(AttemptError::Delivery(problem)) => backoff.next(problem.retry_after(), (self.random)()),
                Err(AttemptError::Log(_)) => backoff.next(None, (self.random)()),
            };
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        // An unresponsive collector must not delay the shutdown. The remaining entries are sent after the next start.
        if self.failures == 0 {
            let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.send_rest()).await;
        }
    }

    /// Sends everything that is on disk, the newest head, and the metrics.
    async fn send_rest(&mut self) -> Result<(), AttemptError> {
        while self.send().await? {}
        self.send_metrics().await;
        Ok(())
    }

    /// Sends the next records and stores the result.
    async fn attempt(&mut self) -> Result<(), AttemptError> {
        let sent = self.send().await;
        match &sent {
            Ok(_) => self.succeeded().await,
            Err(problem) => self.failed(problem).await,
        }
        if let Err(AttemptError::Delivery(problem)) = &sent
            && problem.is_unauthorized()
            && let Some(endpoint) = (self.parts.renew_endpoint)().await
        {
            self.collector = Collector::new(endpoint, self.collector.dialer.clone())?;
        }
        sent.map(drop)
    }

    /// Completes when there is something to send.
    async fn wait_until_due(&mut self) {
        while self.reader.is_compared() && self.batch.is_empty() {
            let synced = self.parts.synced.borrow_and_update().entries;
            let count = synced.saturating_sub(self.state.position.written.entries);
            if count >= MAX_RECORDS as u64 {
                return;
            }
            if count > 0 || !self.state.lost.is_empty() || self.unsent_head().is_some() {
                return tokio::time::sleep(BATCH_DELAY).await;
            }
            // A closed channel means that the daemon is shutting down.
            tokio::select! {
                Ok(()) = self.parts.synced.changed() => {}
                Ok(()) = self.parts.head.changed() => {}
                () = tokio::time::sleep_until(self.metrics_due) => return,
            }
        }
    }

    /// Sends the next records, and the metrics if they are due. Returns `true` if there were records.
    async fn send(&mut self) -> Result<bool, AttemptError> {
        if let Some(range) = self.reader.compare().await? {
            self.record_loss(range).await;
        }
        self.drop_beyond_backlog().await?;
        if self.batch.is_empty() {
            self.read().await?;
        }
        let has_records = !self.batch.is_empty();
        if has_records {
            self.send_records().await?;
        }
        if self.metrics_due <= Instant::now() {
            self.metrics_due = Instant::now() + spread(METRICS_INTERVAL, (self.random)());
            self.send_metrics().await;
        }
        Ok(has_records)
    }

    /// Sends the first records of the batch and halves their number while the collector refuses them. If the collector
    /// refuses a single record, the record is skipped and counted. This also counts as a failure: the resulting pauses
    /// limit how many records are skipped if the collector refuses everything.
    async fn send_records(&mut self) -> Result<(), AttemptError> {
        let (count, rejected, problem) = loop {
            let count = self.batch.len().min(self.max_records);
            let events: Vec<_> = self.batch.events().take(count).cloned().collect();
            let request = otlp::logs(&events, &self.parts.instance).encode_to_vec();
            match self.collector.send_logs(request).await {
                Ok(rejected) if rejected >= count as u64 => {
                    break (count, count as u64, Some(DeliveryError::Rejected(count as u64)));
                }
                Ok(rejected) => break (count, rejected, None),
                Err(problem) if problem.is_refusal() && count > 1 => self.max_records = count / 2,
                Err(problem) if problem.is_refusal() => break (1, 1, Some(problem)),
                Err(problem) => return Err(problem.into()),
            }
        };
        self.state.sent += count as u64 - rejected;
        self.state.refused += rejected;
        if problem.is_some() {
            self.max_records = 1;
        } else {
            self.max_records = (self.max_records * 2).min(MAX_RECORDS);
            (self.state.last_success, self.state.failure) = (Some(now_ms()), None);
        }
        for change in self.batch.remove_first(count) {
            match change {
                StateChange::Advance(position) => self.state.position = position,
                StateChange::HeadSent(entries) => self.state.head = entries,
                // A range that has grown since it was sent is sent again.
                StateChange::RangeReported(range) => self.state.lost.retain(|lost| *lost != range),
            }
        }
        self.store_state().await;
        problem.map_or(Ok(()), |problem| Err(problem.into()))
    }

    async fn send_metrics(&mut self) {
        let nanos = |ms: u64| ms.saturating_mul(NANOS_PER_MS);
        let period = MetricPeriod { start: nanos(self.started_ms), now: nanos(now_ms()) };
        let metrics = convert(&(self.parts.metrics)(), period);
        let request = otlp::metrics(metrics, &self.parts.instance).encode_to_vec();
        // A collector may accept only logs. The metrics are cumulative, so nothing is lost.
        let _ = self.collector.send_metrics(request).await;
    }

    /// Drops the oldest entries if the unsent part of the log exceeds the limit.
    async fn drop_beyond_backlog(&mut self) -> Result<(), AttemptError> {
        if self.reader.behind().await? + self.batch.bytes() <= self.parts.backlog {
            return Ok(());
        }
        self.reader.skip_to(self.parts.backlog).await?;
        self.batch.clear();
        self.state.drop_until(self.reader.position().clone());
        self.store_state().await;
        Ok(())
    }

    /// Fills the batch with lost ranges, an unsent head and the next entries.
    async fn read(&mut self) -> Result<(), AttemptError> {
        let synced = self.parts.synced.borrow().clone();
        let read = self.reader.read(synced, MAX_RECORDS).await?;
        if let Some(range) = read.lost {
            self.record_loss(range).await;
        }
        let now = now_ms();
        self.state.lost.iter().for_each(|range| self.batch.push_lost(range, now));
        if let Some(head) = self.unsent_head() {
            self.batch.push_head(&head);
        }
        self.batch.push_entries(read.entries);
        Ok(())
    }

    /// Records a range of entries that the log no longer contains. The batch must be empty.
    async fn record_loss(&mut self, range: LostRange) {
        self.state.record_loss(range);
        self.state.position = self.reader.position().clone();
        self.store_state().await;
    }

    fn unsent_head(&self) -> Option<SignedHead> {
        // The comparison is `!=` because a replaced log can have fewer entries.
        self.parts.head.borrow().clone().filter(|head| head.entries != self.state.head)
    }

    async fn succeeded(&mut self) {
        (self.parts.report_trouble)(None);
        self.failures = 0;
        if self.state.failure.take().is_some() {
            self.store_state().await;
        }
    }

    async fn failed(&mut self, problem: &AttemptError) {
        self.failures += 1;
        let text = problem.to_string();
        if self.failures >= FAILURES_BEFORE_NOTICE {
            (self.parts.report_trouble)(Some(format!("The record is not exported: {text}.")));
        }
        if self.state.failure.as_ref() != Some(&text) {
            self.state.failure = Some(text);
            self.store_state().await;
        }
    }

    async fn store_state(&mut self) {
        self.writer.write(self.state.clone()).await;
    }
}

impl fmt::Debug for Exporter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exporter").field("parts", &self.parts).finish_non_exhaustive()
    }
}
