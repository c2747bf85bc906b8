//! Judges recorded calls by another policy, and reports which become looser or stricter.
//!
//! - Compares policies only: a call that required approval counts as such regardless of the answer, and a call that a grant
//!   allowed is judged as if the grant were still in force.
//! - A call that cannot be judged as before is not judged, and the reason is reported.
//! - The caller reads the audit log and judges the calls, because both need disk access.

mod comparison;

pub use comparison::{AlikeCalls, AlikeGroups, ReplayComparison};

use crate::Ruling;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    AccessSet, Annotations, Denial, DeniedBy, Destination, GrantKind, HostGrant, PathGrant, ResolvedCall,
    Role, ToolAnnotation, ToolGrant, ToolScope, ToolUse,
};
use serde_json::{Map, Value};

/// Result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Number of valid log entries.
    pub entries: u64,
    /// Problem with the log, with its line; later entries are not replayed.
    pub problem: Option<String>,
    /// Judged calls, in order.
    pub calls: Vec<Replayed>,
}

/// A recorded call, and the current policy's ruling.
#[derive(Debug, Clone, PartialEq)]
pub struct Replayed {
    /// Recorded call.
    pub call: Recorded,
    /// Current ruling, or the reason that the call cannot be judged.
    pub now: Result<Ruling, Obstacle>,
}

/// A call as recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Position of its entry.
    pub seq: u64,
    /// Time of the decision, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// Session id.
    pub session: String,
    /// Client name.
    pub client: Option<String>,
    /// Server name.
    pub server: String,
    /// Tool name.
    pub tool: String,
    /// Arguments as judged, with secrets redacted.
    pub arguments: Map<String, Value>,
    /// Names of arguments with redacted parts, in order.
    pub redacted: Vec<String>,
    /// Canonical paths.
    pub paths: Vec<String>,
    /// Set if a grant allowed it.
    pub granted: bool,
    /// Recorded ruling.
    pub then: Ruling,
}

/// Reason why a call cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Obstacle {
    /// A judged argument was redacted.
    #[error("the argument `{0}` is redacted in the audit log, and the policy depends on it")]
    Redacted(String),
    /// The server is no longer configured.
    #[error("the server `{0}` is no longer configured")]
    ServerRemoved(String),
    /// A path now has another target.
    #[error("`{path}` now leads to `{leads_to}`")]
    Moved {
        /// Path as judged.
        path: String,
        /// Current target.
        leads_to: String,
    },
    /// The repository is missing, so its remotes are unknown.
    #[error("`{0}` no longer exists, so git cannot resolve its remotes")]
    RepositoryRemoved(String),
}

impl Recorded {
    /// Returns the first redacted argument that affects the decision.
    #[must_use]
    pub fn hidden(&self, annotations: &Annotations) -> Option<Obstacle> {
        let tool = annotations.get(&self.server, &self.tool)?;
        let hidden = self.redacted.iter().find(|name| affects_decision(tool, name))?;
        Some(Obstacle::Redacted(hidden.clone()))
    }

    /// Returns the ruling on a call that cannot be planned. Redaction may be the reason that arguments are invalid.
    ///
    /// # Errors
    /// [`Obstacle::Redacted`], in that case.
    pub fn not_understood(&self, denial: &Denial) -> Result<Ruling, Obstacle> {
        match self.redacted.first().filter(|_| denial.by == DeniedBy::InvalidArgument) {
            Some(name) => Err(Obstacle::Redacted(name.clone())),
            None => Ok(Ruling::from(denial)),
        }
    }

    /// Returns the grants that allowed this call, as if they were still valid.
    #[must_use]
    pub fn grants(&self) -> Vec<PathGrant> {
        if !self.granted {
            return Vec::new();
        }
        let paths = self.paths.iter().filter_map(|path| CanonicalPath::assume_canonical(path).ok());
        let access = AccessSet { read: true, write: true, delete: true };
        paths.map(|path| PathGrant { id: "then".to_owned(), path, kind: GrantKind::File, access }).collect()
    }

    /// Returns grants like [`Recorded::grants`], for its use of the tool.
    #[must_use]
    pub fn tools(&self, call: &ResolvedCall) -> Vec<ToolGrant> {
        let tool = ToolUse::of(call).filter(|_| self.granted);
        tool.map(|tool| ToolGrant { id: "then".to_owned(), scope: ToolScope::Use(tool) })
            .into_iter()
            .collect()
    }

    /// Returns grants like [`Recorded::grants`], for the hosts it names.
    #[must_use]
    pub fn hosts(&self) -> Vec<HostGrant> {
        let texts = self.arguments.values().filter(|_| self.granted).filter_map(Value::as_str);
        let host = |text| {
            let destination = Destination::parse(Role::FetchUrl, text);
            let (host, port) = destination.host_and_port()?;
            Some(HostGrant { id: "then".to_owned(), host: host.to_owned(), port })
        };
        texts.filter_map(host).collect()
    }
}

/// Returns `true` if an argument affects the decision, by its roles or by a condition.
fn affects_decision(tool: &ToolAnnotation, name: &str) -> bool {
    tool.arguments.iter().any(|(argument, roles)| {
        let mut given = roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles));
        let means = **argument == *name && given.any(|role| *role != Role::None);
        means || roles.when.iter().any(|guard| guard.argument == name)
    })
}
