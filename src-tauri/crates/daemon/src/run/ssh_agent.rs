//! The ssh agent in a run: lists the keys in the user's agent, and asks the user about each signature.
//!
//! - No other request reaches the user's agent: programs cannot add, remove or lock keys, or use them through a
//!   forwarded connection.
//! - A request to sign data whose purpose cannot be determined is refused without asking the user.
//! - INVARIANT: a request to sign is sent to the user's agent only after the approval was recorded.

use super::Run;
use super::ssh_upstream::{UpstreamAgent, read, write};
use ironcurtain_audit::{DecidedBy, Entry, Event, PolicyDecision};
use ironcurtain_consent::{
    DenialScope, DeniedKey, ExchangeError, Inquiry, NotApproved, Principal, QuestionKey, SIGNATURE_RULE,
    SIGNATURE_TOOL, SignatureQuestion, SignedHost, SignedThing,
};
use ironcurtain_judging::denied_by;
use ironcurtain_paths::bounded_read;
use ironcurtain_policy::Denial;
use ironcurtain_protocol::RunAsk;
use ironcurtain_services::next_connection;
use ironcurtain_ssh_agent::{
    AgentRequest, FAILURE_RESPONSE, HostNames, MAX_REQUEST_LEN, Malformed, SignRequest, SignaturePurpose,
    find_host_names, fingerprint,
};
use ironcurtain_visible as visible;
use serde_json::Map;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;

/// Path of the agent's socket in a run.
pub(super) const SOCKET: &str = "/run/ironcurtain/ssh-agent";

/// Maximum number of connections to the agent of one run.
const MAX_CONNECTIONS: usize = 16;

/// ssh options that accept unknown hosts. The user's `known_hosts` file is not available in a run, so the question
/// about a login shows whether the user knows the host.
const ACCEPT_NEW_HOSTS: &str =
    " -o StrictHostKeyChecking=accept-new -o UserKnownHostsFile=/tmp/.ironcurtain-known-hosts";

/// Known hosts files: the system's, and the user's relative to the home directory.
const KNOWN_HOSTS: [&str; 2] = ["/etc/ssh/ssh_known_hosts", ".ssh/known_hosts"];

/// Error returned when data is not signed.
#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error(transparent)]
    Malformed(#[from] Malformed),
    #[error("your ssh agent has no such key")]
    UnknownKey,
    #[error("your ssh agent failed: {0}")]
    Agent(#[from] io::Error),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    #[error("the run was started with `--deny`")]
    DeniedByOption,
    #[error("the program stopped waiting")]
    Disconnected,
}

/// Adds the environment variables that point programs to the agent.
pub(super) fn set_environment(env: &mut BTreeMap<String, String>) {
    env.insert("SSH_AUTH_SOCK".to_owned(), SOCKET.to_owned());
    env.entry("GIT_SSH_COMMAND".to_owned()).and_modify(|command| command.push_str(ACCEPT_NEW_HOSTS));
}

/// Serves connections until the run ends.
pub(super) async fn serve(run: Arc<Run>, listener: UnixListener, agent: PathBuf) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = tokio::select! {
            () = run.wait_for_end() => return,
            Some(_) = connections.join_next() => continue,
            accepted = next_connection(|| listener.accept()), if connections.len() < MAX_CONNECTIONS => accepted,
        };
        let (run, upstream) = (run.clone(), UpstreamAgent::new(agent.clone()));
        connections.spawn(async move {
            if let Err(problem) = (AgentConnection { run, upstream }).serve(stream).await {
                tracing::debug!(%problem, "a connection to the ssh agent of a run ended");
            }
        });
    }
}

/// Connection from a program to the agent.
struct AgentConnection {
    run: Arc<Run>,
    upstream: UpstreamAgent,
}

impl AgentConnection {
    async fn serve(mut self, stream: UnixStream) -> io::Result<()> {
        let (mut from, mut to) = stream.into_split();
        while let Some(message) = read(&mut from, MAX_REQUEST_LEN).await? {
            let answer = match AgentRequest::parse(&message) {
                Ok(AgentRequest::List) => self.upstream.list().await?.0,
                // The user's agent needs this message for keys that are restricted to certain hosts.
                Ok(AgentRequest::Bind { is_forwarding: false }) => self.upstream.forward(&message).await?,
                Ok(AgentRequest::Sign(request)) => match self.sign(&request, &message, &mut from).await {
                    Ok(signed) => {
                        self.run.files.pace.refund();
                        signed
                    }
                    Err(SignError::Disconnected) => return Ok(()),
                    Err(problem) => {
                        self.record_refusal(&request, &problem).await;
                        FAILURE_RESPONSE.to_vec()
                    }
                },
                Ok(AgentRequest::Bind { is_forwarding: true } | AgentRequest::Other) | Err(Malformed) => {
                    FAILURE_RESPONSE.to_vec()
                }
            };
            write(&mut to, &answer).await?;
        }
        Ok(())
    }

    /// Asks the user about a signature and returns the response of the user's agent.
    async fn sign(
        &mut self,
        request: &SignRequest,
        message: &[u8],
        from: &mut OwnedReadHalf,
    ) -> Result<Vec<u8>, SignError> {
        self.run.files.pace.acquire().await;
        let purpose = SignaturePurpose::from_data(&request.data, &request.key)?;
        let (_, keys) = self.upstream.list().await?;
        let comment =
            keys.into_iter().find(|key| key.key == request.key).ok_or(SignError::UnknownKey)?.comment;
        let host = match &purpose {
            SignaturePurpose::Login { host_key: Some(key), .. } => {
                Some((fingerprint(key), self.host_names(key.clone()).await))
            }
            SignaturePurpose::Login { host_key: None, .. } | SignaturePurpose::File { .. } => None,
        };
        let signed = signed_thing(&purpose, &host);
        let requested =
            RequestedSignature { comment: &comment, fingerprint: &fingerprint(&request.key), signed };
        tokio::select! {
            allowed = self.run.ask_to_sign(&requested) => allowed?,
            // A program must not send anything while it waits for a response. Stop if it sends something or
            // disconnects.
            _ = from.read_u8() => return Err(SignError::Disconnected),
        }
        Ok(self.upstream.forward(message).await?)
    }

    async fn host_names(&self, key: Vec<u8>) -> HostNames {
        let home = self.run.services.snapshot().home.as_path().to_owned();
        let read = move || {
            let text =
                |file: &str| bounded_read::read_text(&home.join(file)).ok().flatten().unwrap_or_default();
            find_host_names(&key, &KNOWN_HOSTS.map(text).join("\n"))
        };
        tokio::task::spawn_blocking(read).await.unwrap_or(HostNames::Unknown)
    }

    /// Reports a refused signature and records the refusal. A refusal by an exchange is not recorded again, because the
    /// exchange records its own outcome.
    async fn record_refusal(&self, request: &SignRequest, problem: &SignError) {
        let what = match SignaturePurpose::from_data(&request.data, &request.key) {
            Ok(SignaturePurpose::File { namespace }) => format!("a text for {namespace}"),
            Ok(SignaturePurpose::Login { user, .. }) => format!("a login as {user}"),
            Err(Malformed) => "data whose purpose is unknown".to_owned(),
        };
        let what = visible::line(&format!("{what} with the ssh key {}", fingerprint(&request.key)));
        let (run, why) = (&self.run, problem.to_string());
        if !matches!(problem, SignError::Exchange(_)) {
            let mut entry = run.principal.entry(Event::Decision, format!("denied: signing {what}"));
            entry.tool_name = Some(SIGNATURE_TOOL.to_owned());
            let denial = Denial::invalid(why.as_str());
            entry.policy_decision =
                Some(PolicyDecision::deny(denied_by(denial.by), &denial.rule, &denial.reason));
            if let Err(problem) = run.services.audit.record(entry).await {
                tracing::error!(%problem, "failed to record a refused signature");
            }
        }
        let is_user_denial =
            matches!(problem, SignError::Exchange(ExchangeError::NotApproved(NotApproved::Denied)));
        run.files.notes.denied(&format!("signing {what}"), (!is_user_denial).then_some(why));
        run.files.counts.denied.fetch_add(1, Ordering::Relaxed);
        run.services.changed();
    }
}

fn signed_thing<'a>(purpose: &'a SignaturePurpose, host: &'a Option<(String, HostNames)>) -> SignedThing<'a> {
    match purpose {
        SignaturePurpose::File { namespace } => SignedThing::File(namespace),
        SignaturePurpose::Login { user, .. } => {
            let host = match host {
                None => SignedHost::Unknown,
                Some((_, HostNames::Named(names))) => {
                    names.first().map_or(SignedHost::Unknown, |name| SignedHost::Named(name))
                }
                Some((key, HostNames::Hashed)) => SignedHost::Hashed(key),
                Some((key, HostNames::Unknown)) => SignedHost::Stranger(key),
            };
            SignedThing::Login { user, host }
        }
    }
}

/// Requested signature, as shown in the question.
struct RequestedSignature<'a> {
    /// Comment that identifies the key.
    comment: &'a str,
    fingerprint: &'a str,
    signed: SignedThing<'a>,
}

impl RequestedSignature<'_> {
    /// Returns the key under which a denial is stored. A denial for one ssh key does not apply to another.
    fn denied_key(&self, principal: &Principal) -> DeniedKey {
        DeniedKey::of(principal, &format!("{:?} with {}", self.signed, self.fingerprint), &Map::new())
    }
}

impl Run {
    /// Asks the user about a signature and records the approval.
    async fn ask_to_sign(&self, requested: &RequestedSignature<'_>) -> Result<(), SignError> {
        self.files.counts.asked.fetch_add(1, Ordering::Relaxed);
        if self.files.notes.ask() == RunAsk::Deny {
            return Err(SignError::DeniedByOption);
        }
        let exchange = self.services.exchange(&self.principal);
        let question = SignatureQuestion {
            id: exchange.new_question_id()?,
            principal: &self.principal,
            key: requested.comment,
            fingerprint: requested.fingerprint,
            signed: requested.signed,
            deadline: self.services.config.question_deadline(),
        }
        .build();
        let mut entry = self.signature_entry(Event::Question, "the user was asked", requested);
        entry.policy_decision = Some(PolicyDecision::escalate(&question.rule, &question.reason));
        let inquiry = Inquiry {
            identity: QuestionKey::unique(&question),
            call: requested.denied_key(&self.principal),
            scope: DenialScope::of_request(SIGNATURE_TOOL),
            question,
            entry,
        };
        let what = format!("the ssh key {}", visible::line(requested.comment));
        let open = self.files.notes.note_pending(&what, &self.services.broker);
        let answer = exchange.ask(inquiry, std::future::pending()).await;
        drop(open);
        if answer?.is_none() {
            return Err(ExchangeError::from(NotApproved::Closed).into());
        }
        let mut entry = self.signature_entry(Event::Decision, "allowed", requested);
        entry.policy_decision =
            Some(PolicyDecision::allow(DecidedBy::Answer, SIGNATURE_RULE, "the user allowed it"));
        self.services.audit.record(entry).await.map_err(ExchangeError::from)?;
        self.files.counts.allowed.fetch_add(1, Ordering::Relaxed);
        self.services.changed();
        Ok(())
    }

    fn signature_entry(&self, event: Event, summary: &str, requested: &RequestedSignature<'_>) -> Entry {
        let signed = match requested.signed {
            SignedThing::File(namespace) => format!("a text for {namespace}"),
            SignedThing::Login { user, host } => {
                let host = match host {
                    SignedHost::Named(name) => name,
                    SignedHost::Hashed(key) | SignedHost::Stranger(key) => key,
                    SignedHost::Unknown => "an unknown host",
                };
                format!("a login as {user} at {host}")
            }
        };
        let summary = format!(
            "{summary}: signing {signed} with the key {} ({})",
            requested.comment, requested.fingerprint
        );
        let mut entry = self.principal.entry(event, visible::line(&summary));
        entry.tool_name = Some(SIGNATURE_TOOL.to_owned());
        entry
    }
}
