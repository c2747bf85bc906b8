//! Simulated desktops: the production clients, a user whose calls create entries, and a task that signs heads.

use super::bundles::BundleServer;
use super::collector::Collector;
use super::random::Random;
use super::site::{Progress, Site};
use super::spool::{ENTRIES_PER_CALL, Spool};
use futures_util::FutureExt;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{ChainPosition, LogPosition};
use ironcurtain_bundle::{BundleClient, BundleLocation, PolicyBundle, PollInterval, Poller, VerifyingKey};
use ironcurtain_export::{
    DeviceKey, Endpoint, ExportState, Exporter, ExporterParts, PathForm, PathKey, SIGN_EVERY, SignedHead,
    spread,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Mean time between two calls on a desktop.
pub const CALL_EVERY: Duration = Duration::from_secs(3 * 60);

/// Default maximum size of the unsent part of the log.
const BACKLOG: u64 = 64 << 20;

const METRICS: &str = include_str!("metrics.txt");

/// Desktops that download bundle updates.
pub struct Followers {
    pub updated: Arc<Progress>,
    newest: Arc<AtomicU64>,
    _tasks: JoinSet<()>,
}

impl Followers {
    /// Starts all desktops at the same moment.
    pub fn start(desktops: usize, server: &BundleServer, key: &VerifyingKey, interval: PollInterval) -> Self {
        let (updated, newest) = (Arc::new(Progress::new(desktops)), Arc::new(AtomicU64::new(1)));
        let mut tasks = JoinSet::new();
        for desktop in 0..desktops {
            let location = BundleLocation::parse("http://localhost/bundle.tar.gz").expect("a URL");
            let client = BundleClient::new(location, None).with_dialer(server.site.dialer());
            let mut random = Random::new(desktop, 0);
            let (updated, newest, key) = (updated.clone(), newest.clone(), key.clone());
            tasks.spawn(async move {
                let (mut poller, mut is_stored) = (Poller::default(), false);
                loop {
                    // A failed download is retried after the pause.
                    if let Ok(Some(bytes)) = poller.download(&client, interval, is_stored).await {
                        let bundle = PolicyBundle::open(&bytes, &key, now_ms() / 1000).expect("a bundle");
                        poller.accept();
                        is_stored = true;
                        if bundle.sequence == newest.load(Ordering::Relaxed) {
                            updated.reach(desktop);
                        }
                    }
                    tokio::time::sleep(poller.pause(interval, random.next())).await;
                }
            });
        }
        Self { updated, newest, _tasks: tasks }
    }

    /// Resets the progress and expects the bundle with this sequence number.
    pub fn expect(&self, sequence: u64) {
        self.newest.store(sequence, Ordering::Relaxed);
        self.updated.reset();
    }
}

/// Desktops that export their audit logs.
pub struct Exporters {
    synced: Vec<watch::Sender<ChainPosition>>,
    quiet: CancellationToken,
    ending: CancellationToken,
    tasks: JoinSet<()>,
}

impl Exporters {
    /// Starts all desktops at the same moment.
    pub fn start(desktops: usize, spool: &Arc<Spool>, site: &Arc<Site>) -> Self {
        let beginning = spool.positions.first().expect("a position");
        let mut exporters = Self {
            synced: (0..desktops).map(|_| watch::Sender::new(beginning.clone())).collect(),
            quiet: CancellationToken::new(),
            ending: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        let key = Arc::new(DeviceKey::generate().expect("a key"));
        for (desktop, synced) in exporters.synced.iter().enumerate() {
            let head = watch::Sender::new(None);
            let parts = ExporterParts {
                endpoint: Endpoint::new("http://collector.example:4318", []).expect("a URL"),
                renew_endpoint: Box::new(|| std::future::ready(None).boxed()),
                paths: PathForm::Hashed(PathKey::derive(&desktop.to_le_bytes())),
                backlog: BACKLOG,
                log: spool.log(),
                state: spool.state_file(desktop),
                instance: desktop.to_string(),
                synced: synced.subscribe(),
                head: head.subscribe(),
                metrics: Box::new(|| METRICS.to_owned()),
                report_trouble: Box::new(|_| ()),
            };
            let exporter = Exporter::new(parts, ExportState::starting_at(LogPosition::beginning()));
            let mut random = Random::new(desktop, 1);
            let exporter =
                exporter.expect("an exporter").with_simulation(site.dialer(), move || random.next());
            let (quiet, ending) = (exporters.quiet.clone(), exporters.ending.clone());
            let user = use_desktop(synced.clone(), spool.clone(), Random::new(desktop, 2));
            let signing = sign(synced.subscribe(), head, key.clone(), Random::new(desktop, 3));
            exporters.tasks.spawn(quiet.run_until_cancelled_owned(user).map(drop));
            exporters.tasks.spawn(ending.clone().run_until_cancelled_owned(signing).map(drop));
            exporters.tasks.spawn(exporter.run(ending));
        }
        exporters
    }

    /// Returns the number of recorded entries for each desktop.
    pub fn recorded(&self) -> Vec<u64> {
        self.synced.iter().map(|synced| synced.borrow().entries).collect()
    }

    /// Stops the simulated users.
    pub fn fall_quiet(&self) {
        self.quiet.cancel();
    }

    /// Stops the exporters and checks that each recorded entry arrived. Returns the number of entries and the number of
    /// removed duplicates.
    pub async fn end(mut self, collector: &Collector) -> (u64, u64) {
        self.ending.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a task");
        }
        let (mut entries, mut duplicates) = (0, 0);
        for (recorded, arrived) in self.recorded().into_iter().zip(collector.arrived()) {
            assert!(arrived.entries.iter().copied().eq(1..=recorded), "each entry arrives: {arrived:?}");
            entries += recorded;
            duplicates += arrived.duplicates;
        }
        (entries, duplicates)
    }
}

/// Records calls at random times, as a Poisson process.
async fn use_desktop(synced: watch::Sender<ChainPosition>, spool: Arc<Spool>, mut random: Random) {
    for position in spool.positions.iter().step_by(ENTRIES_PER_CALL).skip(1) {
        let pause = CALL_EVERY.mul_f64(-(1.0 - random.next()).ln());
        tokio::time::sleep(pause).await;
        synced.send_replace(position.clone());
    }
    panic!("the log of the simulation is too short");
}

/// Signs the newest position if it has changed, as the trusted process does.
async fn sign(
    synced: watch::Receiver<ChainPosition>,
    head: watch::Sender<Option<SignedHead>>,
    key: Arc<DeviceKey>,
    mut random: Random,
) {
    let mut signed = None;
    loop {
        let written = synced.borrow().clone();
        if signed.as_ref() != Some(&written) {
            head.send_replace(Some(SignedHead::sign(&key, &written, now_ms())));
            signed = Some(written);
        }
        tokio::time::sleep(spread(SIGN_EVERY, random.next())).await;
    }
}
