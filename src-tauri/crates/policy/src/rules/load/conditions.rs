//! Parses a rule's `if` field.

use super::super::{DomainsCondition, ListCondition, ListEntry, PathsCondition, RuleCondition};
use super::{Loading, Reading, field};
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

impl Loading<'_> {
    pub(super) fn conditions(
        &self,
        then: Decision,
        stored: Map<String, Value>,
    ) -> Result<RuleCondition, LoadError> {
        let reading = self.reading;
        let of_rule = field("if");
        let mut conditions = RuleCondition::default();
        for (key, value) in stored {
            let at = JsonLocation::Field(&of_rule, &key);
            match key.as_str() {
                "roles" => {
                    let names: Vec<String> = reading.read(at, value)?;
                    conditions.roles = Some(reading.roles(at, &names)?);
                }
                "server" => conditions.server = Some(reading.read(at, value)?),
                "tool" => conditions.tool = Some(reading.read(at, value)?),
                "paths" => conditions.paths = Some(self.paths(at, value)?),
                "domains" => conditions.domains = Some(self.domains(then, at, value)?),
                "lists" => conditions.lists = Some(self.list_conditions(then, at, value)?),
                "reaches" => conditions.reaches_nothing = self.reaches_nothing(at, value)?,
                _ => return Err(reading.error(at, "unknown condition")),
            }
        }
        let names_a_resource = conditions.paths.is_some() || conditions.domains.is_some();
        if conditions.reaches_nothing && names_a_resource {
            let message = "it applies to calls without paths and addresses: remove `paths` and `domains`";
            return Err(reading.error(JsonLocation::Field(&of_rule, "reaches"), message));
        }
        Ok(conditions)
    }

    /// Parses the `reaches` field, which must be `nothing`.
    fn reaches_nothing(&self, at: JsonLocation<'_>, value: Value) -> Result<bool, LoadError> {
        let stored: String = self.reading.read(at, value)?;
        match stored.as_str() {
            "nothing" => Ok(true),
            other => Err(self.reading.error(at, format!("unknown value `{other}`: write `nothing`"))),
        }
    }

    fn paths(&self, at: JsonLocation<'_>, value: Value) -> Result<PathsCondition, LoadError> {
        let stored: StoredPaths = self.reading.read(at, value)?;
        let of_within = JsonLocation::Field(&at, "within");
        let is_rooted =
            stored.within.starts_with('/') || stored.within == "~" || stored.within.starts_with("~/");
        if !is_rooted {
            let message = format!("`{}` must be absolute or start with `~/`", stored.within);
            return Err(self.reading.error(of_within, message));
        }
        let within =
            (self.resolve)(&stored.within).map_err(|e| self.reading.error(of_within, e.to_string()))?;
        let of_roles = JsonLocation::Field(&at, "roles");
        let roles = self.reading.roles(of_roles, &stored.roles)?;
        if let Some(role) = roles.iter().find(|role| role.category() != Category::Path) {
            return Err(self.reading.error(of_roles, format!("`{role}` is not a role for paths")));
        }
        Ok(PathsCondition { roles, written: stored.within, within })
    }

    fn domains(
        &self,
        then: Decision,
        at: JsonLocation<'_>,
        value: Value,
    ) -> Result<DomainsCondition, LoadError> {
        let stored: StoredDomains = self.reading.read(at, value)?;
        let of_roles = JsonLocation::Field(&at, "roles");
        let roles = self.reading.roles(of_roles, &stored.roles)?;
        if let Some(role) = roles.iter().find(|role| !names_a_host(**role)) {
            return Err(self.reading.error(of_roles, format!("`{role}` is not a role for hosts")));
        }
        let allowed = self.fill_in(then, JsonLocation::Field(&at, "allowed"), stored.allowed)?;
        let allowed =
            allowed.iter().map(|text| self.pattern(then, JsonLocation::Field(&at, "allowed"), text));
        Ok(DomainsCondition { roles, allowed: allowed.collect::<Result<_, _>>()? })
    }

    fn list_conditions(
        &self,
        then: Decision,
        at: JsonLocation<'_>,
        value: Value,
    ) -> Result<Vec<ListCondition>, LoadError> {
        let stored: Vec<Value> = self.reading.read(at, value)?;
        let lists = stored.into_iter().enumerate();
        lists.map(|(index, list)| self.list_condition(then, JsonLocation::Item(&at, index), list)).collect()
    }

    fn list_condition(
        &self,
        then: Decision,
        at: JsonLocation<'_>,
        value: Value,
    ) -> Result<ListCondition, LoadError> {
        let stored: StoredList = self.reading.read(at, value)?;
        let roles = self.reading.roles(JsonLocation::Field(&at, "roles"), &stored.roles)?;
        let of_allowed = JsonLocation::Field(&at, "allowed");
        type Read<'a> = &'a dyn Fn(String) -> Result<ListEntry, LoadError>;
        let entry: Read<'_> = match stored.match_type.as_str() {
            "domains" => &|text| self.pattern(then, of_allowed, &text).map(ListEntry::Domain),
            "emails" => &|text| Ok(ListEntry::Email(text.to_lowercase())),
            "identifiers" => &|text| Ok(ListEntry::Identifier(text)),
            other => {
                let message = format!("unknown type `{other}`: write `domains`, `emails` or `identifiers`");
                return Err(self.reading.error(JsonLocation::Field(&at, "matchType"), message));
            }
        };
        let allowed = self.fill_in(then, of_allowed, stored.allowed)?;
        Ok(ListCondition { roles, allowed: allowed.into_iter().map(entry).collect::<Result<_, _>>()? })
    }

    /// Parses a host pattern. A pattern that no host can match is harmless in an allow rule. In a rule that denies or
    /// requires approval, such a pattern is an error, because the rule would not apply to its intended hosts.
    fn pattern(&self, then: Decision, at: JsonLocation<'_>, text: &str) -> Result<HostPattern, LoadError> {
        match (HostPattern::read(text), then) {
            (Ok(pattern), _) => Ok(pattern),
            (Err(_), Decision::Allow) => Ok(HostPattern::parse(text)),
            (Err(problem), Decision::Escalate | Decision::Deny) => {
                Err(self.reading.error(at, problem.to_string()))
            }
        }
    }

    /// Replaces each `@name` with the values in that list.
    fn fill_in(
        &self,
        then: Decision,
        at: JsonLocation<'_>,
        allowed: Vec<String>,
    ) -> Result<Vec<String>, LoadError> {
        let mut filled = Vec::with_capacity(allowed.len());
        for (index, entry) in allowed.into_iter().enumerate() {
            let Some(name) = entry.strip_prefix('@') else {
                filled.push(entry);
                continue;
            };
            let unknown =
                || self.reading.error(JsonLocation::Item(&at, index), format!("unknown list `{name}`"));
            filled.extend_from_slice(self.lists.find(name, then).ok_or_else(unknown)?);
        }
        Ok(filled)
    }
}

impl Reading<'_> {
    fn roles(&self, at: JsonLocation<'_>, names: &[String]) -> Result<Vec<Role>, LoadError> {
        let role = |(index, name): (usize, &String)| {
            let unknown = || self.error(JsonLocation::Item(&at, index), format!("unknown role `{name}`"));
            Role::parse(name).ok_or_else(unknown)
        };
        names.iter().enumerate().map(role).collect()
    }
}

pub(crate) fn names_a_host(role: Role) -> bool {
    match role.category() {
        Category::Url | Category::Identifier => true,
        Category::Path | Category::Opaque => false,
    }
}
