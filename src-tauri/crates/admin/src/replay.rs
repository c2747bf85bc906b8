//! Today's policy over the calls that are on record.
//!
//! - Reads the log, the disk and, for remotes, git; changes nothing and asks nobody.
//! - Policy is held against policy: a call that the person was asked about counts as asked about, whatever the answer
//!   was, and what a grant let through is judged as if its paths were still granted.
//! - A call that cannot be judged as it was is not judged at all, and the reason is told.
//! - What stands in the log after a line that was changed is not looked at.

mod calls;

use ironcurtain_audit::{self as audit, LOG_NAME};
use ironcurtain_daemon::UnresolvedPath;
use ironcurtain_daemon::config::Servers;
use ironcurtain_daemon::home::Home;
use ironcurtain_daemon::judging::JudgingContext;
use ironcurtain_daemon::policy_snapshot::PolicySnapshot;
use ironcurtain_daemon::resolved_call::LocatedCall;
use ironcurtain_paths::{CanonicalPath, PathKind, Resolver};
use ironcurtain_policy::{
    AccessSet, Decision, Denial, DeniedBy, Destination, GrantKind, HostGrant, PathGrant, Role,
    ToolAnnotation, Verdict,
};
use serde_json::{Map, Value};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// The findings of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Entries of the log that hold.
    pub entries: u64,
    /// The reason the log does not hold, and the line; what comes after is not replayed.
    pub problem: Option<String>,
    /// Every call that was judged, in order.
    pub calls: Vec<Replayed>,
}

/// A call on record, and what today's policy says of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// The call.
    pub call: Recorded,
    /// Today's ruling, or why there is none.
    pub now: Result<Ruling, Obstacle>,
}

/// A call as it is on record.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its entry.
    pub seq: u64,
    /// When it was judged, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// The session.
    pub session: String,
    /// The client's name.
    pub client: Option<String>,
    /// The server.
    pub server: String,
    /// The tool.
    pub tool: String,
    /// The arguments as they were judged, secrets redacted.
    pub arguments: Map<String, Value>,
    /// Its paths, canonical.
    pub paths: Vec<String>,
    /// A grant let it through.
    pub granted: bool,
    /// The ruling on record.
    pub then: Ruling,
}

/// A policy's answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The decision.
    pub decision: Decision,
    /// The rule that decided.
    pub rule: String,
    /// Its reason.
    pub reason: String,
}

/// Why a call cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Obstacle {
    /// An argument that was judged is not on record.
    #[error("the argument `{0}` is redacted on record, and the policy looks at it")]
    Redacted(String),
    /// The server is not known any more.
    #[error("the server `{0}` is not configured any more")]
    ServerGone(String),
    /// A path leads elsewhere by now.
    #[error("`{path}` leads to `{leads_to}` by now")]
    Moved {
        /// As it was judged.
        path: String,
        /// The path it leads to now.
        leads_to: String,
    },
    /// Git cannot be asked any more where the remote leads.
    #[error("`{0}` is gone, so git cannot be asked where the remote leads")]
    RepositoryGone(String),
}

/// Why nothing could be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The log cannot be read.
    #[error("the audit log `{path}` cannot be replayed: {source}")]
    Log {
        /// The log.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Our directory of sessions cannot be resolved.
    #[error("{0}")]
    Place(#[from] UnresolvedPath),
}

/// Judges every call of the person's audit log since a moment by a policy.
///
/// # Errors
/// [`ReplayError`], when the log cannot be read or understood.
pub fn replay(
    home: &Home,
    servers: &Servers,
    snapshot: &Arc<PolicySnapshot>,
    since_ms: u64,
) -> Result<Replay, ReplayError> {
    let log = home.audit().join(LOG_NAME);
    let failed = |source| ReplayError::Log { path: log.clone(), source };
    let checked = audit::check(&log).map_err(failed)?;
    let calls = calls::read(&log, checked.length, since_ms).map_err(failed)?;
    let replaying = Replaying { servers, snapshot, sessions: sessions(home, snapshot)? };
    let calls = calls.into_iter().map(|call| Replayed { now: replaying.judge(&call), call });
    // Half a line at the end is one that is being written.
    let problem = checked.problem.filter(|_| !checked.torn);
    Ok(Replay { entries: checked.entries, problem, calls: calls.collect() })
}

fn sessions(home: &Home, snapshot: &PolicySnapshot) -> Result<CanonicalPath, UnresolvedPath> {
    let path = home.sessions().to_string_lossy().into_owned();
    let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
    resolver.locate(&path).map_err(|e| UnresolvedPath { path, problem: e.to_string() })
}

struct Replaying<'a> {
    servers: &'a Servers,
    snapshot: &'a Arc<PolicySnapshot>,
    sessions: CanonicalPath,
}

impl Replaying<'_> {
    fn judge(&self, call: &Recorded) -> Result<Ruling, Obstacle> {
        if self.servers.find(Some(&call.server)).is_none() {
            return Err(Obstacle::ServerGone(call.server.clone()));
        }
        if let Some(argument) = self.hidden(call) {
            return Err(Obstacle::Redacted(argument.to_owned()));
        }
        let setting = self.setting(call);
        let arguments = Arc::new(call.arguments.clone());
        let planned = match setting.plan(&call.tool, &arguments) {
            Ok(planned) => planned,
            Err(denial) => return misfit(call, denial),
        };
        let asks_git = planned.asks_git();
        let located = match planned.locate(&setting) {
            Ok(located) => located,
            Err(denial) => return Ok(denied(denial)),
        };
        match has_changed(call, &located, asks_git) {
            Some(obstacle) => Err(obstacle),
            None => Ok(ruling(setting.judge(located).verdict)),
        }
    }

    fn setting(&self, call: &Recorded) -> JudgingContext {
        let sandbox = self.sessions.join(&call.session).and_then(|session| session.join("sandbox")).ok();
        let base = sandbox.clone().unwrap_or_else(|| self.sessions.clone());
        JudgingContext {
            snapshot: self.snapshot.clone(),
            server: call.server.clone(),
            contained: JudgingContext::contained_by_name(self.servers, &call.server),
            sandbox,
            resolver: Resolver::new(self.snapshot.home.clone(), base),
            grants: grants(call),
            hosts: hosts(call),
            approved: Vec::new(),
        }
    }

    /// An argument that is redacted and that judging may look at.
    fn hidden<'a>(&self, call: &'a Recorded) -> Option<&'a str> {
        let tool = self.snapshot.annotations.get(&call.server, &call.tool)?;
        let mut marked = call.arguments.iter().filter(|(_, value)| audit::is_marked(value));
        marked.find(|(name, _)| is_looked_at(tool, name)).map(|(name, _)| name.as_str())
    }
}

/// Returns `true` if an argument can matter: by its roles, or because a condition looks at it.
fn is_looked_at(tool: &ToolAnnotation, name: &str) -> bool {
    tool.arguments.iter().any(|(argument, roles)| {
        let mut given = roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles));
        let means = **argument == *name && given.any(|role| *role != Role::None);
        means || roles.when.iter().any(|guard| guard.argument == name)
    })
}

/// The grants that let this call through, taken as open still.
fn grants(call: &Recorded) -> Vec<PathGrant> {
    if !call.granted {
        return Vec::new();
    }
    let paths = call.paths.iter().filter_map(|path| CanonicalPath::assume_canonical(path).ok());
    let access = AccessSet { read: true, write: true, delete: true };
    paths.map(|path| PathGrant { id: "then".to_owned(), path, kind: GrantKind::File, access }).collect()
}

/// As above, for the hosts that it names.
fn hosts(call: &Recorded) -> Vec<HostGrant> {
    let texts = call.arguments.values().filter(|_| call.granted).filter_map(Value::as_str);
    let host = |text| {
        let destination = Destination::parse(Role::FetchUrl, text);
        let (host, port) = destination.host_and_port()?;
        Some(HostGrant { id: "then".to_owned(), host: host.to_owned(), port })
    };
    texts.filter_map(host).collect()
}

/// A call that is not understood: where it does not fit its tool, a mark in it may be the reason.
fn misfit(call: &Recorded, denial: Denial) -> Result<Ruling, Obstacle> {
    let mut marked = call.arguments.iter().filter(|(_, value)| audit::is_marked(value));
    match marked.next().filter(|_| denial.by == DeniedBy::InvalidArgument) {
        Some((name, _)) => Err(Obstacle::Redacted(name.clone())),
        None => Ok(denied(denial)),
    }
}

/// The first difference between the machine now and when the call was judged.
fn has_changed(call: &Recorded, located: &LocatedCall, asks_git: bool) -> Option<Obstacle> {
    let was_judged = |written: &String| call.paths.contains(written);
    let moved = located.paths.iter().find(|p| was_judged(&p.written) && p.path.as_str() != p.written);
    if let Some(found) = moved {
        let leads_to = found.path.to_string();
        return Some(Obstacle::Moved { path: found.written.clone(), leads_to });
    }
    let mut gone = located.paths.iter().filter(|p| asks_git && p.target == PathKind::Missing);
    gone.next().map(|found| Obstacle::RepositoryGone(found.path.to_string()))
}

fn ruling(verdict: Verdict) -> Ruling {
    let decision = verdict.decision();
    let by = match verdict {
        Verdict::Allow(permit) => permit.reasons().first().cloned(),
        Verdict::Escalate(escalation) => Some(escalation.by),
        Verdict::Deny(denial) => return denied(denial),
    };
    let (rule, reason) = by.map(|by| (by.rule.to_string(), by.reason.to_string())).unwrap_or_default();
    Ruling { decision, rule, reason }
}

fn denied(Denial { rule, reason, .. }: Denial) -> Ruling {
    Ruling { decision: Decision::Deny, rule: rule.to_string(), reason: reason.to_string() }
}
