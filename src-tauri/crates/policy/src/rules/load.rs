//! Reads a compiled-policy file, strictly: a condition that is not understood is never ignored, the file is refused.

use super::index::Index;
use super::{
    Conditions, Decision, DomainsCondition, Entry, ListCondition, PathsCondition, Policy, ResolveWithin, Rule,
};
use crate::domains::Pattern;
use crate::{Category, DynamicLists, LoadError, Role};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

impl Policy {
    /// Reads a compiled-policy file. `resolve` finds where the folders that rules name lead; `lists` fill in what rules
    /// call `@name`.
    ///
    /// # Errors
    /// When anything in the file is not understood, naming file, rule and field.
    pub fn from_json(
        text: &str,
        file: &str,
        resolve: &ResolveWithin<'_>,
        lists: &DynamicLists,
    ) -> Result<Self, LoadError> {
        let stored: StoredFile = crate::strict::read(text, file)?;
        crate::error::check_version(file, stored.schema_version)?;
        let loading = Loading { file, resolve, lists };
        let mut names = BTreeSet::new();
        let mut rules = Vec::with_capacity(stored.rules.len());
        for (place, rule) in stored.rules.into_iter().enumerate() {
            let rule = loading.rule(place, rule)?;
            if !names.insert(rule.name.to_string()) {
                return Err(loading.error(&rule.name, "name", "another rule has this name"));
            }
            rules.push(rule);
        }
        let index = Index::new(&rules);
        Ok(Self { rules, index })
    }
}

/// The error for a folder that cannot be resolved.
pub(super) fn bad_within(file: &str, rule: &str, message: String) -> LoadError {
    LoadError::Rule {
        file: file.to_owned(),
        rule: rule.to_owned(),
        field: "if.paths.within".to_owned(),
        message,
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredFile {
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: Option<u64>,
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RuleShape>"))]
    rules: Vec<Map<String, Value>>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredPaths {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
    roles: Vec<String>,
    within: String,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredDomains {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
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

fn names_a_host(role: Role) -> bool {
    match role.category() {
        Category::Url | Category::Identifier => true,
        Category::Path | Category::Opaque => false,
    }
}

/// What reading one file needs.
struct Loading<'a> {
    file: &'a str,
    resolve: &'a ResolveWithin<'a>,
    lists: &'a DynamicLists,
}

impl Loading<'_> {
    fn rule(&self, place: usize, mut stored: Map<String, Value>) -> Result<Rule, LoadError> {
        let unnamed = format!("number {}", place + 1);
        let name: String = self.take(&mut stored, &unnamed, "name")?;
        if name.is_empty() {
            return Err(self.error(&unnamed, "name", "a rule needs a name"));
        }
        let mut text = |field: &str| match stored.remove(field) {
            Some(Value::String(text)) => Ok(text),
            None => Ok(String::new()),
            Some(_) => Err(self.error(&name, field, "must be a text")),
        };
        let (description, principle, reason) = (text("description")?, text("principle")?, text("reason")?);
        let then: String = self.take(&mut stored, &name, "then")?;
        let then = match then.as_str() {
            "allow" => Decision::Allow,
            "escalate" => Decision::Escalate,
            "deny" => Decision::Deny,
            other => return Err(self.error(&name, "then", format!("`{other}` is not a decision"))),
        };
        let condition: Map<String, Value> = self.take(&mut stored, &name, "if")?;
        if let Some(field) = stored.keys().next() {
            return Err(self.error(&name, field, "this field is not known"));
        }
        let condition = self.conditions(&name, condition)?;
        Ok(Rule { name: name.into(), description, principle, reason: reason.into(), then, condition })
    }

    fn conditions(&self, rule: &str, stored: Map<String, Value>) -> Result<Conditions, LoadError> {
        let mut conditions = Conditions::default();
        for (key, value) in stored {
            let field = format!("if.{key}");
            match key.as_str() {
                "roles" => {
                    let names: Vec<String> = self.read(rule, &field, value)?;
                    conditions.roles = Some(self.roles(rule, &field, &names)?);
                }
                "server" => conditions.server = Some(self.read(rule, &field, value)?),
                "tool" => conditions.tool = Some(self.read(rule, &field, value)?),
                "paths" => conditions.paths = Some(self.paths(rule, &field, value)?),
                "domains" => conditions.domains = Some(self.domains(rule, &field, value)?),
                "lists" => conditions.lists = Some(self.list_conditions(rule, &field, value)?),
                _ => return Err(self.error(rule, &field, "this condition is not known")),
            }
        }
        Ok(conditions)
    }

    fn paths(&self, rule: &str, field: &str, value: Value) -> Result<PathsCondition, LoadError> {
        let stored: StoredPaths = self.read(rule, field, value)?;
        let is_rooted =
            stored.within.starts_with('/') || stored.within == "~" || stored.within.starts_with("~/");
        if !is_rooted {
            let message = format!("`{}` must be absolute or begin with `~/`", stored.within);
            return Err(bad_within(self.file, rule, message));
        }
        let within =
            (self.resolve)(&stored.within).map_err(|message| bad_within(self.file, rule, message))?;
        let roles = self.roles(rule, &format!("{field}.roles"), &stored.roles)?;
        if let Some(role) = roles.iter().find(|role| role.category() != Category::Path) {
            return Err(self.error(rule, &format!("{field}.roles"), format!("`{role}` names no path")));
        }
        Ok(PathsCondition { roles, written: stored.within, within })
    }

    fn domains(&self, rule: &str, field: &str, value: Value) -> Result<DomainsCondition, LoadError> {
        let stored: StoredDomains = self.read(rule, field, value)?;
        let roles = self.roles(rule, &format!("{field}.roles"), &stored.roles)?;
        if let Some(role) = roles.iter().find(|role| !names_a_host(**role)) {
            return Err(self.error(rule, &format!("{field}.roles"), format!("`{role}` names no host")));
        }
        let allowed = self.fill_in(rule, field, stored.allowed)?;
        let allowed = allowed.iter().map(|text| Pattern::parse(text)).collect();
        Ok(DomainsCondition { roles, allowed })
    }

    fn list_conditions(
        &self,
        rule: &str,
        field: &str,
        value: Value,
    ) -> Result<Vec<ListCondition>, LoadError> {
        let stored: Vec<StoredList> = self.read(rule, field, value)?;
        stored.into_iter().map(|list| self.list_condition(rule, field, list)).collect()
    }

    fn list_condition(
        &self,
        rule: &str,
        field: &str,
        stored: StoredList,
    ) -> Result<ListCondition, LoadError> {
        let roles = self.roles(rule, &format!("{field}.roles"), &stored.roles)?;
        let entry: fn(String) -> Entry = match stored.match_type.as_str() {
            "domains" => |text| Entry::Domain(Pattern::parse(&text)),
            "emails" => |text| Entry::Email(text.to_lowercase()),
            "identifiers" => Entry::Identifier,
            other => {
                let message =
                    format!("`{other}` is not a way to match: write `domains`, `emails` or `identifiers`");
                return Err(self.error(rule, &format!("{field}.matchType"), message));
            }
        };
        let allowed = self.fill_in(rule, field, stored.allowed)?;
        Ok(ListCondition { roles, allowed: allowed.into_iter().map(entry).collect() })
    }

    /// Puts the values of a list where its `@name` stands.
    fn fill_in(&self, rule: &str, field: &str, allowed: Vec<String>) -> Result<Vec<String>, LoadError> {
        let mut filled = Vec::with_capacity(allowed.len());
        for entry in allowed {
            let Some(name) = entry.strip_prefix('@') else {
                filled.push(entry);
                continue;
            };
            let list = self.lists.find(name).ok_or_else(|| {
                self.error(rule, &format!("{field}.allowed"), format!("there is no list `{name}`"))
            })?;
            filled.extend_from_slice(list);
        }
        Ok(filled)
    }

    fn roles(&self, rule: &str, field: &str, names: &[String]) -> Result<Vec<Role>, LoadError> {
        let role = |name: &String| {
            Role::parse(name).ok_or_else(|| self.error(rule, field, format!("there is no role `{name}`")))
        };
        names.iter().map(role).collect()
    }

    fn take<T: DeserializeOwned>(
        &self,
        stored: &mut Map<String, Value>,
        rule: &str,
        field: &str,
    ) -> Result<T, LoadError> {
        let value = stored.remove(field).ok_or_else(|| self.error(rule, field, "is missing"))?;
        self.read(rule, field, value)
    }

    fn read<T: DeserializeOwned>(&self, rule: &str, field: &str, value: Value) -> Result<T, LoadError> {
        serde_json::from_value(value).map_err(|error| self.error(rule, field, error.to_string()))
    }

    fn error(&self, rule: &str, field: &str, message: impl Into<String>) -> LoadError {
        LoadError::Rule {
            file: self.file.to_owned(),
            rule: rule.to_owned(),
            field: field.to_owned(),
            message: message.into(),
        }
    }
}
