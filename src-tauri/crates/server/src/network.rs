//! Network access of a server or run, through a proxy. The proxy allows known hosts, asks about all other hosts, and
//! records every decision.
//!
//! - A server that is not allowed to reach any host runs in a sandbox without a network.
//! - The reachable hosts depend only on the server's entry, the current policy, active grants and in-flight calls.
//! - A revocation completes only after all connections that depend on the grant are closed.

mod asking;
mod basis;
mod caller;
mod fixed_rules;
mod local;
mod ports;
mod reach;
mod recording;
mod run_asking;
mod run_targets;
mod unrecorded;

pub use caller::{Caller, HostSource};
pub use local::LocalServices;
pub use local::RunPorts;
pub use ports::{PublishError, PublishedPort, serve_ports};
pub use reach::HostLease;
pub use run_targets::RunTargets;
pub use unrecorded::unrecorded_dialer;

use crate::run_notes::RunNotes;
use asking::HostAsker;
use ironcurtain_config::NetworkSettings;
use ironcurtain_consent::Principal;
use ironcurtain_egress::{
    AskHost, Connections, Dialer, Host, HostPort, HostRules, Proxy, ProxyLimits, Record, RuleError,
    SystemResolver, serve,
};
use ironcurtain_mcp::remote::login::Dial;
use ironcurtain_protocol::RunAsk;
use ironcurtain_services::Services;
use ironcurtain_visible as visible;
use reach::ReachableHosts;
use recording::ConnectionRecorder;
pub use run_asking::HostRequestError;
use run_asking::{RunAsker, RunAsking};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::AbortHandle;

/// Maximum time to wait until connections that are no longer allowed have closed.
const CUT_TIMEOUT: Duration = Duration::from_secs(5);

/// Network of a run, or of a server in one session.
pub struct ServerNetwork {
    caller: Arc<Caller>,
    reach: Arc<ReachableHosts>,
    connections: Connections,
    /// Resolver shared by all connections. It limits concurrent lookups.
    resolve: Arc<SystemResolver>,
    ask: Option<Arc<dyn AskHost>>,
    record: Arc<dyn Record>,
    /// Services on this computer that programs can connect to directly, or `None` if direct connections are disabled.
    local: Option<Arc<LocalServices>>,
    _follower: AbortTaskOnDrop,
}

/// Running proxy. Dropping it closes all of its connections.
#[derive(Debug)]
pub struct RunningProxy {
    _task: AbortTaskOnDrop,
}

/// Network for which a proxy can be started.
pub trait ServesNetwork: Send + Sync {
    /// Starts a proxy on a sandbox's listener.
    #[must_use]
    fn serve(&self, listener: TcpListener) -> RunningProxy;
}

impl RunningProxy {
    /// Starts a proxy on a listener.
    #[must_use]
    pub fn start(listener: TcpListener, proxy: Proxy) -> Self {
        let server = proxy.server.clone();
        let task = tokio::spawn(async move {
            let problem = serve(listener, proxy).await;
            tracing::error!(%problem, server, "the network proxy of a server failed");
        });
        Self { _task: AbortTaskOnDrop(task.abort_handle()) }
    }
}

#[derive(Debug)]
struct AbortTaskOnDrop(AbortHandle);

impl Drop for AbortTaskOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the host rules in a server's entry. Grants are not included.
///
/// # Errors
/// Returns [`RuleError`] if a pattern is invalid.
pub fn rules(settings: &NetworkSettings) -> Result<HostRules, RuleError> {
    let rules = HostRules::new(&settings.allowed_domains, &settings.denied_domains, settings.ask_unknown)?;
    Ok(rules.with_local_services())
}

impl ServerNetwork {
    /// Creates the network for a server's settings. Returns `None` if the settings allow no host. If `local` is set,
    /// the server's programs can connect directly to services on this computer.
    ///
    /// # Errors
    /// Returns [`RuleError`] if a pattern is invalid.
    pub fn for_server(
        settings: &NetworkSettings,
        caller: Caller,
        local: Option<RunTargets>,
    ) -> Result<Option<Arc<Self>>, RuleError> {
        let rules = rules(settings)?;
        if rules.is_closed() {
            return Ok(None);
        }
        let (caller, reach) = (Arc::new(caller), Arc::new(ReachableHosts::new(rules)));
        let asker = || -> Arc<dyn AskHost> { Arc::new(HostAsker::new(caller.clone(), reach.clone())) };
        let asker = settings.ask_unknown.then(asker);
        let record = Arc::new(ConnectionRecorder::new(caller.clone(), reach.clone()));
        let local = local.map(|targets| {
            let (notes, _) = RunNotes::new(RunAsk::Default);
            let asking = RunAsking::new(caller.clone(), Arc::new(targets), reach.clone(), notes);
            let local =
                LocalServices::new(caller.clone(), Arc::new(asking), record.clone(), RunPorts::default());
            Arc::new(local.with_entry_rules(reach.clone()))
        });
        Ok(Some(Self::with(record, (caller, reach), asker, local)))
    }

    /// Creates the network for a remote server, which can reach only the server's own host.
    #[must_use]
    pub fn for_remote_server(rules: HostRules, caller: Caller) -> Arc<Self> {
        let (caller, reach) = (Arc::new(caller), Arc::new(ReachableHosts::new(rules)));
        let record = Arc::new(ConnectionRecorder::new(caller.clone(), reach.clone()));
        Self::with(record, (caller, reach), None, None)
    }

    /// Creates the network for a run.
    #[must_use]
    pub fn for_run(
        services: &Services,
        principal: &Arc<Principal>,
        (targets, ports): (RunTargets, RunPorts),
        notes: Arc<RunNotes>,
    ) -> Arc<Self> {
        let targets = Arc::new(targets);
        let (services, principal) = (services.clone(), principal.clone());
        let caller = Arc::new(Caller { services, principal, source: HostSource::Run(targets.clone()) });
        let reach = Arc::new(ReachableHosts::new(HostRules::ask_for_all()));
        let asking = Arc::new(RunAsking::new(caller.clone(), targets, reach.clone(), notes));
        let record = Arc::new(ConnectionRecorder::new(caller.clone(), reach.clone()));
        let local = Arc::new(LocalServices::new(caller.clone(), asking.clone(), record.clone(), ports));
        Self::with(record, (caller, reach), Some(Arc::new(RunAsker(asking))), Some(local))
    }

    fn with(
        record: Arc<ConnectionRecorder>,
        (caller, reach): (Arc<Caller>, Arc<ReachableHosts>),
        ask: Option<Arc<dyn AskHost>>,
        local: Option<Arc<LocalServices>>,
    ) -> Arc<Self> {
        let follower =
            tokio::spawn(follow_changes(caller.clone(), reach.clone(), local.clone())).abort_handle();
        Arc::new(Self {
            ask,
            record,
            connections: Connections::default(),
            resolve: Arc::new(SystemResolver::default()),
            local,
            caller,
            reach,
            _follower: AbortTaskOnDrop(follower),
        })
    }

    /// Returns the services on this computer that programs can connect to directly, or `None` if direct connections are
    /// disabled.
    pub fn local(&self) -> Option<Arc<LocalServices>> {
        self.local.clone()
    }

    /// Returns a dialer for connections that IronCurtain itself makes to a remote server.
    #[must_use]
    pub fn dialer(&self) -> Dialer {
        Dialer::new(self.proxy())
    }

    /// Returns a factory for dialers with different rules. Their connections are recorded for this server.
    #[must_use]
    pub fn dial(self: &Arc<Self>) -> Dial {
        let network = Arc::clone(self);
        Arc::new(move |rules| {
            let (rules, record) = fixed_rules::rules(rules, network.record.clone());
            Dialer::new(Proxy { rules, record, ask: None, ..network.proxy() })
        })
    }

    /// Returns a callback that notifies the user.
    pub(crate) fn notifier(&self) -> Arc<dyn Fn(&str) + Send + Sync> {
        let caller = self.caller.clone();
        Arc::new(move |notice| caller.services.broker.notify(notice))
    }

    fn proxy(&self) -> Proxy {
        Proxy {
            server: self.caller.principal.server.clone(),
            rules: self.reach.rules(),
            ask: self.ask.clone(),
            record: self.record.clone(),
            resolve: self.resolve.clone(),
            connections: self.connections.clone(),
            limits: ProxyLimits::default(),
        }
    }

    /// Returns the hosts that are reachable without asking the user.
    #[must_use]
    pub fn reachable(&self) -> Vec<String> {
        let known = self.reach.rules().borrow().reachable();
        match &self.caller.source {
            HostSource::Server(_) => known,
            HostSource::Run(targets) => targets.with_patterns(known),
        }
    }

    /// Returns `true` if a grant would make the host reachable.
    #[must_use]
    pub fn could_reach(&self, target: &HostPort) -> bool {
        self.reach.could_reach(target)
    }

    /// Asks about a host and port that an agent in a run requests. Returns once the host is reachable.
    ///
    /// # Errors
    /// Returns [`HostRequestError`] if the host cannot be requested or is not approved.
    pub async fn request(&self, text: &str, why: &str) -> Result<HostPort, HostRequestError> {
        let unusable = || HostRequestError::Unusable(visible::line(text));
        let target = HostPort::parse(text, Some(443)).map_err(|_| unusable())?;
        let is_service = target.host == Host::Name("localhost".to_owned()) && text.contains(':');
        let is_name = matches!(target.host, Host::Name(_));
        let local = self.local.as_ref().filter(|_| is_service || is_name && self.could_reach(&target));
        local.ok_or_else(unusable)?.request(&target, why).await?;
        Ok(target)
    }

    /// Makes these hosts reachable until the lease is dropped. `call` is the request id.
    #[must_use]
    pub fn lease(&self, call: &str, targets: Vec<HostPort>) -> HostLease {
        ReachableHosts::lease(&self.reach, call, targets)
    }

    /// Applies the current rules and grants. Returns `true` once they allow every remaining connection, or `false` if
    /// closing the disallowed connections takes too long.
    pub async fn enforce_grants(&self) -> bool {
        self.caller.publish_rules(&self.reach);
        let rules = self.reach.rules().borrow().clone();
        let local = async {
            if let Some(local) = &self.local {
                local.close_disallowed().await;
            }
        };
        let all = async { tokio::join!(self.connections.wait_until_allowed(&rules), local) };
        tokio::time::timeout(CUT_TIMEOUT, all).await.is_ok()
    }
}

impl ServesNetwork for ServerNetwork {
    fn serve(&self, listener: TcpListener) -> RunningProxy {
        RunningProxy::start(listener, self.proxy())
    }
}

/// Publishes the rules again whenever the policy or the grants change.
async fn follow_changes(caller: Arc<Caller>, reach: Arc<ReachableHosts>, local: Option<Arc<LocalServices>>) {
    let (mut grants, mut snapshots) = (caller.services.grants.watch(), caller.services.snapshots.clone());
    loop {
        grants.mark_unchanged();
        snapshots.mark_unchanged();
        caller.publish_rules(&reach);
        if let Some(local) = &local {
            local.close_disallowed().await;
        }
        let changed = tokio::select! {
            changed = grants.changed() => changed,
            changed = snapshots.changed() => changed,
        };
        // The sender was dropped, so there will be no more changes.
        if changed.is_err() {
            return;
        }
    }
}
