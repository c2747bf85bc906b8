//! A standing permission: who may use it, and what it opens.

use super::Lifetime;
use super::client::UNKNOWN;
use crate::mounts::Need;
use ironcurtain_audit::Entry;
use ironcurtain_egress::{Host, HostPort};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, GrantKind, ToolGrant, ToolUse};
use std::fmt;
use std::net::IpAddr;

/// A standing permission.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingGrant {
    /// Names it everywhere.
    pub id: String,
    /// Who may use it.
    pub subject: GrantSubject,
    /// The files or the host that it opens.
    pub what: Granted,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// When it ends by the clock, in milliseconds since the Unix epoch.
    pub expires_ms: Option<u64>,
    /// When it was given.
    pub created_ms: u64,
    /// When it last let something through.
    pub last_used_ms: Option<u64>,
    /// The number of calls and connections it let through.
    pub uses: u64,
    /// Its origin, in words.
    pub provenance: String,
}

/// The files or the host that a grant opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// Files, by path.
    Files(Files),
    /// One port of one host.
    Host(HostPort),
    /// A tool, with the values that mean something.
    Tool(ToolUse),
}

/// Files that are granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The path of the file, or of the folder.
    pub path: CanonicalPath,
    /// One file, or everything below.
    pub kind: GrantKind,
    /// The access that is granted.
    pub access: AccessSet,
}

impl Granted {
    /// Notes in an entry of the log what is opened.
    pub fn note_in(&self, entry: &mut Entry) {
        match self {
            Self::Files(files) => entry.paths = vec![files.path.as_str().to_owned()],
            Self::Host(target) => entry.about_host(&target.host, target.port),
            Self::Tool(tool) => entry.tool_name = Some(tool.tool().to_owned()),
        }
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => f.write_str(files.path.as_str()),
            Self::Host(target) => write!(f, "{target}"),
            Self::Tool(tool) => write!(f, "{tool}"),
        }
    }
}

impl StandingGrant {
    /// The files it opens, if it does.
    #[must_use]
    pub fn files(&self) -> Option<&Files> {
        match &self.what {
            Granted::Files(files) => Some(files),
            Granted::Host(_) | Granted::Tool(_) => None,
        }
    }

    /// The host it opens, if it does, as the proxy needs it.
    #[must_use]
    pub fn for_proxy(&self) -> Option<ironcurtain_egress::GrantedHost> {
        match &self.what {
            Granted::Files(_) | Granted::Tool(_) => None,
            Granted::Host(target) => {
                Some(ironcurtain_egress::GrantedHost { id: self.id.clone(), target: target.clone() })
            }
        }
    }

    /// The host it opens, if it does, as judging needs it.
    #[must_use]
    pub fn for_gate(&self) -> Option<ironcurtain_policy::HostGrant> {
        let Granted::Host(target) = &self.what else { return None };
        let host = match &target.host {
            Host::Address(IpAddr::V6(v6)) => format!("[{v6}]"),
            host @ (Host::Name(_) | Host::Address(_)) => host.to_string(),
        };
        Some(ironcurtain_policy::HostGrant { id: self.id.clone(), host, port: target.port })
    }

    /// The tool it allows, if it does, as judging needs it.
    #[must_use]
    pub fn for_tool(&self) -> Option<ToolGrant> {
        let Granted::Tool(tool) = &self.what else { return None };
        Some(ToolGrant { id: self.id.clone(), tool: tool.clone() })
    }

    /// As judging needs it, if it opens files.
    #[must_use]
    pub fn for_judging(&self) -> Option<ironcurtain_policy::PathGrant> {
        let Files { path, kind, access } = self.files()?.clone();
        Some(ironcurtain_policy::PathGrant { id: self.id.clone(), path, kind, access })
    }

    /// Returns `true` if the mount that stands for it shows this as well.
    #[must_use]
    pub fn shows(&self, need: &Need) -> bool {
        self.files().is_some_and(|files| files.show(need))
    }
}

impl Files {
    fn show(&self, need: &Need) -> bool {
        let reaches = match self.kind {
            GrantKind::File => self.path == need.path,
            GrantKind::Tree => self.path.contains(&need.path),
        };
        let writable = self.access.write || self.access.delete;
        reaches && (writable || self.access.read) && (writable || !need.writable)
    }
}

/// Who a grant is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSubject {
    /// The client, by the key the kernel proved: its executable.
    pub client: String,
    /// Its name for people.
    pub client_name: String,
    /// The server.
    pub server: String,
    /// The one session it is for, if it ends with a session.
    pub session: Option<String>,
}

impl GrantSubject {
    /// Returns `true` if a session of `client` with `server` may use a grant of this subject. A client that the kernel does not
    /// show has grants of its session alone: the next one that hides may be another.
    #[must_use]
    pub fn covers(&self, client: &str, server: &str, session: &str) -> bool {
        let is_in_time = match &self.session {
            Some(own) => own == session,
            None => client != UNKNOWN,
        };
        self.client == client && self.server == server && is_in_time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_hides_has_grants_of_its_session_alone() {
        let of = |client: &str, session: Option<&str>| GrantSubject {
            client: client.to_owned(),
            client_name: client.to_owned(),
            server: "notes".to_owned(),
            session: session.map(str::to_owned),
        };
        let covers = |subject: GrantSubject| subject.covers(&subject.client, "notes", "s");
        assert!(covers(of("/opt/claude", None)) && covers(of("/opt/claude", Some("s"))));
        assert!(covers(of(UNKNOWN, Some("s"))));
        assert!(!covers(of(UNKNOWN, None)) && !covers(of(UNKNOWN, Some("t"))));
    }
}
