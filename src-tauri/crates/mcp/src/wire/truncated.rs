//! Recovers the id of a truncated message.

use super::message::Id;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Returns the id of a truncated message, if the top-level `id` is complete.
#[must_use]
pub fn id_in_truncated(head: &[u8]) -> Option<Id> {
    let text = String::from_utf8_lossy(head);
    let mut found = None;
    // Parsing always fails, because the message is truncated.
    let _ = serde_json::Deserializer::from_str(&text).deserialize_map(IdVisitor(&mut found));
    found
}

/// Visits the top-level fields of a truncated message, and stores the `id`.
struct IdVisitor<'a>(&'a mut Option<Id>);

impl<'de> Visitor<'de> for IdVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut id = None;
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            // A token after the id proves that the id is complete.
            *self.0 = self.0.take().or(id.take());
            if name == "id" {
                let raw: Box<RawValue> = map.next_value()?;
                id = Id::try_from(&*raw).ok();
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_an_overlong_message_is_found_at_its_start() {
        let found = |head: &[u8]| id_in_truncated(head).map(|id| id.as_json().to_owned());
        assert_eq!(found(br#"{"jsonrpc":"2.0","id": 7,"method":"x"#), Some("7".into()));
        assert_eq!(found(br#"{"id":"a","params":"#), Some("\"a\"".into()));
        assert_eq!(found(br#"{"id":"a b, {c}","params":"#), Some("\"a b, {c}\"".into()));
        // Nested and truncated ids do not count.
        assert_eq!(found(br#"{"params":{"id":3,"text":"xxx"#), None);
        assert_eq!(found(br#"{"params":{"id":3},"id":4,"method":"x"#), Some("4".into()));
        assert_eq!(found(br#"{"jsonrpc":"2.0","id":12"#), None);
        assert_eq!(found(b"{\"id\":7,\"params\":\"\xc3"), Some("7".into()));
        assert_eq!(found(br#"{"jsonrpc":"2.0","method":"tools/call","params":{"#), None);
    }
}
