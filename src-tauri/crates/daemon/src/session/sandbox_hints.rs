//! Adds a hint to an error response about a file that the sandbox blocked or a host that the server cannot reach.
//! Leaves other responses unchanged.

use ironcurtain_containment::annotate;
use ironcurtain_egress::Host;
use ironcurtain_mcp::server::ServerAnswer;
use ironcurtain_mcp::wire::{Fields, Response};
use serde_json::value::{RawValue, to_raw_value};

/// Phrases that programs print when they cannot resolve or reach a host.
const UNREACHABLE_PHRASES: [&str; 6] = [
    "getaddrinfo",
    "EAI_AGAIN",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Could not resolve host",
    "Network is unreachable",
];

/// Network access of a server whose response may report an unreachable host.
#[derive(Debug, Clone, Copy)]
pub(super) enum Network<'a> {
    /// No network access. Contains the server's name.
    Offline(&'a str),
    /// Only through the proxy, because the sandbox has no TUN device.
    Proxied,
    /// Unlimited, unknown, or also without the proxy variables.
    Other,
}

/// Returns the response with a hint, or `None` if no hint applies.
pub(super) fn with_hint(answered: &ServerAnswer, network: Network<'_>) -> Option<ServerAnswer> {
    match answered {
        ServerAnswer::Response(Response::Result(result)) => {
            result_with_hint(result, network).map(|result| ServerAnswer::Response(Response::Result(result)))
        }
        ServerAnswer::Response(Response::Error(error)) => text_with_hint(error, "message", network)
            .map(|error| ServerAnswer::Response(Response::Error(error))),
        ServerAnswer::Failed(_) => None,
    }
}

/// Adds a hint to the first matching text of a result.
fn result_with_hint(result: &RawValue, network: Network<'_>) -> Option<Box<RawValue>> {
    let mut fields: Fields = serde_json::from_str(result.get()).ok()?;
    let is_error: bool = serde_json::from_str(fields.get("isError")?.get()).ok()?;
    if !is_error {
        return None;
    }
    let mut blocks: Vec<Box<RawValue>> = serde_json::from_str(fields.get("content")?.get()).ok()?;
    let (block, text) = blocks
        .iter_mut()
        .find_map(|block| text_with_hint(block, "text", network).map(|text| (block, text)))?;
    *block = text;
    fields.set("content", to_raw_value(&blocks).ok()?);
    to_raw_value(&fields).ok()
}

fn text_with_hint(object: &RawValue, field: &str, network: Network<'_>) -> Option<Box<RawValue>> {
    let mut fields: Fields = serde_json::from_str(object.get()).ok()?;
    let text: String = serde_json::from_str(fields.get(field)?.get()).ok()?;
    let unreachable = || match network {
        Network::Offline(server) => no_network_hint(&text, server),
        Network::Proxied => proxy_hint(&text),
        Network::Other => None,
    };
    let marked = annotate(&text, true).or_else(unreachable)?;
    fields.set(field, to_raw_value(&marked).ok()?);
    to_raw_value(&fields).ok()
}

/// Appends a hint to a message that reports an unreachable host although the server has a proxy. Host names can be
/// resolved only through the proxy.
fn proxy_hint(text: &str) -> Option<String> {
    let is_unreachable = UNREACHABLE_PHRASES.iter().any(|words| text.contains(words));
    is_unreachable.then(|| {
        format!(
            "{text}\n\nIronCurtain: the server did not use the sandbox proxy, so the connection failed and you were not asked. Programs have to follow HTTPS_PROXY; Node.js does from version 24 on."
        )
    })
}

/// Appends advice for the user to an error text that reports an unreachable host. Returns `None` for any other text.
fn no_network_hint(text: &str, server: &str) -> Option<String> {
    if !UNREACHABLE_PHRASES.iter().any(|words| text.contains(words)) {
        return None;
    }
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '.' | '-'));
    let mut words = words.map(|word| word.trim_matches(['.', '-'])).filter(|word| word.contains('.'));
    let host = words.find(|word| matches!(Host::parse(word), Ok(Host::Name(_)))).unwrap_or("HOST");
    Some(format!(
        "{text}\n\nIronCurtain: this server has no network. If it needs some: ironcurtain servers open {server} --host {host}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_mcp::server::NoResponse;

    fn result(text: &str) -> Option<String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        match with_hint(&ServerAnswer::Response(Response::Result(raw)), Network::Other)? {
            ServerAnswer::Response(Response::Result(result)) => Some(result.get().to_owned()),
            other @ (ServerAnswer::Response(Response::Error(_)) | ServerAnswer::Failed(_)) => {
                panic!("{other:?}")
            }
        }
    }

    #[test]
    fn only_the_matching_text_changes() {
        let response = r#"{ "_meta":{"n":1.0e0},"content":[{"type":"image","data":"EPERM"},{"type":"text","text":"EACCES: no","x":  2}] ,"isError":true}"#;
        let expected = r#"{"_meta":{"n":1.0e0},"content":[{"type":"image","data":"EPERM"},{"type":"text","text":"[SANDBOX BLOCKED] EACCES: no","x":2}],"isError":true}"#;
        assert_eq!(result(response), Some(expected.to_owned()));
        for other in [
            r#"{"content":[{"type":"text","text":"EACCES"}]}"#,
            r#"{"content":[{"type":"text","text":"EACCES"}],"isError":false}"#,
            r#"{"content":[{"type":"text","text":"ENOENT"}],"isError":true}"#,
            r#"{"isError":true}"#,
            "7",
        ] {
            assert_eq!(result(other), None, "{other}");
        }
    }

    #[test]
    fn an_offline_server_gets_a_hint_how_to_open_a_host() {
        let text = "Error: getaddrinfo EAI_AGAIN api.firecrawl.dev";
        let hint = "IronCurtain: this server has no network. If it needs some: ironcurtain servers open fire --host api.firecrawl.dev";
        assert_eq!(no_network_hint(text, "fire"), Some(format!("{text}\n\n{hint}")));
        let nameless = no_network_hint("Could not resolve host", "fire").unwrap();
        assert!(nameless.ends_with("ironcurtain servers open fire --host HOST"), "{nameless}");
        assert_eq!(no_network_hint("no such page at api.firecrawl.dev", "fire"), None);
        let answer = || {
            let failed =
                serde_json::json!({ "content": [{ "type": "text", "text": text }], "isError": true });
            ServerAnswer::Response(Response::Result(to_raw_value(&failed).unwrap()))
        };
        assert!(with_hint(&answer(), Network::Offline("fire")).is_some());
        assert!(with_hint(&answer(), Network::Other).is_none());
        let proxied = proxy_hint(text).unwrap();
        assert!(proxied.contains("did not use the sandbox proxy"), "{proxied}");
        assert!(with_hint(&answer(), Network::Proxied).is_some());
    }

    #[test]
    fn protocol_errors_are_marked_too() {
        let error = r#"{"code":-32603,"message":"spawn: Permission denied","data":[1]}"#;
        let raw = RawValue::from_string(error.to_owned()).unwrap();
        let Some(ServerAnswer::Response(Response::Error(marked))) =
            with_hint(&ServerAnswer::Response(Response::Error(raw)), Network::Other)
        else {
            panic!("it is not marked");
        };
        let expected = r#"{"code":-32603,"message":"[SANDBOX BLOCKED] spawn: Permission denied","data":[1]}"#;
        assert_eq!(marked.get(), expected);
        assert!(with_hint(&ServerAnswer::Failed(NoResponse::ServerExited(None)), Network::Other).is_none());
    }
}
