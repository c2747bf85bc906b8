//! JSON-RPC messages, one per line as in MCP's stdio transport, over pipes, sockets and in-memory channels.
//!
//! Forwarded messages stay raw text. Only the parts that are checked or rewritten are parsed.

mod descriptor;
mod fields;
mod inlet;
mod known_servers;
mod lines;
mod memory;
mod message;
mod notifications;
mod outbox;
mod outgoing;
mod overlong;
mod protocol_version;

pub use descriptor::{Input, Output, pair};
pub use fields::Fields;
pub use inlet::{HandedLine, Inlet, Listening};
pub use known_servers::{KnownInstructions, KnownVersions, ProtocolVersion};
pub use lines::{Line, Lines, MAX_CONCURRENT, MAX_LINE_BYTES};
pub use memory::{Allowance, MEDIUM, Memory, NoRoom, Share};
pub use message::{
    Id, Incoming, Response, Salvage, error_line, members, notification_line, request_line, request_parts,
    response_line, response_parts, result_line,
};
pub use notifications::{client_may_send, server_may_send};
pub use outbox::{Gathered, Outbox, Outlet};
pub use outgoing::{Held, Outgoing};
pub use overlong::id_in;
pub(crate) use protocol_version::{HANDSHAKE_VERSIONS, error_code, rewrite_params};
pub use protocol_version::{STATELESS_VERSION, meta_key};
