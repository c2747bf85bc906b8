//! The scope of a no for the rest of a session: a tool, and the places that it is denied at.

use super::super::grantable::{RequestedAccess, folders};
use super::super::offers::joined;
use super::super::tilde;
use ironcurtain_egress::HostPort;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{ApprovalSubject, PendingApproval};
use ironcurtain_visible as visible;

/// The longest text of a place that is shown.
const LONGEST_PLACE: usize = 200;

/// The tool and the places that a question is about, as far as a no can hold for more than its call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DenialScope {
    /// The tool; nothing where the server asks by itself.
    pub(super) tool: Option<String>,
    pub(super) at: Vec<DeniedPlace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DeniedPlace {
    /// Everything in a folder, or a file.
    Below(CanonicalPath),
    /// An address or a name.
    Text(String),
    /// Calls that name no place.
    Call,
}

impl DenialScope {
    /// The scope of a call that is asked about: its tool, at the folder of each path. A folder that is `too_wide` is none, so
    /// that the path stands for itself.
    #[must_use]
    pub fn of_call(
        tool: &str,
        values: &[PendingApproval],
        requested: &[RequestedAccess],
        too_wide: impl Fn(&CanonicalPath) -> bool,
    ) -> Self {
        let place = |asked: &RequestedAccess| {
            let folder = folders(std::slice::from_ref(asked)).into_iter().map(|(folder, _)| folder).next();
            DeniedPlace::Below(folder.filter(|folder| !too_wide(folder)).unwrap_or(asked.path.clone()))
        };
        let other = |asked: &PendingApproval| match &asked.subject {
            ApprovalSubject::Path(_) => None,
            ApprovalSubject::Text(text) => Some(DeniedPlace::Text(text.to_string())),
            ApprovalSubject::Absent | ApprovalSubject::Call => Some(DeniedPlace::Call),
        };
        let mut at: Vec<DeniedPlace> = requested.iter().map(place).collect();
        at.extend(values.iter().filter_map(other));
        at.dedup();
        Self { tool: Some(tool.to_owned()), at }
    }

    /// The scope of a host that a server wants to reach by itself.
    #[must_use]
    pub fn of_host(target: &HostPort) -> Self {
        Self { tool: None, at: vec![DeniedPlace::Text(target.to_string())] }
    }

    /// The scope of a request that a server makes of its client.
    #[must_use]
    pub fn of_request(method: &str) -> Self {
        Self { tool: Some(method.to_owned()), at: vec![DeniedPlace::Call] }
    }

    /// Its tool and its places, for people.
    #[must_use]
    pub fn words(&self, home: &CanonicalPath) -> String {
        let place = |place: &DeniedPlace| match place {
            DeniedPlace::Below(path) => Some(tilde(path, home)),
            DeniedPlace::Text(text) => {
                Some(visible::quoted(&visible::head(&visible::line(text), LONGEST_PLACE)))
            }
            DeniedPlace::Call => None,
        };
        let places: Vec<String> = self.at.iter().filter_map(place).collect();
        let tool = self.tool.as_deref().map(visible::line);
        match (tool, places.is_empty()) {
            (Some(tool), true) => tool,
            (Some(tool), false) => format!("{tool} in {}", joined(&places)),
            (None, _) => format!("reaching {}", joined(&places)),
        }
    }

    /// True if a no to this is one to that: the same tool, for anything that this names.
    pub(super) fn covers(&self, other: &Self) -> bool {
        let is_denied = |place: &DeniedPlace| self.at.iter().any(|denied| denied.covers(place));
        self.tool == other.tool && other.at.iter().any(is_denied)
    }
}

impl DeniedPlace {
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Below(folder), Self::Below(path)) => folder.contains(path),
            (Self::Below(_), Self::Text(_) | Self::Call) => false,
            (Self::Text(_) | Self::Call, _) => self == other,
        }
    }
}
