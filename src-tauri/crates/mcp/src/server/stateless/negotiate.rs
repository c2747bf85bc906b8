//! Detects a server's protocol version and initializes it.
//!
//! - Unless the server's protocol version is known, the client's version is tried first: a handshake for a handshake
//!   client, so that its servers receive no unknown methods, and `server/discover` for a stateless client.
//! - INVARIANT: a process receives at most one handshake. After the handshake fails or times out, only
//!   `server/discover` follows.
//! - INVARIANT: the client's `initialize` is answered once, and a server counts as stateless only if that answer was
//!   derived from its `server/discover` response.

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

/// Maximum time to wait for the answer to `server/discover`, which a handshake server may never send.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay after which `server/discover` is sent to a server that has not answered the handshake, because the server may
/// be stateless.
const SILENCE: Duration = Duration::from_secs(4);

/// Negotiation of a protocol version with one server process.
#[derive(Clone)]
pub struct Negotiation {
    /// Connection to the process.
    pub connection: ServerConnection,
    /// Parameters of the client's `initialize`.
    pub initialize: Box<RawValue>,
    /// Client side of the connection.
    pub client_side: ClientSide,
    /// Protocol versions that programs are known to use.
    pub versions: KnownVersions,
    /// Command line of the server, as the key in `versions`.
    pub program: String,
    /// `true` while the process has received only `server/discover`. Some handshake servers crash on this request.
    pub is_probed: Arc<AtomicBool>,
}

/// Initializes a server. Passes a response in the form of an `initialize` response to `then`.
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
    /// Tries the handshake first. A stateless server may reject or ignore it.
    fn shake_hands(self, then: OnAnswer) {
        let (connection, params) = (self.connection.clone(), self.handshake());
        let first = Arc::new(Mutex::new(Some(then)));
        let asking = self.ask_when_silent(first.clone());
        let answered = move |answer, held| {
            let Some(then) = take(&first) else { return };
            if let Some(asking) = asking {
                // The task must stop, because it holds a handle to the connection.
                asking.abort();
            }
            match answer {
                ServerAnswer::Response(Response::Error(_)) => self.discover_instead(answer, held, then),
                ServerAnswer::Response(Response::Result(_)) => {
                    if self.is_probed.swap(false, Ordering::Relaxed) {
                        // The server is slow, but does not need `server/discover`.
                        self.versions.remember(&self.program, ProtocolVersion::Handshake);
                    }
                    then(answer, held);
                }
                ServerAnswer::Failed(_) => then(answer, held),
            }
        };
        connection.send_request("initialize", params, None, Box::new(answered));
    }

    /// Sends `server/discover` to a silent server, unless the server is known to use the handshake. The first of the
    /// two responses is used.
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

    /// Tries `server/discover` after the handshake failed with the response `refused`.
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

    /// Tries `server/discover` first, and then the handshake.
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
                // The owner of the process restarts it and then tries the handshake.
                return;
            }
            self.is_probed.store(false, Ordering::Relaxed);
            self.shake_hands(then);
        });
    }

    /// Sends `server/discover`. If the server is stateless, returns its state and an equivalent `initialize`
    /// response.
    async fn discovered(&self) -> Option<(StatelessServer, ServerAnswer)> {
        let stamp = Stamp::of(&self.initialize).ok()?;
        let params = stamp.stamped(None, None).ok()?;
        let answer = self.connection.send_and_wait("server/discover", Some(params));
        let answer = tokio::time::timeout(DISCOVER_TIMEOUT, answer).await.ok()?;
        let ServerAnswer::Response(Response::Result(result)) = answer else { return None };
        let welcome = welcome(&result, revision(&self.initialize).as_deref())?;
        let server = StatelessServer::new(stamp, self.client_side.clone(), &result);
        Some((server, ServerAnswer::Response(Response::Result(welcome))))
    }

    /// Returns the parameters of the `initialize` request to the server.
    fn handshake(&self) -> Option<Box<RawValue>> {
        if revision(&self.initialize).as_deref() != Some(STATELESS_VERSION) {
            return Some(self.initialize.clone());
        }
        let mut params: Fields = serde_json::from_str(self.initialize.get()).ok()?;
        params.set("protocolVersion", to_raw_value(HANDSHAKE_VERSIONS.first()?).ok()?);
        to_raw_value(&params).ok()
    }
}

/// Takes the callback, unless it was already taken, so that it is called at most once.
fn take(first: &Mutex<Option<OnAnswer>>) -> Option<OnAnswer> {
    first.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns the protocol version in `initialize` parameters.
pub(super) fn revision(initialize: &RawValue) -> Option<String> {
    let initialize: Fields = serde_json::from_str(initialize.get()).ok()?;
    serde_json::from_str(initialize.get("protocolVersion")?.get()).ok()
}

/// Converts a `server/discover` result to an `initialize` result.
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
    // Tasks of this protocol version are different and not supported.
    capabilities.remove("tasks");
    welcome.set("capabilities", to_raw_value(&capabilities).ok()?);
    to_raw_value(&welcome).ok()
}
