//! Parses a rule's `if` field.

use super::super::{DomainsCondition, ListCondition, ListEntry, PathsCondition, RuleCondition};
use super::{RuleParser, RuleReader, field};
use crate::json_location::JsonLocation;
use crate::{Category, Decision, HostPattern, LoadError, Role};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredPaths {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::PathRoleName>"))]
    roles: Vec<String>,
    #[cfg_attr(test, schemars(extend("pattern" = r"^(/|~(/|$))[^\u0000]*$")))]
    within: String,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredDomains {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::HostRoleName>"))]
    roles: Vec<String>,
    allowed: Vec<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct StoredList {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
    roles: Vec<String>,
    allowed: Vec<String>,
    #[cfg_attr(test, schemars(extend("enum" = ["domains", "emails", "identifiers"])))]
    match_type: String,
}

impl RuleParser<'_> {
    pub(super) fn conditions(
        &self,
        then: Decision,
        stored: Map<String, Value>,
    ) -> Result<RuleCondition, LoadError> {
        let reader = self.reader;
        let if_location = field("if");
        let mut conditions = RuleCondition::default();
        for (key, value) in stored {
            let location = JsonLocation::Field(&if_location, &key);
            match key.as_str() {
                "roles" => {
                    let names: Vec<String> = reader.read(location, value)?;
                    conditions.roles = Some(reader.roles(location, &names)?);
                }
                "server" => conditions.server = Some(reader.read(location, value)?),
                "tool" => conditions.tool = Some(reader.read(location, value)?),
                "paths" => conditions.paths = Some(self.paths(location, value)?),
                "domains" => conditions.domains = Some(self.domains(then, location, value)?),
                "lists" => conditions.lists = Some(self.list_conditions(then, location, value)?),
                "reaches" => conditions.reaches_nothing = self.reaches_nothing(location, value)?,
                _ => return Err(reader.error(location, "unknown condition")),
            }
        }
        let has_resource_condition = conditions.paths.is_some() || conditions.domains.is_some();
        if conditions.reaches_nothing && has_resource_condition {
            let message = "it applies to calls without paths and addresses; remove `paths` and `domains`";
            return Err(reader.error(JsonLocation::Field(&if_location, "reaches"), message));
        }
        Ok(conditions)
    }

    /// Parses the `reaches` field, which must be `nothing`.
    fn reaches_nothing(&self, location: JsonLocation<'_>, value: Value) -> Result<bool, LoadError> {
        let stored: String = self.reader.read(location, value)?;
        match stored.as_str() {
            "nothing" => Ok(true),
            other => Err(self.reader.error(location, format!("unknown value `{other}`; write `nothing`"))),
        }
    }

    fn paths(&self, location: JsonLocation<'_>, value: Value) -> Result<PathsCondition, LoadError> {
        let stored: StoredPaths = self.reader.read(location, value)?;
        let within_location = JsonLocation::Field(&location, "within");
        let is_absolute_or_home =
            stored.within.starts_with('/') || stored.within == "~" || stored.within.starts_with("~/");
        if !is_absolute_or_home {
            let message = format!("`{}` must be absolute or start with `~/`", stored.within);
            return Err(self.reader.error(within_location, message));
        }
        let within =
            (self.resolve)(&stored.within).map_err(|e| self.reader.error(within_location, e.to_string()))?;
        let roles_location = JsonLocation::Field(&location, "roles");
        let roles = self.reader.roles(roles_location, &stored.roles)?;
        if let Some(role) = roles.iter().find(|role| role.category() != Category::Path) {
            return Err(self.reader.error(roles_location, format!("`{role}` is not a role for paths")));
        }
        Ok(PathsCondition { roles, written: stored.within, within })
    }

    fn domains(
        &self,
        then: Decision,
        location: JsonLocation<'_>,
        value: Value,
    ) -> Result<DomainsCondition, LoadError> {
        let stored: StoredDomains = self.reader.read(location, value)?;
        let roles_location = JsonLocation::Field(&location, "roles");
        let roles = self.reader.roles(roles_location, &stored.roles)?;
        if let Some(role) = roles.iter().find(|role| !is_host_role(**role)) {
            return Err(self.reader.error(roles_location, format!("`{role}` is not a role for hosts")));
        }
        let allowed = self.expand_lists(then, JsonLocation::Field(&location, "allowed"), stored.allowed)?;
        let allowed =
            allowed.iter().map(|text| self.pattern(then, JsonLocation::Field(&location, "allowed"), text));
        Ok(DomainsCondition { roles, allowed: allowed.collect::<Result<_, _>>()? })
    }

    fn list_conditions(
        &self,
        then: Decision,
        location: JsonLocation<'_>,
        value: Value,
    ) -> Result<Vec<ListCondition>, LoadError> {
        let stored: Vec<Value> = self.reader.read(location, value)?;
        let lists = stored.into_iter().enumerate();
        lists
            .map(|(index, list)| self.list_condition(then, JsonLocation::Item(&location, index), list))
            .collect()
    }

    fn list_condition(
        &self,
        then: Decision,
        location: JsonLocation<'_>,
        value: Value,
    ) -> Result<ListCondition, LoadError> {
        let stored: StoredList = self.reader.read(location, value)?;
        let roles = self.reader.roles(JsonLocation::Field(&location, "roles"), &stored.roles)?;
        let allowed_location = JsonLocation::Field(&location, "allowed");
        type EntryParser<'a> = &'a dyn Fn(String) -> Result<ListEntry, LoadError>;
        let parse_entry: EntryParser<'_> = match stored.match_type.as_str() {
            "domains" => &|text| self.pattern(then, allowed_location, &text).map(ListEntry::Domain),
            "emails" => &|text| Ok(ListEntry::Email(text.to_lowercase())),
            "identifiers" => &|text| Ok(ListEntry::Identifier(text)),
            other => {
                let message = format!("unknown type `{other}`; write `domains`, `emails` or `identifiers`");
                return Err(self.reader.error(JsonLocation::Field(&location, "matchType"), message));
            }
        };
        let allowed = self.expand_lists(then, allowed_location, stored.allowed)?;
        Ok(ListCondition { roles, allowed: allowed.into_iter().map(parse_entry).collect::<Result<_, _>>()? })
    }

    /// Parses a host pattern. A pattern that no host can match is harmless in an allow rule. In a rule that denies or
    /// requires approval, such a pattern is an error, because the rule would not apply to its intended hosts.
    fn pattern(
        &self,
        then: Decision,
        location: JsonLocation<'_>,
        text: &str,
    ) -> Result<HostPattern, LoadError> {
        match (HostPattern::parse_strict(text), then) {
            (Ok(pattern), _) => Ok(pattern),
            (Err(_), Decision::Allow) => Ok(HostPattern::parse(text)),
            (Err(problem), Decision::Escalate | Decision::Deny) => {
                Err(self.reader.error(location, problem.to_string()))
            }
        }
    }

    /// Replaces each `@name` with the values in that list.
    fn expand_lists(
        &self,
        then: Decision,
        location: JsonLocation<'_>,
        allowed: Vec<String>,
    ) -> Result<Vec<String>, LoadError> {
        let mut expanded = Vec::with_capacity(allowed.len());
        for (index, entry) in allowed.into_iter().enumerate() {
            let Some(name) = entry.strip_prefix('@') else {
                expanded.push(entry);
                continue;
            };
            let unknown =
                || self.reader.error(JsonLocation::Item(&location, index), format!("unknown list `{name}`"));
            expanded.extend_from_slice(self.lists.values_for(name, then).ok_or_else(unknown)?);
        }
        Ok(expanded)
    }
}

impl RuleReader<'_> {
    fn roles(&self, location: JsonLocation<'_>, names: &[String]) -> Result<Vec<Role>, LoadError> {
        let role = |(index, name): (usize, &String)| {
            let unknown =
                || self.error(JsonLocation::Item(&location, index), format!("unknown role `{name}`"));
            Role::parse(name).ok_or_else(unknown)
        };
        names.iter().enumerate().map(role).collect()
    }
}

pub(crate) fn is_host_role(role: Role) -> bool {
    match role.category() {
        Category::Url | Category::Identifier => true,
        Category::Path | Category::Opaque => false,
    }
}
