//! Finding out which era a server process is of, and greeting it.
//!
//! - A server is spoken to in the era of its client, if it knows that: with a handshake first for a client with one, so that such
//!   servers take part in nothing new, and by `server/discover` first for the others.
//! - INVARIANT: a handshake is sent once to a process. One that fails is followed by `server/discover` alone.

use super::{Behalf, ModernServer, Stamp};
use crate::server::connection::{MemoryShare, ServerAnswer, ServerConnection, Then};
use crate::wire::{Era, Fields, KnownEras, LEGACY_REVISIONS, MODERN_REVISION, Response};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time that a server may take to answer `server/discover`: one of the other era may never do.
const DISCOVER_BOUND: Duration = Duration::from_secs(5);

/// A greeting under way.
pub(in crate::server) struct Negotiation {
    pub(in crate::server) connection: ServerConnection,
    /// The parameters of the client's greeting.
    pub(in crate::server) greeting: Box<RawValue>,
    pub(in crate::server) behalf: Behalf,
    pub(in crate::server) eras: KnownEras,
    /// The program, as its era is remembered.
    pub(in crate::server) program: String,
    /// Set while the process was sent nothing but `server/discover`, which some programs of the other era do not survive.
    pub(in crate::server) is_probed: Arc<AtomicBool>,
}

/// Greets a server; the answer is that to a handshake in any case.
pub(in crate::server) fn greet(negotiation: Negotiation, then: Then) {
    let wanted = match revision(&negotiation.greeting).as_deref() {
        Some(MODERN_REVISION) => Era::Modern,
        _ => Era::Legacy,
    };
    match negotiation.eras.of(&negotiation.program).unwrap_or(wanted) {
        Era::Legacy => negotiation.shake_hands(then),
        Era::Modern => negotiation.probe(then),
    }
}

impl Negotiation {
    /// A handshake first; one that is refused may be refused by a server without it.
    fn shake_hands(self, then: Then) {
        let (connection, params) = (self.connection.clone(), self.handshake());
        let answered = move |answer, held| match answer {
            ServerAnswer::Response(Response::Error(_)) => self.discover_instead(answer, held, then),
            ServerAnswer::Response(Response::Result(_)) | ServerAnswer::Failed(_) => then(answer, held),
        };
        connection.send_request("initialize", params, None, Box::new(answered));
    }

    /// The handshake was refused, with this answer.
    fn discover_instead(self, refused: ServerAnswer, held: MemoryShare, then: Then) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return then(refused, held) };
        runtime.spawn(async move {
            match self.discovered().await {
                Some(welcome) => {
                    self.eras.remember(&self.program, Era::Modern);
                    then(welcome, None);
                }
                None => {
                    self.eras.forget(&self.program);
                    then(refused, held);
                }
            }
        });
    }

    /// `server/discover` first, then the handshake.
    fn probe(self, then: Then) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return self.shake_hands(then) };
        self.is_probed.store(true, Ordering::Relaxed);
        runtime.spawn(async move {
            if let Some(welcome) = self.discovered().await {
                return then(welcome, None);
            }
            self.eras.remember(&self.program, Era::Legacy);
            if self.connection.is_over() {
                // Whoever owns the process starts another, and shakes hands with it.
                return;
            }
            self.is_probed.store(false, Ordering::Relaxed);
            self.shake_hands(then);
        });
    }

    /// Asks the server what it speaks; its welcome in the words of a handshake, if it can be spoken to without one.
    async fn discovered(&self) -> Option<ServerAnswer> {
        let stamp = Stamp::of(&self.greeting).ok()?;
        let params = stamp.stamped(None, None).ok()?;
        let answer = self.connection.send_and_wait("server/discover", Some(params));
        let answer = tokio::time::timeout(DISCOVER_BOUND, answer).await.ok()?;
        let ServerAnswer::Response(Response::Result(result)) = answer else { return None };
        let welcome = welcome(&result, revision(&self.greeting).as_deref())?;
        let server = ModernServer::new(stamp, self.behalf.clone(), &result);
        self.connection.speaks_modern(server);
        Some(ServerAnswer::Response(Response::Result(welcome)))
    }

    /// The parameters of a handshake.
    fn handshake(&self) -> Option<Box<RawValue>> {
        if revision(&self.greeting).as_deref() != Some(MODERN_REVISION) {
            return Some(self.greeting.clone());
        }
        let mut params: Fields = serde_json::from_str(self.greeting.get()).ok()?;
        params.set("protocolVersion", to_raw_value(LEGACY_REVISIONS.first()?).ok()?);
        to_raw_value(&params).ok()
    }
}

/// The revision that a greeting names.
fn revision(greeting: &RawValue) -> Option<String> {
    let greeting: Fields = serde_json::from_str(greeting.get()).ok()?;
    serde_json::from_str(greeting.get("protocolVersion")?.get()).ok()
}

/// The result of `server/discover` in the words of a handshake.
fn welcome(result: &RawValue, asked: Option<&str>) -> Option<Box<RawValue>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Versions {
        supported_versions: Vec<String>,
    }
    let versions: Versions = serde_json::from_str(result.get()).ok()?;
    if !versions.supported_versions.iter().any(|version| version == MODERN_REVISION) {
        return None;
    }
    let mut welcome: Fields = serde_json::from_str(result.get()).ok()?;
    welcome.remove("supportedVersions");
    let revision =
        LEGACY_REVISIONS.iter().find(|known| Some(**known) == asked).or(LEGACY_REVISIONS.first())?;
    welcome.set("protocolVersion", to_raw_value(revision).ok()?);
    let meta: Option<Fields> = welcome.get("_meta").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let info = meta.and_then(|mut meta| meta.take(crate::wire::meta_key::SERVER_INFO));
    let info = match info {
        Some(info) => info,
        None => to_raw_value(&json!({ "name": "unnamed", "version": "" })).ok()?,
    };
    welcome.set("serverInfo", info);
    if welcome.get("capabilities").is_none() {
        welcome.set("capabilities", to_raw_value(&json!({})).ok()?);
    }
    to_raw_value(&welcome).ok()
}
