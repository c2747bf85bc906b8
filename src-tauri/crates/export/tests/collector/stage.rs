//! A log, an exporter and its collector.

use crate::fake_collector::FakeCollector;
use futures_util::FutureExt;
use ironcurtain_audit::{Audit, Entry, Event, LogOptions};
use ironcurtain_export::{Endpoint, ExportState, Exporter, ExporterParts, PathForm, SignedHead};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Maximum duration of each wait in a test.
const TIMEOUT: Duration = Duration::from_secs(60);

pub struct Fixture {
    pub collector: FakeCollector,
    pub audit: Audit,
    pub dir: tempfile::TempDir,
    /// Problem that is reported to the user, if any.
    pub trouble: Arc<Mutex<Option<String>>>,
    pub head: watch::Sender<Option<SignedHead>>,
    pub backlog: u64,
    /// Token that is currently stored.
    pub token: Arc<Mutex<String>>,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

impl Fixture {
    pub async fn new() -> Self {
        Self::in_folder(&std::env::temp_dir()).await
    }

    pub async fn in_folder(folder: &Path) -> Self {
        let dir = tempfile::tempdir_in(folder).unwrap();
        std::fs::create_dir(dir.path().join("audit")).unwrap();
        let options = LogOptions { file_bytes: 4000, ..LogOptions::new(&dir.path().join("audit")) };
        let audit = Audit::open_with(options, |_| ()).unwrap();
        let fixture = Self {
            collector: FakeCollector::start(),
            audit,
            dir,
            trouble: Arc::default(),
            head: watch::Sender::new(None),
            backlog: 64 << 20,
            token: Arc::default(),
            running: None,
        };
        fixture.record(1).await;
        fixture
    }

    pub fn log(&self) -> PathBuf {
        self.dir.path().join("audit")
    }

    pub fn state_file(&self) -> PathBuf {
        self.dir.path().join("export.json")
    }

    pub fn state(&self) -> ExportState {
        ExportState::read(&self.state_file()).unwrap().unwrap()
    }

    /// Records entries and waits until they are on disk.
    pub async fn record(&self, count: usize) {
        for _ in 0..count {
            self.audit.record(Entry::new(Event::Session, "a summary that is not exported")).await.unwrap();
        }
        self.audit.flush().await;
    }

    pub fn parts(&self) -> ExporterParts {
        let trouble = self.trouble.clone();
        let (url, token) = (self.collector.url(), self.token.clone());
        let endpoint = move || {
            let header = ("Authorization".to_owned(), format!("Bearer {}", token.lock().unwrap()));
            Endpoint::new(&url, [header]).unwrap()
        };
        ExporterParts {
            endpoint: endpoint(),
            renew_endpoint: Box::new(move || std::future::ready(Some(endpoint())).boxed()),
            paths: PathForm::Full,
            backlog: self.backlog,
            log: self.log(),
            state: self.state_file(),
            instance: "device".to_owned(),
            synced: self.audit.synced(),
            head: self.head.subscribe(),
            metrics: Box::new(|| {
                "# TYPE ironcurtain_sessions_open gauge\nironcurtain_sessions_open 3\n".to_owned()
            }),
            report_trouble: Box::new(move |message| *trouble.lock().unwrap() = message),
        }
    }

    pub fn start(&mut self) {
        let shutdown = CancellationToken::new();
        let state = ExportState::open(&self.state_file(), &self.log(), self.backlog).unwrap();
        let exporter = Exporter::new(self.parts(), state).unwrap();
        self.running = Some((tokio::spawn(exporter.run(shutdown.clone())), shutdown));
    }

    /// Replaces the log with an empty one.
    pub fn replace_log(&mut self) {
        let log = self.log();
        std::fs::remove_dir_all(&log).unwrap();
        std::fs::create_dir(&log).unwrap();
        let options = LogOptions { file_bytes: 4000, ..LogOptions::new(&log) };
        self.audit = Audit::open_with(options, |_| ()).unwrap();
    }

    /// Starts the shutdown.
    pub fn cancel(&self) {
        self.running.as_ref().unwrap().1.cancel();
    }

    /// Shuts the exporter down and waits until it has finished.
    pub async fn stop(&mut self) {
        let (task, shutdown) = self.running.take().unwrap();
        shutdown.cancel();
        task.await.unwrap();
    }

    /// Aborts the exporter immediately.
    pub async fn kill(&mut self) {
        let (task, _) = self.running.take().unwrap();
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
    }
}

/// Waits until a condition holds.
pub async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < TIMEOUT, "timed out: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
