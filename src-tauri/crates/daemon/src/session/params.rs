//! Parses and validates the parameters of client requests. Errors are sent to the client.

use ironcurtain_mcp::request::RequestMeta;
use ironcurtain_mcp::wire::Fields;
use ironcurtain_policy::AddressError;
use ironcurtain_policy::strict::ReadError;
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Maximum length of a tool name, in bytes.
pub(super) const MAX_TOOL_LEN: usize = 256;

/// Maximum length of text from the client in an error message, in characters.
const MAX_SHOWN_LEN: usize = 100;

/// Reason why the parameters of a request are invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    /// The required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// The field has the wrong type or is invalid JSON.
    #[error("`{field}`: {source}")]
    Invalid {
        /// Path of the field, such as `params.name`.
        field: String,
        /// Parser error, with the position.
        source: serde_json::Error,
    },
    /// The object has a field that the method does not define.
    #[error("unknown field `{name}` in `{object_path}`; send the request without it")]
    Unknown {
        /// Path of the object, such as `params.ref`.
        object_path: &'static str,
        /// Name of the unknown field.
        name: String,
    },
    /// The argument contains a number that other parsers could read as a different value.
    #[error("`{argument}`: {source}")]
    Inexact {
        /// Name of the argument.
        argument: String,
        /// Error with the position.
        source: ReadError,
    },
    /// A name in the parameters is too long.
    #[error("`{field}` is {length} bytes long; the limit is {MAX_TOOL_LEN} bytes")]
    LongName {
        /// Path of the field.
        field: &'static str,
        /// Length in bytes.
        length: usize,
    },
    /// The tool has the same name as a request that is judged like a tool, so rules could not distinguish them.
    #[error(
        "the tool `{0}` cannot be called, because its name is reserved for a request; rename it in the server"
    )]
    Reserved(String),
    /// The resource URI is ambiguous.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A completion refers to neither a prompt nor a resource.
    #[error("`params.ref` must be a `ref/prompt` with a `name` or a `ref/resource` with a `uri`")]
    Reference,
    /// The value is a cursor or task id that the server never issued.
    #[error("`{field}` must be a value that this server issued in this session")]
    NotIssued {
        /// Path of the field.
        field: &'static str,
    },
    /// The log level is unknown. Contains the valid levels.
    #[error("`params.level` must be one of {0}")]
    Level(String),
    /// The client is not subscribed to this resource.
    #[error("`{0}` is not subscribed to")]
    NotSubscribed(String),
    /// The request for the server could not be serialized.
    #[error(transparent)]
    Serialize(serde_json::Error),
}

impl ParamsError {
    /// Returns a closure that converts a parser error for the given field.
    pub(super) fn invalid(field: &str) -> impl FnOnce(serde_json::Error) -> Self {
        |source| Self::Invalid { field: field.to_owned(), source }
    }

    /// Returns the JSON-RPC error code for the response.
    pub(super) fn code(&self) -> ErrorCode {
        match self {
            Self::Address(_) => ErrorCode::INVALID_REQUEST,
            Self::Missing(_)
            | Self::Invalid { .. }
            | Self::Unknown { .. }
            | Self::Inexact { .. }
            | Self::LongName { .. }
            | Self::Reserved(_)
            | Self::Reference
            | Self::NotIssued { .. }
            | Self::Level(_)
            | Self::NotSubscribed(_)
            | Self::Serialize(_) => ErrorCode::INVALID_PARAMS,
        }
    }
}

/// Parses an object. Fields that are not in `known` are an error.
pub(super) fn object(
    raw: &RawValue,
    object_path: &'static str,
    known: &[&str],
) -> Result<Fields, ParamsError> {
    let fields: Fields = parse(raw, object_path)?;
    let unknown = fields.iter().map(|(name, _)| name).find(|name| !known.contains(name));
    match unknown {
        None => Ok(fields),
        Some(name) => Err(ParamsError::Unknown { object_path, name: for_display(name) }),
    }
}

/// Parses parameters. Fields other than `_meta` and those in `known` are an error.
pub(super) fn params(
    params: Option<&RawValue>,
    known: &[&str],
) -> Result<(Fields, RequestMeta), ParamsError> {
    let Some(params) = params else { return Ok((Fields::default(), RequestMeta::default())) };
    let known: Vec<&str> = known.iter().copied().chain(["_meta"]).collect();
    let mut fields = object(params, "params", &known)?;
    let meta = fields.take("_meta");
    let meta = RequestMeta::read(meta.as_deref()).map_err(ParamsError::invalid("params._meta"))?;
    Ok((fields, meta))
}

/// Parses a required field.
pub(super) fn required<T: DeserializeOwned>(
    fields: &Fields,
    (name, field): (&str, &'static str),
) -> Result<T, ParamsError> {
    parse(fields.get(name).ok_or(ParamsError::Missing(field))?, field)
}

/// Parses an optional field. `null` counts as missing.
pub(super) fn optional<T: DeserializeOwned>(
    fields: &Fields,
    (name, field): (&str, &'static str),
) -> Result<Option<T>, ParamsError> {
    fields.get(name).filter(|raw| raw.get() != "null").map(|raw| parse(raw, field)).transpose()
}

/// Parses a name of at most [`MAX_TOOL_LEN`] bytes.
pub(super) fn name(fields: &Fields, field: (&str, &'static str)) -> Result<String, ParamsError> {
    let name: String = required(fields, field)?;
    match name.len() {
        length if length > MAX_TOOL_LEN => Err(ParamsError::LongName { field: field.1, length }),
        _ => Ok(name),
    }
}

pub(super) fn parse<T: DeserializeOwned>(raw: &RawValue, name: &str) -> Result<T, ParamsError> {
    serde_json::from_str(raw.get()).map_err(ParamsError::invalid(name))
}

/// Truncates client text to [`MAX_SHOWN_LEN`] and escapes invisible characters, for an error message.
pub(super) fn for_display(text: &str) -> String {
    visible::head(&visible::line(text), MAX_SHOWN_LEN)
}
