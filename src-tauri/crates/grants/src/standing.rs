//! Standing grants: the clients and servers that may use them, and the resources they permit access to.

use super::Lifetime;
use super::client::UNKNOWN;
use crate::mounts::MountRequest;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_egress::{Host, HostPort};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, GrantKind, ToolGrant, ToolScope};
use std::fmt;
use std::net::IpAddr;

/// Grant with its lifetime and use count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingGrant {
    /// Unique id of the grant.
    pub id: String,
    /// Client, server and session that may use the grant.
    pub subject: GrantSubject,
    /// Files, host or tools that the grant permits.
    pub what: Granted,
    /// Lifetime that the user chose.
    pub lifetime: Lifetime,
    /// Wall-clock time of expiry, in milliseconds since the Unix epoch; `None` if the grant has no fixed duration.
    pub expires_ms: Option<u64>,
    /// Time of creation, in milliseconds since the Unix epoch.
    pub created_ms: u64,
    /// Time of the last use, in milliseconds since the Unix epoch; `None` if the grant was never used.
    pub last_used_ms: Option<u64>,
    /// Number of calls and connections that used the grant.
    pub uses: u64,
    /// Description of how the grant was created, for the user.
    pub provenance: String,
}

/// Files, host or tools that a grant permits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// A file or folder.
    Files(Files),
    /// One port on one host.
    Host(HostPort),
    /// Tools on the server.
    Tool(ToolScope),
}

/// File or folder that a grant covers, with the permitted access.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Path of the file or folder.
    pub path: CanonicalPath,
    /// Extent of the grant: only the path itself, or also everything below it.
    pub kind: GrantKind,
    /// Permitted kinds of access.
    pub access: AccessSet,
}

impl Granted {
    /// Adds the granted resource to an audit entry.
    pub fn add_to_entry(&self, entry: &mut Entry) {
        match self {
            Self::Files(files) => entry.paths = vec![files.path.as_str().to_owned()],
            Self::Host(target) => entry.set_host(&target.host, target.port),
            Self::Tool(scope) => entry.tool_name = scope.tool().map(str::to_owned),
        }
    }
}

impl fmt::Display for Granted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => f.write_str(files.path.as_str()),
            Self::Host(target) => write!(f, "{target}"),
            Self::Tool(scope) => write!(f, "{scope}"),
        }
    }
}

impl StandingGrant {
    /// Creates an audit entry about the grant.
    #[must_use]
    pub fn entry(&self, event: Event, summary: impl Into<String>) -> Entry {
        let mut entry = Entry::new(event, summary);
        entry.grant_id = Some(self.id.clone());
        entry.client = Some(self.subject.client_name.clone());
        entry.server_name = Some(self.subject.server.clone());
        entry.session.clone_from(&self.subject.session);
        self.what.add_to_entry(&mut entry);
        entry
    }

    /// Returns the files that the grant covers, if any.
    #[must_use]
    pub fn files(&self) -> Option<&Files> {
        match &self.what {
            Granted::Files(files) => Some(files),
            Granted::Host(_) | Granted::Tool(_) => None,
        }
    }

    /// Returns the host that the grant permits, if any, in the form that the proxy uses.
    #[must_use]
    pub fn for_proxy(&self) -> Option<ironcurtain_egress::GrantedHost> {
        match &self.what {
            Granted::Files(_) | Granted::Tool(_) => None,
            Granted::Host(target) => {
                Some(ironcurtain_egress::GrantedHost { id: self.id.clone(), target: target.clone() })
            }
        }
    }

    /// Returns the host that the grant permits, if any, in the form that the judge uses.
    #[must_use]
    pub fn for_gate(&self) -> Option<ironcurtain_policy::HostGrant> {
        let Granted::Host(target) = &self.what else { return None };
        let host = match &target.host {
            Host::Address(IpAddr::V6(v6)) => format!("[{v6}]"),
            host @ (Host::Name(_) | Host::Address(_)) => host.to_string(),
        };
        Some(ironcurtain_policy::HostGrant {
            id: self.id.clone(),
            created_ms: self.created_ms,
            host,
            port: target.port,
        })
    }

    /// Returns the tools that the grant permits, if any, in the form that the judge uses.
    #[must_use]
    pub fn for_tool(&self) -> Option<ToolGrant> {
        let Granted::Tool(scope) = &self.what else { return None };
        Some(ToolGrant { id: self.id.clone(), created_ms: self.created_ms, scope: scope.clone() })
    }

    /// Returns the path that the grant covers, if any, in the form that the judge uses.
    #[must_use]
    pub fn for_judging(&self) -> Option<ironcurtain_policy::PathGrant> {
        let Files { path, kind, access } = self.files()?.clone();
        Some(ironcurtain_policy::PathGrant {
            id: self.id.clone(),
            created_ms: self.created_ms,
            path,
            kind,
            access,
        })
    }

    /// Returns `true` if the mount for this grant also meets `need`.
    #[must_use]
    pub fn shows(&self, need: &MountRequest) -> bool {
        self.files().is_some_and(|files| files.show(need))
    }
}

impl Files {
    fn show(&self, need: &MountRequest) -> bool {
        let reaches = match self.kind {
            GrantKind::File => self.path == need.path,
            GrantKind::Tree => self.path.contains(&need.path),
        };
        let writable = self.access.write || self.access.delete;
        reaches && (writable || self.access.read) && (writable || !need.writable)
    }
}

/// Client, server and session that may use a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSubject {
    /// Key of the client, [`Client::key`](crate::Client::key).
    pub client: String,
    /// Name of the client for display.
    pub client_name: String,
    /// Name of the server.
    pub server: String,
    /// Id of the session with which the grant ends, or `None` if the grant outlives its session.
    pub session: Option<String>,
}

impl GrantSubject {
    /// Returns `true` if a session of `client` with `server` may use the grant. A client whose executable is unknown
    /// may use only grants for that session, because another unknown client may be a different program.
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
    fn an_unidentified_client_uses_only_its_sessions_grants() {
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
