//! Plans a tool call: finds the values that must be resolved before it can be judged.
//!
//! - Unannotated tools, unknown arguments and invalid arguments are denied here.
//! - If a call to an unannotated tool requires approval, it has no planned values, because the meaning of its arguments
//!   is unknown.
//! - A value with a judged role must be a string or a flat list of strings; anything else is denied, never skipped.

mod connections;
mod files;
mod operations;
mod requests;

pub use connections::HostConnection;
pub use files::FileOperation;

use crate::annotations::AnnotatedTool;
use crate::{Annotations, Denial, JudgedRequest, Role, RoleSet, Roles, ToolAnnotation, Unannotated};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A call with checked arguments, and the values that need facts.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPlan<'a> {
    pub(crate) tool: Arc<AnnotatedTool>,
    pub(crate) arguments: &'a Arc<Map<String, Value>>,
    pub(crate) carried: RoleSet,
    pub(crate) judged: Vec<Role>,
    pub(crate) values: Vec<PlannedValue<'a>>,
}

/// One value of the call with a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedValue<'a> {
    /// Name of the argument that contains the value.
    pub argument: &'a Arc<str>,
    /// Index of the value in the argument, or `None` if the argument is not a list.
    pub index: Option<usize>,
    /// Roles of the argument. Never empty.
    pub roles: RoleSet,
    /// Value as the client wrote it, or `None` for an omitted git remote, for which git has a default.
    pub raw: Option<&'a str>,
}

impl Annotations {
    /// Plans a call. The arguments are copied only if a canonical value differs from the given one.
    ///
    /// # Errors
    /// Returns a denial if the tool is unannotated or the arguments are invalid.
    pub fn plan<'a>(
        &'a self,
        server: &str,
        tool: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        if let Some(request) = JudgedRequest::parse(tool) {
            return requests::plan(request, server, arguments);
        }
        let tool = self.annotated_or_denied(server, tool)?;
        let values = tool.annotation.accepted.check(arguments)?;
        CallPlan::build(Arc::clone(tool), &tool.annotation, arguments, &values)
    }

    /// Plans a call like [`Annotations::plan`]. If `unannotated` is [`Unannotated::Ask`], plans a call to an
    /// unannotated tool as a whole instead of denying it.
    ///
    /// # Errors
    /// Returns the same errors as [`Annotations::plan`].
    pub fn plan_or_ask<'a>(
        &'a self,
        server: &str,
        tool: &str,
        arguments: &'a Arc<Map<String, Value>>,
        unannotated: Unannotated,
    ) -> Result<CallPlan<'a>, Denial> {
        let is_unannotated_tool =
            || JudgedRequest::parse(tool).is_none() && self.annotated_tool(server, tool).is_none();
        match unannotated {
            Unannotated::Ask if is_unannotated_tool() => {
                Ok(CallPlan::new(Arc::new(AnnotatedTool::unannotated(server, tool)), arguments))
            }
            Unannotated::Ask | Unannotated::Deny => self.plan(server, tool, arguments),
        }
    }

    fn annotated_or_denied(&self, server: &str, tool: &str) -> Result<&Arc<AnnotatedTool>, Denial> {
        self.annotated_tool(server, tool).ok_or_else(|| Denial::unknown_tool(unannotated(server, tool)))
    }
}

impl<'a> CallPlan<'a> {
    /// Returns the server name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.tool.server
    }

    /// Returns the tool name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.name
    }

    /// Returns the roles of all arguments that the tool has.
    #[must_use]
    pub fn carried(&self) -> RoleSet {
        self.carried
    }

    /// Returns the values that have a role, in the order in which [`CallPlan::resolve`] expects
    /// their facts.
    #[must_use]
    pub fn values(&self) -> &[PlannedValue<'a>] {
        &self.values
    }

    /// Returns a copy of the plan without the values and arguments that have this role.
    #[must_use]
    pub fn without(&self, role: Role) -> Self {
        let mut plan = self.clone();
        plan.values.retain(|value| !value.roles.contains(role));
        plan.carried = plan.carried.iter().filter(|carried| *carried != role).collect();
        plan.judged.retain(|judged| *judged != role);
        plan
    }
}

impl PlannedValue<'_> {
    /// Returns `true` if the value needs a [`Fact::Path`](crate::Fact::Path).
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.roles.meets(RoleSet::PATHS)
    }

    pub(crate) fn text(&self) -> &str {
        self.raw.unwrap_or_default()
    }

    /// Returns `true` if the value can have [`Fact::Remotes`](crate::Fact::Remotes).
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.roles.contains(Role::GitRemoteUrl)
    }
}

fn unannotated(server: &str, tool: &str) -> String {
    format!(
        "the tool `{server}/{tool}` has not been reviewed yet; the user can run: ironcurtain servers annotate {server}"
    )
}

impl<'a> CallPlan<'a> {
    /// Plans a call to a tool with the given annotation.
    pub(crate) fn build(
        tool: Arc<AnnotatedTool>,
        annotation: &'a ToolAnnotation,
        arguments: &'a Arc<Map<String, Value>>,
        values: &[Option<&'a Value>],
    ) -> Result<Self, Denial> {
        let mut plan = Self::new(tool, arguments);
        for ((name, roles), value) in annotation.roles(arguments).zip(values) {
            plan.add_roles(roles);
            plan.add_values(name, roles.without_none, *value)?;
        }
        Ok(plan)
    }

    fn new(tool: Arc<AnnotatedTool>, arguments: &'a Arc<Map<String, Value>>) -> Self {
        Self { tool, arguments, carried: RoleSet::default(), judged: Vec::new(), values: Vec::new() }
    }

    /// Adds the roles of one argument to those of the plan.
    fn add_roles(&mut self, roles: &Roles) {
        if self.carried.includes(roles.all) {
            return;
        }
        for role in roles {
            if role.is_resource() && !self.carried.contains(*role) {
                self.judged.push(*role);
            }
            self.carried.insert(*role);
        }
    }

    /// Adds the values of one argument to the plan.
    fn add_values(
        &mut self,
        argument: &'a Arc<str>,
        roles: RoleSet,
        value: Option<&'a Value>,
    ) -> Result<(), Denial> {
        if roles.is_empty() {
            return Ok(());
        }
        let mut push = |index, raw| self.values.push(PlannedValue { argument, index, roles, raw });
        let is_remote = roles.contains(Role::GitRemoteUrl);
        let is_path = roles.meets(RoleSet::PATHS);
        match value {
            Some(Value::String(text)) if !text.is_empty() || !is_remote => push(None, Some(text)),
            // Git has a default for an omitted remote.
            None | Some(Value::Null | Value::String(_)) if is_remote => push(None, None),
            None => {}
            Some(Value::Null) if !is_path => {}
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                let texts = items.iter().filter_map(Value::as_str).enumerate();
                texts.for_each(|(index, text)| push(Some(index), Some(text)));
            }
            Some(_) if roles.meets(RoleSet::RESOURCES) => {
                let reason = format!("argument `{argument}` must be a string or a flat list of strings");
                return Err(Denial::invalid(reason));
            }
            // A value that only list conditions check may have any type, but no list entry matches a value that is
            // not a string.
            Some(_) => push(None, None),
        }
        Ok(())
    }
}
