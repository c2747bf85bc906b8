//! The HTTP session of a connection, and what is needed to start another one.

use super::headers::HttpSession;
use crate::wire::Id;
use hyper::body::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as Turn;

/// Requests after which the server keeps state for the session.
const STATEFUL: [&str; 2] = ["resources/subscribe", "logging/setLevel"];

/// Session of a connection.
#[derive(Default)]
pub(super) struct SessionState {
    now: Mutex<HttpSession>,
    /// The client's `initialize` request, to repeat it. `None` before it, and once the server keeps state for the session.
    initialize: Mutex<Option<(Id, Bytes)>>,
    /// Held by the request that replaces the session.
    pub(super) turn: Turn<()>,
}

impl SessionState {
    pub(super) fn now(&self) -> MutexGuard<'_, HttpSession> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn initialize(&self) -> MutexGuard<'_, Option<(Id, Bytes)>> {
        self.initialize.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request that is about to be sent.
    pub(super) fn note(&self, id: &Id, method: &str, line: &Bytes) {
        if method == "initialize" {
            *self.initialize() = Some((id.clone(), line.clone()));
        } else if STATEFUL.contains(&method) {
            *self.initialize() = None;
        }
    }
}
