//! Connections of a sandbox to services on this computer (loopback ports). Each connection waits until it is allowed.
//!
//! - A connection to a port that nothing on this computer listens on is refused without asking the user.
//! - For an allowed port, a forwarder listens on the same port in the sandbox. Each connection is judged and recorded
//!   before the service is dialled.
//! - INVARIANT: once neither a rule nor a grant allows a port, its forwarder and connections are closed. An approval
//!   for one connection stays valid until a rule denies the port.

use super::basis::Basis;
use super::caller::Caller;
use super::reach::ReachableHosts;
use super::run_asking::{HostRequestError, RunAsking};
use super::run_targets::{TargetVerdict, usable};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ironcurtain_consent::Lifetime;
use ironcurtain_egress::{
    ConnectionEvent, ConnectionRefusal, ConnectionVerdict, Host, HostDecision, HostPort, HostRules,
    PermittedBy, Protocol, Record,
};
use ironcurtain_policy::Denial;
use ironcurtain_sandbox::{ServiceRequest, is_host_port_listening};
use ironcurtain_services::next_connection;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

/// Maximum number of open connections per port. Further connections wait in the sandbox.
const MAX_CONNECTIONS: usize = 256;

/// Maximum number of times that one port is judged. It is judged again after each change to the rules or grants.
const MAX_ROUNDS: usize = 20;

/// One run's connections to services on this computer.
pub struct LocalServices {
    caller: Arc<Caller>,
    asking: Arc<RunAsking>,
    record: Arc<dyn Record>,
    /// Rules of the server's entry, or `None` for a run. The rules of a run are applied by `asking`.
    entry: Option<Arc<ReachableHosts>>,
    ports: RunPorts,
    open: Mutex<Vec<Forwarder>>,
}

/// Ports that the user listed when starting the run.
#[derive(Debug, Clone, Default)]
pub struct RunPorts {
    /// Ports on this computer that the run can use without asking the user.
    pub named: BTreeSet<u16>,
    /// Ports in the run that are published on this computer.
    pub published: BTreeSet<u16>,
}

/// Listener in the sandbox, and the connections that it accepted.
struct Forwarder {
    port: u16,
    task: JoinHandle<()>,
    by: OpenReason,
}

/// Reason why a port is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenReason {
    /// The user approved one connection.
    Once,
    /// A rule, a grant or the user's list of ports allows the port. This is checked again after changes.
    Permitted,
}

impl LocalServices {
    pub(super) fn new(
        caller: Arc<Caller>,
        asking: Arc<RunAsking>,
        record: Arc<dyn Record>,
        ports: RunPorts,
    ) -> Self {
        Self { caller, asking, record, entry: None, ports, open: Mutex::default() }
    }

    /// Applies the rules of a server's entry to every port.
    pub(super) fn with_entry_rules(self, entry: Arc<ReachableHosts>) -> Self {
        Self { entry: Some(entry), ..self }
    }

    /// Asks about a host, or a port on this computer, before a program connects to it.
    pub(super) async fn request(&self, target: &HostPort, why: &str) -> Result<(), HostRequestError> {
        let is_named =
            target.host == Host::Name("localhost".to_owned()) && self.ports.named.contains(&target.port);
        if is_named { Ok(()) } else { self.asking.request(target, why).await }
    }

    /// Decides on a connection that is waiting in the run. Creates a forwarder if the connection is allowed.
    ///
    /// # Errors
    /// Returns an error if the connection or its forwarder failed. The caller then refuses the connection.
    pub(crate) async fn answer(self: &Arc<Self>, request: ServiceRequest) -> io::Result<()> {
        let port = request.port;
        // Refuse a published port, because it leads back to the run.
        if self.ports.published.contains(&port) {
            return Ok(());
        }
        if !tokio::task::spawn_blocking(move || is_host_port_listening(port)).await? {
            return Ok(());
        }
        request.stream.set_nonblocking(true)?;
        let waiting = UnixStream::from_std(request.stream)?;
        let ground = tokio::select! {
            ground = self.decide(port) => ground,
            // The program sends nothing before the answer, so a readable socket means that the program closed the
            // connection.
            _ = waiting.readable() => None,
        };
        let Some(ground) = ground else { return Ok(()) };
        let stream = waiting.into_std()?;
        stream.set_nonblocking(false)?;
        let allow = move || ServiceRequest { port, stream }.allow();
        let Some(listener) = tokio::task::spawn_blocking(allow).await?? else { return Ok(()) };
        listener.set_nonblocking(true)?;
        self.open(port, TcpListener::from_std(listener)?, ground).await;
        Ok(())
    }

    /// Decides on a port, and asks the user if necessary. Returns `None` if the port is denied.
    async fn decide(&self, port: u16) -> Option<OpenReason> {
        let target = target(port);
        for _ in 0..MAX_ROUNDS {
            match self.verdict(port) {
                TargetVerdict::Deny(denial) => {
                    self.asking.note_denied(&target, Some(denial.reason.to_string()));
                    self.refused(port, "denied", denial.reason.to_string()).await;
                    return None;
                }
                TargetVerdict::Allow(_) | TargetVerdict::Granted => return Some(OpenReason::Permitted),
                TargetVerdict::Ask(_) => match self.asking.question(&target, None).await {
                    Ok(Some(Lifetime::Once)) => return Some(OpenReason::Once),
                    Ok(Some(_) | None) => {}
                    Err(problem) => {
                        self.asking.note_unapproved(&target, &problem);
                        self.refused(port, "said-no", problem.to_string()).await;
                        return None;
                    }
                },
            }
        }
        None
    }

    /// Judges a port. A port that the user listed needs no question, but a rule can still deny it.
    fn verdict(&self, port: u16) -> TargetVerdict {
        let judged = self.asking.judge(&target(port));
        let by_entry = self.entry.as_ref().map(|entry| judge_local_port(&entry.rules().borrow(), port));
        match (judged, by_entry) {
            (TargetVerdict::Deny(denial), _) => TargetVerdict::Deny(denial),
            (_, Some(HostDecision::Deny { reason })) => {
                TargetVerdict::Deny(Denial::invalid(reason.to_string()))
            }
            (TargetVerdict::Ask(asked), _) if asked.is_managed() => TargetVerdict::Ask(asked),
            (TargetVerdict::Ask(_), Some(HostDecision::Allow { by })) => TargetVerdict::Allow(match by {
                PermittedBy::Rule(pattern) => Basis::List(&pattern).id(),
                PermittedBy::Grant(id) => id,
                PermittedBy::Once => Basis::List(&target(port).to_string()).id(),
            }),
            (TargetVerdict::Ask(_), _) if self.ports.named.contains(&port) => {
                TargetVerdict::Allow(Basis::List(&target(port).to_string()).id())
            }
            (judged, Some(HostDecision::Allow { .. } | HostDecision::Ask { .. }) | None) => judged,
        }
    }

    async fn open(self: &Arc<Self>, port: u16, listener: TcpListener, by: OpenReason) {
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let task = tokio::spawn(self.clone().forward(port, listener, by));
            open.retain(|forwarder| !forwarder.task.is_finished());
            open.push(Forwarder { port, task, by });
        }
        // Rules and grants may have changed before the forwarder was added.
        self.close_disallowed().await;
    }

    async fn forward(self: Arc<Self>, port: u16, listener: TcpListener, by: OpenReason) {
        let (mut connections, mut listener) = (FuturesUnordered::new(), Some(listener));
        while listener.is_some() || !connections.is_empty() {
            let free = listener.as_ref().filter(|_| connections.len() < MAX_CONNECTIONS);
            let accepted = async {
                match free {
                    Some(listener) => next_connection(|| listener.accept()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                (inside, _) = accepted => {
                    connections.push(self.relay(port, inside, by));
                    if by == OpenReason::Once {
                        listener = None;
                    }
                }
                // Ignore the result: the connection is closed, with or without an error.
                Some(_) = connections.next(), if !connections.is_empty() => {}
            }
        }
    }

    /// Judges, records and relays one connection.
    async fn relay(&self, port: u16, mut inside: TcpStream, by: OpenReason) -> io::Result<()> {
        let permitted = match (self.verdict(port), by) {
            (TargetVerdict::Allow(id), _) => PermittedBy::Grant(id),
            (TargetVerdict::Granted, _) => PermittedBy::Grant(self.grant(port).unwrap_or_default()),
            (TargetVerdict::Ask(_), OpenReason::Once) => PermittedBy::Once,
            (TargetVerdict::Ask(_), OpenReason::Permitted) | (TargetVerdict::Deny(_), _) => return Ok(()),
        };
        let mut service = None;
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            if service.is_none() {
                self.recorded(port, ConnectionVerdict::Allowed(permitted.clone()), vec![address]).await?;
                service = TcpStream::connect((address, port)).await.ok();
            }
        }
        let mut service = service.ok_or(io::ErrorKind::ConnectionRefused)?;
        copy_bidirectional(&mut inside, &mut service).await?;
        Ok(())
    }

    /// Closes all forwarders that are no longer allowed, and waits until they are closed.
    pub(super) async fn close_disallowed(&self) {
        let is_disallowed = |forwarder: &Forwarder| match self.verdict(forwarder.port) {
            TargetVerdict::Allow(_) | TargetVerdict::Granted => false,
            TargetVerdict::Ask(_) => forwarder.by == OpenReason::Permitted,
            TargetVerdict::Deny(_) => true,
        };
        let ended: Vec<Forwarder> = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.extract_if(.., |forwarder| is_disallowed(forwarder)).collect()
        };
        for Forwarder { task, .. } in ended {
            task.abort();
            // Ignore the result: the task was aborted or had already finished.
            let _ = task.await;
        }
    }

    /// Closes all forwarders at the end of the run.
    pub fn close(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.drain(..).for_each(|forwarder| forwarder.task.abort());
    }

    /// Returns the id of the grant that allows a port.
    fn grant(&self, port: u16) -> Option<String> {
        let (table, target) = (self.caller.services.grants.now(), target(port));
        let usable = usable(&self.caller.principal, &table.grants);
        usable
            .into_iter()
            .filter_map(|grant| grant.for_proxy())
            .find(|grant| grant.target == target)
            .map(|grant| grant.id)
    }

    async fn refused(&self, port: u16, code: &'static str, reason: String) {
        let verdict = ConnectionVerdict::Refused { code, reason };
        if let Err(problem) = self.recorded(port, verdict, Vec::new()).await {
            // The connection is refused even if the refusal cannot be recorded.
            tracing::error!(%problem, code, "failed to record a refusal");
        }
    }

    async fn recorded(
        &self,
        port: u16,
        verdict: ConnectionVerdict,
        addresses: Vec<IpAddr>,
    ) -> io::Result<()> {
        let HostPort { host, port } = target(port);
        let event = ConnectionEvent {
            server: self.caller.principal.server.clone(),
            protocol: Protocol::Direct,
            host: host.to_string(),
            port,
            verdict,
            addresses,
        };
        self.record.record(event).await.map_err(io::Error::other)
    }
}

/// Applies a server's rules to a port on this computer. Patterns can name this computer as `localhost` or by address.
fn judge_local_port(rules: &HostRules, port: u16) -> HostDecision {
    let addresses = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)].map(Host::Address);
    let by_address = addresses.map(|host| rules.judge(&HostPort { host, port }));
    let is_denied = |decision: &HostDecision| {
        matches!(decision, HostDecision::Deny { reason: ConnectionRefusal::Denied(_) })
    };
    let is_allowed = |decision: &HostDecision| matches!(decision, HostDecision::Allow { .. });
    let all = || [rules.judge(&target(port))].into_iter().chain(by_address.clone());
    let decided = all().find(is_denied).or_else(|| all().find(is_allowed));
    decided.unwrap_or_else(|| rules.judge(&target(port)))
}

/// Returns the host and port that rules and grants use for a port on this computer.
fn target(port: u16) -> HostPort {
    HostPort { host: Host::Name("localhost".to_owned()), port }
}
