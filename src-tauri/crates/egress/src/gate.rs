//! The way from a target to an open connection: judge, ask, resolve, judge the addresses, write it down, dial.
//!
//! - The only code that dials; it dials addresses it has judged, under rules that still allow it.
//! - [`Passage`] is the permission: what carries bytes takes one.

use crate::address::{self, Place};
use crate::ask::{Answer, Questions};
use crate::connections::{Connections, Place as Counted};
use crate::host::{Host, Target};
use crate::proxy::{Limits, Proxy};
use crate::record::{Event, Protocol, Record, Verdict};
use crate::refusal::Refusal;
use crate::resolve::Resolve;
use crate::rules::{By, Decision, Rules};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

/// What decides for one server.
pub(crate) struct Gate {
    server: String,
    rules: watch::Receiver<Arc<Rules>>,
    questions: Option<Questions>,
    record: Arc<dyn Record>,
    resolve: Arc<dyn Resolve>,
    connections: Connections,
    pub(crate) limits: Limits,
}

/// An open connection to where it may go.
#[derive(Debug)]
#[must_use]
pub(crate) struct Passage {
    pub(crate) stream: TcpStream,
    pub(crate) permit: Permit,
}

/// That a target is allowed, and for how long that stays so.
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Permit {
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    by: By,
    addresses: Vec<IpAddr>,
    rules: watch::Receiver<Arc<Rules>>,
    _counted: Arc<Counted>,
}

impl Gate {
    pub(crate) fn new(proxy: Proxy) -> Self {
        let questions = proxy.ask.map(|ask| Questions::new(ask, proxy.limits.answer));
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

    /// A connection to the target, if it may be had. Every refusal is on record when this returns.
    pub(crate) async fn open(&self, protocol: Protocol, target: Target) -> Result<Passage, Refusal> {
        let mut addresses = Vec::new();
        match self.try_open(protocol, &target, &mut addresses).await {
            Ok(passage) => Ok(passage),
            Err(refusal) => {
                self.refused(protocol, target.host.to_string(), target.port, addresses, &refusal).await;
                Err(refusal)
            }
        }
    }

    /// Writes down that something was refused before there was a target.
    pub(crate) async fn turned_away(&self, protocol: Protocol, asked_for: &str, refusal: &Refusal) {
        let shown = asked_for.escape_debug().take(300).collect();
        self.refused(protocol, shown, 0, Vec::new(), refusal).await;
    }

    /// Writes down that a connection which was open was cut.
    pub(crate) async fn cut(&self, permit: &Permit, refusal: &Refusal) {
        let Target { host, port } = &permit.target;
        self.refused(permit.protocol, host.to_string(), *port, permit.addresses.clone(), refusal).await;
    }

    async fn try_open(
        &self,
        protocol: Protocol,
        target: &Target,
        found: &mut Vec<IpAddr>,
    ) -> Result<Passage, Refusal> {
        let by = self.decide(target).await?;
        *found = self.addresses(target).await?;
        let rules = self.rules.borrow().clone();
        for address in found.iter() {
            judge_address(&rules, target, *address)?;
        }
        let mut permit = Permit {
            _counted: Arc::new(self.connections.count(target.clone(), by.clone())),
            target: target.clone(),
            protocol,
            by,
            addresses: found.clone(),
            rules: self.rules.clone(),
        };
        self.allowed(&permit).await?;
        // INVARIANT: what is dialled is what was judged above; nothing is resolved again.
        let dialled = tokio::select! {
            biased;
            withdrawn = permit.withdrawn() => return Err(withdrawn),
            dialled = self.dial(target, found) => dialled,
        };
        Ok(Passage { stream: dialled?, permit })
    }

    /// The rules' word, after the person's where they have none.
    async fn decide(&self, target: &Target) -> Result<By, Refusal> {
        if let Some(by) = self.judge(target)? {
            return Ok(by);
        }
        let Some(questions) = &self.questions else { return Err(Refusal::NotAllowed(target.to_string())) };
        let answer = questions.ask(target).await;
        let known = self.judge(target)?;
        match (answer, known) {
            (Answer::Once | Answer::Granted, Some(by)) => Ok(by),
            (Answer::Once, None) => Ok(By::Once),
            (Answer::Granted, None) => Err(Refusal::Withdrawn(target.to_string())),
            (Answer::No { why }, _) => Err(Refusal::SaidNo { target: target.to_string(), why }),
        }
    }

    /// Nothing when it is to be asked about.
    fn judge(&self, target: &Target) -> Result<Option<By>, Refusal> {
        // Rules without an owner can no longer be changed, so that nothing could be taken back.
        if self.rules.has_changed().is_err() {
            return Err(Refusal::Withdrawn(target.to_string()));
        }
        match self.rules.borrow().judge(target) {
            Decision::Allow { by } => Ok(Some(by)),
            Decision::Ask { .. } => Ok(None),
            Decision::Deny { reason } => Err(reason),
        }
    }

    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Refusal> {
        let name = match &target.host {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let unresolvable = |why: String| Refusal::Unresolvable { name: name.clone(), why };
        let found = timeout(self.limits.resolve, self.resolve.resolve(name)).await;
        let found = found.map_err(|_| unresolvable("the resolver took too long".to_owned()))?;
        match found.map_err(|e| unresolvable(e.to_string()))? {
            none if none.is_empty() => Err(unresolvable("it has no address".to_owned())),
            found => Ok(found),
        }
    }

    async fn dial(&self, target: &Target, addresses: &[IpAddr]) -> Result<TcpStream, Refusal> {
        let mut why = "it has no address".to_owned();
        for address in addresses {
            match timeout(self.limits.dial, TcpStream::connect(SocketAddr::new(*address, target.port))).await
            {
                Ok(Ok(stream)) => {
                    // Without it, answers are only later.
                    let _ = stream.set_nodelay(true);
                    return Ok(stream);
                }
                Ok(Err(e)) => why = e.to_string(),
                Err(_) => why = "it does not answer".to_owned(),
            }
        }
        Err(Refusal::Unreachable { target: target.to_string(), why })
    }

    async fn allowed(&self, permit: &Permit) -> Result<(), Refusal> {
        let event = Event {
            server: self.server.clone(),
            protocol: permit.protocol,
            host: permit.target.host.to_string(),
            port: permit.target.port,
            verdict: Verdict::Allowed(permit.by.clone()),
            addresses: permit.addresses.clone(),
        };
        let recorded = self.record.record(event).await;
        recorded.map_err(|why| Refusal::NotRecorded { target: permit.target.to_string(), why })
    }

    async fn refused(
        &self,
        protocol: Protocol,
        host: String,
        port: u16,
        addresses: Vec<IpAddr>,
        refusal: &Refusal,
    ) {
        let (code, reason) = (refusal.code(), refusal.to_string());
        let verdict = if refusal.is_failure() {
            Verdict::Failed { code, reason }
        } else {
            Verdict::Refused { code, reason }
        };
        let event = Event { server: self.server.clone(), protocol, host, port, verdict, addresses };
        if let Err(problem) = self.record.record(event).await {
            // It stays refused.
            tracing::error!(problem, code, "a refusal could not be recorded");
        }
    }
}

impl Permit {
    /// Completes when the rules no longer allow it.
    pub(crate) async fn withdrawn(&mut self) -> Refusal {
        loop {
            let gone = self.rules.changed().await.is_err();
            if gone || !self.still_holds() {
                return Refusal::Withdrawn(self.target.to_string());
            }
        }
    }

    fn still_holds(&mut self) -> bool {
        self.rules.borrow_and_update().go_on(&self.target, &self.by)
    }
}

/// Refuses an address that no name may lead to. One is enough to refuse the name.
fn judge_address(rules: &Rules, target: &Target, address: IpAddr) -> Result<(), Refusal> {
    if rules.denies_address(address, target.port) {
        return Err(Refusal::DeniedAddress { target: target.to_string(), address });
    }
    let wrong = address::place(address).or_else(|| address::is_own(address).then_some(Place::Own));
    match wrong {
        Some(place) if !rules.spells_out(target, address) => {
            Err(Refusal::NotPublic { target: target.to_string(), address, place })
        }
        Some(_) | None => Ok(()),
    }
}
