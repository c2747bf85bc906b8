//! Re-evaluates the calls in the audit log with a different policy.
//!
//! - Reads the log and the disk, and queries git for remotes. Changes nothing and asks no questions.
//! - [`ironcurtain_policy_tools::replay`] compares the old and new decisions.
//! - Ignores everything after the first line that was tampered with.

mod calls;

use ironcurtain_audit as audit;
use ironcurtain_config::home::{Home, UnresolvedPath};
use ironcurtain_config::{PolicySnapshot, Servers};
use ironcurtain_consent::located_call::LocatedCall;
use ironcurtain_judging::JudgingContext;
use ironcurtain_paths::{CanonicalPath, PathKind, Resolver};
use ironcurtain_policy_tools::Ruling;
use ironcurtain_policy_tools::replay::{CannotReplay, RecordedCall, Replay, ReplayedCall};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Error from replaying the log.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log could not be read.
    #[error("failed to replay the audit log `{path}`: {source}")]
    Log {
        /// Path of the log.
        path: PathBuf,
        /// Cause of the failure.
        source: io::Error,
    },
    /// The path of the sessions folder could not be resolved.
    #[error("{0}")]
    SessionsFolder(#[from] UnresolvedPath),
}

/// Evaluates each call in the audit log since `since_ms` with a policy.
///
/// # Errors
/// Returns a [`ReplayError`] if the log is unreadable or invalid.
pub fn replay(
    home: &Home,
    servers: &Servers,
    snapshot: &Arc<PolicySnapshot>,
    since_ms: u64,
) -> Result<Replay, ReplayError> {
    let log = home.audit();
    let failed = |source| ReplayError::Log { path: log.clone(), source };
    let checked = audit::check(&log).map_err(failed)?;
    let calls = calls::read(&log, checked.entries, since_ms).map_err(failed)?;
    let replayer = Replayer { home, servers, snapshot, sessions: sessions(home, snapshot)? };
    let calls = calls.into_iter().map(|call| ReplayedCall { now: replayer.judge(&call), call });
    // Ignores an incomplete last line, because it is still being written.
    let problem = checked.problem.filter(|_| !checked.torn);
    Ok(Replay { entries: checked.entries, problem, calls: calls.collect() })
}

fn sessions(home: &Home, snapshot: &PolicySnapshot) -> Result<CanonicalPath, UnresolvedPath> {
    let path = home.sessions().to_string_lossy().into_owned();
    let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
    resolver.locate(&path).map_err(|e| UnresolvedPath { path, problem: e.to_string() })
}

struct Replayer<'a> {
    home: &'a Home,
    servers: &'a Servers,
    snapshot: &'a Arc<PolicySnapshot>,
    sessions: CanonicalPath,
}

impl Replayer<'_> {
    fn judge(&self, call: &RecordedCall) -> Result<Ruling, CannotReplay> {
        if self.servers.find(Some(&call.server)).is_none() {
            return Err(CannotReplay::ServerRemoved(call.server.clone()));
        }
        if let Some(obstacle) = call.check_redacted(&self.snapshot.annotations) {
            return Err(obstacle);
        }
        let mut context = self.judging_context(call);
        let arguments = Arc::new(call.arguments.clone());
        let planned = match context.plan(&call.tool, &arguments) {
            Ok(planned) => planned,
            Err(denial) => return call.ruling_without_plan(&denial),
        };
        let asks_git = planned.needs_git();
        let located = match planned.locate(&context) {
            Ok(located) => located,
            Err(denial) => return Ok(Ruling::from(&denial)),
        };
        context.tools = call.tools(&located.call);
        match change_since(call, &located, asks_git) {
            Some(obstacle) => Err(obstacle),
            None => Ok(Ruling::from(&context.judge(located).verdict)),
        }
    }

    fn judging_context(&self, call: &RecordedCall) -> JudgingContext {
        let sandbox = self.sessions.join(&call.session).and_then(|session| session.join("sandbox")).ok();
        let base = sandbox.clone().unwrap_or_else(|| self.sessions.clone());
        let grants = call.grants();
        let server = call.server.as_str();
        let reach = JudgingContext::reach_by_entry(self.home, self.servers, self.snapshot, server, &grants);
        let confined = JudgingContext::confined_by_entry(self.home, self.servers, self.snapshot, server);
        JudgingContext {
            snapshot: self.snapshot.clone(),
            server: call.server.clone(),
            contained: JudgingContext::contained_by_name(self.servers, &call.server),
            denied: JudgingContext::denied_by_entry(
                self.home,
                self.servers,
                self.snapshot,
                server,
                sandbox.as_ref(),
            ),
            unannotated: JudgingContext::unannotated_by_name(self.servers, &call.server),
            sandbox,
            resolver: Resolver::new(self.snapshot.home.clone(), base),
            grants,
            hosts: call.hosts(),
            tools: Vec::new(),
            approved: Vec::new(),
            reach,
            confined,
            reading_hints: Arc::default(),
        }
    }
}

/// Returns the first change on this computer, made since the recorded decision, that could affect the new decision.
fn change_since(call: &RecordedCall, located: &LocatedCall, asks_git: bool) -> Option<CannotReplay> {
    let was_recorded = |written: &String| call.paths.contains(written);
    let redirected = located.paths.iter().find(|p| was_recorded(&p.written) && p.path.as_str() != p.written);
    if let Some(found) = redirected {
        let leads_to = found.path.to_string();
        return Some(CannotReplay::Moved { path: found.written.clone(), leads_to });
    }
    let mut missing = located.paths.iter().filter(|p| asks_git && p.target == PathKind::Missing);
    missing.next().map(|found| CannotReplay::RepositoryRemoved(found.path.to_string()))
}
