//! Tests that calls are parsed and rebuilt exactly as they were judged.

use super::*;
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicySnapshot, Servers};
use ironcurtain_judging::JudgingContext;
use ironcurtain_paths::Resolver;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn refused(request: Option<JudgedRequest>, text: &str) -> String {
    ToolCall::parse(request, Some(&raw(text))).unwrap_err().to_string()
}

/// Creates a home directory with a file and a symlink to it, and a context for judging calls.
fn fixture() -> (tempfile::TempDir, JudgingContext) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("person/docs")).unwrap();
    std::os::unix::fs::symlink("docs/a.txt", base.join("person/link")).unwrap();
    let home = Home::under(&base.join("ic"), &base.join("person"));
    home.prepare().unwrap();
    let snapshot = Arc::new(PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap());
    let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
    let context = JudgingContext {
        snapshot,
        server: "filesystem".to_owned(),
        contained: None,
        denied: Arc::default(),
        unannotated: ironcurtain_policy::Unannotated::Deny,
        sandbox: None,
        resolver,
        grants: Vec::new(),
        hosts: Vec::new(),
        tools: Vec::new(),
        approved: Vec::new(),
        reach: ironcurtain_policy::ServerReach::Unknown,
        confined: false,
        reading_hints: Arc::default(),
    };
    (dir, context)
}

fn sent(context: &JudgingContext, request: Option<JudgedRequest>, params: &str) -> String {
    let call = ToolCall::parse(request, Some(&raw(params))).unwrap();
    let located = context.plan(&call.tool, &call.arguments).unwrap().locate(context).unwrap();
    call.to_server_request(&located.call).unwrap().params().unwrap().get().to_owned()
}

#[test]
fn only_what_was_judged_is_sent() {
    let (_dir, context) = fixture();
    let path = context.snapshot.home.join("docs/a.txt").unwrap();
    let call = "{\"_meta\":{\"x\":1,\"progressToken\":1},\n\"name\":\"read_text_file\",\"task\":{\"ttl\":5},\"arguments\": {\"head\":2.0,   \"path\":\"~/l\\u0069nk\"}}";
    let expected = format!(
        r#"{{"_meta":{{"progressToken":1}},"name":"read_text_file","arguments":{{"head":2.0,"path":"{path}"}},"task":{{"ttl":5}}}}"#
    );
    assert_eq!(sent(&context, None, call), expected);
}

#[test]
fn a_file_resource_is_sent_with_the_judged_path() {
    let (_dir, context) = fixture();
    let (home, read) = (&context.snapshot.home, Some(JudgedRequest::ReadResource));
    let link = format!(r#"{{"uri":"file://{home}/link"}}"#);
    assert_eq!(sent(&context, read, &link), format!(r#"{{"uri":"file://{home}/docs/a.txt"}}"#));
    assert_eq!(sent(&context, read, r#"{"uri":"memo://a b"}"#), r#"{"uri":"memo://a b"}"#);
    let ambiguous = format!(r#"{{"uri":"file://{home}/%6cink"}}"#);
    assert!(refused(read, &ambiguous).contains("servers interpret differently"));
}

#[test]
fn prompts_and_completions_are_sent_as_judged() {
    let (_dir, context) = fixture();
    let prompt = r#"{"name":"greet","arguments":{"who":"ann"},"_meta":{"x":"y"}}"#;
    let expected = r#"{"name":"greet","arguments":{"who":"ann"}}"#;
    assert_eq!(sent(&context, Some(JudgedRequest::GetPrompt), prompt), expected);
    let completion = r#"{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":"a"},"context":{"arguments":{"b":"c"}}}"#;
    assert_eq!(sent(&context, Some(JudgedRequest::Complete), completion), completion);
    let resource =
        r#"{"ref":{"type":"ref/resource","uri":"memo://{x}"},"argument":{"name":"x","value":"1"}}"#;
    assert_eq!(sent(&context, Some(JudgedRequest::Complete), resource), resource);
}

#[test]
fn an_unknown_field_is_rejected_by_name() {
    let unknown = |object_path: &str, name: &str| {
        format!("unknown field `{name}` in `{object_path}`; send the request without it")
    };
    assert_eq!(refused(None, r#"{"name":"x","extra":"60 kB"}"#), unknown("params", "extra"));
    assert_eq!(refused(None, r#"{"name":"x","inputResponses":{}}"#), unknown("params", "inputResponses"));
    assert_eq!(refused(None, r#"{"name":"x","Name":"y"}"#), unknown("params", "Name"));
    assert_eq!(
        refused(None, r#"{"name":"x","argument\u017f":{}}"#),
        unknown("params", "argument\\u{17f}").replace("\\u{17f}", "\u{17f}")
    );
    assert_eq!(refused(None, r#"{"name":"x","task":{"ttl":1,"note":"n"}}"#), unknown("params.task", "note"));
    let read = Some(JudgedRequest::ReadResource);
    assert_eq!(refused(read, r#"{"uri":"memo://x","URI":"file:///etc"}"#), unknown("params", "URI"));
    let complete = Some(JudgedRequest::Complete);
    let with = r#"{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"b","x":1}}"#;
    assert_eq!(refused(complete, with), unknown("params.argument", "x"));
    let both = r#"{"ref":{"type":"ref/prompt","name":"p","uri":"x"},"argument":{"name":"a","value":"b"}}"#;
    assert!(refused(complete, both).starts_with("`params.ref` must be"));
}

#[test]
fn a_tool_named_like_a_request_is_rejected() {
    let expected = "the tool `resources/read` cannot be called, because its name is reserved for a request; rename it in the server";
    assert_eq!(refused(None, r#"{"name":"resources/read","arguments":{"uri":"x"}}"#), expected);
}

#[test]
fn duplicate_or_non_object_arguments_are_rejected() {
    let read = |text: &str| refused(None, text);
    assert!(read(r#"{"name":"x","arguments":{"path":"/a","path":"/b"}}"#).contains("`path` comes twice"));
    assert!(read(r#"{"name":"x","arguments":{"e":[{"a":1,"a":2}]}}"#).contains("`a` comes twice"));
    assert!(read(r#"{"name":"x","name":"y"}"#).contains("`name` comes twice"));
    assert!(read(r#"{"name":"x","arguments":[1]}"#).starts_with("`params.arguments`: invalid type"));
    assert_eq!(read(r#"{"arguments":{}}"#), "`params.name` is missing");
    let prompt = r#"{"name":"p","arguments":{"a":{"b":"c"}}}"#;
    assert!(refused(Some(JudgedRequest::GetPrompt), prompt).starts_with("`params.arguments`: invalid type"));
}

#[test]
fn an_ambiguous_argument_is_rejected() {
    let read = |path: &str| {
        let params = format!(r#"{{"name":"x","arguments":{{"path":{path}}}}}"#);
        ToolCall::parse(None, Some(&raw(&params))).map(|call| call.arguments).map_err(|e| e.to_string())
    };
    // A naive parser would read this object as the text that it contains, but the server would receive the object.
    assert_eq!(
        read(r#"{"$serde_json::private::RawValue":"\"/a\""}"#).unwrap_err(),
        "`path`: `$serde_json::private::RawValue` is not accepted as a name at line 1 column 33"
    );
    let alike = r#"{"RawValue":"\"/a\""}"#;
    assert_eq!(read(alike).unwrap()["path"], serde_json::json!({ "RawValue": "\"/a\"" }));
    assert_eq!(read("\"/a\"").unwrap()["path"], "/a");
}

#[test]
fn an_inexact_number_is_rejected() {
    let read = |number: &str| {
        let params = format!(r#"{{"name":"x","arguments":{{"n":[{number}]}}}}"#);
        let call = ToolCall::parse(None, Some(&raw(&params)));
        call.map(|call| call.arguments["n"].clone()).map_err(|e| e.to_string())
    };
    assert_eq!(
        read("123456789012345678901234567890").unwrap_err(),
        "`n`: a whole number of 30 digits cannot be read exactly"
    );
    assert!(read("1e400").unwrap_err().starts_with("`n`: number out of range"));
    for number in
        ["18446744073709551615", "-9223372036854775808", "907.3038322028689", "1e300", "1.0", "-0.0"]
    {
        assert_eq!(read(number).unwrap().to_string(), format!("[{}]", number.replace("1e300", "1e+300")));
    }
}

#[test]
fn a_tool_name_has_at_most_256_bytes() {
    let read = |length: usize| {
        let params = serde_json::json!({ "name": "x".repeat(length) }).to_string();
        ToolCall::parse(None, Some(&raw(&params))).map(|call| call.tool.len()).map_err(|e| e.to_string())
    };
    assert_eq!(read(256), Ok(256));
    assert_eq!(read(257), Err("`params.name` is 257 bytes long; the limit is 256 bytes".to_owned()));
}
