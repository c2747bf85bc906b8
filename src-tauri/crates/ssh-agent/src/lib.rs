//! Parses requests to an ssh agent and determines the purpose of a signature. Performs no I/O.
//!
//! - Formats: the [agent protocol](https://datatracker.ietf.org/doc/draft-ietf-sshm-ssh-agent/), [RFC 4252] for logins,
//!   and OpenSSH's `PROTOCOL`, `PROTOCOL.agent` and `PROTOCOL.sshsig`.
//! - INVARIANT: data that does not exactly match a known format has no purpose. This prevents signing anything that the
//!   user was not shown.
//! - A login's host is known only if its key is part of the signed data. A host-signed session (`session-bind`) proves
//!   nothing, because the program chooses both the host and the session.
//!
//! [RFC 4252]: https://www.rfc-editor.org/rfc/rfc4252#section-7

mod known_hosts;
mod purpose;
mod request;
mod wire;

pub use known_hosts::{HostNames, find_host_names};
pub use purpose::SignaturePurpose;
pub use request::{
    AgentKey, AgentRequest, FAILURE_RESPONSE, LIST_REQUEST, MAX_ANSWER_LEN, MAX_REQUEST_LEN, SignRequest,
    parse_keys,
};
pub use wire::{Malformed, fingerprint};
