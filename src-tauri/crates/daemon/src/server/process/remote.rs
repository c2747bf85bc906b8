//! A server that runs elsewhere and is spoken to by streamable HTTP, as if it were a process here: the same lines in both
//! directions, and lines of our own on its standard error.
//!
//! - Messages pass as they came, without the secrets that the server was sent; nothing is added to them but headers of the transport and
//!   of its entry.
//! - INVARIANT: what may have reached the server is not sent again. A call that breaks fails.
//! - Its one host is connected to, under the rules and on the record of every server's network; no redirect is followed.
//! - A server that has forgotten the session ends, as a process does: the next one is greeted before it is called.

mod answer;
mod conversation;
mod events;
mod exchange;
mod fault;
mod headers;
mod http;
mod login;

use super::{Process, ProcessHold, ServerStderr};
use crate::server::start_error::ServerStartError;
use exchange::{Ends, Exchange, Notes};
use http::Http;
use ironcurtain_config::RemoteServer;
use ironcurtain_egress::Dialer;
use ironcurtain_mcp::wire::{Allowance, pair};
use ironcurtain_secrets::{Filled, SecretStore, filled_headers};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The number of times that a message is in memory: as it came, and as the line that it becomes.
const COPIES: u32 = 2;

/// Keeps the conversation with a remote server. Dropped, the server is told that the session is over.
#[derive(Debug)]
pub struct RemoteHold {
    _end: DropGuard,
    reason: Arc<OnceLock<String>>,
    fault: Arc<Mutex<String>>,
}

impl RemoteHold {
    /// Why the conversation is over, if it ended by itself.
    pub(super) fn reason(&self) -> Option<&str> {
        self.reason.get().map(String::as_str)
    }

    /// The words of the last request that had no answer, which are ours and not the server's.
    pub(super) fn fault(&self) -> String {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Everything that the conversation is begun with.
pub(super) struct RemoteStart<'a> {
    pub(super) server: &'a RemoteServer,
    /// The secrets that its headers name.
    pub(super) secrets: &'a SecretStore,
    /// Opens its connections.
    pub(super) dialer: Dialer,
    /// The memory for what it says.
    pub(super) memory: &'a Allowance,
    /// Until it is dropped, the trusted process does not end.
    pub(super) waited_for: Option<TaskTrackerToken>,
}

/// Begins the conversation; nothing is connected to before there is something to say.
pub(super) async fn start(start: RemoteStart<'_>) -> Result<Process, ServerStartError> {
    let RemoteStart { server, secrets, dialer, memory, waited_for } = start;
    let Filled { values, mask } = filled_headers(secrets, server.headers()).await?;
    let http = Http::new(server, dialer, values).await?;
    let (from_us, stdin) = pair()?;
    let (stdout, to_us) = pair()?;
    let (stderr, log) = pair()?;
    let (end, reason, fault) = (CancellationToken::new(), Arc::default(), Arc::default());
    let ends = Ends { to_us, log, mask };
    let exchange = Exchange::new(
        http,
        ends,
        memory.another(COPIES),
        Notes { reason: Arc::clone(&reason), fault: Arc::clone(&fault) },
    );
    let conversation = conversation::run(exchange, from_us, memory.another(COPIES), end.clone());
    tokio::spawn(async move {
        conversation.await;
        drop(waited_for);
    });
    let hold = ProcessHold::Remote(RemoteHold { _end: end.drop_guard(), reason, fault });
    let stderr = ServerStderr::new(stderr);
    Ok(Process { pid: None, stdin, stdout, stderr, hold, closed: BTreeMap::new() })
}
