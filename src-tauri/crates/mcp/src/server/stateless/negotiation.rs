//! Detects a server's protocol version and initializes it.
//!
//! - Unless the server's protocol version is known, the client's version is tried first: a handshake for a handshake
//!   client so that its servers receive no unknown methods, and `server/discover` for a stateless client.
//! - INVARIANT: a process receives at most one handshake. After the handshake fails or times out, only
//!   `server/discover` follows.
//! - INVARIANT: the client's `initialize` is answered once, and a server counts as stateless only if that answer was
//!   derived from its `server/discover` response.

use super::{ClientHandle, MetaFields, StatelessServer};
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
const PROBE_DELAY: Duration = Duration::from_secs(4);

/// Negotiation of a protocol version with one server process.
#[derive(Clone)]
pub struct Negotiation {
    /// Connection to the process.
    pub connection: ServerConnection,
    /// Parameters of the client's `initialize`.
    pub initialize: Box<RawValue>,
    /// Client side of the connection.
    pub client: ClientHandle,
    /// Protocol versions that programs are known to use.
    pub versions: KnownVersions,
    /// Command line of the server, as the key in `versions`.
    pub program: String,
    /// `true` while the process has received only `server/discover`. Some handshake servers crash on this request.
    pub is_probed: Arc<AtomicBool>,
}

/// Initializes a server. Passes a response in the form of an `initialize` response to `then`.
pub fn initialize(negotiation: Negotiation, then: OnAnswer) {
    let wanted = match protocol_version(&negotiation.initialize).as_deref() {
        Some(STATELESS_VERSION) => ProtocolVersion::Stateless,
        _ => ProtocolVersion::Handshake,
    };
    match negotiation.versions.get(&negotiation.program).unwrap_or(wanted) {
        ProtocolVersion::Handshake => negotiation.handshake_first(then),
        ProtocolVersion::Stateless => negotiation.discover_first(then),
    }
}

impl Negotiation {
    /// Tries the handshake first. A stateless server may reject or ignore it.
    fn handshake_first(self, then: OnAnswer) {
        let (connection, params) = (self.connection.clone(), self.handshake_params());
        let callback = Arc::new(Mutex::new(Some(then)));
        let probe_task = self.probe_when_silent(callback.clone());
        let answered = move |answer, share| {
            let Some(then) = take_once(&callback) else { return };
            if let Some(probe_task) = probe_task {
                // The task must stop, because it holds a handle to the connection.
                probe_task.abort();
            }
            match answer {
                ServerAnswer::Response(Response::Error(_)) => self.discover_instead(answer, share, then),
                ServerAnswer::Response(Response::Result(_)) => {
                    if self.is_probed.swap(false, Ordering::Relaxed) {
                        // The server is slow, but does not need `server/discover`.
                        self.versions.insert(&self.program, ProtocolVersion::Handshake);
                    }
                    then(answer, share);
                }
                ServerAnswer::Failed(_) => then(answer, share),
            }
        };
        connection.send_request("initialize", params, None, Box::new(answered));
    }

    /// Sends `server/discover` to a silent server, unless the server is known to use the handshake. The first of the
    /// two responses is used.
    fn probe_when_silent(&self, callback: Arc<Mutex<Option<OnAnswer>>>) -> Option<AbortHandle> {
        if self.versions.get(&self.program) == Some(ProtocolVersion::Handshake) {
            return None;
        }
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let negotiation = self.clone();
        let probe_task = runtime.spawn(async move {
            tokio::time::sleep(PROBE_DELAY).await;
            negotiation.is_probed.store(true, Ordering::Relaxed);
            if let Some((server, initialize_result)) = negotiation.discover().await
                && let Some(then) = take_once(&callback)
            {
                negotiation.connection.set_stateless(server);
                negotiation.versions.insert(&negotiation.program, ProtocolVersion::Stateless);
                then(initialize_result, None);
            }
            if !negotiation.connection.is_closed() {
                negotiation.is_probed.store(false, Ordering::Relaxed);
            }
        });
        Some(probe_task.abort_handle())
    }

    /// Tries `server/discover` after the handshake failed with the response `refused`.
    fn discover_instead(self, refused: ServerAnswer, share: MemoryShare, then: OnAnswer) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return then(refused, share) };
        runtime.spawn(async move {
            match self.discover().await {
                Some((server, initialize_result)) => {
                    self.connection.set_stateless(server);
                    self.versions.insert(&self.program, ProtocolVersion::Stateless);
                    then(initialize_result, None);
                }
                None => {
                    self.versions.remove(&self.program);
                    then(refused, share);
                }
            }
        });
    }

    /// Tries `server/discover` first, and then the handshake.
    fn discover_first(self, then: OnAnswer) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.handshake_first(then) };
        self.is_probed.store(true, Ordering::Relaxed);
        runtime.spawn(async move {
            if let Some((server, initialize_result)) = self.discover().await {
                self.connection.set_stateless(server);
                return then(initialize_result, None);
            }
            self.versions.insert(&self.program, ProtocolVersion::Handshake);
            if self.connection.is_closed() {
                // The owner of the process restarts it and then tries the handshake.
                return;
            }
            self.is_probed.store(false, Ordering::Relaxed);
            self.handshake_first(then);
        });
    }

    /// Sends `server/discover`. If the server is stateless, returns its state and an equivalent `initialize`
    /// response.
    async fn discover(&self) -> Option<(StatelessServer, ServerAnswer)> {
        let meta = MetaFields::from_initialize(&self.initialize).ok()?;
        let params = meta.with_meta(None, None).ok()?;
        let answer = self.connection.send_and_wait("server/discover", Some(params));
        let answer = tokio::time::timeout(DISCOVER_TIMEOUT, answer).await.ok()?;
        let ServerAnswer::Response(Response::Result(result)) = answer else { return None };
        let result = initialize_result(&result, protocol_version(&self.initialize).as_deref())?;
        let server = StatelessServer::new(meta, self.client.clone(), &result);
        Some((server, ServerAnswer::Response(Response::Result(result))))
    }

    /// Returns the parameters of the `initialize` request to the server.
    fn handshake_params(&self) -> Option<Box<RawValue>> {
        if protocol_version(&self.initialize).as_deref() != Some(STATELESS_VERSION) {
            return Some(self.initialize.clone());
        }
        let mut params: Fields = serde_json::from_str(self.initialize.get()).ok()?;
        params.set("protocolVersion", to_raw_value(HANDSHAKE_VERSIONS.first()?).ok()?);
        to_raw_value(&params).ok()
    }
}

/// Takes the callback, unless it was already taken so that it is called at most once.
fn take_once(callback: &Mutex<Option<OnAnswer>>) -> Option<OnAnswer> {
    callback.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Returns the protocol version in `initialize` parameters.
pub(super) fn protocol_version(initialize: &RawValue) -> Option<String> {
    let initialize: Fields = serde_json::from_str(initialize.get()).ok()?;
    serde_json::from_str(initialize.get("protocolVersion")?.get()).ok()
}

/// Converts a `server/discover` result to an `initialize` result.
pub(super) fn initialize_result(result: &RawValue, requested: Option<&str>) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versions {
        supported_versions: Vec<String>,
    }
    let versions: Versions = serde_json::from_str(result.get()).ok()?;
    if !versions.supported_versions.iter().any(|version| version == STATELESS_VERSION) {
        return None;
    }
    let mut initialize_result: Fields = serde_json::from_str(result.get()).ok()?;
    initialize_result.remove("supportedVersions");
    let protocol_version =
        HANDSHAKE_VERSIONS.iter().find(|known| Some(**known) == requested).or(HANDSHAKE_VERSIONS.first())?;
    initialize_result.set("protocolVersion", to_raw_value(protocol_version).ok()?);
    let meta: Option<Fields> =
        initialize_result.get("_meta").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let info = meta.and_then(|mut meta| meta.take(crate::wire::meta_key::SERVER_INFO));
    let info = match info {
        Some(info) => info,
        None => to_raw_value(&json!({ "name": "unnamed", "version": "" })).ok()?,
    };
    initialize_result.set("serverInfo", info);
    let capabilities =
        initialize_result.get("capabilities").map(|raw| serde_json::from_str::<Fields>(raw.get()));
    let mut capabilities = capabilities.transpose().ok()?.unwrap_or_default();
    // Tasks of this protocol version are different and not supported.
    capabilities.remove("tasks");
    initialize_result.set("capabilities", to_raw_value(&capabilities).ok()?);
    to_raw_value(&initialize_result).ok()
}
