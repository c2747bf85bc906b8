//! Builds the effect line for a tool with unknown effects: its name and its first argument.

use super::{CallEffects, ConsequenceLines, untrusted};
use crate::{TextPart, binary};
use ironcurtain_visible as visible;
use serde_json::Value;

impl<'a> CallEffects<'a> {
    /// Returns a line such as "run_script with script: …": the tool's name and its first argument.
    pub(super) fn called(&self, output: &mut ConsequenceLines<'a>) -> Vec<TextPart> {
        let mut object = vec![untrusted(self.call.tool())];
        let given = |(_, value): &(&String, &Value)| !value.is_null();
        let Some((name, value)) = self.call.transport_arguments().iter().find(given) else {
            object.push(TextPart::Fixed(", without arguments"));
            return object;
        };
        output.arguments.push(name);
        object.extend([
            TextPart::Fixed(" with "),
            untrusted(name),
            TextPart::Fixed(": "),
            TextPart::Untrusted(text_of(value)),
        ]);
        object
    }
}

/// Formats a value for display: text is left unchanged, binary content is described, and other values become JSON.
pub(crate) fn text_of(value: &Value) -> String {
    match &*binary::without_binaries(value) {
        Value::String(text) => visible::lines(text),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            visible::lines(&other.to_string())
        }
    }
}
