//! Plans a sandboxed program's connection to a host, which is judged like a tool call with one address.

use super::CallPlan;
use crate::Denial;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A program's connection to a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HostConnection;

impl HostConnection {
    /// Name of the connection in rules and in the audit log. No tool has this name.
    pub const NAME: &'static str = "network/connect";

    /// Name of the argument that contains the address, such as `https://example.com:8443/`.
    pub const URL: &'static str = "url";

    /// Plans the connection like a call to a tool on this server.
    ///
    /// # Errors
    /// Returns a denial if the arguments are invalid.
    pub fn plan<'a>(
        self,
        server: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        CallPlan::for_operation((Self::NAME, false), server, arguments)
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
