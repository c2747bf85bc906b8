//! Judges recorded calls by a different policy and reports the calls that are judged less or more strictly.
//!
//! - Only the policies are compared: a call that required approval counts as such regardless of the answer, and a
//!   call that a grant allowed is judged as if the grant were still active.
//! - A call that cannot be judged as it was recorded is skipped, and the reason is reported.
//! - The caller reads the audit log and judges the calls, because both need disk access.

mod comparison;

pub use comparison::{CallGroupKey, CallGroups, ReplayComparison};

use crate::Ruling;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    AccessSet, Annotations, Denial, DeniedBy, Destination, GrantKind, HostGrant, PathGrant, ResolvedCall,
    Role, ToolAnnotation, ToolGrant, ToolScope, ToolUse,
};
use serde_json::{Map, Value};

/// Result of replaying an audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Number of valid entries in the log.
    pub entries: u64,
    /// Description and line of the first invalid entry, or `None`. That entry and later ones are not replayed.
    pub problem: Option<String>,
    /// Replayed calls, in the order of the log.
    pub calls: Vec<ReplayedCall>,
}

/// Recorded call and its ruling under the current policy.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplayedCall {
    /// Recorded call.
    pub call: RecordedCall,
    /// Current ruling, or the reason the call cannot be replayed.
    pub now: Result<Ruling, CannotReplay>,
}

/// A call as recorded in the audit log.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedCall {
    /// Sequence number of the log entry.
    pub seq: u64,
    /// Time of the decision, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Id of the session.
    pub session: String,
    /// Name of the client, if recorded.
    pub client: Option<String>,
    /// Server name.
    pub server: String,
    /// Tool name.
    pub tool: String,
    /// Arguments as they were judged, with secrets redacted.
    pub arguments: Map<String, Value>,
    /// Names of the arguments that contain redacted parts, in order.
    pub redacted: Vec<String>,
    /// Canonical paths that the call named.
    pub paths: Vec<String>,
    /// `true` if a grant allowed the call.
    pub granted: bool,
    /// Ruling at the time of the call.
    pub then: Ruling,
}

/// Reason a call cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum CannotReplay {
    /// An argument on which the decision depends is redacted.
    #[error("the argument `{0}` is redacted in the audit log, and the policy depends on it")]
    Redacted(String),
    /// The call's server is no longer configured.
    #[error("the server `{0}` is no longer configured")]
    ServerRemoved(String),
    /// A path now resolves to a different target.
    #[error("`{path}` now leads to `{leads_to}`")]
    Moved {
        /// Path that was judged.
        path: String,
        /// Current target of the path.
        leads_to: String,
    },
    /// The repository does not exist, so its remotes are unknown.
    #[error("`{0}` no longer exists, so git cannot resolve its remotes")]
    RepositoryRemoved(String),
}

impl RecordedCall {
    /// Returns an obstacle if a redacted argument affects the decision.
    #[must_use]
    pub fn check_redacted(&self, annotations: &Annotations) -> Option<CannotReplay> {
        let tool = annotations.get(&self.server, &self.tool)?;
        let redacted = self.redacted.iter().find(|name| affects_decision(tool, name))?;
        Some(CannotReplay::Redacted(redacted.clone()))
    }

    /// Returns the ruling on a call that could not be planned.
    ///
    /// # Errors
    /// Returns [`CannotReplay::Redacted`] if an argument may be invalid only because it was redacted.
    pub fn ruling_without_plan(&self, denial: &Denial) -> Result<Ruling, CannotReplay> {
        match self.redacted.first().filter(|_| denial.by == DeniedBy::InvalidArgument) {
            Some(name) => Err(CannotReplay::Redacted(name.clone())),
            None => Ok(Ruling::from(denial)),
        }
    }

    /// Returns path grants for the recorded paths. Empty if no grant allowed the call.
    #[must_use]
    pub fn grants(&self) -> Vec<PathGrant> {
        if !self.granted {
            return Vec::new();
        }
        let paths = self.paths.iter().filter_map(|path| CanonicalPath::assume_canonical(path).ok());
        let access = AccessSet { read: true, write: true, delete: true };
        paths
            .map(|path| PathGrant {
                id: "then".to_owned(),
                created_ms: u64::MAX,
                path,
                kind: GrantKind::File,
                access,
            })
            .collect()
    }

    /// Returns a tool grant for the call's tool use. Empty if no grant allowed the call.
    #[must_use]
    pub fn tools(&self, call: &ResolvedCall) -> Vec<ToolGrant> {
        let tool = ToolUse::from_call(call).filter(|_| self.granted);
        tool.map(|tool| ToolGrant {
            id: "then".to_owned(),
            created_ms: u64::MAX,
            scope: ToolScope::Use(tool),
        })
        .into_iter()
        .collect()
    }

    /// Returns host grants for the hosts in the arguments. Empty if no grant allowed the call.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostGrant> {
        let texts = self.arguments.values().filter(|_| self.granted).filter_map(Value::as_str);
        let host = |text| {
            let destination = Destination::parse(Role::FetchUrl, text);
            let (host, port) = destination.host_and_port()?;
            Some(HostGrant { id: "then".to_owned(), created_ms: u64::MAX, host: host.to_owned(), port })
        };
        texts.filter_map(host).collect()
    }
}

/// Returns `true` if an argument affects the decision, either through its roles or through a condition.
fn affects_decision(tool: &ToolAnnotation, name: &str) -> bool {
    tool.arguments.iter().any(|(argument, roles)| {
        let mut all_roles = roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles));
        let is_argument = **argument == *name && all_roles.any(|role| *role != Role::None);
        is_argument || roles.when.iter().any(|guard| guard.argument == name)
    })
}
