//! The Model Context Protocol as IronCurtain speaks it: messages, framing and both protocol versions.
//!
//! - Knows nothing of policy, consent or grants: it never decides whether a message may pass.
//! - Reads what clients and servers write, and bounds the memory that their messages hold.

pub mod aggregate;
pub mod client;
pub mod request;
pub mod server;
pub mod wire;
