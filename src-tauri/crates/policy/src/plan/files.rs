//! Plans a sandboxed program's file operations, which are judged like tool calls with one path.

use super::CallPlan;
use crate::Denial;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A sandboxed program's operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileOperation {
    /// Reads the file.
    Read,
    /// Creates, changes or replaces the file.
    Write,
    /// Reads and changes the file.
    Change,
    /// Removes or moves the file.
    Delete,
}

impl FileOperation {
    /// All operations.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Change, Self::Delete];

    /// Name of the argument that contains the path.
    pub const PATH: &'static str = "path";

    /// Returns the operation's name in rules and in the audit log. No tool has such a name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "files/read",
            Self::Write => "files/write",
            Self::Change => "files/change",
            Self::Delete => "files/delete",
        }
    }

    /// Plans the operation like a call to a tool on the given server.
    ///
    /// # Errors
    /// Returns a denial if the arguments are invalid for the operation.
    pub fn plan<'a>(
        self,
        server: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        CallPlan::for_operation((self.name(), false), server, arguments)
    }

    /// Plans the operation for everything in a folder.
    ///
    /// # Errors
    /// Returns a denial if the arguments are invalid for the operation.
    pub fn plan_recursive<'a>(
        self,
        server: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        CallPlan::for_operation((self.name(), true), server, arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;
    use serde_json::json;

    #[test]
    fn every_operation_has_a_path_with_its_roles() {
        let roles = |operation: FileOperation| {
            let arguments = Arc::new(json!({ "path": "/a" }).as_object().unwrap().clone());
            let plan = operation.plan("run:bash", &arguments).unwrap();
            assert_eq!((plan.server(), plan.tool()), ("run:bash", operation.name()));
            let [value] = plan.values() else { panic!("expected one value") };
            value.roles.iter().collect::<Vec<Role>>()
        };
        assert_eq!(roles(FileOperation::Read), [Role::ReadPath]);
        assert_eq!(roles(FileOperation::Write), [Role::WritePath]);
        assert_eq!(roles(FileOperation::Change), [Role::ReadPath, Role::WritePath]);
        assert_eq!(roles(FileOperation::Delete), [Role::DeletePath]);
        let no_arguments = Arc::new(Map::new());
        assert!(FileOperation::Read.plan("run:bash", &no_arguments).is_err());
    }
}
