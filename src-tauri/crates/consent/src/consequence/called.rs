//! The call of a tool whose effects nothing tells of: its name with its first argument.

use super::{CallEffects, ConsequenceLines, foreign};
use crate::{Piece, binary};
use ironcurtain_visible as visible;
use serde_json::Value;

impl<'a> CallEffects<'a> {
    /// "run_script with script: ...": the tool, and the first argument that is given.
    pub(super) fn called(&self, drawn: &mut ConsequenceLines<'a>) -> Vec<Piece> {
        let mut object = vec![foreign(self.call.tool())];
        let given = |(_, value): &(&String, &Value)| !value.is_null();
        let Some((name, value)) = self.call.transport_arguments().iter().find(given) else {
            object.push(Piece::Ours(", without arguments"));
            return object;
        };
        drawn.arguments.push(name);
        object.extend([
            Piece::Ours(" with "),
            foreign(name),
            Piece::Ours(": "),
            Piece::Foreign(text_of(value)),
        ]);
        object
    }
}

/// A value as it is shown: a text as it is, anything else as JSON, binary content described.
pub(crate) fn text_of(value: &Value) -> String {
    match &*binary::without_binaries(value) {
        Value::String(text) => visible::lines(text),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            visible::lines(&other.to_string())
        }
    }
}
