//! Judges access to everything in a folder, independently of any tool.

use super::JudgingContext;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Access, Annotations, Decision, Fact, Role, judge};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Name of a placeholder tool that no rule matches.
const ANY_TOOL: &str = "any tool";

/// Name of the placeholder tool's argument that contains the folder.
const FOLDER: &str = "folder";

impl JudgingContext {
    /// Returns the decision on one kind of access to everything in a folder.
    pub fn decision_in(&self, folder: &CanonicalPath, access: Access) -> Decision {
        let role = match access {
            Access::Read => Role::ReadPath,
            Access::Write => Role::WritePath,
            Access::Delete => Role::DeletePath,
        };
        self.judge_whole_folder(folder, role).unwrap_or(Decision::Deny)
    }

    fn judge_whole_folder(&self, folder: &CanonicalPath, role: Role) -> Option<Decision> {
        let tool = json!({ "toolName": ANY_TOOL, "args": { FOLDER: [role.name()] }, "descends": true });
        let file = json!({ "servers": { &self.server: { "tools": [tool] } } });
        let annotations = Annotations::from_json(&file.to_string(), ANY_TOOL).ok()?;
        let arguments = Map::from_iter([(FOLDER.to_owned(), Value::from(folder.as_str()))]);
        let arguments = Arc::new(arguments);
        let plan = annotations.plan(&self.server, ANY_TOOL, &arguments).ok()?;
        let call = plan.resolve([Fact::Path(folder.clone())]).ok()?;
        let verdict = self.with_context(&self.grants, |context| judge(&self.snapshot.policy, context, call));
        Some(verdict.decision())
    }
}
