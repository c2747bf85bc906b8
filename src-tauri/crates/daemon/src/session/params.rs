//! Parses the parameters of client requests. Errors are written for the client.

use ironcurtain_mcp::request::RequestMeta;
use ironcurtain_mcp::wire::Fields;
use ironcurtain_policy::AddressError;
use ironcurtain_policy::strict::ReadError;
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Maximum length of a tool name, in bytes.
pub(super) const LONGEST_TOOL: usize = 256;

/// Maximum number of characters of client text that an error repeats.
const LONGEST_SHOWN: usize = 100;

/// Reason why the parameters of a request are refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("`{field}`: {source}")]
    Unreadable {
        /// Field name.
        field: String,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// The method has no such field.
    #[error("unknown field `{name}` in `{place}`; send the request without it")]
    Unknown {
        /// Path of the object.
        place: &'static str,
        /// Field name.
        name: String,
    },
    /// The server could parse the number as a different value.
    #[error("`{argument}`: {source}")]
    Inexact {
        /// Argument name.
        argument: String,
        /// Position and cause.
        source: ReadError,
    },
    /// A name is too long.
    #[error("`{field}` has {length} bytes; at most {LONGEST_TOOL} are accepted")]
    LongName {
        /// Field name.
        field: &'static str,
        /// Actual length in bytes.
        length: usize,
    },
    /// A tool has the name of a judged request.
    #[error("the tool `{0}` cannot be called, because a request has that name; rename it at the server")]
    Reserved(String),
    /// A resource URI is ambiguous.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The reference is neither a prompt nor a resource.
    #[error("`params.ref` must be a `ref/prompt` with a `name` or a `ref/resource` with a `uri`")]
    Reference,
    /// The server did not issue this value.
    #[error("`{field}` must be a value that this server issued in this session")]
    NotIssued {
        /// Field name.
        field: &'static str,
    },
    /// The log level is unknown.
    #[error("`params.level` must be one of {0}")]
    Level(String),
    /// The client is not subscribed to the resource.
    #[error("`{0}` is not subscribed to")]
    NotSubscribed(String),
    /// The request could not be serialized.
    #[error(transparent)]
    Unwritable(serde_json::Error),
}

impl ParamsError {
    /// Returns a closure that wraps the parse error of one field.
    pub(super) fn unreadable(field: &str) -> impl FnOnce(serde_json::Error) -> Self {
        |source| Self::Unreadable { field: field.to_owned(), source }
    }

    /// Returns the JSON-RPC error code.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Address(_) => ErrorCode::INVALID_REQUEST,
            Self::Missing(_)
            | Self::Unreadable { .. }
            | Self::Unknown { .. }
            | Self::Inexact { .. }
            | Self::LongName { .. }
            | Self::Reserved(_)
            | Self::Reference
            | Self::NotIssued { .. }
            | Self::Level(_)
            | Self::NotSubscribed(_)
            | Self::Unwritable(_) => ErrorCode::INVALID_PARAMS,
        }
    }
}

/// Parses an object that may have only these fields.
pub(super) fn object(raw: &RawValue, place: &'static str, known: &[&str]) -> Result<Fields, ParamsError> {
    let fields: Fields = parse(raw, place)?;
    let unknown = fields.iter().map(|(name, _)| name).find(|name| !known.contains(name));
    match unknown {
        None => Ok(fields),
        Some(name) => Err(ParamsError::Unknown { place, name: shown(name) }),
    }
}

/// Parses parameters that may have only these fields and `_meta`.
pub(super) fn params(
    params: Option<&RawValue>,
    known: &[&str],
) -> Result<(Fields, RequestMeta), ParamsError> {
    let Some(params) = params else { return Ok((Fields::default(), RequestMeta::default())) };
    let known: Vec<&str> = known.iter().copied().chain(["_meta"]).collect();
    let mut fields = object(params, "params", &known)?;
    let meta = fields.take("_meta");
    let meta = RequestMeta::read(meta.as_deref()).map_err(ParamsError::unreadable("params._meta"))?;
    Ok((fields, meta))
}

/// Parses a required field.
pub(super) fn required<T: DeserializeOwned>(
    fields: &Fields,
    (name, field): (&str, &'static str),
) -> Result<T, ParamsError> {
    parse(fields.get(name).ok_or(ParamsError::Missing(field))?, field)
}

/// Parses a field that may be missing or `null`.
pub(super) fn optional<T: DeserializeOwned>(
    fields: &Fields,
    (name, field): (&str, &'static str),
) -> Result<Option<T>, ParamsError> {
    fields.get(name).filter(|raw| raw.get() != "null").map(|raw| parse(raw, field)).transpose()
}

/// Parses a name of limited length.
pub(super) fn name(fields: &Fields, at: (&str, &'static str)) -> Result<String, ParamsError> {
    let name: String = required(fields, at)?;
    match name.len() {
        length if length > LONGEST_TOOL => Err(ParamsError::LongName { field: at.1, length }),
        _ => Ok(name),
    }
}

pub(super) fn parse<T: DeserializeOwned>(raw: &RawValue, name: &str) -> Result<T, ParamsError> {
    serde_json::from_str(raw.get()).map_err(ParamsError::unreadable(name))
}

/// Truncates client text for an error message.
pub(super) fn shown(text: &str) -> String {
    visible::head(&visible::line(text), LONGEST_SHOWN)
}
