//! Requests the client's own roots and proposes them to the user.
//!
//! - The client's roots are never forwarded to a server, and give no access by themselves.
//! - INVARIANT: servers cannot guess the id of IronCurtain's request, so a response meant for a server is never
//!   mistaken for a response to this request.
//! - Sends one request at a time. Limits the number of requests, the time and size of each response, and the number of
//!   proposed folders so that a faulty client causes no harm.
//! - Does not ask a client that uses the stateless protocol, because the request would have to replace a response that
//!   the agent is waiting for.

use super::named_folder::{self, FolderRefusal};
use crate::session::Session;
use ironcurtain_consent::WorkspaceSource;
use ironcurtain_mcp::wire::{Id, Response, request_parts};
use ironcurtain_paths::{CanonicalPath, random_name};
use ironcurtain_policy::GrantKind;
use ironcurtain_visible as visible;
use serde::Deserialize;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;

/// Maximum number of `roots/list` requests per session.
const MAX_REQUESTS: usize = 50;

/// Minimum interval between requests.
const PAUSE: Duration = Duration::from_secs(2);

/// Maximum time to wait for a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of a response, in bytes.
const MAX_ANSWER_LEN: usize = 256 * 1024;

/// Maximum number of roots to use from one response.
const MAX_ROOTS: usize = 16;

/// Maximum number of folders to propose per session.
const MAX_PROPOSED: usize = 8;

/// Maximum length of a URI in a log message, in characters.
const MAX_URI_LEN: usize = 200;

/// State of the requests for the client's roots.
#[derive(Debug)]
pub(in crate::session) struct ClientRoots {
    is_declared: AtomicBool,
    changed: Notify,
    pending: Mutex<Option<Request>>,
}

/// Pending `roots/list` request.
#[derive(Debug)]
struct Request {
    id: Id,
    answer: oneshot::Sender<Response>,
}

/// Reason why the client's roots are not available.
#[derive(Debug, thiserror::Error)]
enum RootsError {
    /// The operating system provided no random bytes for the id.
    #[error("failed to create a request id: {0}")]
    NoId(#[from] io::Error),
    /// The client did not answer in time.
    #[error("the client did not answer within {} s", ANSWER_TIMEOUT.as_secs())]
    TimedOut,
    /// The client answered with an error.
    #[error("the client answered with an error")]
    Refused,
    /// The response is too long. Contains its length in bytes.
    #[error("the answer is {0} bytes long; the limit is {MAX_ANSWER_LEN} bytes")]
    TooLong(usize),
    /// The response is not a list of roots.
    #[error("invalid answer: {0}")]
    Invalid(#[from] serde_json::Error),
}

impl ClientRoots {
    /// Creates the state. `is_declared` is `true` for a continued session whose client declared roots.
    pub(in crate::session) fn new(is_declared: bool) -> Self {
        let roots = Self {
            is_declared: AtomicBool::new(is_declared),
            changed: Notify::new(),
            pending: Mutex::default(),
        };
        roots.request_roots();
        roots
    }

    /// Stores whether the client declared the `roots` capability in `initialize`.
    pub(in crate::session) fn declare(&self, has_roots: bool) {
        self.is_declared.store(has_roots, Ordering::Relaxed);
    }

    /// Returns `true` if the client declared the `roots` capability.
    pub(in crate::session) fn is_declared(&self) -> bool {
        self.is_declared.load(Ordering::Relaxed)
    }

    /// Triggers a request, because the client was initialized or reported that its roots changed.
    pub(in crate::session) fn request_roots(&self) {
        if self.is_declared() {
            self.changed.notify_one();
        }
    }

    /// Handles a response from the client. Returns the response as an error unless it answers IronCurtain's request.
    pub(in crate::session) fn take_answer(&self, id: &Id, response: Response) -> Result<(), Response> {
        let mut pending = self.pending();
        match pending.take_if(|request| request.id == *id) {
            // Sending fails if the request has timed out.
            Some(request) => drop(request.answer.send(response)),
            None => return Err(response),
        }
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, Option<Request>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Requests the client's roots whenever they may have changed and proposes new roots to the user.
    pub(super) async fn propose_client_roots(&self) {
        let mut seen = HashSet::new();
        for _ in 0..MAX_REQUESTS {
            self.client_roots.changed.notified().await;
            let requested_at = Instant::now();
            match self.fetch_roots().await {
                Ok(uris) => self.propose_uris(&uris, &mut seen).await,
                Err(problem) => self.log.write(format!("failed to get the client's roots: {problem}")),
            }
            tokio::time::sleep_until(requested_at + PAUSE).await;
        }
    }

    async fn fetch_roots(&self) -> Result<Vec<String>, RootsError> {
        let id = Id::from_string(&format!("ironcurtain-roots-{}", random_name()?));
        let (answer, answered) = oneshot::channel();
        *self.client_roots.pending() = Some(Request { id: id.clone(), answer });
        self.to_client.send(request_parts(&id, "roots/list", None));
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, answered).await;
        // The request is forgotten so that a late response is ignored.
        self.client_roots.pending().take_if(|request| request.id == id);
        match answer {
            Ok(Ok(Response::Result(result))) => parse_uris(result.get()),
            Ok(Ok(Response::Error(_))) => Err(RootsError::Refused),
            Ok(Err(_)) | Err(_) => Err(RootsError::TimedOut),
        }
    }

    async fn propose_uris(&self, uris: &[String], seen: &mut HashSet<CanonicalPath>) {
        if let Some(more) = uris.len().checked_sub(MAX_ROOTS).filter(|more| *more > 0) {
            self.log.write(format!("ignored {more} further folders that the client named"));
        }
        for uri in uris.iter().take(MAX_ROOTS) {
            let (resolver, named) = (self.resolver.clone(), uri.clone());
            let found = tokio::task::spawn_blocking(move || named_folder::resolve(&named, &resolver)).await;
            let folder = match found.unwrap_or(Err(FolderRefusal::NoFolder)) {
                Ok(folder) => folder,
                Err(refusal) => {
                    let uri = visible::head(&visible::line(uri), MAX_URI_LEN);
                    self.log.write(format!("the client's root `{uri}` is not proposed: {refusal}"));
                    continue;
                }
            };
            if seen.len() < MAX_PROPOSED && seen.insert(folder.clone()) {
                let source = self.source_of(&folder);
                self.propose_path(&(folder, GrantKind::Tree), source).await;
            }
        }
    }

    fn source_of(&self, folder: &CanonicalPath) -> WorkspaceSource {
        let cwd = self.principal.client.view.cwd.as_deref();
        match cwd.and_then(|cwd| CanonicalPath::assume_canonical(cwd).ok()) {
            Some(cwd) if folder.contains(&cwd) => WorkspaceSource::NamedAndStartedIn,
            Some(_) | None => WorkspaceSource::Named,
        }
    }
}

/// Parses the root URIs in a response.
fn parse_uris(answer: &str) -> Result<Vec<String>, RootsError> {
    #[derive(Deserialize)]
    struct Roots {
        roots: Vec<Root>,
    }
    #[derive(Deserialize)]
    struct Root {
        uri: String,
    }
    if answer.len() > MAX_ANSWER_LEN {
        return Err(RootsError::TooLong(answer.len()));
    }
    let roots: Roots = serde_json::from_str(answer)?;
    Ok(roots.roots.into_iter().map(|root| root.uri).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::RawValue;

    #[test]
    fn an_answer_is_taken_once_by_its_id() {
        let response = || Response::Result(RawValue::from_string("{}".to_owned()).unwrap());
        let roots = ClientRoots::new(true);
        let (answer, mut answered) = oneshot::channel();
        let id = Id::from_string("ours");
        *roots.pending() = Some(Request { id: id.clone(), answer });
        assert!(roots.take_answer(&Id::from_string("of a server"), response()).is_err());
        assert!(answered.try_recv().is_err());
        assert!(roots.take_answer(&id, response()).is_ok() && answered.try_recv().is_ok());
        assert!(roots.take_answer(&id, response()).is_err());
    }

    #[test]
    fn an_invalid_or_long_answer_is_rejected() {
        let parsed = parse_uris(&json!({ "roots": [{ "uri": "file:///a", "name": "a" }] }).to_string());
        assert_eq!(parsed.unwrap(), ["file:///a"]);
        for invalid in
            ["{}", "7", r#"{"roots":{}}"#, r#"{"roots":[{"uri":7}]}"#, r#"{"roots":["file:///a"]}"#]
        {
            assert!(matches!(parse_uris(invalid), Err(RootsError::Invalid(_))), "{invalid}");
        }
        let many = json!({ "roots": vec![json!({ "uri": format!("file:///{}", "x".repeat(90)) }); 10_000] });
        assert!(matches!(parse_uris(&many.to_string()), Err(RootsError::TooLong(_))));
    }
}
