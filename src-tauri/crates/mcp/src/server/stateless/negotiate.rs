//! Finding out which era a server process is of, and greeting it.
//!
//! - A server is spoken to in the era of its client, if it knows that: with a handshake first for a client with one, so that such
//!   servers take part in nothing new, and by `server/discover` first for the others.
//! - INVARIANT: a handshake is sent once to a process. One that fails, or has no answer for a while, is followed by
//!   `server/discover` alone.
//! - INVARIANT: a greeting has one answer, and a server is spoken to without a handshake only where that is the answer.

use super::{ClientSide, Stamp, StatelessServer};
use crate::server::{MemoryShare, OnAnswer, ServerAnswer, ServerConnection};
use crate::wire::{Fields, HANDSHAKE_VERSIONS, KnownVersions, ProtocolVersion, Response, STATELESS_VERSION};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The time that a server may take to answer `server/discover`: one of the other era may never do.
const DISCOVER_BOUND: Duration = Duration::from_secs(5);

/// The time after which a server that is silent on a handshake is asked by `server/discover`: it may know no handshake.
const SILENCE: Duration = Duration::from_secs(4);

/// A greeting under way.
#[derive(Clone)]
pub struct Negotiation {
    /// The connection to the process.
    pub connection: ServerConnection,
    /// The parameters of the client's greeting.
    pub initialize: Box<RawValue>,
    /// The client that the server is initialized for.
    pub client_side: ClientSide,
    /// The protocol versions that programs are known to speak.
    pub versions: KnownVersions,
    /// The program, as its era is remembered.
    pub program: String,
    /// Set while the process was sent nothing but `server/discover`, which some programs of the other era do not survive.
    pub is_probed: Arc<AtomicBool>,
}

/// Greets a server; the answer is that to a handshake in any case.
pub fn initialize(negotiation: Negotiation, then: OnAnswer) {
    let wanted = match revision(&negotiation.initialize).as_deref() {
        Some(STATELESS_VERSION) => ProtocolVersion::Stateless,
        _ => ProtocolVersion::Handshake,
    };
    match negotiation.versions.of(&negotiation.program).unwrap_or(wanted) {
        ProtocolVersion::Handshake => negotiation.shake_hands(then),
        ProtocolVersion::Stateless => negotiation.probe(then),
    }
}

impl Negotiation {
    /// A handshake first; one that is refused, or not answered, may have come to a server without it.
    fn shake_hands(self, then: OnAnswer) {
        let (connection, params) = (self.connection.clone(), self.handshake());
        let first = Arc::new(Mutex::new(Some(then)));
        let asking = self.ask_when_silent(first.clone());
        let answered = move |answer, held| {
            let Some(then) = take(&first) else { return };
            if let Some(asking) = asking {
                // It holds the way to the server.
                asking.abort();
            }
            match answer {
                ServerAnswer::Response(Response::Error(_)) => self.discover_instead(answer, held, then),
                ServerAnswer::Response(Response::Result(_)) => {
                    if self.is_probed.swap(false, Ordering::Relaxed) {
                        // It is slow, and not to be asked again.
                        self.versions.remember(&self.program, ProtocolVersion::Handshake);
                    }
                    then(answer, held);
                }
                ServerAnswer::Failed(_) => then(answer, held),
            }
        };
        connection.send_request("initialize", params, None, Box::new(answered));
    }

    /// Asks a server that is silent what it speaks, unless it is known to have a handshake. The first answer counts.
    fn ask_when_silent(&self, first: Arc<Mutex<Option<OnAnswer>>>) -> Option<AbortHandle> {
        if self.versions.of(&self.program) == Some(ProtocolVersion::Handshake) {
            return None;
        }
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let negotiation = self.clone();
        let asking = runtime.spawn(async move {
            tokio::time::sleep(SILENCE).await;
            negotiation.is_probed.store(true, Ordering::Relaxed);
            if let Some((server, welcome)) = negotiation.discovered().await
                && let Some(then) = take(&first)
            {
                negotiation.connection.set_stateless(server);
                negotiation.versions.remember(&negotiation.program, ProtocolVersion::Stateless);
                then(welcome, None);
            }
            if !negotiation.connection.is_over() {
                negotiation.is_probed.store(false, Ordering::Relaxed);
            }
        });
        Some(asking.abort_handle())
    }

    /// The handshake was refused, with this answer.
    fn discover_instead(self, refused: ServerAnswer, held: MemoryShare, then: OnAnswer) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return then(refused, held) };
        runtime.spawn(async move {
            match self.discovered().await {
                Some((server, welcome)) => {
                    self.connection.set_stateless(server);
                    self.versions.remember(&self.program, ProtocolVersion::Stateless);
                    then(welcome, None);
                }
                None => {
                    self.versions.forget(&self.program);
                    then(refused, held);
                }
            }
        });
    }

    /// `server/discover` first, then the handshake.
    fn probe(self, then: OnAnswer) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.shake_hands(then) };
        self.is_probed.store(true, Ordering::Relaxed);
        runtime.spawn(async move {
            if let Some((server, welcome)) = self.discovered().await {
                self.connection.set_stateless(server);
                return then(welcome, None);
            }
            self.versions.remember(&self.program, ProtocolVersion::Handshake);
            if self.connection.is_over() {
                // Whoever owns the process starts another, and shakes hands with it.
                return;
            }
            self.is_probed.store(false, Ordering::Relaxed);
            self.shake_hands(then);
        });
    }

    /// Asks the server what it speaks; if it can be spoken to without a handshake, how, and its welcome in the words of one.
    async fn discovered(&self) -> Option<(StatelessServer, ServerAnswer)> {
        let stamp = Stamp::of(&self.initialize).ok()?;
        let params = stamp.stamped(None, None).ok()?;
        let answer = self.connection.send_and_wait("server/discover", Some(params));
        let answer = tokio::time::timeout(DISCOVER_BOUND, answer).await.ok()?;
        let ServerAnswer::Response(Response::Result(result)) = answer else { return None };
        let welcome = welcome(&result, revision(&self.initialize).as_deref())?;
        let server = StatelessServer::new(stamp, self.client_side.clone(), &result);
        Some((server, ServerAnswer::Response(Response::Result(welcome))))
    }

    /// The parameters of a handshake.
    fn handshake(&self) -> Option<Box<RawValue>> {
        if revision(&self.initialize).as_deref() != Some(STATELESS_VERSION) {
            return Some(self.initialize.clone());
        }
        let mut params: Fields = serde_json::from_str(self.initialize.get()).ok()?;
        params.set("protocolVersion", to_raw_value(HANDSHAKE_VERSIONS.first()?).ok()?);
        to_raw_value(&params).ok()
    }
}

/// Takes whoever waits, who is answered once.
fn take(first: &Mutex<Option<OnAnswer>>) -> Option<OnAnswer> {
    first.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// The revision that a greeting names.
pub(super) fn revision(initialize: &RawValue) -> Option<String> {
    let initialize: Fields = serde_json::from_str(initialize.get()).ok()?;
    serde_json::from_str(initialize.get("protocolVersion")?.get()).ok()
}

/// The result of `server/discover` in the words of a handshake.
pub(super) fn welcome(result: &RawValue, asked: Option<&str>) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versions {
        supported_versions: Vec<String>,
    }
    let versions: Versions = serde_json::from_str(result.get()).ok()?;
    if !versions.supported_versions.iter().any(|version| version == STATELESS_VERSION) {
        return None;
    }
    let mut welcome: Fields = serde_json::from_str(result.get()).ok()?;
    welcome.remove("supportedVersions");
    let revision =
        HANDSHAKE_VERSIONS.iter().find(|known| Some(**known) == asked).or(HANDSHAKE_VERSIONS.first())?;
    welcome.set("protocolVersion", to_raw_value(revision).ok()?);
    let meta: Option<Fields> = welcome.get("_meta").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let info = meta.and_then(|mut meta| meta.take(crate::wire::meta_key::SERVER_INFO));
    let info = match info {
        Some(info) => info,
        None => to_raw_value(&json!({ "name": "unnamed", "version": "" })).ok()?,
    };
    welcome.set("serverInfo", info);
    let capabilities = welcome.get("capabilities").map(|raw| serde_json::from_str::<Fields>(raw.get()));
    let mut capabilities = capabilities.transpose().ok()?.unwrap_or_default();
    // Tasks are others in this revision, and are kept for nobody.
    capabilities.remove("tasks");
    welcome.set("capabilities", to_raw_value(&capabilities).ok()?);
    to_raw_value(&welcome).ok()
}
