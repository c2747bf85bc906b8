//! Plan of a sandboxed program's connection to a host, judged like a tool call with one address.

use super::CallPlan;
use crate::Denial;
use serde_json::{Map, Value};
use std::sync::Arc;

/// Connection of a program to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostConnection;

impl HostConnection {
    /// Name in rules and in the record, which is never the name of a tool.
    pub const NAME: &'static str = "network/connect";

    /// Argument with the address, such as `https://example.com:8443/`.
    pub const URL: &'static str = "url";

    /// Plans the connection like a call of a tool of this server.
    ///
    /// # Errors
    /// Returns a denial if the arguments do not fit.
    pub fn plan<'a>(
        self,
        server: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        CallPlan::of_operation((Self::NAME, false), server, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use serde_json::json;

    #[test]
    fn a_connection_has_one_address() {
        let arguments = Arc::new(json!({ "url": "https://example.com:8443/" }).as_object().unwrap().clone());
        let plan = HostConnection.plan("run:curl", &arguments).unwrap();
        assert_eq!((plan.server(), plan.tool()), ("run:curl", "network/connect"));
        let [value] = plan.values() else { panic!("expected one value") };
        assert_eq!(value.roles.iter().collect::<Vec<Role>>(), [Role::FetchUrl]);
        assert!(HostConnection.plan("run:curl", &Arc::new(Map::new())).is_err());
    }
}
