//! A standing grant: who may use it, and what it opens.

use super::Lifetime;
use super::client::UNKNOWN;
use crate::mounts::Need;
use ironcurtain_audit::Entry;
use ironcurtain_egress::{Host, HostPort};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{AccessSet, GrantKind, ToolGrant, ToolScope};
use std::fmt;
use std::net::IpAddr;

/// A standing grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StandingGrant {
    /// Unique id.
    pub id: String,
    /// Client, server and session that may use it.
    pub subject: GrantSubject,
    /// Opened files, host or tool.
    pub what: Granted,
    /// Duration of the grant.
    pub lifetime: Lifetime,
    /// Expiry by the wall clock, in milliseconds since the Unix epoch.
    pub expires_ms: Option<u64>,
    /// Time of creation.
    pub created_ms: u64,
    /// Time of the last use.
    pub last_used_ms: Option<u64>,
    /// Number of calls and connections that used it.
    pub uses: u64,
    /// Origin, in words.
    pub provenance: String,
}

/// Files, host or tool that a grant opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Granted {
    /// Files, by path.
    Files(Files),
    /// One port of one host.
    Host(HostPort),
    /// Tools of the server.
    Tool(ToolScope),
}

/// Granted files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Path of the file or folder.
    pub path: CanonicalPath,
    /// One file, or everything below a folder.
    pub kind: GrantKind,
    /// Granted access.
    pub access: AccessSet,
}

impl Granted {
    /// Adds what is opened to an audit entry.
    pub fn note_in(&self, entry: &mut Entry) {
        match self {
            Self::Files(files) => entry.paths = vec![files.path.as_str().to_owned()],
            Self::Host(target) => entry.about_host(&target.host, target.port),
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
    /// Returns the files that it opens, if any.
    #[must_use]
    pub fn files(&self) -> Option<&Files> {
        match &self.what {
            Granted::Files(files) => Some(files),
            Granted::Host(_) | Granted::Tool(_) => None,
        }
    }

    /// Returns the host that it opens, if any, in the proxy's form.
    #[must_use]
    pub fn for_proxy(&self) -> Option<ironcurtain_egress::GrantedHost> {
        match &self.what {
            Granted::Files(_) | Granted::Tool(_) => None,
            Granted::Host(target) => {
                Some(ironcurtain_egress::GrantedHost { id: self.id.clone(), target: target.clone() })
            }
        }
    }

    /// Returns the host that it opens, if any, in the judge's form.
    #[must_use]
    pub fn for_gate(&self) -> Option<ironcurtain_policy::HostGrant> {
        let Granted::Host(target) = &self.what else { return None };
        let host = match &target.host {
            Host::Address(IpAddr::V6(v6)) => format!("[{v6}]"),
            host @ (Host::Name(_) | Host::Address(_)) => host.to_string(),
        };
        Some(ironcurtain_policy::HostGrant { id: self.id.clone(), host, port: target.port })
    }

    /// Returns the tool that it allows, if any, in the judge's form.
    #[must_use]
    pub fn for_tool(&self) -> Option<ToolGrant> {
        let Granted::Tool(scope) = &self.what else { return None };
        Some(ToolGrant { id: self.id.clone(), scope: scope.clone() })
    }

    /// Returns the path that it opens, if any, in the judge's form.
    #[must_use]
    pub fn for_judging(&self) -> Option<ironcurtain_policy::PathGrant> {
        let Files { path, kind, access } = self.files()?.clone();
        Some(ironcurtain_policy::PathGrant { id: self.id.clone(), path, kind, access })
    }

    /// Returns whether this grant's mount also covers `need`.
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

/// Subject of a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantSubject {
    /// Client key, which the kernel verified: its executable.
    pub client: String,
    /// Client name for display.
    pub client_name: String,
    /// Name of the server.
    pub server: String,
    /// The session, for a grant that expires with it.
    pub session: Option<String>,
}

impl GrantSubject {
    /// Returns whether a session of `client` with `server` may use a grant with this subject. An unidentified client
    /// has only its session's grants, because another unidentified client may be a different program.
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
