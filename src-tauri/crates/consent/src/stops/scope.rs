//! Scope of a session-long denial: a tool and its targets (paths, URLs, hosts or other names).

use super::super::grantable::{RequestedAccess, folders};
use super::super::offers::join_words;
use crate::offers::tilde;
use ironcurtain_egress::HostPort;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{ApprovalSubject, PendingApproval};
use ironcurtain_visible as visible;

/// Maximum displayed length of a target, in characters.
const MAX_PLACE_LEN: usize = 200;

/// Calls to which a denial applies in addition to the denied call: calls to the same tool with the same targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialScope {
    /// Name of the tool, or `None` if the server makes the request itself.
    pub(super) tool: Option<String>,
    pub(super) at: Vec<DeniedTarget>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeniedTarget {
    /// A file, or a folder with everything below it.
    Below(CanonicalPath),
    /// A URL, a host or another name.
    Text(String),
    /// Any call to the tool, because the denied call names no target.
    Call,
}

impl DenialScope {
    /// Returns the scope of a call that requires approval: its tool and the folder of each path. A folder for which
    /// `too_wide` returns `true` is replaced by the path itself.
    #[must_use]
    pub fn of_call(
        tool: &str,
        values: &[PendingApproval],
        requested: &[RequestedAccess],
        too_wide: impl Fn(&CanonicalPath) -> bool,
    ) -> Self {
        let target = |asked: &RequestedAccess| {
            let folder = folders(std::slice::from_ref(asked)).into_iter().map(|(folder, _)| folder).next();
            DeniedTarget::Below(folder.filter(|folder| !too_wide(folder)).unwrap_or(asked.path.clone()))
        };
        let other = |asked: &PendingApproval| match &asked.subject {
            ApprovalSubject::Path(_) => None,
            ApprovalSubject::Text(text) => Some(DeniedTarget::Text(text.to_string())),
            ApprovalSubject::Absent | ApprovalSubject::Call => Some(DeniedTarget::Call),
        };
        let mut at: Vec<DeniedTarget> = requested.iter().map(target).collect();
        at.extend(values.iter().filter_map(other));
        at.dedup();
        Self { tool: Some(tool.to_owned()), at }
    }

    /// Returns the scope of a connection from a server to a host.
    #[must_use]
    pub fn of_host(target: &HostPort) -> Self {
        Self { tool: None, at: vec![DeniedTarget::Text(target.to_string())] }
    }

    /// Returns the scope of a remote machine's question. The remote machine applies session-long denials itself.
    #[must_use]
    pub fn of_remote() -> Self {
        Self { tool: None, at: Vec::new() }
    }

    /// Returns the scope of a request from a server to its client.
    #[must_use]
    pub fn of_request(method: &str) -> Self {
        Self { tool: Some(method.to_owned()), at: vec![DeniedTarget::Call] }
    }

    /// Describes the tool and its targets for the user.
    #[must_use]
    pub fn words(&self, home: &CanonicalPath) -> String {
        let description = |denied: &DeniedTarget| match denied {
            DeniedTarget::Below(path) => Some(tilde(path, home)),
            DeniedTarget::Text(text) => {
                Some(visible::quoted(&visible::head(&visible::line(text), MAX_PLACE_LEN)))
            }
            DeniedTarget::Call => None,
        };
        let targets: Vec<String> = self.at.iter().filter_map(description).collect();
        let tool = self.tool.as_deref().map(visible::line);
        match (tool, targets.is_empty()) {
            (Some(tool), true) => tool,
            (Some(tool), false) => format!("{tool} in {}", join_words(&targets)),
            (None, _) => format!("reaching {}", join_words(&targets)),
        }
    }

    /// Returns `true` if this denial applies to a call with the other scope: the tool is the same, and this scope
    /// includes one of the other scope's targets.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_denied = |target: &DeniedTarget| self.at.iter().any(|denied| denied.covers(target));
        self.tool == other.tool && other.at.iter().any(is_denied)
    }
}

impl DeniedTarget {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(folder), Self::Below(path)) => folder.contains(path),
            (Self::Below(_), Self::Text(_) | Self::Call) => false,
            (Self::Text(_) | Self::Call, _) => self == other,
        }
    }
}
