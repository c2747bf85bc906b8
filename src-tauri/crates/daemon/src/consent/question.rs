//! From what would happen to the question that a person sees: for a call, and for a host that a server wants to reach.
//!
//! - Pure: the same call, found the same way, always gives the same question.

mod call;
mod host;

pub use call::CallQuestion;
pub(super) use host::standing as host_offer;
pub use host::{HostQuestion, RULE as HOST_RULE};
