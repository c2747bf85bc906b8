//! The two kinds of protocol versions: handshake versions, and the stateless version, which repeats the handshake's
//! data in every request.

use super::Fields;
use serde_json::value::{RawValue, to_raw_value};

/// The only protocol version without a handshake.
pub const STATELESS_VERSION: &str = "2026-07-28";

/// Protocol versions with a handshake, newest first.
pub(crate) const HANDSHAKE_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Keys of `_meta` that the protocol reserves.
pub mod meta_key {
    /// In a request: the protocol version.
    pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
    /// In a request: name and version of the client.
    pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
    /// In a request: capabilities of the client.
    pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
    /// In a request: minimum level of the log messages that the client receives for the request.
    pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
    /// In a result: name and version of the server.
    pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
    /// In a notification: id of the subscription request.
    pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
}

/// Error codes of the stateless protocol version.
pub(crate) mod error_code {
    /// The protocol version is not supported.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// Calls `change` with parameters and their `_meta`, and serializes the result. Omits an empty `_meta`.
///
/// # Errors
/// Returns an error if either is not an object or has a duplicate key.
pub(crate) fn rewrite_params(
    params: Option<&RawValue>,
    change: impl FnOnce(&mut Fields, &mut Fields),
) -> Result<Box<RawValue>, serde_json::Error> {
    let read =
        |raw: Option<&RawValue>| raw.map_or(Ok(Fields::default()), |raw| serde_json::from_str(raw.get()));
    let mut params = read(params)?;
    let mut meta = read(params.get("_meta"))?;
    change(&mut params, &mut meta);
    if meta.iter().next().is_none() {
        params.remove("_meta");
    } else {
        params.set("_meta", to_raw_value(&meta)?);
    }
    to_raw_value(&params)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unchanged_parameters_keep_their_text() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let changed = |text: &str| {
            let changed = rewrite_params(Some(&raw(text)), |params, meta| {
                params.remove("requestState");
                meta.remove(meta_key::LOG_LEVEL);
            });
            changed.map(|params| params.get().to_owned())
        };
        let params =
            r#"{"n":1.0,"_meta":{"x":[1, 2],"io.modelcontextprotocol/logLevel":"debug"},"requestState":"s"}"#;
        assert_eq!(changed(params).unwrap(), r#"{"n":1.0,"_meta":{"x":[1, 2]}}"#);
        assert_eq!(changed(r#"{"_meta":{},"n":1}"#).unwrap(), r#"{"n":1}"#);
        for text in ["[]", r#"{"_meta":[]}"#, r#"{"a":1,"a":2}"#, r#"{"_meta":{"a":1,"a":2}}"#] {
            assert!(changed(text).is_err(), "{text}");
        }
        let stamped = rewrite_params(None, |_, meta| meta.set("a", raw("1"))).unwrap();
        assert_eq!(stamped.get(), r#"{"_meta":{"a":1}}"#);
    }
}
