//! Protocol fields of a stateless request, and reasons to refuse it.

use crate::wire::{Fields, HANDSHAKE_VERSIONS, STATELESS_VERSION, error_code, meta_key, rewrite_params};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Fields that only a retry contains.
const INPUT_RESPONSES: &str = "inputResponses";
const REQUEST_STATE: &str = "requestState";

/// Reason a request is refused with an error.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestRefusal {
    /// The parameters are not an object, or have a duplicate key.
    #[error("`params`: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// A required `_meta` field is missing.
    #[error("missing `{0}` ({1}) in `params._meta`")]
    Missing(&'static str, &'static str),
    /// The protocol version is not supported.
    #[error("Unsupported protocol version")]
    UnsupportedVersion {
        requested: String,
        /// `true` if the client can still fall back to a handshake.
        can_handshake: bool,
    },
    /// A request with this id is in flight.
    #[error("the id {0} is in use by a pending request")]
    IdInUse(String),
    /// The state is invalid, expired or already used.
    #[error(
        "`requestState` is unknown: it was already used, has expired, or is from another session; call again without it and without `inputResponses`"
    )]
    UnknownState,
    /// The state belongs to another call.
    #[error("`requestState` belongs to another call; retry that call unchanged, or send this one without it")]
    StateMismatch,
    /// The request contains input without a state.
    #[error("`inputResponses` require the `requestState` of the same call; call again without them")]
    MissingState,
    /// An input response is not an object.
    #[error("`inputResponses` has no object for `{0}`")]
    InvalidInputResponse(String),
    /// The server exceeded the maximum number of rounds.
    #[error("the server asked for input {0} times in one call; the call was cancelled")]
    TooManyRounds(usize),
    /// The client has too many open subscriptions.
    #[error("{0} subscriptions are open; cancel one first")]
    TooManySubscriptions(usize),
    /// A subscription has too many resources.
    #[error("a subscription follows at most {0} resources")]
    TooManyResources(usize),
    /// The method does not exist in this protocol version.
    #[error("`{0}` does not exist in protocol version {STATELESS_VERSION}")]
    UnsupportedMethod(&'static str),
    /// The request uses tasks. Tasks of this protocol version are incompatible with those of the handshake versions.
    #[error("tasks are not available in protocol version {STATELESS_VERSION}; call without a task")]
    Tasks,
    /// No random state could be created.
    #[error("failed to create a state for the call: {0}")]
    Random(#[from] std::io::Error),
}

impl RequestRefusal {
    pub(super) fn code(&self) -> i32 {
        match self {
            Self::UnsupportedVersion { .. } => error_code::UNSUPPORTED_VERSION,
            Self::IdInUse(_) => -32600,
            Self::UnsupportedMethod(_) | Self::Tasks => -32601,
            Self::TooManyRounds(_) | Self::Random(_) => -32603,
            Self::Unreadable(_)
            | Self::Missing(..)
            | Self::UnknownState
            | Self::StateMismatch
            | Self::MissingState
            | Self::InvalidInputResponse(_)
            | Self::TooManySubscriptions(_)
            | Self::TooManyResources(_) => -32602,
        }
    }

    /// Returns the JSON-RPC error object for the client.
    pub(super) fn error(&self) -> Value {
        let mut error = json!({ "code": self.code(), "message": self.to_string() });
        if let (Self::UnsupportedVersion { requested, can_handshake }, Some(error)) =
            (self, error.as_object_mut())
        {
            let handshake = HANDSHAKE_VERSIONS.into_iter().filter(|_| *can_handshake);
            let supported: Vec<&str> = std::iter::once(STATELESS_VERSION).chain(handshake).collect();
            error.insert("data".to_owned(), json!({ "supported": supported, "requested": requested }));
        }
        error
    }
}

/// Parsed protocol fields of a request.
#[derive(Debug)]
pub(super) struct Envelope {
    pub(super) capabilities: Box<RawValue>,
    pub(super) client_info: Option<Box<RawValue>>,
    pub(super) log_level: Option<String>,
    pub(super) progress_token: Option<Box<RawValue>>,
    /// State that a retry contains.
    pub(super) state: Option<String>,
    /// Input responses of a retry.
    pub(super) responses: Option<Fields>,
    /// Parameters without the protocol fields, except for the progress token.
    pub(super) params: Box<RawValue>,
    /// Digest of method and parameters, equal for a call and its retry.
    pub(super) digest: [u8; 32],
}

/// Returns `true` if the parameters name a protocol version in `_meta`, even an unsupported one.
pub(super) fn has_protocol_version(params: Option<&RawValue>) -> bool {
    let read = |raw: Option<&RawValue>| serde_json::from_str::<Fields>(raw?.get()).ok();
    let meta = read(params).and_then(|params| read(params.get("_meta")));
    meta.is_some_and(|meta| meta.get(meta_key::PROTOCOL_VERSION).is_some())
}

impl Envelope {
    /// Parses the protocol fields. `can_handshake` is `true` while a handshake is still possible.
    pub(super) fn parse(
        method: &str,
        params: Option<&RawValue>,
        can_handshake: bool,
    ) -> Result<Self, RequestRefusal> {
        let mut names = [
            meta_key::PROTOCOL_VERSION,
            meta_key::CLIENT_CAPABILITIES,
            meta_key::CLIENT_INFO,
            meta_key::LOG_LEVEL,
        ]
        .map(|key| (key, None));
        let (mut token, mut state, mut responses, mut digest) = (None, None, None, [0; 32]);
        let params = rewrite_params(params, |params, meta| {
            for (key, value) in &mut names {
                *value = meta.take(key);
            }
            token = meta.get("progressToken").map(ToOwned::to_owned);
            state = params.take(REQUEST_STATE).filter(|raw| raw.get() != "null");
            responses = params.take(INPUT_RESPONSES).filter(|raw| raw.get() != "null");
            digest = digest_of(method, params);
        })?;
        let [version, capabilities, client_info, log_level] = names.map(|(_, value)| value);
        let missing = RequestRefusal::Missing(meta_key::PROTOCOL_VERSION, "a string");
        let requested: String =
            version.and_then(|raw| serde_json::from_str(raw.get()).ok()).ok_or(missing)?;
        if requested != STATELESS_VERSION {
            return Err(RequestRefusal::UnsupportedVersion { requested, can_handshake });
        }
        let is_object = |raw: &RawValue| serde_json::from_str::<Fields>(raw.get()).is_ok();
        let missing = RequestRefusal::Missing(meta_key::CLIENT_CAPABILITIES, "an object");
        Ok(Self {
            capabilities: capabilities.filter(|raw| is_object(raw)).ok_or(missing)?,
            client_info: client_info.filter(|raw| is_object(raw)),
            log_level: log_level.and_then(|raw| serde_json::from_str(raw.get()).ok()),
            progress_token: token,
            state: state.map(|raw| serde_json::from_str(raw.get())).transpose()?,
            responses: responses.map(|raw| serde_json::from_str(raw.get())).transpose()?,
            params,
            digest,
        })
    }

    /// Returns `true` if the client declared this capability.
    pub(super) fn has_capability(&self, capability: &str) -> bool {
        let capabilities = serde_json::from_str::<Fields>(self.capabilities.get());
        capabilities.is_ok_and(|all| all.get(capability).is_some_and(|raw| raw.get() != "null"))
    }
}

/// Returns the digest of a call's method and parameters.
fn digest_of(method: &str, params: &Fields) -> [u8; 32] {
    let mut fields: Vec<(&str, &RawValue)> = params.iter().filter(|(name, _)| *name != "_meta").collect();
    fields.sort_unstable_by_key(|(name, _)| *name);
    let mut hash = Sha256::new();
    let names_and_values = fields.iter().flat_map(|(name, value)| [*name, value.get()]);
    for part in std::iter::once(method).chain(names_and_values) {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
