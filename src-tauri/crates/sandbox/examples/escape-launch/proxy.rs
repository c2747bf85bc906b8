//! Proxy for the sandbox, with names and rules from a file.

use std::{
    collections::{HashMap, VecDeque},
    io,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, HostRules, Proxy, ProxyLimits, Record, RecordError, Resolve,
    RuleError,
};
use ironcurtain_sandbox::Egress;
use tokio::{runtime::Runtime, sync::watch};

/// Rules of the proxy, and the successive lookup results for each name. The last result repeats.
#[derive(serde::Deserialize)]
pub(crate) struct Written {
    allowed: Vec<String>,
    denied: Vec<String>,
    names: HashMap<String, VecDeque<Vec<IpAddr>>>,
}

/// Running proxy. Dropping it stops the proxy.
pub(crate) struct Served {
    runtime: Option<Runtime>,
    /// Held because dropping the sender would disable every rule.
    _rules: watch::Sender<Arc<HostRules>>,
}

/// Serves on the listener from `egress`.
pub(crate) fn serve(egress: Egress, written: Written) -> io::Result<Served> {
    let rules = HostRules::new(&written.allowed, &written.denied, false);
    let (sender, rules) =
        watch::channel(Arc::new(rules.map_err(|error: RuleError| io::Error::other(error.to_string()))?));
    let limits = ProxyLimits {
        handshake: Duration::from_secs(2),
        dial: Duration::from_secs(2),
        ..ProxyLimits::default()
    };
    let proxy = Proxy {
        server: "probe".into(),
        rules,
        ask: None,
        record: Arc::new(Nobody),
        resolve: Arc::new(Names(Mutex::new(written.names))),
        connections: Connections::default(),
        limits,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let handle = runtime.handle().clone();
    // The listener arrives after the sandbox has started. If the sandbox fails to start, no listener arrives.
    std::thread::spawn(move || {
        egress.listener().map(|listener| handle.block_on(ironcurtain_egress::serve(listener, proxy)))
    });
    Ok(Served { runtime: Some(runtime), _rules: sender })
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct Nobody;

impl Record for Nobody {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

struct Names(Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = match names.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        };
        Box::pin(std::future::ready(answer.ok_or_else(|| io::ErrorKind::NotFound.into())))
    }
}
