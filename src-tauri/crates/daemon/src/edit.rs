//! Changes one place of a JSON file of the person's.
//!
//! - Every other byte of the file stays as it is.
//! - The file is replaced in one step, or not at all; a link to it stays a link, and its mode stays.

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::fmt;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The text with `value` at `path`, one key for each object on the way; objects that are missing are made.
///
/// # Errors
/// A sentence, when the text is not such an object.
pub(crate) fn set(text: &str, path: &[&str], value: &Value) -> Result<String, String> {
    set_below(text, path, value, 1)
}

/// Replaces a file, or what a link at its place leads to, in one step.
///
/// # Errors
/// The operating system's answer; then the file is as it was.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let target = if path.is_symlink() { path.canonicalize()? } else { path.to_path_buf() };
    let folder = target.parent().ok_or(io::ErrorKind::NotFound)?;
    let mode = std::fs::metadata(&target).map_or(0o600, |found| found.permissions().mode() & 0o777);
    let beside = folder.join(format!(".ironcurtain-{}", crate::clock::random_name()?));
    let written = write_new(&beside, text, mode).and_then(|()| std::fs::rename(&beside, &target));
    if written.is_err() {
        // What was not made is not there to be removed.
        let _ = std::fs::remove_file(&beside);
    }
    written?;
    File::open(folder)?.sync_all()
}

fn write_new(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn set_below(text: &str, path: &[&str], value: &Value, depth: usize) -> Result<String, String> {
    let Some((key, rest)) = path.split_first() else { return Err("no key is named".to_owned()) };
    let mut reader = serde_json::Deserializer::from_str(text);
    let members = reader.deserialize_map(Members).and_then(|members| reader.end().map(|()| members));
    let members = members.map_err(|e| e.to_string())?;
    let mut found = members.iter().filter(|(name, _)| name == key);
    let (member, another) = (found.next(), found.next());
    if another.is_some() {
        return Err(format!("`{key}` is there twice"));
    }
    match member {
        Some((_, old)) => {
            let new = if rest.is_empty() {
                written(value, depth)?
            } else {
                set_below(old.get(), rest, value, depth + 1)?
            };
            spliced(text, old.get(), &new).ok_or_else(|| format!("`{key}` cannot be found again"))
        }
        None => {
            let nested =
                rest.iter().rev().fold(value.clone(), |inner, key| serde_json::json!({ *key: inner }));
            appended(text, members.is_empty(), key, &written(&nested, depth)?, depth)
        }
    }
}

/// The text with a part of it, which lies in it, replaced.
fn spliced(text: &str, part: &str, new: &str) -> Option<String> {
    let start = (part.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(format!("{}{new}{}", text.get(..start)?, text.get(start + part.len()..)?))
}

/// The object's text with one more member at its end.
fn appended(text: &str, empty: bool, key: &str, value: &str, depth: usize) -> Result<String, String> {
    let close = text.rfind('}').ok_or("it is not an object")?;
    let (before, after) = text.split_at(close);
    let comma = if empty { "" } else { "," };
    let key = serde_json::to_string(key).map_err(|e| e.to_string())?;
    let (inner, outer) = ("  ".repeat(depth), "  ".repeat(depth - 1));
    Ok(format!("{}{comma}\n{inner}{key}: {value}\n{outer}{after}", before.trim_end()))
}

fn written(value: &Value, depth: usize) -> Result<String, String> {
    let text = serde_json::to_string_pretty(value).map_err(|e| e.to_string())?;
    // No text of JSON has a line break in it.
    Ok(text.replace('\n', &format!("\n{}", "  ".repeat(depth))))
}

/// The members of an object, in their order and as they are written.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_the_place_that_is_meant_changes() {
        let text = "{\n    \"a\" : {\"x\":1.50,\n\"y\": [ ] },\n  \"b\":\"\\u0041\" }\n";
        let with = |path: &[&str], value: Value| set(text, path, &value).unwrap();
        assert_eq!(with(&["a", "x"], json!(2)), text.replace("1.50", "2"));
        assert_eq!(with(&["b"], json!({ "c": 1 })), text.replace("\"\\u0041\"", "{\n    \"c\": 1\n  }"));
        assert_eq!(with(&["z"], json!([])), text.replace("041\" }", "041\",\n  \"z\": []\n}"));
        assert_eq!(with(&["a", "z"], json!(3)), text.replace("[ ] }", "[ ],\n    \"z\": 3\n  }"));
        assert_eq!(set("{}", &["s", "t"], &json!(1)).unwrap(), "{\n  \"s\": {\n    \"t\": 1\n  }\n}");
        for (bad, problem) in [
            ("[]", "expected an object"),
            ("{\"a\":1,\"a\":2}", "`a` is there twice"),
            ("{\"a\":1}", "expected an object"),
            ("{\"a\":{}} x", "trailing characters"),
        ] {
            let error = set(bad, &["a", "b"], &json!(1)).unwrap_err();
            assert!(error.contains(problem), "{error}");
        }
    }

    #[test]
    fn a_file_is_replaced_through_a_link_and_keeps_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o777, 0o640);
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        let problem = replace(&dir.path().join("no/where"), "x").unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::NotFound);
    }

    proptest! {
        #[test]
        fn what_was_set_is_read_and_the_rest_is_kept(
            keys in prop::collection::btree_set("[a-z\"\\\\é ]{0,3}", 0..5), key in "[a-z\"\\\\é ]{0,3}", pretty in any::<bool>(),
        ) {
            let mut object: serde_json::Map<_, _> = keys.iter().map(|k| (k.clone(), json!({ "in": k }))).collect();
            let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
            let changed = set(&text, &[key.as_str()], &json!({ "new": [1, 2] })).unwrap();
            object.insert(key, json!({ "new": [1, 2] }));
            prop_assert_eq!(serde_json::from_str::<Value>(&changed).unwrap(), Value::Object(object));
        }
    }
}
