//! Reads a tool-annotations file, strictly: an unknown role, operator or field of a condition refuses the file.

use super::{Annotations, ArgumentRoles, Condition, Guard, ToolAnnotation};
use crate::names::Names;
use crate::schema::Shape;
use crate::{LoadError, Role, SharedStr};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl Annotations {
    /// Reads a tool-annotations file.
    ///
    /// # Errors
    /// When the text is not such a file, names a role that does not exist, annotates a tool twice, or has a
    /// condition that gives a role the default lacks.
    pub fn from_json(text: &str, file: &str) -> Result<Self, LoadError> {
        let stored: StoredFile = crate::strict::read(text, file)?;
        crate::error::check_version(file, stored.schema_version)?;
        let mut servers: Names<Names<ToolAnnotation>> = Names::default();
        for (server, stored) in stored.servers {
            let tools = servers.entry(&server);
            let Some(tools) = tools else { continue };
            for tool in stored.tools {
                let name = tool.tool_name.clone();
                let at = Place { file, server: &server, tool: &name };
                if tools.has(&name) {
                    return Err(at.error("toolName", "the tool is annotated twice"));
                }
                if let Some(place) = tools.entry(&name) {
                    *place = tool.check(&at)?;
                }
            }
        }
        Ok(Self { servers })
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredFile {
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: Option<u64>,
    servers: BTreeMap<String, StoredServer>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StoredServer {
    tools: Vec<StoredTool>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct StoredTool {
    tool_name: String,
    #[cfg_attr(test, schemars(with = "BTreeMap<String, crate::schemas::ArgumentShape>"))]
    args: Map<String, Value>,
    #[serde(default)]
    input_schema: Option<Value>,
    #[serde(default)]
    descends: Option<bool>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredConditional {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
    default: Vec<String>,
    when: Vec<StoredGuard>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StoredGuard {
    condition: StoredCondition,
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::RoleName>"))]
    roles: Vec<String>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StoredCondition {
    arg: String,
    #[serde(default)]
    equals: Option<Value>,
    #[serde(default, rename = "in")]
    one_of: Option<Vec<Value>>,
    #[serde(default)]
    #[cfg_attr(test, schemars(extend("enum" = ["present", "absent", "truthy", "falsy", null])))]
    is: Option<String>,
}

/// Where in a file an error is.
struct Place<'a> {
    file: &'a str,
    server: &'a str,
    tool: &'a str,
}

impl Place<'_> {
    fn error(&self, field: &str, message: impl Into<String>) -> LoadError {
        LoadError::Tool {
            file: self.file.to_owned(),
            server: self.server.to_owned(),
            tool: self.tool.to_owned(),
            field: field.to_owned(),
            message: message.into(),
        }
    }

    fn roles(&self, field: &str, names: &[String]) -> Result<Vec<Role>, LoadError> {
        names
            .iter()
            .map(|name| {
                Role::parse(name).ok_or_else(|| self.error(field, format!("there is no role `{name}`")))
            })
            .collect()
    }
}

impl StoredTool {
    fn check(self, at: &Place<'_>) -> Result<ToolAnnotation, LoadError> {
        let mut arguments = Vec::with_capacity(self.args.len());
        for (name, stored) in self.args {
            let roles = argument_roles(&name, stored, at)?;
            arguments.push((name.into(), roles));
        }
        let input_schema = self.input_schema;
        Ok(ToolAnnotation {
            descends: self.descends.unwrap_or_else(|| names_a_recursive_tool(&self.tool_name)),
            known: known(&arguments, input_schema.as_ref()),
            shape: input_schema.as_ref().map(Shape::of),
            arguments,
            input_schema,
        })
    }
}

/// The arguments that are annotated, and declared where the server declares any.
fn known(arguments: &[(SharedStr, ArgumentRoles)], input_schema: Option<&Value>) -> Names<()> {
    let declared = input_schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object);
    let mut known: Names<()> = Names::default();
    for (name, _) in arguments {
        if declared.is_none_or(|declared| declared.contains_key(name.as_str())) {
            known.entry(name);
        }
    }
    known
}

/// Whether the name of a tool says that it goes down into the folders it is given.
fn names_a_recursive_tool(tool: &str) -> bool {
    const WORDS: [&str; 12] = [
        "tree",
        "search",
        "find",
        "grep",
        "glob",
        "recursive",
        "walk",
        "copy",
        "move",
        "rename",
        "archive",
        "zip",
    ];
    let tool = tool.to_ascii_lowercase();
    WORDS.iter().any(|word| tool.contains(word))
}

fn argument_roles(name: &str, stored: Value, at: &Place<'_>) -> Result<ArgumentRoles, LoadError> {
    let field = format!("args.{name}");
    let roles = if stored.is_array() {
        let names: Vec<String> =
            serde_json::from_value(stored).map_err(|error| at.error(&field, error.to_string()))?;
        ArgumentRoles { default: at.roles(&field, &names)?, when: Vec::new() }
    } else {
        let stored: StoredConditional =
            serde_json::from_value(stored).map_err(|error| at.error(&field, error.to_string()))?;
        let default = at.roles(&field, &stored.default)?;
        let when = stored.when.into_iter().map(|guard| guard.check(&field, &default, at));
        ArgumentRoles { when: when.collect::<Result<_, _>>()?, default }
    };
    one_category(&roles.default).map_err(|message| at.error(&field, message))?;
    Ok(roles)
}

/// A value has one canonical form, so its roles must agree on what kind of thing it is.
fn one_category(roles: &[Role]) -> Result<(), String> {
    let mut resources = roles.iter().filter(|role| role.is_resource());
    let Some(first) = resources.next() else { return Ok(()) };
    match resources.find(|role| role.category() != first.category()) {
        Some(other) => Err(format!("`{first}` and `{other}` cannot be roles of one argument")),
        None => Ok(()),
    }
}

impl StoredGuard {
    fn check(self, field: &str, default: &[Role], at: &Place<'_>) -> Result<Guard, LoadError> {
        let field = format!("{field}.when");
        let roles = at.roles(&field, &self.roles)?;
        // `none` names nothing: under a condition an argument may lose all its roles.
        let extra = roles.iter().find(|role| **role != Role::None && !default.contains(role));
        let widens = default.iter().all(|role| roles.contains(role));
        if let Some(extra) = extra.filter(|_| !widens) {
            return Err(at.error(&field, format!("the default lacks the role `{extra}`")));
        }
        let argument = self.condition.arg.clone();
        let condition = self.condition.check().map_err(|message| at.error(&field, message))?;
        Ok(Guard { argument, condition, roles })
    }
}

impl StoredCondition {
    fn check(self) -> Result<Condition, String> {
        if let Some(wanted) = self.equals {
            return Ok(Condition::Equals(wanted));
        }
        if let Some(wanted) = self.one_of {
            return Ok(Condition::In(wanted));
        }
        match self.is.as_deref() {
            Some("present") => Ok(Condition::Present),
            Some("absent") => Ok(Condition::Absent),
            Some("truthy") => Ok(Condition::Truthy),
            Some("falsy") => Ok(Condition::Falsy),
            Some(other) => {
                Err(format!("`{other}` is not an `is`: write `present`, `absent`, `truthy` or `falsy`"))
            }
            None => Ok(Condition::Never),
        }
    }
}
