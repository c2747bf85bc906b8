//! Model Context Protocol: messages, framing, and both kinds of protocol versions.
//!
//! - Independent of policy, consent and grants: never decides which messages are forwarded.
//! - Reads the output of clients and servers, and limits the memory that their messages occupy.
//! - Results and parameters are forwarded byte for byte. Only ids and protocol fields are rewritten.
//!
//! ```
//! use ironcurtain_mcp::wire::{Id, request_line};
//!
//! let line = request_line(&Id::from(1), "tools/list", None);
//! assert_eq!(line, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n");
//! ```

pub mod aggregate;
pub mod client;
pub mod remote;
pub mod request;
pub mod server;
pub mod wire;
