//! Tests that calls are judged by the current files, both with and without a sandbox.

use super::*;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_policy::{Access, AccessSet};
use serde_json::json;

fn fixture() -> (tempfile::TempDir, JudgingContext) {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(base.join("person/docs/sub")).unwrap();
    std::fs::create_dir_all(base.join("person/.ssh")).unwrap();
    std::fs::write(base.join("person/docs/a.txt"), "abc").unwrap();
    std::os::unix::fs::symlink("docs/a.txt", base.join("person/link")).unwrap();
    let home = Home::under(&base.join("ic"), &base.join("person"));
    home.prepare().unwrap();
    let snapshot = Arc::new(PolicySnapshot::load(&home, &Servers::load(&home).unwrap()).unwrap());
    let resolver = Resolver::new(snapshot.home.clone(), snapshot.home.clone());
    let context = JudgingContext {
        snapshot,
        server: "filesystem".to_owned(),
        contained: Some(FileWrites::InPlace),
        denied: Arc::default(),
        unannotated: Unannotated::Deny,
        sandbox: CanonicalPath::assume_canonical("/s").ok(),
        resolver,
        grants: Vec::new(),
        hosts: Vec::new(),
        tools: Vec::new(),
        approved: Vec::new(),
        reach: ServerReach::Unknown,
        confined: false,
        reading_hints: Arc::default(),
    };
    (dir, context)
}

fn located(context: &JudgingContext, tool: &str, arguments: Value) -> LocatedCall {
    let arguments = Arc::new(arguments.as_object().unwrap().clone());
    context.plan(tool, &arguments).unwrap().locate(context).unwrap()
}

fn denial(context: &JudgingContext, tool: &str, arguments: Value) -> Option<String> {
    match context.judge(located(context, tool, arguments)).verdict {
        Verdict::Deny(denial) => Some(denial.reason.to_string()),
        Verdict::Allow(_) | Verdict::Escalate(_) => None,
    }
}

#[test]
fn a_call_needs_the_targets_of_its_paths_outside_the_sandbox() {
    let (_dir, context) = fixture();
    let home = &context.snapshot.home;
    let read = located(&context, "read_text_file", json!({ "path": "~/link" }));
    let path = home.join("docs/a.txt").unwrap();
    assert_eq!(read.paths.texts(), [path.as_str()]);
    let expected = [MountRequest::new(path, false).file_only()];
    assert_eq!(
        read.paths.mount_requests(&read.call, context.sandbox.as_ref(), FileWrites::InPlace),
        expected
    );
    assert_eq!(read.paths.mount_requests(&read.call, Some(home), FileWrites::InPlace), []);
    let new = located(&context, "write_file", json!({ "path": "~/docs/x/y/z", "content": "" }));
    let expected = [MountRequest::new(home.join("docs").unwrap(), true)];
    assert_eq!(new.paths.mount_requests(&new.call, context.sandbox.as_ref(), FileWrites::InPlace), expected);
}

#[test]
fn creating_a_file_beside_credentials_is_denied() {
    let (_dir, context) = fixture();
    let write = |path: &str| denial(&context, "write_file", json!({ "path": path, "content": "" }));
    assert!(write("~/new.txt").unwrap().starts_with("to create or delete something in"));
    assert_eq!(write("~/docs/new.txt"), None);
    assert_eq!(write("~/docs/a.txt"), None);
    let without_sandbox = JudgingContext { contained: None, ..context };
    assert_eq!(denial(&without_sandbox, "write_file", json!({ "path": "~/new.txt", "content": "" })), None);
}

#[test]
fn a_folder_with_credentials_is_not_opened_as_a_whole() {
    let (_dir, context) = fixture();
    let list = |path: &str| denial(&context, "list_directory", json!({ "path": path }));
    assert!(list("~").unwrap().contains("cannot be opened as a whole"));
    assert_eq!(list("~/docs"), None);
}

#[test]
fn a_grant_for_a_file_does_not_cover_a_folder_in_its_place() {
    let (_dir, context) = fixture();
    let path = context.snapshot.home.join("docs/a.txt").unwrap();
    let granted = |kind| {
        let access = AccessSet::only(Access::Read);
        JudgingContext {
            grants: vec![PathGrant { id: "g".into(), created_ms: 0, path: path.clone(), kind, access }],
            ..context.clone()
        }
    };
    let verdict = |kind, tool: &str| {
        let context = granted(kind);
        let located = || located(&context, tool, json!({ "path": "~/docs/a.txt" }));
        (context.judge(located()).verdict, context.explain(located()).verdict)
    };
    let is_allowed = |(judged, explained): (Verdict, Verdict)| {
        assert_eq!(judged, explained);
        matches!(judged, Verdict::Allow(_))
    };
    assert!(is_allowed(verdict(GrantKind::File, "read_text_file")));
    std::fs::remove_file(path.as_path()).unwrap();
    std::fs::create_dir(path.as_path()).unwrap();
    assert!(matches!(verdict(GrantKind::File, "list_directory").0, Verdict::Escalate(_)));
    assert!(!is_allowed(verdict(GrantKind::File, "read_text_file")));
    assert!(is_allowed(verdict(GrantKind::Tree, "list_directory")));
}
