//! Marking an answer that tells of something the sandbox held back. Nothing else of an answer changes, and no other answer
//! changes at all.

use crate::containment::annotate;
use crate::server::ServerAnswer;
use crate::wire::{Fields, Response};
use serde_json::value::{RawValue, to_raw_value};

/// The answer with the mark, if it is to have one.
pub(super) fn marked(answered: &ServerAnswer) -> Option<ServerAnswer> {
    match answered {
        ServerAnswer::Response(Response::Result(result)) => {
            marked_result(result).map(|result| ServerAnswer::Response(Response::Result(result)))
        }
        ServerAnswer::Response(Response::Error(error)) => {
            marked_text(error, "message").map(|error| ServerAnswer::Response(Response::Error(error)))
        }
        ServerAnswer::Failed(_) => None,
    }
}

/// Marks the first text of a result that tells of it.
fn marked_result(result: &RawValue) -> Option<Box<RawValue>> {
    let mut fields: Fields = serde_json::from_str(result.get()).ok()?;
    let is_error: bool = serde_json::from_str(fields.get("isError")?.get()).ok()?;
    if !is_error {
        return None;
    }
    let mut blocks: Vec<Box<RawValue>> = serde_json::from_str(fields.get("content")?.get()).ok()?;
    let (block, text) =
        blocks.iter_mut().find_map(|block| marked_text(block, "text").map(|text| (block, text)))?;
    *block = text;
    fields.set("content", to_raw_value(&blocks).ok()?);
    to_raw_value(&fields).ok()
}

fn marked_text(object: &RawValue, field: &str) -> Option<Box<RawValue>> {
    let mut fields: Fields = serde_json::from_str(object.get()).ok()?;
    let text: String = serde_json::from_str(fields.get(field)?.get()).ok()?;
    fields.set(field, to_raw_value(&annotate(&text, true)?).ok()?);
    to_raw_value(&fields).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::NoAnswer;

    fn result(text: &str) -> Option<String> {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        match marked(&ServerAnswer::Response(Response::Result(raw)))? {
            ServerAnswer::Response(Response::Result(result)) => Some(result.get().to_owned()),
            other @ (ServerAnswer::Response(Response::Error(_)) | ServerAnswer::Failed(_)) => {
                panic!("{other:?}")
            }
        }
    }

    #[test]
    fn only_the_text_that_tells_of_it_changes() {
        let told = r#"{ "_meta":{"n":1.0e0},"content":[{"type":"image","data":"EPERM"},{"type":"text","text":"EACCES: no","x":  2}] ,"isError":true}"#;
        let expected = r#"{"_meta":{"n":1.0e0},"content":[{"type":"image","data":"EPERM"},{"type":"text","text":"[SANDBOX BLOCKED] EACCES: no","x":2}],"isError":true}"#;
        assert_eq!(result(told), Some(expected.to_owned()));
        for other in [
            r#"{"content":[{"type":"text","text":"EACCES"}]}"#,
            r#"{"content":[{"type":"text","text":"EACCES"}],"isError":false}"#,
            r#"{"content":[{"type":"text","text":"ENOENT"}],"isError":true}"#,
            r#"{"isError":true}"#,
            "7",
        ] {
            assert_eq!(result(other), None, "{other}");
        }
    }

    #[test]
    fn an_error_of_the_protocol_is_marked_too() {
        let error = r#"{"code":-32603,"message":"spawn: Permission denied","data":[1]}"#;
        let raw = RawValue::from_string(error.to_owned()).unwrap();
        let Some(ServerAnswer::Response(Response::Error(marked))) =
            marked(&ServerAnswer::Response(Response::Error(raw)))
        else {
            panic!("it is not marked");
        };
        let expected = r#"{"code":-32603,"message":"[SANDBOX BLOCKED] spawn: Permission denied","data":[1]}"#;
        assert_eq!(marked.get(), expected);
        assert!(super::marked(&ServerAnswer::Failed(NoAnswer::Ended(None))).is_none());
    }
}
