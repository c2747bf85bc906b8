//! Reading a client's `tools/call`, and writing the one that is forwarded.

use super::params::{LONGEST_TOOL, ParamsError};
use crate::wire::Fields;
use ironcurtain_policy::ResolvedCall;
use ironcurtain_policy::strict::{UniqueNames, exact};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::sync::Arc;

/// The parameters of a `tools/call`.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) tool: String,
    pub(super) arguments: Arc<Map<String, Value>>,
    params: Fields,
    raw_arguments: Fields,
}

impl ToolCall {
    /// Reads the parameters; the error is for the client.
    pub(super) fn read(params: Option<&RawValue>) -> Result<Self, ParamsError> {
        let mut params: Fields = parse(params.ok_or(ParamsError::Missing("params"))?, "params")?;
        params.without_twins(&["name", "arguments"])?;
        let tool = params.get("name").ok_or(ParamsError::Missing("params.name"))?;
        let tool: String = parse(tool, "params.name")?;
        if tool.len() > LONGEST_TOOL {
            return Err(ParamsError::LongTool(tool.len()));
        }
        let raw_arguments: Fields = match params.get("arguments") {
            None => Fields::default(),
            Some(raw) if raw.get() == "null" => Fields::default(),
            Some(raw) => parse(raw, "params.arguments")?,
        };
        let mut arguments = Map::new();
        for (name, raw) in raw_arguments.iter() {
            let UniqueNames(value) = parse(raw, name)?;
            let inexact = |source| ParamsError::Inexact { argument: name.to_owned(), source };
            exact(raw.get()).map_err(inexact)?;
            arguments.insert(name.to_owned(), value);
        }
        // They are kept once.
        params.set("arguments", RawValue::NULL.to_owned());
        Ok(Self { tool, arguments: arguments.into(), params, raw_arguments })
    }

    /// The token that the client wants to hear of the call's progress by.
    pub(super) fn progress_token(&self) -> Option<Box<RawValue>> {
        let meta: Fields = serde_json::from_str(self.params.get("_meta")?.get()).ok()?;
        meta.get("progressToken").map(ToOwned::to_owned)
    }

    /// The arguments as the client wrote them, which is more than what they are read as: `1.0` and `1.00` are one number to us.
    pub(super) fn written_arguments(&self) -> &Fields {
        &self.raw_arguments
    }

    /// Everything that is asked for beside the arguments, as it was written: that it is to be a task, an answer to the server's
    /// question. What is told about the call (`_meta`) differs with each of them, and is left out.
    pub(super) fn beside_arguments(&self) -> Vec<String> {
        let all = self.params.iter().filter(|(name, _)| !["name", "arguments", "_meta"].contains(name));
        all.flat_map(|(name, raw)| [name.to_owned(), raw.get().to_owned()]).collect()
    }

    /// The parameters to forward: what was judged is what is sent, and everything else is as the client wrote it.
    pub(super) fn forwarded(&self, call: &ResolvedCall) -> Result<Box<RawValue>, serde_json::Error> {
        let sent = call.transport_arguments().iter().map(|(name, value)| (name.as_str(), value));
        let changed: Vec<(&str, &Value)> =
            sent.filter(|(name, value)| self.arguments.get(*name) != Some(*value)).collect();
        let written =
            |name: &str| changed.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
        let kept = self.raw_arguments.iter();
        let mut arguments: Vec<(&str, Written<'_>)> =
            kept.map(|(name, raw)| (name, written(name).map_or(Written::Raw(raw), Written::Value))).collect();
        let new = changed.iter().filter(|(name, _)| self.raw_arguments.get(name).is_none());
        arguments.extend(new.map(|(name, value)| (*name, Written::Value(value))));
        let part = |(name, raw)| match name {
            "arguments" => (name, Written::Fields(&arguments)),
            _ => (name, Written::Raw(raw)),
        };
        to_raw_value(&Written::Fields(&self.params.iter().map(part).collect::<Vec<_>>()))
    }
}

/// A part of what is forwarded. Nothing of it is copied before it is written.
enum Written<'a> {
    Raw(&'a RawValue),
    Value(&'a Value),
    Fields(&'a [(&'a str, Written<'a>)]),
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Raw(raw) => raw.serialize(serializer),
            Self::Value(value) => value.serialize(serializer),
            Self::Fields(fields) => serializer.collect_map(fields.iter().map(|(name, part)| (name, part))),
        }
    }
}

fn parse<T: serde::de::DeserializeOwned>(raw: &RawValue, name: &str) -> Result<T, ParamsError> {
    serde_json::from_str(raw.get()).map_err(ParamsError::unreadable(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Servers;
    use crate::home::Home;
    use crate::judging::JudgingContext;
    use crate::policy_snapshot::PolicySnapshot;
    use ironcurtain_paths::Resolver;

    #[test]
    fn what_was_judged_is_what_is_sent_and_the_rest_is_untouched() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("person/docs")).unwrap();
        std::os::unix::fs::symlink("docs/a.txt", base.join("person/link")).unwrap();
        let home = Home::under(&base.join("ic"), &base.join("person"));
        home.prepare().unwrap();
        let snapshot = Arc::new(PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap());
        let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
        let path = snapshot.home.join("docs/a.txt").unwrap();
        let setting = JudgingContext {
            snapshot,
            server: "filesystem".to_owned(),
            contained: None,
            unannotated: ironcurtain_policy::Unannotated::Deny,
            sandbox: None,
            resolver,
            grants: Vec::new(),
            hosts: Vec::new(),
            tools: Vec::new(),
            approved: Vec::new(),
            reach: ironcurtain_policy::ServerReach::Unknown,
        };
        let call = r#"{"_meta":{"progressToken":1},"name":"read_text_file","arguments":{"head":2.0,"path":"~/link"},"x":[1]}"#;
        let call = ToolCall::read(Some(&RawValue::from_string(call.to_owned()).unwrap())).unwrap();
        let located = setting.plan(&call.tool, &call.arguments).unwrap().locate(&setting).unwrap();
        let expected = format!(
            r#"{{"_meta":{{"progressToken":1}},"name":"read_text_file","arguments":{{"head":2.0,"path":"{path}"}},"x":[1]}}"#
        );
        assert_eq!(call.forwarded(&located.call).unwrap().get(), expected);
    }

    #[test]
    fn arguments_that_come_twice_or_are_no_object_are_refused() {
        let read = |json: &str| {
            let refused = ToolCall::read(Some(&RawValue::from_string(json.to_owned()).unwrap()));
            refused.unwrap_err().to_string()
        };
        assert!(read(r#"{"name":"x","arguments":{"path":"/a","path":"/b"}}"#).contains("`path` comes twice"));
        assert!(read(r#"{"name":"x","arguments":{"e":[{"a":1,"a":2}]}}"#).contains("`a` comes twice"));
        assert!(read(r#"{"name":"x","name":"y"}"#).contains("`name` comes twice"));
        assert!(read(r#"{"name":"x","arguments":[1]}"#).starts_with("`params.arguments`: invalid type"));
        assert_eq!(read(r#"{"arguments":{}}"#), "`params.name` is missing");
        assert_eq!(read(r#"{"name":"x","Name":"y"}"#), "`params` has `Name` beside `name`");
        assert_eq!(
            read(r#"{"name":"x","argument\u017f":{}}"#),
            "`params` has `argument\u{17f}` beside `arguments`"
        );
    }

    #[test]
    fn an_argument_that_is_one_thing_to_us_and_another_to_the_server_is_refused() {
        let read = |path: &str| {
            let params = format!(r#"{{"name":"x","arguments":{{"path":{path}}}}}"#);
            ToolCall::read(Some(&RawValue::from_string(params).unwrap()))
                .map(|call| call.arguments)
                .map_err(|e| e.to_string())
        };
        // To the library that reads it, this object is the text in it; the server would be sent the object.
        assert_eq!(
            read(r#"{"$serde_json::private::RawValue":"\"/a\""}"#).unwrap_err(),
            "`path`: `$serde_json::private::RawValue` is not taken as a name at line 1 column 33"
        );
        let alike = r#"{"RawValue":"\"/a\""}"#;
        assert_eq!(read(alike).unwrap()["path"], serde_json::json!({ "RawValue": "\"/a\"" }));
        assert_eq!(read("\"/a\"").unwrap()["path"], "/a");
    }

    #[test]
    fn a_number_that_the_server_could_take_for_another_than_was_judged_is_refused() {
        let read = |number: &str| {
            let params = format!(r#"{{"name":"x","arguments":{{"n":[{number}]}}}}"#);
            ToolCall::read(Some(&RawValue::from_string(params).unwrap()))
                .map(|call| call.arguments["n"].clone())
                .map_err(|e| e.to_string())
        };
        assert_eq!(
            read("123456789012345678901234567890").unwrap_err(),
            "`n`: a whole number of 30 digits is more than is read exactly"
        );
        assert!(read("1e400").unwrap_err().starts_with("`n`: number out of range"));
        for number in
            ["18446744073709551615", "-9223372036854775808", "907.3038322028689", "1e300", "1.0", "-0.0"]
        {
            assert_eq!(read(number).unwrap().to_string(), format!("[{}]", number.replace("1e300", "1e+300")));
        }
    }

    #[test]
    fn a_tool_name_of_256_bytes_is_read_and_a_longer_one_is_refused() {
        let read = |length: usize| {
            let params = serde_json::json!({ "name": "x".repeat(length) }).to_string();
            ToolCall::read(Some(&RawValue::from_string(params).unwrap()))
                .map(|call| call.tool.len())
                .map_err(|e| e.to_string())
        };
        assert_eq!(read(256), Ok(256));
        assert_eq!(read(257), Err("`params.name` has 257 bytes; at most 256 are taken".to_owned()));
    }
}
