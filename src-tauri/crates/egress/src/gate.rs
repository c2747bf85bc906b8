//! Opens a connection to a target: checks the rules, asks the user, resolves the name, checks the addresses, records
//! the decision, and connects.
//!
//! - Only this module opens connections, and only to checked addresses that the rules still allow.
//! - Relaying data requires an [`OpenConnection`], which only this module creates.

use crate::address::{self, AddressScope};
use crate::ask::{HostAnswer, PendingQuestions};
use crate::connections::{Connections, CountedConnection};
use crate::host::{Host, HostPort};
use crate::proxy::{Proxy, ProxyLimits};
use crate::record::{ConnectionEvent, ConnectionVerdict, Protocol, Record};
use crate::refusal::ConnectionRefusal;
use crate::resolve::Resolve;
use crate::rules::{HostDecision, HostRules, PermittedBy};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// Decides on a server's connections and opens them.
pub(crate) struct Gate {
    server: String,
    rules: watch::Receiver<Arc<HostRules>>,
    questions: Option<PendingQuestions>,
    record: Arc<dyn Record>,
    resolve: Arc<dyn Resolve>,
    connections: Connections,
    pub(crate) limits: ProxyLimits,
}

/// Open connection to an allowed target.
#[derive(Debug)]
#[must_use]
pub(crate) struct OpenConnection {
    pub(crate) stream: TcpStream,
    pub(crate) permit: Permit,
}

/// Permission for a connection to a target, from the rules or the user.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Permit {
    pub(crate) target: HostPort,
    pub(crate) protocol: Protocol,
    by: PermittedBy,
    addresses: Vec<IpAddr>,
    rules: watch::Receiver<Arc<HostRules>>,
    _counted: Arc<CountedConnection>,
}

impl Gate {
    pub(crate) fn new(proxy: Proxy) -> Self {
        let questions = proxy.ask.map(|ask| PendingQuestions::new(ask, proxy.limits.answer));
        Self {
            server: proxy.server,
            rules: proxy.rules,
            questions,
            record: proxy.record,
            resolve: proxy.resolve,
            connections: proxy.connections,
            limits: proxy.limits,
        }
    }

    /// Connects to the target if it is allowed and reachable. A refusal is recorded before this method returns.
    pub(crate) async fn open(
        &self,
        protocol: Protocol,
        target: HostPort,
    ) -> Result<OpenConnection, ConnectionRefusal> {
        let target = self.rules.borrow().normalize_target(target);
        let mut addresses = Vec::new();
        match self.try_open(protocol, &target, &mut addresses).await {
            Ok(opened) => Ok(opened),
            Err(refusal) => {
                self.record_refused(protocol, target.host.to_string(), target.port, addresses, &refusal)
                    .await;
                Err(refusal)
            }
        }
    }

    /// Records the refusal of a request whose target could not be parsed.
    pub(crate) async fn refuse_unparsed(
        &self,
        protocol: Protocol,
        requested: &str,
        refusal: &ConnectionRefusal,
    ) {
        let host = requested.escape_debug().take(300).collect();
        self.record_refused(protocol, host, 0, Vec::new(), refusal).await;
    }

    /// Records that an open connection was closed because it is no longer allowed.
    pub(crate) async fn record_closed(&self, permit: &Permit, refusal: &ConnectionRefusal) {
        let HostPort { host, port } = &permit.target;
        self.record_refused(permit.protocol, host.to_string(), *port, permit.addresses.clone(), refusal)
            .await;
    }

    async fn try_open(
        &self,
        protocol: Protocol,
        target: &HostPort,
        resolved: &mut Vec<IpAddr>,
    ) -> Result<OpenConnection, ConnectionRefusal> {
        let by = self.decide(target).await?;
        *resolved = self.resolve_target(target).await?;
        let rules = self.rules.borrow().clone();
        for address in resolved.iter() {
            check_address(&rules, (target, &by), *address)?;
        }
        let mut permit = Permit {
            _counted: Arc::new(self.connections.count(target.clone(), by.clone())),
            target: target.clone(),
            protocol,
            by,
            addresses: resolved.clone(),
            rules: self.rules.clone(),
        };
        self.record_allowed(&permit).await?;
        // INVARIANT: connects only to the addresses checked above, without resolving the name again.
        let stream = tokio::select! {
            biased;
            revoked = permit.revoked() => return Err(revoked),
            stream = self.dial(target, resolved) => stream,
        };
        Ok(OpenConnection { stream: stream?, permit })
    }

    /// Checks the rules, and asks the user if no rule matches.
    async fn decide(&self, target: &HostPort) -> Result<PermittedBy, ConnectionRefusal> {
        if let Some(by) = self.check_rules(target)? {
            return Ok(by);
        }
        let Some(questions) = &self.questions else {
            return Err(ConnectionRefusal::NotAllowed(target.to_string()));
        };
        let answer = questions.ask(target).await;
        let known = self.check_rules(target)?;
        match (answer, known) {
            (HostAnswer::Once | HostAnswer::Granted, Some(by)) => Ok(by),
            (HostAnswer::Once, None) => Ok(PermittedBy::Once),
            (HostAnswer::Granted, None) => Err(ConnectionRefusal::Revoked(target.to_string())),
            (HostAnswer::Denied { why }, _) => {
                Err(ConnectionRefusal::DeniedByUser { target: target.to_string(), why })
            }
        }
    }

    /// Checks the rules. Returns `None` if the user must be asked.
    fn check_rules(&self, target: &HostPort) -> Result<Option<PermittedBy>, ConnectionRefusal> {
        // Without a sender, permissions could not be revoked, so the connection is refused.
        if self.rules.has_changed().is_err() {
            return Err(ConnectionRefusal::Revoked(target.to_string()));
        }
        match self.rules.borrow().judge(target) {
            HostDecision::Allow { by } => Ok(Some(by)),
            HostDecision::Ask { .. } => Ok(None),
            HostDecision::Deny { reason } => Err(reason),
        }
    }

    async fn resolve_target(&self, target: &HostPort) -> Result<Vec<IpAddr>, ConnectionRefusal> {
        let name = match &target.host {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let unresolvable = |why: String| ConnectionRefusal::Unresolvable { name: name.clone(), why };
        let resolved = timeout(self.limits.resolve, self.resolve.resolve(name)).await;
        let resolved = resolved.map_err(|_| unresolvable("DNS lookup timed out".to_owned()))?;
        match resolved.map_err(|e| unresolvable(e.to_string()))? {
            none if none.is_empty() => Err(unresolvable("it has no addresses".to_owned())),
            resolved => Ok(resolved),
        }
    }

    async fn dial(&self, target: &HostPort, addresses: &[IpAddr]) -> Result<TcpStream, ConnectionRefusal> {
        let mut why = "it has no addresses".to_owned();
        for address in addresses {
            match timeout(self.limits.dial, TcpStream::connect(SocketAddr::new(*address, target.port))).await
            {
                Ok(Ok(stream)) => {
                    // An error is ignored, because it only delays small writes.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(e)) => why = e.to_string(),
                Err(_) => why = "connection timed out".to_owned(),
            }
        }
        Err(ConnectionRefusal::Unreachable { target: target.to_string(), why })
    }

    async fn record_allowed(&self, permit: &Permit) -> Result<(), ConnectionRefusal> {
        let event = ConnectionEvent {
            server: self.server.clone(),
            protocol: permit.protocol,
            host: permit.target.host.to_string(),
            port: permit.target.port,
            verdict: ConnectionVerdict::Allowed(permit.by.clone()),
            addresses: permit.addresses.clone(),
        };
        let recorded = self.record.record(event).await;
        recorded.map_err(|problem| ConnectionRefusal::RecordFailed {
            target: permit.target.to_string(),
            why: problem.to_string(),
        })
    }

    async fn record_refused(
        &self,
        protocol: Protocol,
        host: String,
        port: u16,
        addresses: Vec<IpAddr>,
        refusal: &ConnectionRefusal,
    ) {
        let (code, reason) = (refusal.code(), refusal.to_string());
        let verdict = if refusal.is_failure() {
            ConnectionVerdict::Failed { code, reason }
        } else {
            ConnectionVerdict::Refused { code, reason }
        };
        let event = ConnectionEvent { server: self.server.clone(), protocol, host, port, verdict, addresses };
        if let Err(problem) = self.record.record(event).await {
            // The connection is refused even if the refusal cannot be recorded.
            tracing::error!(%problem, code, "failed to record a refusal");
        }
    }
}

impl Permit {
    /// Waits until the rules no longer allow the connection, and returns the reason.
    pub(crate) async fn revoked(&mut self) -> ConnectionRefusal {
        loop {
            let is_sender_dropped = self.rules.changed().await.is_err();
            if is_sender_dropped || !self.is_still_allowed() {
                return ConnectionRefusal::Revoked(self.target.to_string());
            }
        }
    }

    fn is_still_allowed(&mut self) -> bool {
        self.rules.borrow_and_update().still_allows(&self.target, &self.by)
    }
}

/// Checks an address to which a target's name resolved. If one address is refused, the whole name is refused.
fn check_address(
    rules: &HostRules,
    (target, by): (&HostPort, &PermittedBy),
    address: IpAddr,
) -> Result<(), ConnectionRefusal> {
    if rules.denies_address(address, target.port) {
        return Err(ConnectionRefusal::DeniedAddress { target: target.to_string(), address });
    }
    let scope =
        address::scope(address).or_else(|| address::is_local_address(address).then_some(AddressScope::Own));
    match scope {
        Some(scope)
            if !rules.lists_address(target, address) && !rules.allows_local_service(target, address, by) =>
        {
            Err(ConnectionRefusal::NotPublic { target: target.to_string(), address, scope })
        }
        Some(_) | None => Ok(()),
    }
}
