//! From a tool call to the values that must be resolved before it can be judged.
//!
//! - An unknown tool, an unknown argument and an argument of the wrong shape are denied here.
//! - Of a call of an unknown tool that is asked about no argument is understood, whatever it looks like: there are no values.
//! - A value of a judged role is a text or a flat list of texts; anything else is denied, never skipped.

mod requests;

use crate::annotations::AnnotatedTool;
use crate::{Annotations, Denial, JudgedRequest, Role, RoleSet, Roles, ToolAnnotation, Unannotated};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A call whose arguments are understood, and whose values wait for facts.
#[derive(Debug, Clone, PartialEq)]
pub struct CallPlan<'a> {
    pub(crate) tool: Arc<AnnotatedTool>,
    pub(crate) arguments: &'a Arc<Map<String, Value>>,
    pub(crate) carried: RoleSet,
    pub(crate) judged: Vec<Role>,
    pub(crate) values: Vec<PlannedValue<'a>>,
}

/// One value of the call that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedValue<'a> {
    /// The argument.
    pub argument: &'a Arc<str>,
    /// Its place in the argument, when that is a list.
    pub index: Option<usize>,
    /// The roles of the argument. Never empty.
    pub roles: RoleSet,
    /// The value as the client wrote it; nothing for a git remote the call leaves out, for which git knows a default.
    pub raw: Option<&'a str>,
}

impl Annotations {
    /// Understands a call. The arguments are shared until a canonical value differs from what the client wrote.
    ///
    /// # Errors
    /// A denial when the tool is not known or the arguments do not fit it.
    pub fn plan<'a>(
        &'a self,
        server: &str,
        tool: &str,
        arguments: &'a Arc<Map<String, Value>>,
    ) -> Result<CallPlan<'a>, Denial> {
        if let Some(request) = JudgedRequest::parse(tool) {
            return requests::plan(request, server, arguments);
        }
        let known = self.known_or_denied(server, tool)?;
        let values = known.annotation.accepted.take(arguments)?;
        CallPlan::build(Arc::clone(known), &known.annotation, arguments, &values)
    }

    /// Understands a call as [`Annotations::plan`] does. Where `unannotated` says to ask, a call of a tool that nobody has
    /// annotated is planned as a whole.
    ///
    /// # Errors
    /// As [`Annotations::plan`].
    pub fn plan_or_ask<'a>(
        &'a self,
        server: &str,
        tool: &str,
        arguments: &'a Arc<Map<String, Value>>,
        unannotated: Unannotated,
    ) -> Result<CallPlan<'a>, Denial> {
        let is_unknown = || JudgedRequest::parse(tool).is_none() && self.known(server, tool).is_none();
        match unannotated {
            Unannotated::Ask if is_unknown() => {
                Ok(CallPlan::new(Arc::new(AnnotatedTool::nobody_s(server, tool)), arguments))
            }
            Unannotated::Ask | Unannotated::Deny => self.plan(server, tool, arguments),
        }
    }

    fn known_or_denied(&self, server: &str, tool: &str) -> Result<&Arc<AnnotatedTool>, Denial> {
        self.known(server, tool).ok_or_else(|| Denial::unknown_tool(unannotated(server, tool)))
    }
}

impl<'a> CallPlan<'a> {
    /// The server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.tool.server
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.name
    }

    /// Every role that arguments of the call carry.
    #[must_use]
    pub fn carried(&self) -> RoleSet {
        self.carried
    }

    /// Every value that means something, in the order in which facts are to be given.
    #[must_use]
    pub fn values(&self) -> &[PlannedValue<'a>] {
        &self.values
    }

    /// The call as if its tool had no argument with this role.
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
    /// Returns `true` if it needs [`Fact::Path`](crate::Fact::Path).
    #[must_use]
    pub fn is_path(&self) -> bool {
        self.roles.meets(RoleSet::PATHS)
    }

    pub(crate) fn text(&self) -> &str {
        self.raw.unwrap_or_default()
    }

    /// Returns `true` if it may be given [`Fact::Remotes`](crate::Fact::Remotes).
    #[must_use]
    pub fn is_remote(&self) -> bool {
        self.roles.contains(Role::GitRemoteUrl)
    }
}

fn unannotated(server: &str, tool: &str) -> String {
    format!(
        "nobody has said yet what the tool `{server}/{tool}` does; the user can run: ironcurtain servers annotate {server}"
    )
}

impl<'a> CallPlan<'a> {
    /// Plans a call of a tool with this annotation.
    pub(crate) fn build(
        tool: Arc<AnnotatedTool>,
        annotation: &'a ToolAnnotation,
        arguments: &'a Arc<Map<String, Value>>,
        values: &[Option<&'a Value>],
    ) -> Result<Self, Denial> {
        let mut plan = Self::new(tool, arguments);
        for ((name, roles), value) in annotation.roles(arguments).zip(values) {
            plan.carry(roles);
            plan.collect(name, roles.meant, *value)?;
        }
        Ok(plan)
    }

    fn new(tool: Arc<AnnotatedTool>, arguments: &'a Arc<Map<String, Value>>) -> Self {
        Self { tool, arguments, carried: RoleSet::default(), judged: Vec::new(), values: Vec::new() }
    }

    /// Takes the roles of one argument.
    fn carry(&mut self, roles: &Roles) {
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

    /// Takes the values of one argument.
    fn collect(
        &mut self,
        argument: &'a Arc<str>,
        meant: RoleSet,
        value: Option<&'a Value>,
    ) -> Result<(), Denial> {
        if meant.is_empty() {
            return Ok(());
        }
        let mut push = |index, raw| self.values.push(PlannedValue { argument, index, roles: meant, raw });
        let is_remote = meant.contains(Role::GitRemoteUrl);
        let is_path = meant.meets(RoleSet::PATHS);
        match value {
            Some(Value::String(text)) if !text.is_empty() || !is_remote => push(None, Some(text)),
            // Git knows a default for a remote that the call leaves out.
            None | Some(Value::Null | Value::String(_)) if is_remote => push(None, None),
            None => {}
            Some(Value::Null) if !is_path => {}
            Some(Value::Array(items)) if items.iter().all(Value::is_string) => {
                let texts = items.iter().filter_map(Value::as_str).enumerate();
                texts.for_each(|(index, text)| push(Some(index), Some(text)));
            }
            Some(_) if meant.meets(RoleSet::RESOURCES) => {
                let reason = format!("argument `{argument}` must be a text or a flat list of texts");
                return Err(Denial::invalid(reason));
            }
            // What is only looked at by list conditions may have any shape, and then no list covers it.
            Some(_) => push(None, None),
        }
        Ok(())
    }
}
