//! Tests each hostile part by comparing a repository with and without it.

use super::parts::*;
use super::wire::{Wire, remote_target};
use super::*;
use ironcurtain_paths::Resolver;
use ironcurtain_policy::Annotations;
use serde_json::json;
use std::sync::Arc;

fn check(part: &Part) {
    let user = TestUser::new();
    user.commit("repo");
    std::fs::create_dir_all(user.path("repo/sub").as_path()).unwrap();
    let ask = || user.ask(part.folder, part.remote_use, part.raw, false).join(" ");
    user.config(part.plain);
    assert_eq!(ask(), part.before, "without it: {}", part.what);
    user.config(&format!("{}{}", part.plain, part.added));
    for (file, content) in part.files {
        user.file(file, content);
    }
    for (link, to) in part.links {
        user.link(link, to);
    }
    assert_eq!(ask(), part.after, "with it: {}", part.what);
    // Git must connect to a reported address.
    let verb = if part.remote_use == RemoteUse::Push { "push" } else { "fetch" };
    let sent = part.raw.map(address::to_send);
    let arguments: Vec<&str> = [Some(verb), sent.as_deref()].into_iter().flatten().collect();
    let targets: Vec<_> = part.after.split(' ').map(remote_target).collect();
    if targets.iter().all(Option::is_some) {
        let goes = Wire::new(&user).goes_to(part.folder, &arguments);
        assert!(
            !goes.is_empty() && goes.iter().all(|to| targets.contains(to)),
            "{}: git goes to {goes:?}",
            part.what
        );
    }
}

#[test]
fn hostile_configuration_is_read_as_git_reads_it() {
    LISTS.iter().for_each(check);
}

#[test]
fn hostile_repository_files_are_read_as_git_reads_them_or_unknown() {
    FILES.iter().for_each(check);
}

#[test]
fn a_repository_that_changes_how_git_connects_is_unknown() {
    for added in CONNECTIONS {
        let files = &[("repo/.git/inc", "[http]\n\tproxy = http://192.0.2.1:3128\n")];
        check(&Part { what: added, added, files, after: CONNECTED, ..PART });
        check(&Part { what: added, added, files, after: CONNECTED, raw: Some(GITHUB), ..PART });
    }
}

#[test]
fn trailing_blanks_in_folder_names_are_kept() {
    let user = TestUser::new();
    user.config(ORIGIN);
    let moved = user.path("repo").as_path().join("real ");
    std::fs::rename(user.path("repo/.git").as_path(), moved).unwrap();
    user.git(&["init", "-q", "--bare", "-b", "main", "repo/real"]);
    user.file("repo/real/config", EVIL);
    for (text, all) in [
        ("gitdir: real \n", GITHUB),
        ("gitdir: real\r\n", "https://evil.example/x"),
        ("gitdir:real \n", NOT_UNDERSTOOD),
        ("gitdir: nothing\n", NOT_UNDERSTOOD),
    ] {
        user.file("repo/.git", text);
        assert_eq!(user.push(None), [all], "{text:?}");
    }
    user.file("repo/tree/HEAD", "ref: refs/heads/main\n");
    user.file("repo/.git", "gitdir: tree\n");
    for (text, all) in [("../real \n", GITHUB), ("../real\n", "https://evil.example/x"), ("", NOT_PLAIN)] {
        user.file("repo/tree/commondir", text);
        assert_eq!(user.push(None), [all], "{text:?}");
    }
}

#[test]
fn a_clone_ignores_the_surrounding_repository() {
    let user = TestUser::new();
    user.config("[url \"https://github.com/\"]\n\tinsteadOf = https://evil.example/\n");
    user.file(".gitconfig", "[url \"https://github.com/\"]\n\tinsteadOf = gh:\n");
    let ask = |remote_use, raw| user.ask("repo", remote_use, Some(raw), false);
    assert_eq!(ask(RemoteUse::Clone, "https://evil.example/x"), ["https://evil.example/x"]);
    assert_eq!(ask(RemoteUse::Fetch, "https://evil.example/x"), ["https://github.com/x"]);
    assert_eq!(
        ask(RemoteUse::Clone, "gh:acme/app"),
        ["https://github.com/acme/app"],
        "the user's own counts"
    );
    for (tool, remote_use) in [
        ("git_clone", RemoteUse::Clone),
        ("cloneRepository", RemoteUse::Clone),
        ("clone_or_pull", RemoteUse::Fetch),
        ("git_push", RemoteUse::Push),
        ("git_ls_remote", RemoteUse::Either),
    ] {
        assert_eq!(RemoteUse::from_tool_name(tool), remote_use, "{tool}");
    }
}

#[test]
fn operations_that_need_no_repository_are_also_judged_without_it() {
    let user = TestUser::new();
    user.config(&format!("{ORIGIN}[url \"https://github.com/\"]\n\tinsteadOf = https://evil.example/\n"));
    let ask = |remote_use, raw| user.ask("repo", remote_use, Some(raw), false);
    let both = ["https://github.com/x", "https://evil.example/x"];
    assert_eq!(ask(RemoteUse::Either, "https://evil.example/x"), both);
    assert_eq!(ask(RemoteUse::Either, "origin"), [GITHUB]);
    assert_eq!(ask(RemoteUse::Fetch, "https://evil.example/x"), both[..1]);
    // Operations that need no repository ignore a repository with an unknown version.
    let version = "[core]\n\trepositoryformatversion = 9\n";
    user.file(
        "repo/.git/config",
        &format!("{version}[url \"https://github.com/\"]\n\tinsteadOf = https://evil.example/\n"),
    );
    let evil = "https://evil.example/x";
    let wire = Wire::new(&user);
    assert_eq!(wire.goes_to("repo", &["ls-remote", evil]), [remote_target(evil)]);
    assert_eq!(wire.goes_to("repo", &["fetch", evil]), []);
    assert_eq!(ask(RemoteUse::Either, evil), [FOREIGN]);
}

#[test]
fn the_sent_address_is_the_one_looked_up() {
    let user = TestUser::new();
    user.link("link", "repo");
    let tool = json!({ "toolName": "git_push", "serverName": "git", "args": {
        "path": ["read-path"], "remote": ["git-remote-url"],
    } });
    let text = json!({ "servers": { "git": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&text, "tools").unwrap();
    let resolver = Resolver::new(user.path(""), user.path(""));
    for raw in
        ["origin", "https://GITHUB.com:443/acme/app/", " https://github.com/a", "GH:a", "ssh://A/b", "./x"]
    {
        let arguments = Arc::new(json!({ "path": "~/link/.", "remote": raw }).as_object().unwrap().clone());
        let plan = annotations.plan("git", "git_push", &arguments).unwrap();
        let path = resolver.resolve("~/link/.").unwrap().path;
        let question = RemoteQuery::new(&plan, [&path]).unwrap();
        let is_remote = |at: usize| plan.values()[at].is_remote();
        let fact = |at| {
            if is_remote(at) { Fact::Remotes(vec![GITHUB.to_owned()]) } else { Fact::Path(path.clone()) }
        };
        let facts: Vec<Fact> = (0..plan.values().len()).map(fact).collect();
        let call = plan.resolve(facts).unwrap();
        let sent = |argument: &str| call.transport_arguments()[argument].as_str().unwrap().to_owned();
        let looked_up: Vec<_> = question.values.into_iter().map(|(_, value)| value).collect();
        assert_eq!(looked_up, [Some(sent("remote"))]);
        assert_eq!(question.repositories, [user.path("repo")]);
        assert_eq!(sent("path"), user.path("repo").as_str());
    }
}

#[test]
fn without_a_repository_only_a_clones_address_is_known() {
    let user = TestUser::new();
    let git = GitContext { home: user.path(""), in_sandbox: true };
    let ask = |remote_use, raw: Option<&str>| {
        let question = RemoteQuery {
            repositories: Vec::new(),
            remote_use,
            values: vec![(3, raw.map(address::to_send))],
        };
        question.resolve_addresses(&git, &|_| true)
    };
    let known = vec![(3, Fact::Remotes(vec![GITHUB.to_owned()]))];
    assert_eq!(ask(RemoteUse::Clone, Some(GITHUB)), known);
    let unknown = "(unknown: the call does not name its repository)";
    for remote_use in [RemoteUse::Push, RemoteUse::Fetch, RemoteUse::Either] {
        for raw in [Some(GITHUB), Some("origin"), None] {
            assert_eq!(
                ask(remote_use, raw),
                [(3, Fact::Remotes(vec![unknown.to_owned()]))],
                "{remote_use:?} {raw:?}"
            );
        }
    }
}
