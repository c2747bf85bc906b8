//! Realistic fake data for the documentation's picture of the whole desktop: the Claude Code agent and its servers, as
//! in the pictures of the pages.

use super::fake_data;
use ironcurtain_protocol::{ActivityView, QuestionsView, RootView, SessionView};

/// Returns the sessions of one agent, all sandboxed.
pub(super) fn sessions(now: u64) -> Vec<SessionView> {
    let [first, _] = <[SessionView; 2]>::try_from(fake_data::sessions(now)).expect("two sessions");
    let root = |path: &str, source: &str, grant: Option<&str>, access: &[&str]| RootView {
        path: path.into(),
        source: source.into(),
        grant: grant.map(Into::into),
        access: access.iter().map(ToString::to_string).collect(),
    };
    let base = SessionView { left: 0, hosts: vec![], roots: vec![], ..first };
    let files = vec![
        root("/home/ada/src/app", "rule `work`", None, &["read"]),
        root("/home/ada/Documents/tax", "grant `g1`", Some("g1"), &["read"]),
    ];
    let repositories = vec![root("/home/ada/src/app", "grant `g8`", Some("g8"), &["read", "write"])];
    vec![
        SessionView { roots: files, ..base.clone() },
        SessionView {
            id: "s3".into(),
            server: "fetch".into(),
            hosts: vec!["docs.example.org".into()],
            ..base.clone()
        },
        SessionView { id: "s4".into(), server: "git".into(), roots: repositories, ..base },
    ]
}

/// Returns a view without expired questions and denials.
pub(super) fn questions() -> QuestionsView {
    QuestionsView { waiting: vec![], missed: vec![], denied: vec![] }
}

/// Returns the fake calls, except those that only tests need.
pub(super) fn activity(now: u64) -> Vec<ActivityView> {
    fake_data::activity(now).into_iter().filter(|call| !call.summary.contains('<')).collect()
}
