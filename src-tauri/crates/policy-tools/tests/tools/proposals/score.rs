//! Compares proposals with existing annotations, separately for two halves of the tools. The rules are tuned on the
//! first half and validated on the second.

use ironcurtain_policy::{Annotations, Category, Role, ToolAnnotation};
use ironcurtain_policy_tools::propose::{Proposal, ProposalHints, ProposedArgument, Tool, propose};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// One half of the tools, used for tuning or for validation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// Half on which the rules are tuned.
    First,
    /// Half on which the rules are validated.
    Second,
}

/// Numbers of roles that were proposed correctly, proposed incorrectly, or missed.
#[derive(Debug, Default, Clone, Copy)]
pub struct Count {
    pub right: usize,
    pub extra: usize,
    pub missing: usize,
}

/// Result for one half of a server's tools.
#[derive(Debug, Default)]
pub struct Score {
    pub tools: usize,
    pub left_out: Vec<String>,
    pub arguments: usize,
    pub paths: usize,
    pub roles: BTreeMap<&'static str, Count>,
    /// Path arguments for which plain text was proposed. This is the worst kind of error.
    pub missed_paths: Vec<String>,
    /// All other differences.
    pub differences: Vec<String>,
}

/// Returns the half to which a tool belongs, based on the FNV-1a hash of its name.
pub fn half(server: &str, tool: &str) -> Half {
    let bytes = server.bytes().chain([b'/']).chain(tool.bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    if (hash >> 32) & 1 == 0 { Half::First } else { Half::Second }
}

/// Scores the proposals for one half of the tools in a file, by server.
pub fn score(file: &Path, half_wanted: Half) -> Result<BTreeMap<String, Score>, String> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let known = Annotations::from_json(&text, &file.display().to_string()).map_err(|e| e.to_string())?;
    let comments = comments(&text)?;
    let mut scores = BTreeMap::<String, Score>::new();
    for server in known.servers() {
        for (name, annotation) in known.tools(server) {
            if half(server, name) != half_wanted {
                continue;
            }
            let Some(input_schema) = &annotation.input_schema else { continue };
            let description = comments.get(&(server.to_owned(), name.to_owned()));
            let description = description.map_or("", String::as_str);
            let input_schema = &with_all(annotation, input_schema);
            let tool = Tool { server, name, description, input_schema, hints: ProposalHints::default() };
            scores.entry(server.to_owned()).or_default().count(name, annotation, &propose(&tool));
        }
    }
    Ok(scores)
}

impl Score {
    fn count(&mut self, tool: &str, known: &ToolAnnotation, proposal: &Proposal) {
        self.tools += 1;
        let arguments = match proposal {
            Proposal::Annotated { arguments, .. } => arguments,
            Proposal::Unsupported { reason } => return self.left_out.push(format!("{tool}: {reason}")),
        };
        for (name, roles) in &known.arguments {
            let proposed = arguments.iter().find(|argument| *argument.name == **name);
            self.argument(&format!("{tool}.{name}"), &roles.default, proposed);
        }
    }

    fn argument(&mut self, location: &str, known: &[Role], proposed: Option<&ProposedArgument>) {
        self.arguments += 1;
        let roles = proposed.map(|argument| argument.roles.clone()).unwrap_or_default();
        for role in Role::ALL {
            let count = self.roles.entry(role.name()).or_default();
            match (known.contains(role), roles.contains(role)) {
                (true, true) => count.right += 1,
                (true, false) => count.missing += 1,
                (false, true) => count.extra += 1,
                (false, false) => {}
            }
        }
        let is_path = |roles: &[Role]| roles.iter().any(|role| role.category() == Category::Path);
        self.paths += usize::from(is_path(known));
        let named = |roles: &[Role]| roles.iter().map(|role| role.name()).collect::<Vec<_>>().join(" ");
        let why = proposed.map_or("no such argument", |argument| argument.reason.as_str());
        let difference = format!("{location}: {} instead of {} ({why})", named(&roles), named(known));
        if is_path(known) && !is_path(&roles) {
            self.missed_paths.push(difference);
        } else if known.iter().any(|role| !roles.contains(role))
            || roles.iter().any(|role| !known.contains(role))
        {
            self.differences.push(difference);
        }
    }
}

/// Returns the schema with all annotated arguments, adding the arguments that it does not declare.
fn with_all(annotation: &ToolAnnotation, input_schema: &Value) -> Value {
    let mut properties =
        input_schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    for (name, _) in &annotation.arguments {
        properties.entry(&**name).or_insert_with(|| json!({ "type": "string" }));
    }
    let mut schema = input_schema.clone();
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("properties".to_owned(), Value::Object(properties));
    }
    schema
}

/// Returns the comments on tools in a file, by server and tool.
fn comments(text: &str) -> Result<BTreeMap<(String, String), String>, String> {
    let file: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut found = BTreeMap::new();
    for (server, of_server) in file.get("servers").and_then(|s| s.as_object()).into_iter().flatten() {
        for tool in of_server.get("tools").and_then(|t| t.as_array()).into_iter().flatten() {
            let text = |key: &str| tool.get(key).and_then(|v| v.as_str()).unwrap_or_default().to_owned();
            found.insert((server.clone(), text("toolName")), text("comment"));
        }
    }
    Ok(found)
}
