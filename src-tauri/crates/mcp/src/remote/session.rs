//! HTTP session of a connection, and the request that can start a new session.

use super::headers::HttpSession;
use crate::wire::Id;
use hyper::body::Bytes;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;

/// Methods that create state in the server's session.
const STATEFUL: [&str; 2] = ["resources/subscribe", "logging/setLevel"];

/// Session of a connection.
#[derive(Default)]
pub(super) struct SessionState {
    current: Mutex<HttpSession>,
    /// The client's `initialize` request, for starting a new session. `None` before it is sent. Also `None` once the
    /// server's session has state that a new session would lack.
    initialize: Mutex<Option<(Id, Bytes)>>,
    /// Lock held by the request that replaces the session.
    pub(super) renewal_lock: AsyncMutex<()>,
}

impl SessionState {
    pub(super) fn current(&self) -> MutexGuard<'_, HttpSession> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn initialize(&self) -> MutexGuard<'_, Option<(Id, Bytes)>> {
        self.initialize.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request that is about to be sent.
    pub(super) fn record(&self, id: &Id, method: &str, line: &Bytes) {
        if method == "initialize" {
            *self.initialize() = Some((id.clone(), line.clone()));
        } else if STATEFUL.contains(&method) {
            *self.initialize() = None;
        }
    }
}
