//! The Model Context Protocol as IronCurtain speaks it: messages, framing and both protocol versions.
//!
//! - Independent of policy, consent and grants: never decides whether a message may pass.
//! - Reads what clients and servers write, and bounds the memory that their messages hold.
//! - Results and parameters pass as the bytes they came as; only ids and the fields of the protocol are rewritten.
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
