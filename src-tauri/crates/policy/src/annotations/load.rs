//! Reads a tool-annotations file, strictly: an unknown role, operator or field of a condition refuses the file.

use super::{Annotations, ArgumentRoles, Condition, Guard, Taken, ToolAnnotation};
use crate::names::Names;
use crate::spot::{Source, Spot};
use crate::{LoadError, Role, Roles, strict};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

impl Annotations {
    /// Reads a tool-annotations file.
    ///
    /// # Errors
    /// When the text is not such a file, names a role that does not exist, annotates a tool twice, or has a
    /// condition that gives a role the default lacks.
    pub fn from_json(text: &str, file: &str) -> Result<Self, LoadError> {
        let source = Source { file, text };
        let stored: StoredFile = strict::read_file(source)?;
        source.check_version(stored.schema_version)?;
        let mut servers: Names<Names<ToolAnnotation>> = Names::default();
        for (server, stored) in stored.servers {
            let Some(tools) = servers.entry(&server) else { continue };
            for (index, tool) in stored.tools.into_iter().enumerate() {
                let at = Reading { source, server: &server, index, tool: tool_name(&tool, index) };
                let (name, tool) = at.tool(tool)?;
                if tools.has(&name) {
                    return Err(at.error(TOOL_NAME, "the tool is annotated twice"));
                }
                if let Some(place) = tools.entry(&name) {
                    *place = tool;
                }
            }
        }
        Ok(Self { servers })
    }
}

const TOOL_NAME: Spot<'static> = Spot::Field(&Spot::Whole, "toolName");
const ARGUMENTS: Spot<'static> = Spot::Field(&Spot::Whole, "args");

/// The name of a tool, else its place in the file.
fn tool_name(stored: &Map<String, Value>, index: usize) -> String {
    match stored.get("toolName").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name.to_owned(),
        Some(_) | None => format!("number {}", index + 1),
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredFile {
    #[serde(default = "crate::error::unsaid_version")]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: u64,
    servers: BTreeMap<String, StoredServer>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct StoredServer {
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::ToolShape>"))]
    tools: Vec<Map<String, Value>>,
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

/// The tool that is being read. Places are below it.
struct Reading<'a> {
    source: Source<'a>,
    server: &'a str,
    index: usize,
    tool: String,
}

impl Reading<'_> {
    fn error(&self, at: Spot<'_>, message: impl Into<String>) -> LoadError {
        let servers = Spot::Field(&Spot::Whole, "servers");
        let server = Spot::Field(&servers, self.server);
        let tools = Spot::Field(&server, "tools");
        LoadError::Tool {
            place: self.source.place(Spot::Item(&tools, self.index), at),
            server: self.server.to_owned(),
            tool: self.tool.clone(),
            field: at.to_string(),
            message: message.into(),
        }
    }

    fn tool(&self, mut stored: Map<String, Value>) -> Result<(String, ToolAnnotation), LoadError> {
        let missing = |at| self.error(at, "is missing");
        let name: String =
            self.read(TOOL_NAME, stored.remove("toolName").ok_or_else(|| missing(TOOL_NAME))?)?;
        let args: Map<String, Value> =
            self.read(ARGUMENTS, stored.remove("args").ok_or_else(|| missing(ARGUMENTS))?)?;
        let descends: Option<bool> =
            self.read(Spot::Field(&Spot::Whole, "descends"), stored.remove("descends").unwrap_or_default())?;
        let input_schema = stored.remove("inputSchema").filter(|schema| !schema.is_null());
        let mut arguments = Vec::with_capacity(args.len());
        for (name, stored) in args {
            let roles = self.argument(Spot::Field(&ARGUMENTS, &name), stored)?;
            arguments.push((name.into(), roles));
        }
        let annotation = ToolAnnotation {
            descends: descends.unwrap_or_else(|| names_a_recursive_tool(&name)),
            taken: Taken::new(&arguments, input_schema.as_ref()),
            arguments,
            input_schema,
        };
        Ok((name, annotation))
    }

    fn argument(&self, at: Spot<'_>, stored: Value) -> Result<ArgumentRoles, LoadError> {
        let roles = if stored.is_array() {
            let names: Vec<String> = self.read(at, stored)?;
            ArgumentRoles { default: self.roles(at, &names)?, when: Vec::new() }
        } else {
            let stored: StoredConditional = self.read(at, stored)?;
            let default = self.roles(Spot::Field(&at, "default"), &stored.default)?;
            let whens = Spot::Field(&at, "when");
            let guards = stored.when.into_iter().enumerate();
            let when = guards.map(|(index, guard)| self.guard(Spot::Item(&whens, index), guard, &default));
            ArgumentRoles { when: when.collect::<Result<_, _>>()?, default }
        };
        one_category(&roles.default).map_err(|message| self.error(at, message))?;
        Ok(roles)
    }

    fn guard(&self, at: Spot<'_>, stored: StoredGuard, default: &[Role]) -> Result<Guard, LoadError> {
        let of_roles = Spot::Field(&at, "roles");
        let roles = self.roles(of_roles, &stored.roles)?;
        // `none` names nothing: under a condition an argument may lose all its roles.
        let extra = roles.iter().find(|role| **role != Role::None && !default.contains(role));
        let widens = default.iter().all(|role| roles.contains(role));
        if let Some(extra) = extra.filter(|_| !widens) {
            return Err(self.error(of_roles, format!("the default lacks the role `{extra}`")));
        }
        let argument = stored.condition.arg.clone();
        let condition = stored.condition.check();
        let condition = condition.map_err(|message| self.error(Spot::Field(&at, "condition"), message))?;
        Ok(Guard { argument, condition, roles })
    }

    fn roles(&self, at: Spot<'_>, names: &[String]) -> Result<Roles, LoadError> {
        let role = |(index, name): (usize, &String)| {
            let unknown = || self.error(Spot::Item(&at, index), format!("there is no role `{name}`"));
            Role::parse(name).ok_or_else(unknown)
        };
        names.iter().enumerate().map(role).collect::<Result<Vec<Role>, _>>().map(Roles::from)
    }

    fn read<T: DeserializeOwned>(&self, at: Spot<'_>, value: Value) -> Result<T, LoadError> {
        strict::take(value).map_err(|wrong| wrong.at(at, |place| self.error(place, wrong.message.as_str())))
    }
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

/// A value has one canonical form, so its roles must agree on what kind of thing it is.
fn one_category(roles: &[Role]) -> Result<(), String> {
    let mut resources = roles.iter().filter(|role| role.is_resource());
    let Some(first) = resources.next() else { return Ok(()) };
    match resources.find(|role| role.category() != first.category()) {
        Some(other) => Err(format!("`{first}` and `{other}` cannot be roles of one argument")),
        None => Ok(()),
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
