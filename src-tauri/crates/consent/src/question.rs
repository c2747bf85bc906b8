//! Builds the questions that the user sees: about a call, about a host that a server or a program wants to reach,
//! about a workspace, about a tool that its server changed, and about a server's request for the client's model.
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
