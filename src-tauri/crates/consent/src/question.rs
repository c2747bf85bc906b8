//! Builds the questions that the user sees: about calls, connections to hosts, workspaces, changed tools, ssh
//! signatures and sampling requests.
//!
//! - Pure: equal inputs produce equal questions.

mod call;
mod changed_tool;
mod connection;
mod host;
mod known_service;
mod sampling;
mod signature;
mod workspace;

pub use call::CallQuestion;
pub use changed_tool::{ChangedToolQuestion, RULE as CHANGED_TOOL_RULE};
pub use connection::ConnectionQuestion;
pub(super) use host::standing as host_offer;
pub use host::{HostQuestion, RULE as HOST_RULE};
pub use sampling::{RULE as SAMPLING_RULE, SamplingQuestion};
pub use signature::{
    RULE as SIGNATURE_RULE, SignatureQuestion, SignedHost, SignedThing, TOOL as SIGNATURE_TOOL,
};
pub use workspace::{RULE as WORKSPACE_RULE, WorkspaceQuestion, WorkspaceSource};
