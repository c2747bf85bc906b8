//! Finds the server for a client's request by tool or prompt name, URI or task id.

use super::Aggregate;
use super::upstream::Phase;
use ironcurtain_mcp::aggregate::{CatalogueKind, may_belong_to};
use ironcurtain_mcp::wire::Fields;
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde_json::value::{RawValue, to_raw_value};
use std::time::Duration;
use tokio::time::Instant;

/// Time after the handshake during which list requests wait for servers that are still starting.
const LIST_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum length of a name in an error message, in characters.
const MAX_NAME_LEN: usize = 200;

/// MCP method that calls a tool.
const CALL_TOOL: &str = "tools/call";

/// Destination of a client request.
pub(super) enum Destination {
    /// Name of the server, and the request's parameters with the server's own names.
    Server(String, Fields),
    /// No server. Contains the error to send to the client.
    NoServer(ErrorCode, String),
}

/// Reason no server can handle a request. The message is sent to the client.
#[derive(Debug, thiserror::Error)]
enum NoServerError {
    /// The field is invalid JSON or has the wrong type.
    #[error("invalid `{0}`: {1}")]
    InvalidField(&'static str, serde_json::Error),
    /// The completion request has no `ref`.
    #[error("`params.ref` is missing")]
    MissingRef,
    /// The prefix of the tool or prompt name matches no server's name.
    #[error("no {what} is called `{name}`; `{list}` lists the available ones")]
    Unknown { what: &'static str, name: String, list: &'static str },
    /// The server has no tool or prompt with this name.
    #[error(
        "no {what} is called `{name}`: the server `{server}` does not provide it; `{list}` lists the available ones"
    )]
    NotProvided { what: &'static str, name: String, server: String, list: &'static str },
    /// No server lists the resource.
    #[error("no server lists the resource `{0}`")]
    UnknownResource(String),
    /// No server has created this task for the client.
    #[error("no task of this session is called `{0}`")]
    UnknownTask(String),
    /// The server is still starting.
    #[error("the server `{0}` has not started yet; try again")]
    NotStarted(String),
    /// The server now lists a definition of the tool that differs from the one in the client's list.
    #[error(
        "the call was not sent, because the server `{0}` lists another definition of this tool now; read the list of tools again"
    )]
    Outdated(String),
    /// The server failed to start or has exited.
    #[error("the server `{server}` is missing: {why}")]
    Missing { server: String, why: String },
    /// The user closed the session with the server.
    #[error("the session with the server `{0}` was closed")]
    Closed(String),
}

impl Aggregate {
    /// Returns the time until which a request may be held, or `None` if it must not wait. A call waits only for its
    /// own server; any other request waits for all servers.
    pub(super) fn wait_deadline(&self, method: &str, params: Option<&RawValue>) -> Option<Instant> {
        let mut starting = self.upstreams.values().filter(|upstream| !upstream.has_started_or_failed());
        match name_in(method, params) {
            Some(name) => {
                let candidates = starting.filter(|upstream| may_belong_to(&name, &upstream.config.name));
                candidates.map(|upstream| upstream.start_deadline).max()
            }
            None => starting.next().map(|_| self.initialized_at + LIST_TIMEOUT),
        }
    }

    pub(super) fn destination(&self, method: &str, params: Option<&RawValue>) -> Destination {
        let params = params.map_or("{}", RawValue::get);
        let mut fields: Fields = match serde_json::from_str(params) {
            Ok(fields) => fields,
            Err(problem) => {
                return Destination::NoServer(
                    ErrorCode::INVALID_REQUEST,
                    format!("invalid `params`: {problem}"),
                );
            }
        };
        let text = |fields: &Fields, name: &str| {
            fields
                .get(name)
                .and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
                .unwrap_or_default()
        };
        let found = match method {
            CALL_TOOL => self.named_server(CatalogueKind::Tools, &mut fields),
            "prompts/get" => self.named_server(CatalogueKind::Prompts, &mut fields),
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => {
                self.resource_server(&mut fields, "params.uri")
            }
            "completion/complete" => self.completion_server(&mut fields),
            "tasks/get" | "tasks/result" | "tasks/cancel" => {
                let task = text(&fields, "taskId");
                let server = self.tables.server_of_task(&task).map(str::to_owned);
                server.ok_or_else(|| NoServerError::UnknownTask(clipped(&task)))
            }
            _ => {
                let text = format!("`{}` is not available through IronCurtain", clipped(method));
                return Destination::NoServer(ErrorCode::METHOD_NOT_FOUND, text);
            }
        };
        match found {
            Ok(server) => Destination::Server(server, fields),
            Err(why) if method.starts_with("resources/") => {
                Destination::NoServer(ErrorCode::RESOURCE_NOT_FOUND, why.to_string())
            }
            Err(why) => Destination::NoServer(ErrorCode::INVALID_PARAMS, why.to_string()),
        }
    }

    /// Returns the server that provides a tool or prompt, and replaces the name in the parameters with the server's own
    /// name.
    fn named_server(&self, kind: CatalogueKind, fields: &mut Fields) -> Result<String, NoServerError> {
        let name: String =
            fields.get("name").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        if let Some((server, own)) = self.catalogue.owner(kind, &name) {
            let own =
                to_raw_value(own).map_err(|problem| NoServerError::InvalidField("params.name", problem))?;
            fields.set("name", own);
            return Ok(server.clone());
        }
        let (what, list) = (if kind == CatalogueKind::Tools { "tool" } else { "prompt" }, kind.method());
        let Some((server, upstream)) = self.upstreams.iter().find(|(server, _)| may_belong_to(&name, server))
        else {
            return Err(NoServerError::Unknown { what, name: clipped(&name), list });
        };
        let server = server.clone();
        Err(match &upstream.phase {
            Phase::Running | Phase::Remembered => {
                NoServerError::NotProvided { what, name: clipped(&name), server, list }
            }
            Phase::Starting => NoServerError::NotStarted(server),
            Phase::Missing(why) => NoServerError::Missing { server, why: why.clone() },
            Phase::Closed => NoServerError::Closed(server),
        })
    }

    /// Returns the error message for a call to a remembered tool if the call must not be sent, because the server has
    /// not listed its tools in time or lists a different definition.
    pub(super) fn refused_call(&self, server: &str, method: &str, fields: &Fields) -> Option<String> {
        let upstream = self.upstreams.get(server).filter(|_| method == CALL_TOOL)?;
        if upstream.is_waking {
            return Some(NoServerError::NotStarted(server.to_owned()).to_string());
        }
        let name: String = serde_json::from_str(fields.get("name")?.get()).ok()?;
        let is_outdated = upstream.outdated.contains(&name);
        is_outdated.then(|| NoServerError::Outdated(server.to_owned()).to_string())
    }

    /// Returns the server that provides a resource, and replaces the URI in the fields with the server's own URI.
    fn resource_server(&self, fields: &mut Fields, field: &'static str) -> Result<String, NoServerError> {
        let uri: String =
            fields.get("uri").and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let found = self.catalogue.server_of(&uri);
        let (server, own) = found.ok_or_else(|| NoServerError::UnknownResource(clipped(&uri)))?;
        if own != uri {
            let own = to_raw_value(own).map_err(|problem| NoServerError::InvalidField(field, problem))?;
            fields.set("uri", own);
        }
        Ok(server.to_owned())
    }

    /// Returns the server that a completion refers to, and replaces the reference with the server's own name or URI.
    fn completion_server(&self, fields: &mut Fields) -> Result<String, NoServerError> {
        let invalid_ref = |problem| NoServerError::InvalidField("params.ref", problem);
        let reference = fields.get("ref").ok_or(NoServerError::MissingRef)?;
        let mut reference: Fields = serde_json::from_str(reference.get()).map_err(invalid_ref)?;
        let server = match reference.get("uri") {
            Some(_) => self.resource_server(&mut reference, "params.ref.uri")?,
            None => self.named_server(CatalogueKind::Prompts, &mut reference)?,
        };
        fields.set("ref", to_raw_value(&reference).map_err(invalid_ref)?);
        Ok(server)
    }
}

/// Returns the tool or prompt name in a request's parameters.
fn name_in(method: &str, params: Option<&RawValue>) -> Option<String> {
    let fields: Fields = serde_json::from_str(params?.get()).ok()?;
    let fields = match method {
        CALL_TOOL | "prompts/get" => fields,
        "completion/complete" => serde_json::from_str(fields.get("ref")?.get()).ok()?,
        _ => return None,
    };
    serde_json::from_str(fields.get("name")?.get()).ok()
}

/// Truncates a name to [`MAX_NAME_LEN`] and escapes invisible characters, for an error message.
pub(super) fn clipped(name: &str) -> String {
    visible::head(&visible::line(name), MAX_NAME_LEN)
}
