//! Realistic fake data for the documentation's picture of the whole desktop.

use super::fake_data;
use ironcurtain_protocol::{ActivityView, ClientView, QuestionsView, RootView, SessionView};

/// Returns the sessions of three agents, all sandboxed.
pub(super) fn sessions(now: u64) -> Vec<SessionView> {
    let [first, second] = <[SessionView; 2]>::try_from(fake_data::sessions(now)).expect("two sessions");
    let agent = |name: &str, exe: &str| ClientView {
        name: name.into(),
        exe: Some(exe.into()),
        says_it_is: None,
        ..first.client.clone()
    };
    let docs = SessionView {
        id: "s3".into(),
        server: "fetch".into(),
        roots: vec![],
        hosts: vec!["docs.rs".into(), "developer.mozilla.org".into()],
        left: 0,
        ..first.clone()
    };
    let code = SessionView {
        sandboxed: true,
        roots: vec![RootView {
            path: "/home/ada/src/app".into(),
            source: "rule `work`".into(),
            grant: None,
            access: vec!["read".into(), "write".into()],
        }],
        ..second
    };
    let notes = SessionView {
        id: "s4".into(),
        client: agent("Codex", "/usr/bin/codex"),
        server: "notes".into(),
        roots: vec![RootView {
            path: "/home/ada/notes".into(),
            source: "grant `g5`".into(),
            grant: Some("g5".into()),
            access: vec!["read".into()],
        }],
        hosts: vec![],
        left: 0,
        ..first.clone()
    };
    vec![SessionView { left: 0, hosts: vec![], ..first }, docs, code, notes]
}

/// Returns a view without expired questions and denials.
pub(super) fn questions() -> QuestionsView {
    QuestionsView { waiting: vec![], missed: vec![], denied: vec![] }
}

/// Returns the fake calls, except those that only tests need.
pub(super) fn activity(now: u64) -> Vec<ActivityView> {
    fake_data::activity(now).into_iter().filter(|call| !call.summary.contains('<')).collect()
}
