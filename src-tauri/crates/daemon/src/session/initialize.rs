//! Rewrites the client's `initialize` request, keeping only capabilities that IronCurtain supports.
//!
//! - IronCurtain provides the roots: the client's own roots are never forwarded. A remote server gets no roots, because
//!   it cannot access local files.
//! - A server is offered sampling only if its sampling requests are allowed or require approval. Sampling as a task is
//!   never offered.

use super::params::ParamsError;
use super::sampling;
use ironcurtain_mcp::wire::Fields;
use ironcurtain_visible as visible;
use rmcp::model::RootsCapabilities;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashSet;

/// Maximum displayed length of the client's name or version, in characters.
const MAX_NAME_LEN: usize = 100;

/// Client capabilities that are forwarded to the server.
const CAPABILITIES: [&str; 4] = ["elicitation", "sampling", "tasks", "roots"];

/// Maximum length of a forwarded value, in bytes of JSON. Longer values are omitted.
const MAX_VALUE_LEN: usize = 512;

/// Rewritten `initialize` request.
#[derive(Debug)]
pub(super) struct InitializeRequest {
    /// Parameters for the server.
    pub(super) params: Box<RawValue>,
    /// Name that the client claims, unverified.
    pub(super) claimed_name: Option<String>,
    /// Methods of the server requests that the client accepts.
    pub(super) accepted_requests: HashSet<String>,
    /// `true` if the client declared the `roots` capability.
    pub(super) has_roots: bool,
}

/// Returns `true` if the negotiated protocol version supports JSON-RPC batches.
pub(super) fn has_batches(response: &RawValue) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct NegotiatedVersion {
        protocol_version: String,
    }
    serde_json::from_str::<NegotiatedVersion>(response.get())
        .is_ok_and(|result| result.protocol_version == "2025-03-26")
}

/// Parses and rewrites the parameters. Errors are sent to the client.
pub(super) fn rewrite(
    params: Option<&RawValue>,
    offers_sampling: bool,
    is_remote: bool,
) -> Result<InitializeRequest, ParamsError> {
    #[derive(Deserialize)]
    struct Info {
        name: String,
        #[serde(default)]
        version: String,
    }
    let params = params.ok_or(ParamsError::Missing("params"))?;
    let fields: Fields = serde_json::from_str(params.get()).map_err(ParamsError::invalid("params"))?;
    let mut params = only_fields(&fields, &["protocolVersion"]);
    let mut capabilities = match fields.get("capabilities") {
        Some(raw) => {
            let all: Fields =
                serde_json::from_str(raw.get()).map_err(ParamsError::invalid("params.capabilities"))?;
            only_fields(&all, &CAPABILITIES)
        }
        None => Fields::default(),
    };
    if let Some(info) =
        fields.get("clientInfo").and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok())
    {
        let info = to_raw_value(&only_fields(&info, &["name", "title", "version"]));
        params.set("clientInfo", info.map_err(ParamsError::Serialize)?);
    }
    let info = fields.get("clientInfo").and_then(|raw| serde_json::from_str::<Info>(raw.get()).ok());
    let mut accepted_requests = HashSet::new();
    if capabilities.get("elicitation").is_some() {
        accepted_requests.insert("elicitation/create".to_owned());
    }
    if !offers_sampling {
        capabilities.remove("sampling");
    } else if capabilities.get("sampling").is_some() {
        accepted_requests.insert(sampling::METHOD.to_owned());
    }
    if let Some(tasks) = capabilities.get("tasks") {
        accepted_requests
            .extend(["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"].map(str::to_owned));
        let tasks = without_sampling(tasks)?;
        capabilities.set("tasks", tasks);
    }
    let has_roots = capabilities.get("roots").is_some();
    if is_remote {
        capabilities.remove("roots");
    } else {
        let mut roots = RootsCapabilities::default();
        roots.list_changed = Some(true);
        capabilities.set("roots", to_raw_value(&roots).map_err(ParamsError::Serialize)?);
    }
    params.set("capabilities", to_raw_value(&capabilities).map_err(ParamsError::Serialize)?);
    Ok(InitializeRequest {
        params: to_raw_value(&params).map_err(ParamsError::Serialize)?,
        claimed_name: info.map(|i| format!("{} {}", clipped(&i.name), clipped(&i.version)).trim().to_owned()),
        accepted_requests,
        has_roots,
    })
}

/// Returns the fields that have one of these names and whose values are not too long.
fn only_fields(fields: &Fields, names: &[&str]) -> Fields {
    let mut known = Fields::default();
    for (name, value) in fields.iter() {
        if names.contains(&name) && value.get().len() <= MAX_VALUE_LEN {
            known.set(name, value.to_owned());
        }
    }
    known
}

/// Returns the client's `tasks` capabilities without sampling.
fn without_sampling(tasks: &RawValue) -> Result<Box<RawValue>, ParamsError> {
    let object = |raw: &RawValue| {
        serde_json::from_str::<Fields>(raw.get()).map_err(ParamsError::invalid("params.capabilities.tasks"))
    };
    let mut tasks = object(tasks)?;
    if let Some(requests) = tasks.get("requests") {
        let mut requests = object(requests)?;
        requests.remove("sampling");
        tasks.set("requests", to_raw_value(&requests).map_err(ParamsError::Serialize)?);
    }
    to_raw_value(&tasks).map_err(ParamsError::Serialize)
}

/// Truncates a name or version to [`MAX_NAME_LEN`].
fn clipped(text: &str) -> String {
    visible::head(text, MAX_NAME_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rewrite_sets_roots_and_drops_sampling_and_unknown_fields() {
        let text = r#"{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"elicitation":{},"roots":{},"experimental":{"x":1.0}},"clientInfo":{"name":"claude","version":"2","note":"n"},"extra":[1]}"#;
        let request = rewrite(Some(&RawValue::from_string(text.to_owned()).unwrap()), false, false).unwrap();
        let expected = r#"{"protocolVersion":"2025-06-18","clientInfo":{"name":"claude","version":"2"},"capabilities":{"elicitation":{},"roots":{"listChanged":true}}}"#;
        assert_eq!(request.params.get(), expected);
        assert_eq!(request.claimed_name.as_deref(), Some("claude 2"));
        assert_eq!(request.accepted_requests, HashSet::from(["elicitation/create".to_owned()]));
        assert!(request.has_roots && rewrite(None, false, false).is_err());
    }

    #[test]
    fn sampling_is_kept_if_offered_and_supported() {
        let text = r#"{"capabilities":{"sampling":{"tools":{}},"roots":{"listChanged":true}}}"#;
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let request = rewrite(Some(&raw), true, false).unwrap();
        assert_eq!(
            (request.params.get(), request.accepted_requests.contains(sampling::METHOD)),
            (text, true)
        );
        let without = RawValue::from_string(r#"{"capabilities":{}}"#.to_owned()).unwrap();
        assert!(!rewrite(Some(&without), true, false).unwrap().accepted_requests.contains(sampling::METHOD));
    }

    #[test]
    fn a_remote_server_gets_no_roots() {
        let text = r#"{"capabilities":{"roots":{"listChanged":true},"elicitation":{}}}"#;
        let request = rewrite(Some(&RawValue::from_string(text.to_owned()).unwrap()), false, true).unwrap();
        assert_eq!(request.params.get(), r#"{"capabilities":{"elicitation":{}}}"#);
    }

    #[test]
    fn client_tasks_are_forwarded_except_sampling() {
        let text = r#"{"capabilities":{"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}}"#;
        let request = rewrite(Some(&RawValue::from_string(text.to_owned()).unwrap()), false, false).unwrap();
        let expected = r#"{"capabilities":{"tasks":{"list":{},"requests":{"elicitation":{"create":{}}}},"roots":{"listChanged":true}}}"#;
        assert_eq!(request.params.get(), expected);
        assert!(
            request.accepted_requests.contains("tasks/get")
                && !request.accepted_requests.contains("elicitation/create")
        );
    }

    #[test]
    fn a_long_client_name_is_truncated_and_not_forwarded() {
        let text = format!(r#"{{"clientInfo":{{"name":"{}","version":"2"}}}}"#, "n".repeat(1000));
        let request = rewrite(Some(&RawValue::from_string(text).unwrap()), false, false).unwrap();
        let expected = format!("{} … (900 characters more) 2", "n".repeat(100));
        assert_eq!(request.claimed_name, Some(expected));
        assert!(!request.params.get().contains(&"n".repeat(100)));
    }
}
