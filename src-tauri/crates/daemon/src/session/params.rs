//! Reading the parameters of a client's request, and why they are refused, in words for the client.

use ironcurtain_mcp::request::RequestMeta;
use ironcurtain_mcp::wire::Fields;
use ironcurtain_policy::AddressError;
use ironcurtain_policy::strict::ReadError;
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// The longest name of a tool, in bytes.
pub(super) const LONGEST_TOOL: usize = 256;

/// The longest part of a client's text that an error repeats, in characters.
const LONGEST_SHOWN: usize = 100;

/// Why the parameters of a request are refused.
#[derive(Debug, thiserror::Error)]
pub(super) enum ParamsError {
    /// A required field is missing.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A field has the wrong type.
    #[error("`{field}`: {source}")]
    Unreadable {
        /// The field.
        field: String,
        /// The place and the reason.
        source: serde_json::Error,
    },
    /// A field that the method does not have.
    #[error("`{place}` has the unknown field `{name}`, which is not passed on; send the request without it")]
    Unknown {
        /// The object.
        place: &'static str,
        /// The field.
        name: String,
    },
    /// A number that the server could read as another one.
    #[error("`{argument}`: {source}")]
    Inexact {
        /// The argument.
        argument: String,
        /// The place and the reason.
        source: ReadError,
    },
    /// A name is over the bound.
    #[error("`{field}` has {length} bytes; at most {LONGEST_TOOL} are taken")]
    LongName {
        /// The field.
        field: &'static str,
        /// Its length.
        length: usize,
    },
    /// A tool has the name of a request that is judged.
    #[error("the tool `{0}` cannot be called, because a request has that name; rename it at the server")]
    Reserved(String),
    /// A resource's address could be read as several.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// A reference that is neither to a prompt nor to a resource.
    #[error("`params.ref` must be a `ref/prompt` with a `name` or a `ref/resource` with a `uri`")]
    Reference,
    /// The value is none that the server gave.
    #[error("`{field}` must be one that this server gave in this session")]
    NotIssued {
        /// The field.
        field: &'static str,
    },
    /// The level is none of the protocol's.
    #[error("`params.level` must be one of {0}")]
    Level(String),
    /// The resource is not subscribed to.
    #[error("`{0}` is not subscribed to")]
    NotSubscribed(String),
    /// The message that is to be passed on cannot be written.
    #[error(transparent)]
    Unwritable(serde_json::Error),
}

impl ParamsError {
    /// For the errors of one field.
    pub(super) fn unreadable(field: &str) -> impl FnOnce(serde_json::Error) -> Self {
        |source| Self::Unreadable { field: field.to_owned(), source }
    }

    /// The code of the answer.
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

/// Reads an object that has these fields and no other.
pub(super) fn object(raw: &RawValue, place: &'static str, known: &[&str]) -> Result<Fields, ParamsError> {
    let fields: Fields = parse(raw, place)?;
    let unknown = fields.iter().map(|(name, _)| name).find(|name| !known.contains(name));
    match unknown {
        None => Ok(fields),
        Some(name) => Err(ParamsError::Unknown { place, name: shown(name) }),
    }
}

/// Reads parameters that have these fields, `_meta` and no other.
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

/// Reads a field that must be there.
pub(super) fn required<T: DeserializeOwned>(
    fields: &Fields,
    (name, field): (&str, &'static str),
) -> Result<T, ParamsError> {
    parse(fields.get(name).ok_or(ParamsError::Missing(field))?, field)
}

/// Reads a field that may be missing or `null`.
pub(super) fn optional<T: DeserializeOwned>(
    fields: &Fields,
    (name, field): (&str, &'static str),
) -> Result<Option<T>, ParamsError> {
    fields.get(name).filter(|raw| raw.get() != "null").map(|raw| parse(raw, field)).transpose()
}

/// Reads a name, which is bounded.
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

/// A client's text as an error repeats it.
pub(super) fn shown(text: &str) -> String {
    visible::head(&visible::line(text), LONGEST_SHOWN)
}
