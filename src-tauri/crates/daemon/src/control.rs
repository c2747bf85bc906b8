//! Handles requests from the user's own programs over the control socket: listing, revoking and configuring.
//!
//! - No request can answer a question or create a grant. After a lockdown, a pause or a denial ends, the user is asked
//!   again; nothing is allowed automatically.

mod revoking;
mod stopping;
mod undoing;

use crate::daemon_state::DaemonState;
use crate::view;
use ironcurtain_audit as audit;
use ironcurtain_autostart::DecideError;
use ironcurtain_config::{RemoteServer, Servers};
use ironcurtain_connection::{Peer, send};
use ironcurtain_mcp::remote::login::StoredLogin;
use ironcurtain_mcp::wire::{Line, Lines};
use ironcurtain_protocol::{
    AuditCheckView, EndedLoginView, ErrorCode, GrantView, MAX_FRAME_BYTES, Passphrase, Protection, Reply,
    ReplyFrame, Request, RequestFrame, SecretsFileView, SessionView, StatusView,
};
use ironcurtain_secrets::{Secret, SecretError, SecretName, SecretStore, with_unlock_timeout};
use ironcurtain_server::process::{LogoutResult, log_out, store_login};
use ironcurtain_services::{AcceptedCode, CodeError, HealthComponent};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Maximum number of log entries in one response.
const MAX_ENTRIES: usize = 10_000;

/// Serves one connection until the program disconnects.
pub(crate) async fn serve(state: Arc<DaemonState>, mut peer: Peer) {
    if peer.welcome(None).await.is_err() {
        return;
    }
    let (from, mut to) = peer.stream.into_split();
    let mut lines = Lines::new(from, MAX_FRAME_BYTES);
    while let Ok(Some(Line::Whole(line, _))) = lines.next().await {
        // The line is erased after use, because it may contain a passphrase.
        let line = Zeroizing::new(line);
        let requester = Requester::Peer(peer.pid);
        let numbered = match serde_json::from_slice::<RequestFrame>(&line) {
            Ok(RequestFrame { id, request }) => {
                ReplyFrame { id, reply: answer(&state, request, requester).await }
            }
            Err(problem) => ReplyFrame { id: 0, reply: failed(ErrorCode::Malformed, problem.to_string()) },
        };
        if send(&mut to, &numbered).await.is_err() {
            return;
        }
    }
}

/// Program that sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Requester {
    /// The daemon's own process: the app window or the user's terminal.
    Own,
    /// Another program of this user, with this process id.
    Peer(u32),
}

/// Handles one request.
pub(crate) async fn answer(state: &Arc<DaemonState>, request: Request, requester: Requester) -> Reply {
    match request {
        Request::Status => Reply::Status(status(state)),
        Request::Sessions => Reply::Sessions(sessions(state)),
        Request::Session { session } => self::session(state, &session).await,
        Request::AutostartFiles => {
            let live: Vec<String> = sessions(state).into_iter().map(|session| session.id).collect();
            Reply::AutostartFiles(state.services.autostart.sessions_with_undecided(&live).await)
        }
        Request::Quarantine => Reply::Quarantine(state.services.autostart.sessions_in_quarantine().await),
        Request::DecideAutostartFile { session, path, choice } => {
            let is_live = state.principal(&session).is_some();
            match state.services.autostart.decide(&session, path, choice, is_live).await {
                Ok(()) => self::session(state, &session).await,
                Err(problem) => decide_failed(&problem),
            }
        }
        Request::FinalChecks => Reply::FinalChecks(state.services.autostart.final_checks().descriptions()),
        Request::Grants => Reply::Grants(grants(state).await),
        Request::Revoke { grant } => revoking::revoke(state, &grant).await,
        Request::EndSession { session } => end_session(state, &session),
        Request::RequestAccess { session, path, write } => {
            request_access(state, &session, &path, write).await
        }
        Request::Questions => Reply::Questions(view::questions(&state.services.broker)),
        Request::Forget { question } => stopping::forget(state, &question, requester).await,
        Request::Deny { which, note } => stopping::deny(state, &which, note, requester).await,
        Request::Pause { session } => stopping::pause(state, &session, requester).await,
        Request::Resume { session } => stopping::resume(state, &session, requester).await,
        Request::Lockdown { on: true, end_servers } => {
            stopping::begin_lockdown(state, end_servers, requester).await
        }
        Request::Lockdown { on: false, .. } => stopping::end_lockdown(state, requester).await,
        Request::Undo { session, folder, count, failed } => {
            undoing::undo(state, session, &folder, (count, failed), requester).await
        }
        Request::Activity { limit } => activity(state, limit.min(MAX_ENTRIES)).await,
        Request::VerifyAudit => verify_log(state).await,
        Request::Metrics => metrics(state),
        Request::UnlockSecrets { passphrase } => unlock_secrets(state, passphrase).await,
        Request::SecretNames => {
            let names = with_secrets(state, SecretStore::list).await;
            let shown = |names: Vec<SecretName>| names.iter().map(ToString::to_string).collect();
            names.map_or_else(|failed| failed, |names| Reply::SecretNames(shown(names)))
        }
        Request::StoreSecret { name, secret } => match SecretName::try_from(name.as_str()) {
            Ok(name) => {
                let secret = Secret::new(secret.reveal().to_owned());
                done(with_secrets(state, move |store| store.set(&name, &secret)).await)
            }
            Err(problem) => failed(ErrorCode::Malformed, problem.to_string()),
        },
        Request::RemoveSecret { name } => match SecretName::try_from(name.as_str()) {
            Ok(name) => done(with_secrets(state, move |store| store.remove(&name)).await),
            Err(problem) => failed(ErrorCode::Malformed, problem.to_string()),
        },
        Request::Pair { code } => match state.services.desktop.pairing.enter_code(&code) {
            Ok(AcceptedCode { remote, asks_attached }) => Reply::PairingCode { code: remote, asks_attached },
            Err(refused @ CodeError::NotWaiting) => failed(ErrorCode::NotFound, refused.to_string()),
            Err(refused @ CodeError::Wrong) => failed(ErrorCode::Malformed, refused.to_string()),
        },
        Request::StoreLogin { server, login } => store_new_login(state, &server, &login).await,
        Request::EndLogin { server } => end_login(state, &server).await,
        Request::LockSecrets => {
            state.services.programs.secrets.lock();
            state.services.changed();
            Reply::Done
        }
        Request::Shutdown => {
            state.services.shutdown.requested.cancel();
            Reply::Done
        }
    }
}

/// Returns the active sessions and runs for display.
fn sessions(state: &DaemonState) -> Vec<SessionView> {
    let sessions = state.sessions().into_iter().map(|session| session.view());
    sessions.chain(state.runs().into_iter().map(|run| run.view())).collect()
}

async fn session(state: &DaemonState, id: &str) -> Reply {
    match state.services.autostart.session(id).await {
        Ok(found) => Reply::Session(found),
        Err(problem) => decide_failed(&problem),
    }
}

fn decide_failed(problem: &DecideError) -> Reply {
    let code = match problem {
        DecideError::UnknownSession(_)
        | DecideError::NoUndecidedFile { .. }
        | DecideError::NotInQuarantine { .. } => ErrorCode::NotFound,
        DecideError::QuarantineFailed { .. }
        | DecideError::SessionOpen(_)
        | DecideError::RestoreFailed { .. }
        | DecideError::Record { .. }
        | DecideError::NotRecorded(_) => ErrorCode::Storage,
    };
    failed(code, problem.to_string())
}

fn status(state: &DaemonState) -> StatusView {
    let questions = *state.services.broker.open().borrow();
    let (live, runs) = (state.sessions(), state.runs().len());
    let (health, lockdown) = (state.services.health.all(), state.services.broker.stops().now().lockdown);
    StatusView {
        protection: match (health.is_empty(), lockdown, questions) {
            (false, ..) => Protection::Degraded,
            (true, true, _) => Protection::Lockdown,
            (true, false, 0) => Protection::Protecting,
            (true, false, _) => Protection::Asking,
        },
        pid: std::process::id(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_ms: state.started_ms,
        sessions: live.len() + runs,
        runs,
        in_runs: live.iter().filter(|session| session.run.is_some()).count(),
        questions,
        prompt_location: state.services.broker.prompt_location(),
        lockdown,
        troubles: health,
        managed_trouble: state.services.health.get(HealthComponent::Managed),
        servers: state.reloader.settings().servers.names().map(str::to_owned).collect(),
        policy: state.services.snapshot().hash.clone(),
        secrets_file: secrets_file(&state.services.programs.secrets),
        attached_desktop: state.services.desktop.attached().map(String::from),
        other_home: state.services.home.override_warning.as_ref().map(ToString::to_string),
    }
}

/// Returns the entry of a remote server, or `None` if it has no entry or the configuration is invalid.
fn remote_server(state: &DaemonState, name: &str) -> Option<RemoteServer> {
    Servers::load(&state.services.home).ok()?.find(Some(name))?.remote.clone()
}

async fn store_new_login(state: &DaemonState, server: &str, login: &Passphrase) -> Reply {
    let remote = remote_server(state, server);
    let is_for_entry =
        |login: &StoredLogin| remote.as_ref().is_some_and(|remote| remote.url().as_str() == login.url());
    let Some(login) = StoredLogin::parse(login.reveal()).filter(is_for_entry) else {
        return failed(ErrorCode::Malformed, format!("the login is not for the entry of `{server}`"));
    };
    match store_login(&state.services.programs.secrets, (server, remote.as_ref()), login).await {
        Ok(()) => Reply::Done,
        Err(problem) => failed(ErrorCode::Storage, problem.to_string()),
    }
}

async fn end_login(state: &DaemonState, server: &str) -> Reply {
    let remote = remote_server(state, server);
    match log_out(&state.services.programs.secrets, server, remote.as_ref()).await {
        Ok(ended) => Reply::LoginEnded(
            ended.map(|LogoutResult { issuer, is_revoked }| EndedLoginView { issuer, is_revoked }),
        ),
        Err(problem) => failed(ErrorCode::Storage, problem.to_string()),
    }
}

/// Returns the state of the encrypted secrets file, if it exists. Treats an unreachable keyring as locked.
fn secrets_file(store: &SecretStore) -> Option<SecretsFileView> {
    let locked = store.file_is_locked().unwrap_or(Some(true))?;
    Some(SecretsFileView { path: store.path().display().to_string(), locked })
}

async fn unlock_secrets(state: &DaemonState, passphrase: Passphrase) -> Reply {
    let store = state.services.programs.secrets.clone();
    let unlocked =
        with_unlock_timeout(move || store.unlock(Secret::new(passphrase.reveal().to_owned()))).await;
    state.services.changed();
    match unlocked {
        Ok(()) => Reply::Done,
        Err(problem) => failed(ErrorCode::Storage, problem.to_string()),
    }
}

/// Runs a closure with the server secret store.
async fn with_secrets<T: Send + 'static>(
    state: &DaemonState,
    action: impl FnOnce(&SecretStore) -> Result<T, SecretError> + Send + 'static,
) -> Result<T, Reply> {
    let store = state.services.programs.secrets.clone();
    with_unlock_timeout(move || action(&store))
        .await
        .map_err(|problem| failed(ErrorCode::Storage, problem.to_string()))
}

fn done(outcome: Result<(), Reply>) -> Reply {
    outcome.map_or_else(|failed| failed, |()| Reply::Done)
}

/// Returns standing grants, grants for in-flight calls, and revoked grants whose revocation has not been stored yet.
async fn grants(state: &DaemonState) -> Vec<GrantView> {
    let changed = state.services.identities.suspended().await;
    let runs = |server: &str| {
        state
            .sessions()
            .iter()
            .map(|session| session.view())
            .any(|s| s.server == server && s.trouble.is_none())
    };
    let changed = changed.into_iter().map(|server| (server.clone(), runs(&server))).collect();
    let (standing, ending) =
        (state.services.grants.for_display(), state.services.grants.pending_terminations());
    let once: Vec<_> = state.sessions().iter().flat_map(|session| session.one_time_grants()).collect();
    let mut all =
        view::grants(standing.iter().chain(&once), &ending, &changed, &state.services.snapshot().home);
    all.extend(state.services.workspaces.declined().iter().map(view::declined));
    all
}

/// Asks the user to approve an access before a run needs it.
async fn request_access(state: &DaemonState, id: &str, path: &str, write: bool) -> Reply {
    let Some(run) = state.runs().into_iter().find(|run| run.id == id) else {
        return failed(
            ErrorCode::NotFound,
            format!("no active run `{id}`; `ironcurtain sessions` lists them"),
        );
    };
    match run.files.clone().raise(path, write).await {
        Ok(()) => Reply::Done,
        Err(problem) => failed(ErrorCode::Malformed, format!("`{path}`: {problem}")),
    }
}

fn end_session(state: &DaemonState, id: &str) -> Reply {
    if let Some(run) = state.runs().iter().find(|run| run.id == id) {
        run.end();
        return Reply::Done;
    }
    match state.sessions().iter().find(|s| s.id == id) {
        None => failed(ErrorCode::NotFound, format!("no active session `{id}`")),
        Some(session) => {
            session.end();
            Reply::Done
        }
    }
}

async fn activity(state: &DaemonState, limit: usize) -> Reply {
    let log = state.services.home.audit();
    let read = tokio::task::spawn_blocking(move || view::activity(&log, limit)).await;
    match read {
        Ok(Ok(entries)) => Reply::Activity(entries),
        Ok(Err(problem)) => failed(ErrorCode::Storage, format!("failed to read the audit log: {problem}")),
        Err(problem) => failed(ErrorCode::Storage, problem.to_string()),
    }
}

async fn verify_log(state: &DaemonState) -> Reply {
    let log = state.services.home.audit();
    let (written, log_state) = state.services.audit.status();
    match tokio::task::spawn_blocking(move || audit::check_written(&log, &written)).await {
        Ok(Ok(checked)) => {
            // A replaced log file would explain all other problems, so it is reported first.
            let found = log_state.err().map(|lost| lost.to_string()).or(checked.problem);
            let verified_by = "the trusted process that writes the log".to_owned();
            let (intact, entries) = (found.is_none(), checked.entries);
            let problem = found.or_else(|| state.services.audit.unknown_end().map(str::to_owned));
            Reply::Audit(AuditCheckView { intact, entries, problem, verified_by })
        }
        Ok(Err(problem)) => failed(ErrorCode::Storage, format!("failed to read the audit log: {problem}")),
        Err(problem) => failed(ErrorCode::Storage, problem.to_string()),
    }
}

fn metrics(state: &DaemonState) -> Reply {
    match state.metrics() {
        Ok(text) => Reply::Metrics(text),
        Err(problem) => failed(ErrorCode::Storage, format!("failed to encode the metrics: {problem}")),
    }
}

fn failed(code: ErrorCode, message: String) -> Reply {
    Reply::Failed { code, message }
}
