//! Replacing the value of one server in the text of an annotations file; every other byte stays.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct File<'a> {
    #[serde(borrow)]
    servers: &'a RawValue,
}

/// The text with the server's value put in. The error says what is wrong with the text.
pub(super) fn server(text: &str, name: &str, value: &Value) -> Result<String, String> {
    let not_understood = |e: serde_json::Error| e.to_string();
    let file: File<'_> = serde_json::from_str(text).map_err(not_understood)?;
    let servers: BTreeMap<String, &RawValue> =
        serde_json::from_str(file.servers.get()).map_err(not_understood)?;
    let value = indented(value).map_err(not_understood)?;
    if let Some(old) = servers.get(name) {
        return replaced(text, old.get(), &value);
    }
    let place = place(text, file.servers.get())?;
    let end = place.1.checked_sub(1).ok_or("`servers` has no end")?;
    let before = text.get(..end).ok_or("`servers` has no end")?.trim_end();
    let after = text.get(end..).unwrap_or_default();
    let comma = if servers.is_empty() { "" } else { "," };
    let name = Value::from(name);
    Ok(format!("{before}{comma}\n    {name}: {value}\n  {after}"))
}

fn replaced(text: &str, old: &str, new: &str) -> Result<String, String> {
    let (start, end) = place(text, old)?;
    let before = text.get(..start).unwrap_or_default();
    let after = text.get(end..).unwrap_or_default();
    Ok(format!("{before}{new}{after}"))
}

/// Where a part that was borrowed from a text stands in it.
fn place(text: &str, part: &str) -> Result<(usize, usize), String> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize);
    let place = start.and_then(|start| Some((start, start.checked_add(part.len())?)));
    place
        .filter(|(start, end)| text.get(*start..*end) == Some(part))
        .ok_or_else(|| "the place of a server was not found".to_owned())
}

/// As it stands two levels deep in a file.
fn indented(value: &Value) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(value)?.replace('\n', "\n    "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_server_is_put_in_and_all_other_bytes_stay() {
        let text = "{\"generatedAt\": 1.0,\n \"servers\" : { \"a\":{ \"tools\":[ ] }  ,\"b\": {\"tools\": []} }, \"x\":2}\n";
        let b = json!({ "tools": [1] });
        let got = server(text, "b", &b).unwrap();
        let (before, after) =
            ("{\"generatedAt\": 1.0,\n \"servers\" : { \"a\":{ \"tools\":[ ] }  ,\"b\": ", " }, \"x\":2}\n");
        assert!(got.starts_with(before) && got.ends_with(after), "{got}");
        let added = server(text, "c\"", &b).unwrap();
        assert!(
            added.starts_with(text.split(" }, \"x\"").next().unwrap()) && added.ends_with("}, \"x\":2}\n")
        );
        for (text, name) in [
            (got.as_str(), "b"),
            (added.as_str(), "c\""),
            (&server(r#"{"servers":{}}"#, "n", &b).unwrap(), "n"),
        ] {
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(read["servers"][name], b, "{text}");
        }
        assert!(server(r#"{"servers":[]}"#, "n", &b).is_err());
    }
}
