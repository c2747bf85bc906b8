//! The network of one server in one session: a proxy that knows its hosts, asks about others and writes down both.
//!
//! - There is none for a server that may reach nothing: its sandbox has no way out at all.
//! - What may be reached follows from the server's entry, live grants and calls under way, and from nothing else; the list
//!   of hosts is that of the policy in force.
//! - A grant that was taken back is said to be gone once no connection rests on it.

mod asking;
mod caller;
mod elsewhere;
mod pace;
mod reach;
mod recording;

pub use caller::Caller;
pub(crate) use elsewhere::dialer_off_record;
pub use reach::HostLease;

use asking::HostAsker;
use ironcurtain_config::NetworkSettings;
use ironcurtain_egress::{
    AskHost, Connections, Dialer, HostPort, HostRules, Proxy, ProxyLimits, Record, RuleError, SystemResolver,
    serve,
};
use reach::ReachableHosts;
use recording::ConnectionRecorder;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// The time that connections may take to end that are no longer allowed.
const CUT_BOUND: Duration = Duration::from_secs(5);

/// The network of one server.
pub struct ServerNetwork {
    caller: Arc<Caller>,
    reach: Arc<ReachableHosts>,
    connections: Connections,
    ask: Option<Arc<dyn AskHost>>,
    record: Arc<dyn Record>,
    _following: EndOnDrop,
}

/// A proxy at work. Dropped, it ends with every connection.
#[derive(Debug)]
pub struct Serving {
    _task: EndOnDrop,
}

/// A network that a server can be given: it serves the listener of its sandbox.
pub trait ServesNetwork: Send + Sync {
    /// Serves a sandbox's listener.
    #[must_use]
    fn serve(&self, listener: TcpListener) -> Serving;
}

impl Serving {
    /// Serves a listener by a proxy.
    #[must_use]
    pub fn by(listener: TcpListener, proxy: Proxy) -> Self {
        let server = proxy.server.clone();
        let task = tokio::spawn(async move {
            let problem = serve(listener, proxy).await;
            tracing::error!(%problem, server, "a server has lost its network");
        });
        Self { _task: EndOnDrop(task.abort_handle()) }
    }
}

#[derive(Debug)]
struct EndOnDrop(AbortHandle);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The rules of a server's entry, before anything is granted.
///
/// # Errors
/// [`RuleError`], naming the pattern.
pub fn rules(settings: &NetworkSettings) -> Result<HostRules, RuleError> {
    HostRules::new(&settings.allowed_domains, &settings.denied_domains, settings.ask_unknown)
}

impl ServerNetwork {
    /// The network that a server's entry gives it; none when that is nothing.
    ///
    /// # Errors
    /// [`RuleError`], naming the pattern.
    pub fn of(settings: &NetworkSettings, caller: Caller) -> Result<Option<Arc<Self>>, RuleError> {
        let rules = rules(settings)?;
        if rules.is_closed() {
            return Ok(None);
        }
        Ok(Some(Self::with(rules, settings.ask_unknown, caller)))
    }

    /// The network to a server that runs elsewhere: its host, and no other.
    #[must_use]
    pub fn to_remote(rules: HostRules, caller: Caller) -> Arc<Self> {
        Self::with(rules, false, caller)
    }

    fn with(rules: HostRules, asks: bool, caller: Caller) -> Arc<Self> {
        let (caller, reach) = (Arc::new(caller), Arc::new(ReachableHosts::new(rules)));
        let following = tokio::spawn(follow(caller.clone(), reach.clone())).abort_handle();
        let person = || -> Arc<dyn AskHost> { Arc::new(HostAsker::new(caller.clone(), reach.clone())) };
        Arc::new(Self {
            ask: asks.then(person),
            record: Arc::new(ConnectionRecorder::new(caller.clone(), reach.clone())),
            connections: Connections::default(),
            caller,
            reach,
            _following: EndOnDrop(following),
        })
    }

    /// Opens connections of our own for the server.
    #[must_use]
    pub fn dialer(&self) -> Dialer {
        Dialer::new(self.proxy())
    }

    fn proxy(&self) -> Proxy {
        Proxy {
            server: self.caller.server.name.clone(),
            rules: self.reach.rules(),
            ask: self.ask.clone(),
            record: self.record.clone(),
            resolve: Arc::new(SystemResolver),
            connections: self.connections.clone(),
            limits: ProxyLimits::default(),
        }
    }

    /// Returns `true` if the person could let the server reach this.
    #[must_use]
    pub fn could_reach(&self, target: &HostPort) -> bool {
        self.reach.could_open(target)
    }

    /// Lets the server reach these while one call of it is under way.
    #[must_use]
    pub fn lend(&self, call: &str, targets: Vec<HostPort>) -> HostLease {
        ReachableHosts::lend(&self.reach, call, targets)
    }

    /// Takes what is on the list and granted now; whether every connection that rests on something else has ended.
    pub async fn is_within_grants(&self) -> bool {
        self.caller.publish_rules(&self.reach);
        let rules = self.reach.rules().borrow().clone();
        tokio::time::timeout(CUT_BOUND, self.connections.all_within(&rules)).await.is_ok()
    }
}

impl ServesNetwork for ServerNetwork {
    fn serve(&self, listener: TcpListener) -> Serving {
        Serving::by(listener, self.proxy())
    }
}

/// Tells what is on the list and what is granted, whenever that changes.
async fn follow(caller: Arc<Caller>, reach: Arc<ReachableHosts>) {
    let (mut grants, mut snapshots) = (caller.services.grants.watch(), caller.services.snapshots.clone());
    loop {
        grants.mark_unchanged();
        snapshots.mark_unchanged();
        caller.publish_rules(&reach);
        let changed = tokio::select! {
            changed = grants.changed() => changed,
            changed = snapshots.changed() => changed,
        };
        // Without an owner nothing changes again.
        if changed.is_err() {
            return;
        }
    }
}
