//! Parses requests to an agent, and an agent's list of keys.

use crate::wire::{Malformed, Reader};

/// Maximum length of a program's request, in bytes. A request contains a public key or certificate, and login data or a
/// hash.
pub const MAX_REQUEST_LEN: usize = 64 * 1024;

/// Maximum length of an agent's answer, in bytes: `AGENT_MAX_LEN` in OpenSSH.
pub const MAX_ANSWER_LEN: usize = 256 * 1024;

/// Response to a request that is refused or fails: `SSH_AGENT_FAILURE`.
pub const FAILURE_RESPONSE: [u8; 1] = [5];

/// Request for the list of keys: `SSH_AGENTC_REQUEST_IDENTITIES`.
pub const LIST_REQUEST: [u8; 1] = [11];

/// `SSH_AGENT_IDENTITIES_ANSWER`.
const IDENTITIES_ANSWER: u8 = 12;

/// `SSH_AGENTC_SIGN_REQUEST`.
const SIGN_REQUEST: u8 = 13;

/// `SSH_AGENTC_EXTENSION`.
const EXTENSION: u8 = 27;

/// Extension that names the host of a connection.
const SESSION_BIND: &str = "session-bind@openssh.com";

/// Maximum number of keys in a list.
const MAX_KEYS: u32 = 4096;

/// A request to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentRequest {
    /// Lists the keys.
    List,
    /// Signs data.
    Sign(SignRequest),
    /// Names the host that later signatures are for. This is an unverified claim by the program.
    Bind {
        /// `true` if the agent connection is forwarded to the host.
        is_forwarding: bool,
    },
    /// Any other request, such as adding or removing a key.
    Other,
}

/// A request for a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignRequest {
    /// Public key.
    pub key: Vec<u8>,
    /// Data to sign.
    pub data: Vec<u8>,
}

/// A key in an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentKey {
    /// Public key.
    pub key: Vec<u8>,
    /// Name that the user gave the key.
    pub comment: String,
}

impl AgentRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// Returns [`Malformed`] if a sign or bind request does not have the expected format.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        if message == LIST_REQUEST {
            return Ok(Self::List);
        }
        let mut reader = Reader::new(message);
        match reader.read_byte()? {
            SIGN_REQUEST => {
                let (key, data) = (reader.read_string()?.to_vec(), reader.read_string()?.to_vec());
                reader.read_u32()?;
                reader.expect_end()?;
                Ok(Self::Sign(SignRequest { key, data }))
            }
            EXTENSION if reader.read_string()? == SESSION_BIND.as_bytes() => {
                let (_host_key, _session, _signature) =
                    (reader.read_string()?, reader.read_string()?, reader.read_string()?);
                let is_forwarding = reader.read_bool()?;
                reader.expect_end()?;
                Ok(Self::Bind { is_forwarding })
            }
            _ => Ok(Self::Other),
        }
    }
}

/// Parses an agent's list of keys.
///
/// # Errors
/// Returns [`Malformed`] if the response is not a list of keys.
pub fn parse_keys(answer: &[u8]) -> Result<Vec<AgentKey>, Malformed> {
    let mut reader = Reader::new(answer);
    if reader.read_byte()? != IDENTITIES_ANSWER {
        return Err(Malformed);
    }
    let count = reader.read_u32()?;
    if count > MAX_KEYS {
        return Err(Malformed);
    }
    let mut keys = Vec::new();
    for _ in 0..count {
        let key = reader.read_string()?.to_vec();
        keys.push(AgentKey { key, comment: String::from_utf8_lossy(reader.read_string()?).into_owned() });
    }
    reader.expect_end()?;
    Ok(keys)
}
