//! The calls on record under another policy: which of them come out looser, and which stricter.
//!
//! - Policy is held against policy: a call that the person was asked about counts as asked about, whatever the answer
//!   was, and what a grant let through is judged as if its paths were still granted.
//! - A call that cannot be judged as it was is not judged at all, and the reason is told.
//! - Whoever asks reads the record and judges the calls, since that needs the disk.

mod comparison;

pub use comparison::{AlikeCalls, AlikeGroups, ReplayComparison};

use crate::Ruling;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{
    AccessSet, Annotations, Denial, DeniedBy, Destination, GrantKind, HostGrant, PathGrant, ResolvedCall,
    Role, ToolAnnotation, ToolGrant, ToolUse,
};
use serde_json::{Map, Value};

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
    /// Those of its arguments in which something is redacted, in their order.
    pub redacted: Vec<String>,
    /// Its paths, canonical.
    pub paths: Vec<String>,
    /// A grant let it through.
    pub granted: bool,
    /// The ruling on record.
    pub then: Ruling,
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

impl Recorded {
    /// The first argument that is redacted and that judging may look at.
    #[must_use]
    pub fn hidden(&self, annotations: &Annotations) -> Option<Obstacle> {
        let tool = annotations.get(&self.server, &self.tool)?;
        let hidden = self.redacted.iter().find(|name| is_looked_at(tool, name))?;
        Some(Obstacle::Redacted(hidden.clone()))
    }

    /// The ruling on a call that is not understood. Where it does not fit its tool, a redaction may be the reason.
    ///
    /// # Errors
    /// [`Obstacle::Redacted`], where that is so.
    pub fn not_understood(&self, denial: &Denial) -> Result<Ruling, Obstacle> {
        match self.redacted.first().filter(|_| denial.by == DeniedBy::InvalidArgument) {
            Some(name) => Err(Obstacle::Redacted(name.clone())),
            None => Ok(Ruling::from(denial)),
        }
    }

    /// The grants that let this call through, taken as open still.
    #[must_use]
    pub fn grants(&self) -> Vec<PathGrant> {
        if !self.granted {
            return Vec::new();
        }
        let paths = self.paths.iter().filter_map(|path| CanonicalPath::assume_canonical(path).ok());
        let access = AccessSet { read: true, write: true, delete: true };
        paths.map(|path| PathGrant { id: "then".to_owned(), path, kind: GrantKind::File, access }).collect()
    }

    /// As [`Recorded::grants`], for the use that it makes of its tool.
    #[must_use]
    pub fn tools(&self, call: &ResolvedCall) -> Vec<ToolGrant> {
        let tool = ToolUse::of(call).filter(|_| self.granted);
        tool.map(|tool| ToolGrant { id: "then".to_owned(), tool }).into_iter().collect()
    }

    /// As [`Recorded::grants`], for the hosts that it names.
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

/// Returns `true` if an argument can matter: by its roles, or because a condition looks at it.
fn is_looked_at(tool: &ToolAnnotation, name: &str) -> bool {
    tool.arguments.iter().any(|(argument, roles)| {
        let mut given = roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles));
        let means = **argument == *name && given.any(|role| *role != Role::None);
        means || roles.when.iter().any(|guard| guard.argument == name)
    })
}
