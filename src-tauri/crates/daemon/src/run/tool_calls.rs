//! Tools of the MCP server that is built into runs.

use super::Run;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::{Granted, StandingGrant, Stored};
use ironcurtain_policy::GrantKind;
use ironcurtain_sandbox::file_access::FileAccess;
use ironcurtain_server::network::HostRequestError;
use ironcurtain_server::served_files::AccessRequestError;
use ironcurtain_visible as visible;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum length of a request's reason, in characters.
const MAX_REASON_LEN: usize = 300;

/// Result of a tool call.
pub(super) enum ToolOutcome {
    /// Success.
    Done(String),
    /// A denial or an error.
    Failed(String),
}

/// Error returned when a call fails.
#[derive(Debug, thiserror::Error)]
enum ToolError {
    #[error("unknown tool `{0}`")]
    Unknown(String),
    #[error("invalid arguments: {0}")]
    Arguments(#[from] serde_json::Error),
    #[error("pass either `path` or `host`")]
    Target,
    #[error("`why` must have at most {MAX_REASON_LEN} characters, and not be empty")]
    Reason,
    #[error("DENIED: {0}")]
    Path(#[from] AccessRequestError),
    #[error("DENIED: {0}")]
    Host(#[from] HostRequestError),
    #[error("this run has no grant `{0}` of its own; `list_access` names them")]
    NoGrant(String),
    #[error("the access is denied from now on, but storing this failed: {0}")]
    NotStored(String),
    #[error("the release was interrupted: {0}")]
    Interrupted(tokio::task::JoinError),
    #[error(transparent)]
    Audit(#[from] ironcurtain_audit::AuditError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestAccess {
    path: Option<String>,
    host: Option<String>,
    #[serde(default)]
    access: AccessKind,
    why: String,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum AccessKind {
    #[default]
    Read,
    Write,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseAccess {
    grant: String,
}

/// Returns the descriptions of the tools.
pub(super) fn tool_list() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!([
        {
            "name": "request_access",
            "description": "Asks the user for access to a path or a host, and waits for the answer.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "path": text("Absolute path of a file or folder."),
                    "host": text("Host with a port, as in example.com:443. localhost:5432 is a service of the user's computer."),
                    "access": { "type": "string", "enum": ["read", "write"], "description": "Access to the path; read if missing." },
                    "why": text("Reason, in one sentence. The user sees it as your claim."),
                },
                "required": ["why"],
            },
        },
        {
            "name": "list_access",
            "description": "Lists what this program may use without a question.",
            "inputSchema": { "type": "object", "properties": {} },
        },
        {
            "name": "release_access",
            "description": "Ends a grant of this run that is not needed any more.",
            "inputSchema": {
                "type": "object",
                "properties": { "grant": text("Id from list_access.") },
                "required": ["grant"],
            },
        },
    ])
}

impl ToolOutcome {
    /// Converts the outcome to an MCP tool result.
    pub(super) fn into_result(self) -> Value {
        let (text, is_error) = match self {
            Self::Done(text) => (text, false),
            Self::Failed(text) => (text, true),
        };
        json!({ "content": [{ "type": "text", "text": text }], "isError": is_error })
    }
}

impl Run {
    /// Calls a tool.
    pub(super) async fn call_tool(self: &Arc<Self>, name: &str, arguments: Option<&RawValue>) -> ToolOutcome {
        let called = match name {
            "request_access" => self.request_access(arguments).await,
            "list_access" => Ok(self.list_access()),
            "release_access" => self.release_access(arguments).await,
            other => Err(ToolError::Unknown(visible::line(other))),
        };
        match called {
            Ok(text) => ToolOutcome::Done(text),
            Err(problem) => ToolOutcome::Failed(problem.to_string()),
        }
    }

    async fn request_access(self: &Arc<Self>, arguments: Option<&RawValue>) -> Result<String, ToolError> {
        let RequestAccess { path, host, access, why } = parse_arguments(arguments)?;
        if why.trim().is_empty() || why.chars().count() > MAX_REASON_LEN {
            return Err(ToolError::Reason);
        }
        // Limits the rate, because denied requests are recorded.
        self.files.pace.acquire().await;
        match (path, host) {
            (Some(path), None) => {
                let (access, words) = match access {
                    AccessKind::Read => (FileAccess::Read, "read"),
                    AccessKind::Write => (FileAccess::ReadWrite, "read and change"),
                };
                let granted = self.files.request(&path, access, &why).await?;
                self.files.pace.refund();
                Ok(format!("You may {words} {}.", granted.path))
            }
            (None, Some(host)) => {
                let target = self.network.request(&host, &why).await?;
                self.files.pace.refund();
                Ok(format!("You may connect to {target}."))
            }
            (Some(_), Some(_)) | (None, None) => Err(ToolError::Target),
        }
    }

    fn list_access(&self) -> String {
        let folder = self.files.working_folder();
        let folder =
            folder.map(|folder| json!({ "path": folder.as_str(), "access": ["read", "write", "delete"] }));
        let table = self.services.grants.now();
        let usable = table.grants.iter().filter(|grant| self.may_use(&grant.subject));
        let all: Vec<Value> =
            folder.into_iter().chain(usable.filter_map(|grant| self.grant_json(grant))).collect();
        let hosts = self.network.reachable();
        json!({ "paths": all, "hosts": hosts }).to_string()
    }

    /// Returns a grant for files or a host as JSON. Includes the id if the run can release the grant.
    fn grant_json(&self, grant: &StandingGrant) -> Option<Value> {
        let mut json = match &grant.what {
            Granted::Files(files) => {
                let below = if files.kind == GrantKind::Tree { "/" } else { "" };
                let access = [
                    ("read", files.access.read),
                    ("write", files.access.write),
                    ("delete", files.access.delete),
                ];
                let access: Vec<&str> =
                    access.iter().filter(|(_, has)| *has).map(|(name, _)| *name).collect();
                json!({ "path": format!("{}{below}", files.path), "access": access })
            }
            Granted::Host(target) => json!({ "host": target.to_string() }),
            Granted::Tool(_) => return None,
        };
        if self.is_own(grant)
            && let Some(fields) = json.as_object_mut()
        {
            fields.insert("grant".to_owned(), Value::String(grant.id.clone()));
        }
        Some(json)
    }

    /// Returns `true` if the grant ends with this run.
    fn is_own(&self, grant: &StandingGrant) -> bool {
        grant.subject.session.as_ref() == Some(&self.id)
    }

    async fn release_access(self: &Arc<Self>, arguments: Option<&RawValue>) -> Result<String, ToolError> {
        let ReleaseAccess { grant: id } = parse_arguments(arguments)?;
        let table = self.services.grants.now();
        let grant = table.grants.iter().find(|grant| grant.id == id && self.is_own(grant));
        let Some(grant) = grant else { return Err(ToolError::NoGrant(visible::line(&id))) };
        let mut entry = self.principal.entry(Event::Revoked, "the agent released a grant of its run");
        entry.grant_id = Some(id.clone());
        grant.what.add_to_entry(&mut entry);
        let run = self.clone();
        // Spawn a task so that the grant is revoked even if the call is cancelled after the entry was recorded.
        let released = tokio::spawn(async move { run.release(&id, entry).await }).await;
        released.map_err(ToolError::Interrupted)??;
        Ok("Released.".to_owned())
    }

    /// Records that a grant is released, and revokes it.
    async fn release(&self, id: &str, entry: Entry) -> Result<(), ToolError> {
        self.services.audit.record(entry).await?;
        // If no grant has this id, the grant has just ended.
        if let Some(revoked) = self.services.grants.revoke(id) {
            self.wait_for_revocation(revoked.version).await;
            if let Stored::NotStored(problem) = revoked.stored().await {
                return Err(ToolError::NotStored(problem.to_string()));
            }
        }
        self.services.changed();
        Ok(())
    }
}

fn parse_arguments<T: DeserializeOwned>(arguments: Option<&RawValue>) -> Result<T, serde_json::Error> {
    serde_json::from_str(arguments.map_or("{}", RawValue::get))
}
