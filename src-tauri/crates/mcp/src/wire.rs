//! JSON-RPC messages, one per line as in MCP's stdio transport, over pipes, sockets and in-memory channels.
//!
//! Forwarded messages stay raw text. Only the parts that are checked or rewritten are parsed.

mod descriptor;
mod fields;
mod known_servers;
mod line_source;
mod lines;
mod memory_budget;
mod message;
mod notifications;
mod outbox;
mod outgoing;
mod protocol_version;
mod truncated;

pub use descriptor::{Input, Output, pair};
pub use fields::Fields;
pub use known_servers::{KnownInstructions, KnownVersions, ProtocolVersion};
pub use line_source::{LineReader, LineSource, ReceivedLine};
pub use lines::{Line, Lines, MAX_CONCURRENT, MAX_LINE_BYTES};
pub use memory_budget::{Allowance, BudgetExhausted, MAX_MEDIUM_LEN, MemoryBudget, Share};
pub use message::{
    Id, Incoming, PartialMessage, Response, batch_members, error_line, notification_line, request_line,
    request_parts, response_line, response_parts, result_line,
};
pub use notifications::{client_may_send, server_may_send};
pub use outbox::{LineSink, Outbox, WriteBatch};
pub use outgoing::{LineGuard, Outgoing};
pub(crate) use protocol_version::{HANDSHAKE_VERSIONS, error_code, rewrite_params};
pub use protocol_version::{STATELESS_VERSION, meta_key};
pub use truncated::id_in_truncated;
