//! `_meta` of a request to a server, reduced to the protocol's own keys.
//!
//! - Clients add other keys to every call. These keys are dropped, and their names are recorded.

use crate::wire::{Fields, Id};
use ironcurtain_visible as visible;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

/// Maximum length of a progress token, in bytes of JSON. A longer token is dropped.
const MAX_TOKEN_LEN: usize = 64;

/// Maximum number of dropped keys that are recorded, and the maximum length of their names in characters.
const MAX_NAMES: usize = 8;
const MAX_NAME_LEN: usize = 64;

/// Known keys of a request's `_meta`, and the names of the dropped keys.
#[derive(Debug, Default)]
pub struct RequestMeta {
    progress_token: Option<Box<RawValue>>,
    traceparent: Option<String>,
    dropped: Vec<String>,
}

impl RequestMeta {
    /// Parses the known keys of a client's `_meta`.
    ///
    /// # Errors
    /// Returns an error if `_meta` is not an object or has a duplicate key.
    pub fn read(meta: Option<&RawValue>) -> Result<Self, serde_json::Error> {
        let mut read = Self::default();
        let Some(meta) = meta.filter(|meta| meta.get() != "null") else { return Ok(read) };
        let fields: Fields = serde_json::from_str(meta.get())?;
        for (name, value) in fields.iter() {
            match name {
                "progressToken" if is_token(value) => read.progress_token = Some(value.to_owned()),
                "traceparent" => match traceparent(value) {
                    Some(text) => read.traceparent = Some(text),
                    None => read.drop_key(name),
                },
                _ => read.drop_key(name),
            }
        }
        Ok(read)
    }

    /// Returns the client's progress token, if it sent a valid one.
    #[must_use]
    pub fn progress_token(&self) -> Option<&RawValue> {
        self.progress_token.as_deref()
    }

    /// Returns a sentence that lists the dropped keys, or `None` if there are none.
    #[must_use]
    pub fn dropped(&self) -> Option<String> {
        let names: Vec<String> = self.dropped.iter().map(|name| format!("`{name}`")).collect();
        (!names.is_empty()).then(|| format!("dropped from `_meta`: {}", names.join(", ")))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.progress_token.is_none() && self.traceparent.is_none()
    }

    fn drop_key(&mut self, name: &str) {
        match self.dropped.len() {
            MAX_NAMES => self.dropped.push("…".to_owned()),
            n if n < MAX_NAMES => self.dropped.push(visible::line(&visible::head(name, MAX_NAME_LEN))),
            _ => {}
        }
    }
}

impl Serialize for RequestMeta {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(token) = &self.progress_token {
            map.serialize_entry("progressToken", token)?;
        }
        if let Some(traceparent) = &self.traceparent {
            map.serialize_entry("traceparent", traceparent)?;
        }
        map.end()
    }
}

fn is_token(value: &RawValue) -> bool {
    value.get().len() <= MAX_TOKEN_LEN && Id::try_from(value).is_ok()
}

/// Parses a `traceparent` in the format of W3C Trace Context, version 00.
fn traceparent(value: &RawValue) -> Option<String> {
    let text: String = serde_json::from_str(value.get()).ok()?;
    let is_hex = |part: &str, length: usize| {
        part.len() == length && part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    };
    let parts: Vec<&str> = text.split('-').collect();
    let [version, trace, parent, flags] = parts.as_slice() else { return None };
    let fits = *version == "00" && is_hex(trace, 32) && is_hex(parent, 16) && is_hex(flags, 2);
    fits.then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(meta: &str) -> (String, Option<String>) {
        let meta = RequestMeta::read(Some(&RawValue::from_string(meta.to_owned()).unwrap())).unwrap();
        (serde_json::to_string(&meta).unwrap(), meta.dropped())
    }

    #[test]
    fn known_meta_keys_are_kept_and_others_are_reported() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let (kept, dropped) = read(&format!(
            r#"{{"claudecode/toolUseId":"toolu_1","traceparent":"{trace}","progressToken":3,"baggage":"x"}}"#
        ));
        assert_eq!(kept, format!(r#"{{"progressToken":3,"traceparent":"{trace}"}}"#));
        assert_eq!(dropped.unwrap(), "dropped from `_meta`: `claudecode/toolUseId`, `baggage`");
        assert_eq!(read("{}"), ("{}".to_owned(), None));
    }

    #[test]
    fn a_known_meta_key_in_a_wrong_format_is_dropped() {
        let long = "x".repeat(63);
        for meta in [
            format!(r#"{{"progressToken":"{long}"}}"#),
            r#"{"progressToken":{"a":"b"}}"#.to_owned(),
            r#"{"traceparent":"00-secret"}"#.to_owned(),
            r#"{"traceparent":"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01"}"#.to_owned(),
            r#"{"traceparent":7}"#.to_owned(),
        ] {
            let (kept, dropped) = read(&meta);
            assert_eq!((kept.as_str(), dropped.is_some()), ("{}", true), "{meta}");
        }
        assert!(RequestMeta::read(Some(&RawValue::from_string("[]".into()).unwrap())).is_err());
    }

    #[test]
    fn the_report_of_dropped_keys_is_bounded() {
        let many: Vec<String> = (0..100).map(|n| format!(r#""{n}{}":1"#, "k".repeat(500))).collect();
        let dropped = read(&format!("{{{}}}", many.join(","))).1.unwrap();
        assert!(dropped.ends_with(", `…`") && dropped.len() < 1000, "{dropped}");
    }
}
