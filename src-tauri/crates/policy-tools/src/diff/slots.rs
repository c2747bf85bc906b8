//! A tool's arguments, with the values to try for each.

use super::values::ProbeStrings;
use ironcurtain_policy::{ArgumentCondition, Role, Rule, Schema, ToolAnnotation};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Maximum number of enumerated values to try per argument.
const MAX_ENUMERATED: usize = 64;

/// Argument of a tool, with the values to try.
pub(super) struct Slot<'a> {
    pub(super) name: &'a Arc<str>,
    /// Values to try. `None` omits the argument. Never empty.
    pub(super) values: Vec<Option<Value>>,
    pub(super) cut_short: bool,
}

/// Returns the arguments that a call to the tool can have.
pub(super) fn slots<'a>(tool: &'a ToolAnnotation, rules: &[&Rule]) -> Vec<Slot<'a>> {
    let known = tool.arguments.iter().filter(|(name, _)| tool.accepts(name));
    known.map(|(name, _)| Slot::new(tool, name, rules)).collect()
}

impl<'a> Slot<'a> {
    fn new(tool: &'a ToolAnnotation, name: &'a Arc<str>, rules: &[&Rule]) -> Self {
        let declared = DeclaredArgument::new(tool, name);
        let roles = roles_of(tool, name);
        let descends = tool.can_be_recursive() || roles.iter().any(|role| role.descends());
        let strings = ProbeStrings::collect(rules, &roles, descends);
        let mut slot = Self { name, values: Vec::new(), cut_short: strings.cut_short };
        let named = declared.enumerated_strings().into_iter().filter(|_| !strings.single.is_empty());
        for text in strings.single.iter().cloned().chain(named) {
            slot.add_first_permitted(&declared, [json!(text), json!([text])]);
        }
        if !strings.single.is_empty() && !roles.iter().any(|role| role.is_resource()) {
            // A rule that denies or requires approval by a list may apply to a value that is not a string.
            slot.add_first_permitted(&declared, [json!(1), json!({})]);
        }
        for list in strings.lists {
            slot.add_first_permitted(&declared, [json!(list)]);
        }
        slot.add_condition_values(tool, &declared);
        if tool.makes_recursive(name) {
            slot.add_first_permitted(&declared, [json!(true), json!(1), json!("true")]);
        }
        let absent = [Value::Null, json!([])].into_iter().find(|value| declared.permits(value));
        match (declared.required, absent) {
            (false, _) => slot.values.push(None),
            (true, Some(absent)) if !roles.is_empty() => slot.values.push(Some(absent)),
            (true, _) if slot.values.is_empty() => slot.values.push(Some(sample(declared.schema))),
            (true, _) => {}
        }
        slot
    }

    /// Adds the first of these values that the schema permits, if there is one.
    fn add_first_permitted<const N: usize>(
        &mut self,
        declared: &DeclaredArgument<'_>,
        alternatives: [Value; N],
    ) {
        self.values.extend(alternatives.into_iter().find(|value| declared.permits(value)).map(Some));
    }

    /// Adds one value for each combination of results that the conditions on this argument can have.
    fn add_condition_values(&mut self, tool: &ToolAnnotation, declared: &DeclaredArgument<'_>) {
        let all = tool.arguments.iter().flat_map(|(_, roles)| &roles.when);
        let guards: Vec<_> = all.filter(|guard| *guard.argument == **self.name).collect();
        let mut values: Vec<Value> = guards
            .iter()
            .flat_map(|guard| match &guard.condition {
                ArgumentCondition::Equals(value) => std::slice::from_ref(value),
                ArgumentCondition::In(values) => values.as_slice(),
                ArgumentCondition::Present
                | ArgumentCondition::Absent
                | ArgumentCondition::Truthy
                | ArgumentCondition::Falsy
                | ArgumentCondition::Never => &[],
            })
            .cloned()
            .collect();
        values.extend(declared.enumerated_strings().into_iter().map(Value::String));
        values.extend([json!(true), json!(false), json!("text"), json!(""), json!(1), json!(0)]);
        let mut seen = Vec::new();
        for value in values.into_iter().filter(|value| declared.permits(value)) {
            let single_argument: Map<String, Value> =
                [(self.name.to_string(), value.clone())].into_iter().collect();
            let outcome: Vec<bool> = guards.iter().map(|guard| guard.holds(&single_argument)).collect();
            if !guards.is_empty() && !seen.contains(&outcome) {
                seen.push(outcome);
                self.values.push(Some(value));
            }
        }
    }
}

/// Returns the roles that an argument can have under any condition, except `none`.
fn roles_of(tool: &ToolAnnotation, name: &Arc<str>) -> Vec<Role> {
    let here = tool.arguments.iter().filter(|(known, _)| known == name);
    let all =
        here.flat_map(|(_, roles)| roles.default.iter().chain(roles.when.iter().flat_map(|g| &g.roles)));
    all.copied().filter(|role| *role != Role::None).collect()
}

/// Declaration of an argument in the server's input schema.
struct DeclaredArgument<'a> {
    name: &'a Arc<str>,
    schema: &'a Value,
    shape: Schema,
    required: bool,
}

impl<'a> DeclaredArgument<'a> {
    fn new(tool: &'a ToolAnnotation, name: &'a Arc<str>) -> Self {
        const ANYTHING: &Value = &Value::Null;
        let input_schema = tool.input_schema.as_ref();
        let named = input_schema.and_then(|input_schema| input_schema.get("properties")?.get(name.as_ref()));
        let schema = named.or_else(|| input_schema?.get("additionalProperties")).unwrap_or(ANYTHING);
        let required = input_schema
            .and_then(|input_schema| input_schema.get("required")?.as_array())
            .into_iter()
            .flatten();
        let required = required.filter_map(Value::as_str).any(|required| *required == **name);
        Self { name, schema, shape: Schema::parse(schema), required }
    }

    fn permits(&self, value: &Value) -> bool {
        self.shape.check_field(self.name, value).is_ok()
    }

    /// Returns up to [`MAX_ENUMERATED`] strings that the schema enumerates.
    fn enumerated_strings(&self) -> Vec<String> {
        let here = [self.schema.get("enum"), self.schema.get("items").and_then(|items| items.get("enum"))];
        let listed = here.into_iter().flatten().filter_map(Value::as_array).flatten();
        listed.filter_map(Value::as_str).map(str::to_owned).take(MAX_ENUMERATED).collect()
    }
}

/// Returns a value that a schema probably permits.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema.get("enum").and_then(|listed| listed.get(0)) {
        return first.clone();
    }
    let kind = schema.get("type").and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str()));
    match kind {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        Some("object") => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let field = |name: &str| {
                let declared = schema.get("properties").and_then(|fields| fields.get(name));
                (name.to_owned(), declared.map_or_else(|| json!("text"), sample))
            };
            Value::Object(required.filter_map(Value::as_str).map(field).collect())
        }
        Some(_) | None => json!("text"),
    }
}
