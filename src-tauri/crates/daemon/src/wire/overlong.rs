//! A message of which only the beginning was kept.

use super::message::Id;
use serde_json::value::RawValue;

/// The id of a message of which only the beginning is known, if it stands there.
#[must_use]
pub fn id_in(head: &[u8]) -> Option<Id> {
    let text = String::from_utf8_lossy(head);
    let after = text.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let end = after.find([',', '}', ' '])?;
    let raw = RawValue::from_string(after.get(..end)?.to_owned()).ok()?;
    Id::try_from(&*raw).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_overlong_message_is_found_where_it_stands_first() {
        let found = |head: &[u8]| id_in(head).map(|id| id.as_json().to_owned());
        assert_eq!(found(br#"{"jsonrpc":"2.0","id": 7,"method":"x"#), Some("7".into()));
        assert_eq!(found(br#"{"id":"a","params":"#), Some("\"a\"".into()));
        assert_eq!(found(br#"{"jsonrpc":"2.0","method":"tools/call","params":{"#), None);
    }
}
