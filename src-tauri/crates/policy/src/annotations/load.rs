//! Parses a tool-annotations file strictly: an unknown role, operator or field makes the file invalid.
//!
//! - Under every condition, an argument that names a resource keeps a judged role, unless the file explicitly gives
//!   it `none`.

pub(crate) mod conditions;

use super::{AcceptedArguments, AnnotatedTool, Annotations, ArgumentRoles, ToolAnnotation};
use crate::json_location::{JsonLocation, SourceFile};
use crate::{LoadError, Role, Roles, strict};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

impl Annotations {
    /// Parses a tool-annotations file.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid annotations file, has an unknown role or field,
    /// annotates a tool twice, or has a condition that cannot hold or selects roles that do not fit
    /// the default.
    pub fn from_json(text: &str, file: &str) -> Result<Self, LoadError> {
        let source = SourceFile { file, text };
        let stored: StoredFile = strict::read_file(source)?;
        source.check_version(stored.schema_version)?;
        let mut servers: BTreeMap<String, BTreeMap<String, Arc<AnnotatedTool>>> = BTreeMap::new();
        for (server, stored) in stored.servers {
            let tools = servers.entry(server.clone()).or_default();
            for (index, tool) in stored.tools.into_iter().enumerate() {
                let parser = ToolParser { source, server: &server, index, tool: tool_name(&tool, index) };
                let (name, annotation) = parser.tool(tool)?;
                if tools.contains_key(&name) {
                    return Err(parser.error(TOOL_NAME, "the tool is annotated twice"));
                }
                let entry = AnnotatedTool {
                    server: server.as_str().into(),
                    name: name.as_str().into(),
                    annotation,
                    is_unannotated: false,
                    request: None,
                };
                tools.insert(name, Arc::new(entry));
            }
        }
        Ok(Self { servers })
    }
}

const TOOL_NAME: JsonLocation<'static> = JsonLocation::Field(&JsonLocation::Whole, "toolName");
const SERVER_NAME: JsonLocation<'static> = JsonLocation::Field(&JsonLocation::Whole, "serverName");
const ARGUMENTS: JsonLocation<'static> = JsonLocation::Field(&JsonLocation::Whole, "args");

/// Comment field of a tool. It is accepted but ignored.
const COMMENT_FIELD: &str = "comment";

/// Returns the name of a tool or, if it has none, its position in the file.
fn tool_name(stored: &Map<String, Value>, index: usize) -> String {
    match stored.get("toolName").and_then(Value::as_str) {
        Some(name) if !name.is_empty() => name.to_owned(),
        Some(_) | None => format!("number {}", index + 1),
    }
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct StoredFile {
    #[serde(default = "crate::error::default_version")]
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    schema_version: u64,
    /// Metadata of the program that generated the file; ignored.
    #[serde(default, rename = "generatedAt")]
    _generated_at: Option<String>,
    servers: BTreeMap<String, StoredServer>,
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct StoredServer {
    /// Hash of the server's own tool descriptions; `servers annotate` compares it.
    #[serde(default, rename = "inputHash")]
    _input_hash: Option<String>,
    #[cfg_attr(test, schemars(with = "Vec<crate::schemas::ToolShape>"))]
    tools: Vec<Map<String, Value>>,
}

/// The tool that is being parsed. Error locations are relative to it.
struct ToolParser<'a> {
    source: SourceFile<'a>,
    server: &'a str,
    index: usize,
    tool: String,
}

impl ToolParser<'_> {
    fn error(&self, location: JsonLocation<'_>, message: impl Into<String>) -> LoadError {
        let servers = JsonLocation::Field(&JsonLocation::Whole, "servers");
        let server = JsonLocation::Field(&servers, self.server);
        let tools = JsonLocation::Field(&server, "tools");
        LoadError::Tool {
            location: self.source.location(JsonLocation::Item(&tools, self.index), location),
            server: self.server.to_owned(),
            tool: self.tool.clone(),
            field: location.to_string(),
            message: message.into(),
        }
    }

    fn tool(&self, mut stored: Map<String, Value>) -> Result<(String, ToolAnnotation), LoadError> {
        let name = self.take_name(&mut stored)?;
        let args = stored.remove("args").ok_or_else(|| self.error(ARGUMENTS, "is missing"))?;
        let args: Map<String, Value> = self.read(ARGUMENTS, args)?;
        let descends: Option<bool> = self.read(
            JsonLocation::Field(&JsonLocation::Whole, "descends"),
            stored.remove("descends").unwrap_or_default(),
        )?;
        let read_only: Option<bool> = self.read(
            JsonLocation::Field(&JsonLocation::Whole, "readOnly"),
            stored.remove("readOnly").unwrap_or_default(),
        )?;
        let input_schema = stored.remove("inputSchema").filter(|schema| !schema.is_null());
        if let Some(unknown) = stored.keys().find(|field| *field != COMMENT_FIELD) {
            return Err(self.error(JsonLocation::Field(&JsonLocation::Whole, unknown), "unknown field"));
        }
        let mut arguments = Vec::with_capacity(args.len());
        for (name, stored) in args {
            let roles = self.argument(JsonLocation::Field(&ARGUMENTS, &name), stored)?;
            arguments.push((name.into(), roles));
        }
        let accepted = AcceptedArguments::new(&arguments, input_schema.as_ref());
        self.check_conditions(&arguments, &accepted)?;
        let recursion_arguments =
            arguments.iter().map(|(name, _): &(Arc<str>, _)| name).filter(|name| implies_recursion(name));
        let annotation = ToolAnnotation {
            descends: descends.unwrap_or_else(|| implies_recursive_tool(&name)),
            recursion_arguments: if descends.is_none() {
                recursion_arguments.cloned().collect()
            } else {
                Vec::new()
            },
            accepted,
            arguments,
            input_schema,
            read_only: read_only.unwrap_or_default(),
        };
        Ok((name, annotation))
    }

    /// Returns the tool's name. Checks that the server name, if present, matches.
    fn take_name(&self, stored: &mut Map<String, Value>) -> Result<String, LoadError> {
        let tool = stored.remove("toolName").ok_or_else(|| self.error(TOOL_NAME, "is missing"))?;
        let tool: String = self.read(TOOL_NAME, tool)?;
        if tool.is_empty() {
            return Err(self.error(TOOL_NAME, "a tool needs a name"));
        }
        let server: Option<String> =
            self.read(SERVER_NAME, stored.remove("serverName").unwrap_or_default())?;
        match server.filter(|server| server != self.server) {
            Some(other) => {
                let message = format!("`{other}` does not match the server `{}`", self.server);
                Err(self.error(SERVER_NAME, message))
            }
            None => Ok(tool),
        }
    }

    fn argument(&self, location: JsonLocation<'_>, stored: Value) -> Result<ArgumentRoles, LoadError> {
        let roles = if stored.is_array() {
            let names: Vec<String> = self.read(location, stored)?;
            ArgumentRoles { default: self.roles(location, &names)?, when: Vec::new() }
        } else {
            self.conditional(location, stored)?
        };
        check_one_category(&roles).map_err(|problem| self.error(location, problem.to_string()))?;
        Ok(roles)
    }

    fn roles(&self, location: JsonLocation<'_>, names: &[String]) -> Result<Roles, LoadError> {
        let role = |(index, name): (usize, &String)| {
            let unknown =
                || self.error(JsonLocation::Item(&location, index), format!("unknown role `{name}`"));
            Role::parse(name).ok_or_else(unknown)
        };
        names.iter().enumerate().map(role).collect::<Result<Vec<Role>, _>>().map(Roles::from)
    }

    fn read<T: DeserializeOwned>(&self, location: JsonLocation<'_>, value: Value) -> Result<T, LoadError> {
        strict::from_value(value).map_err(|invalid| {
            invalid.with_location(location, |location| self.error(location, invalid.message.as_str()))
        })
    }
}

/// Returns `true` if a tool's name implies that it recurses into folders.
fn implies_recursive_tool(tool: &str) -> bool {
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

/// Returns `true` if an argument's name implies that the argument makes a call recursive.
fn implies_recursion(argument: &str) -> bool {
    let argument = argument.to_ascii_lowercase();
    ["recurs", "depth", "descend"].iter().any(|word| argument.contains(word))
}

/// Error for an argument whose roles belong to different categories.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` and `{1}` cannot both be roles of one argument")]
struct MixedRoles(Role, Role);

/// Checks that all roles of an argument, including conditional ones, have the same category,
/// because each value has only one canonical form.
fn check_one_category(roles: &ArgumentRoles) -> Result<(), MixedRoles> {
    let all = roles.default.iter().chain(roles.when.iter().flat_map(|guard| &guard.roles));
    let mut resources = all.filter(|role| role.is_resource());
    let Some(first) = resources.next() else { return Ok(()) };
    match resources.find(|role| role.category() != first.category()) {
        Some(other) => Err(MixedRoles(*first, *other)),
        None => Ok(()),
    }
}
