//! From what would happen to the question that a person sees: for a call, for a host that a server wants to
//! reach, and for what it wants the client's model to answer.
//!
//! - Pure: the same call, found the same way, always gives the same question.

mod call;
mod host;
mod sampling;
mod workspace;

pub use call::CallQuestion;
pub(super) use host::standing as host_offer;
pub use host::{HostQuestion, RULE as HOST_RULE};
pub use sampling::{RULE as SAMPLING_RULE, SamplingQuestion};
pub use workspace::{RULE as WORKSPACE_RULE, WorkspaceQuestion, WorkspaceSource};
