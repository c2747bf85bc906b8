//! Parses conditional roles.
//!
//! - A condition must refer to one of the tool's arguments; otherwise it would either always or never hold.
//! - A condition adds roles to the default or removes some of them. An argument without default roles cannot have
//!   conditional ones, because it would not be judged in calls that do not meet the condition.
//! - Numbers that programs may round differently are rejected, because the server must evaluate the condition as we do.

use super::super::{AcceptedArguments, ArgumentCondition, ArgumentRoles, ConditionalRoles};
use super::{ARGUMENTS, ToolParser};
use crate::json_location::JsonLocation;
use crate::{LoadError, Role};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredConditional {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
    default: Vec<String>,
    #[cfg_attr(test, schemars(with = "Vec<StoredGuard>"))]
    when: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StoredGuard {
    #[cfg_attr(test, schemars(with = "crate::schemas::ConditionShape"))]
    condition: Map<String, Value>,
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
    roles: Vec<String>,
}

impl ToolParser<'_> {
    /// Parses an argument with conditional roles.
    pub(super) fn conditional(
        &self,
        location: JsonLocation<'_>,
        stored: Value,
    ) -> Result<ArgumentRoles, LoadError> {
        let stored: StoredConditional = self.read(location, stored)?;
        let default = self.roles(JsonLocation::Field(&location, "default"), &stored.default)?;
        let when_location = JsonLocation::Field(&location, "when");
        let guards = stored.when.into_iter().enumerate();
        let when = guards.map(|(index, guard)| {
            let location = JsonLocation::Item(&when_location, index);
            let guard: StoredGuard = self.read(location, Value::Object(guard))?;
            let roles_location = JsonLocation::Field(&location, "roles");
            let roles = self.roles(roles_location, &guard.roles)?;
            check_conditional_roles(&roles, &default)
                .map_err(|problem| self.error(roles_location, problem.to_string()))?;
            let (argument, condition) =
                self.condition(JsonLocation::Field(&location, "condition"), guard.condition)?;
            Ok(ConditionalRoles { argument, condition, roles })
        });
        Ok(ArgumentRoles { when: when.collect::<Result<_, _>>()?, default })
    }

    /// Checks that every condition refers to one of the tool's arguments.
    pub(super) fn check_conditions(
        &self,
        arguments: &[(Arc<str>, ArgumentRoles)],
        accepted: &AcceptedArguments,
    ) -> Result<(), LoadError> {
        for (name, roles) in arguments {
            let argument_location = JsonLocation::Field(&ARGUMENTS, name);
            let when_location = JsonLocation::Field(&argument_location, "when");
            let mut guards = roles.when.iter().enumerate();
            if let Some((index, guard)) = guards.find(|(_, guard)| !accepted.contains(&guard.argument)) {
                let location = JsonLocation::Item(&when_location, index);
                let condition = JsonLocation::Field(&location, "condition");
                let message = format!("the tool has no argument `{}`", guard.argument);
                return Err(self.error(JsonLocation::Field(&condition, "arg"), message));
            }
        }
        Ok(())
    }

    fn condition(
        &self,
        location: JsonLocation<'_>,
        mut stored: Map<String, Value>,
    ) -> Result<(String, ArgumentCondition), LoadError> {
        let argument_location = JsonLocation::Field(&location, "arg");
        let argument = stored.remove("arg").ok_or_else(|| self.error(argument_location, "is missing"))?;
        let argument: String = self.read(argument_location, argument)?;
        let mut operators = stored.into_iter();
        let condition = match (operators.next(), operators.next()) {
            (None, _) => ArgumentCondition::Never,
            (Some((name, wanted)), None) => {
                self.operator(JsonLocation::Field(&location, &name), &name, wanted)?
            }
            (Some((one, _)), Some((other, _))) => {
                let message = format!("has `{one}` and `{other}`; write only one condition");
                return Err(self.error(location, message));
            }
        };
        Ok((argument, condition))
    }

    fn operator(
        &self,
        location: JsonLocation<'_>,
        name: &str,
        wanted: Value,
    ) -> Result<ArgumentCondition, LoadError> {
        if let Some(number) = items_of(&wanted).find(|number| is_inexact(number)) {
            return Err(self.error(location, format!("some programs read `{number}` as another number")));
        }
        if let ("in", Value::Array(listed)) = (name, &wanted)
            && let Some(index) = listed.iter().position(Value::is_null)
        {
            return Err(self.error(
                JsonLocation::Item(&location, index),
                "is null, which never matches; use `is` with `absent`",
            ));
        }
        match (name, wanted) {
            ("equals" | "in" | "is", Value::Null) => {
                Err(self.error(location, "is null, which never matches; use `is` with `absent`"))
            }
            ("equals", wanted) => Ok(ArgumentCondition::Equals(wanted)),
            ("in", wanted) => Ok(ArgumentCondition::In(self.read(location, wanted)?)),
            ("is", wanted) => {
                let word: String = self.read(location, wanted)?;
                parse_state(&word).ok_or_else(|| {
                    let message =
                        format!("unknown value `{word}`; write `present`, `absent`, `truthy` or `falsy`");
                    self.error(location, message)
                })
            }
            _ => Err(self.error(location, "unknown condition")),
        }
    }
}

/// Iterates over the items of a list, or over a single value.
fn items_of(wanted: &Value) -> impl Iterator<Item = &Value> {
    wanted.as_array().map_or(std::slice::from_ref(wanted), Vec::as_slice).iter()
}

/// Returns `true` if a number is so large that neighbouring integers round to the same `f64`.
fn is_inexact(value: &Value) -> bool {
    const FIRST: f64 = 9_007_199_254_740_992.0;
    value.as_f64().is_some_and(|number| number.abs() >= FIRST)
}

fn parse_state(word: &str) -> Option<ArgumentCondition> {
    match word {
        "present" => Some(ArgumentCondition::Present),
        "absent" => Some(ArgumentCondition::Absent),
        "truthy" => Some(ArgumentCondition::Truthy),
        "falsy" => Some(ArgumentCondition::Falsy),
        _ => None,
    }
}

/// Error for a conditional role that is missing from the default roles.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not one of the default roles")]
struct NotADefaultRole(Role);

/// Checks that conditional roles are a subset or a superset of the default roles. The role `none`
/// is ignored, so it removes all roles.
fn check_conditional_roles(roles: &[Role], default: &[Role]) -> Result<(), NotADefaultRole> {
    let named =
        |roles: &[Role]| -> Vec<Role> { roles.iter().copied().filter(|role| *role != Role::None).collect() };
    let (roles, default) = (named(roles), named(default));
    let Some(extra) = roles.iter().find(|role| !default.contains(role)) else { return Ok(()) };
    let adds = !default.is_empty() && default.iter().all(|role| roles.contains(role));
    if adds { Ok(()) } else { Err(NotADefaultRole(*extra)) }
}
