//! Whole-value tests of what a question looks like.

use super::*;
use ironcurtain_daemon::consent::{HostItem, Offer, Reach};
use ironcurtain_protocol::{ClientView, ProcessView};

#[test]
fn a_write_of_a_new_file() {
    let view = ConsentView::new(&question(), Path::new("/home/ada"));
    assert_eq!(
        view,
        ConsentView {
            id: "q1".into(),
            headline: vec![
                span("Claude Code", Tone::Strong),
                span(" wants to ", Tone::Plain),
                span("write", Tone::Strong),
                span(" a file", Tone::Plain),
            ],
            paths: vec![PathLine {
                path: vec![span("~/Documents/tax/", Tone::Quiet), span("2026/summary.md", Tone::Strong)],
                note: "new file".into(),
                asked_for: None,
            }],
            facts: vec![
                Fact {
                    label: "Who",
                    lines: vec![
                        vec![
                            span("/usr/bin/claude", Tone::Plain),
                            span(", started by zsh in gnome-terminal", Tone::Plain),
                            span(", in ~/src/app", Tone::Plain),
                        ],
                        vec![span("says it is \u{201c}claude-code 2.1\u{201d}", Tone::Quiet)],
                    ],
                },
                Fact {
                    label: "How",
                    lines: vec![vec![
                        span("filesystem server, write_file", Tone::Plain),
                        span(", ", Tone::Plain),
                        span("sandboxed", Tone::Plain),
                    ]],
                },
                Fact {
                    label: "Why",
                    lines: vec![vec![
                        span("outside the folders you granted", Tone::Plain),
                        span(" (rule ask-outside)", Tone::Quiet),
                    ]],
                },
            ],
            preview: Some(PreviewView { title: "What it would write", text: "# 2026\n".into(), diff: false }),
            details: concat!(
                "write: /home/ada/Documents/tax/2026/summary.md\n",
                "tool: write_file\n",
                "  path: /home/ada/Documents/tax/2026/summary.md\n",
                "  content: # 2026\n\n",
                "server: filesystem\n",
                "  command: ironcurtain-filesystem\n",
                "  sandboxed: yes, it can reach only what was granted\n",
                "agent, and who started whom:\n",
                "  12 claude (/usr/bin/claude)\n",
                "  11 zsh (/usr/bin/zsh)\n",
                "  10 gnome-terminal (file could not be read)\n",
                "rule: ask-outside\n",
                "session: s1\n",
                "question: q1",
            )
            .into(),
            choices: vec![Choice {
                label: "this file".into(),
                sentence: "Claude Code may create this one file".into(),
                lifetimes: vec![Lifetime::Once, Lifetime::Session],
            }],
            deadline: Duration::from_secs(45),
        }
    );
}

#[test]
fn what_allow_will_do_names_scope_and_length() {
    let view = ConsentView::new(&question(), Path::new("/home/ada"));
    let outcomes: Vec<_> =
        [Lifetime::Once, Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour, Lifetime::Always]
            .map(|lifetime| view.outcome(0, lifetime))
            .into();
    assert_eq!(
        outcomes,
        [
            "Claude Code may create this one file, once.",
            "Claude Code may create this one file until this session ends.",
            "Claude Code may create this one file for 15 minutes.",
            "Claude Code may create this one file for 1 hour.",
            "Claude Code may create this one file until you take it back.",
        ]
    );
    assert_eq!(view.outcome(7, Lifetime::Once), "", "a choice that is not there does nothing");
}

#[test]
fn a_server_without_a_sandbox_is_in_red_and_in_words() {
    let view = ConsentView::new(&Question { sandboxed: false, ..question() }, Path::new("/"));
    let how = view.facts.iter().find(|fact| fact.label == "How").map(|fact| fact.lines.clone());
    let expected = vec![vec![
        span("filesystem server, write_file", Tone::Plain),
        span(", ", Tone::Plain),
        span("\u{26a0} NOT SANDBOXED", Tone::Danger),
    ]];
    assert_eq!(how, Some(expected));
}

#[test]
fn what_may_become_a_folder_is_not_called_a_file() {
    let made = Question { preview: None, tool: Some("create_directory".into()), ..question() };
    assert_eq!(things(&made), "a new file or folder");
    assert_eq!(note(&made.items[0], is_content(&made)), "new");
    assert_eq!(things(&question()), "a file");
}

#[test]
fn what_is_there_is_said_for_every_verb() {
    let note_of = |target, verb| note(&Item { verb, path: "/x".into(), asked_for: None, target }, true);
    assert_eq!(note_of(Target::File(12_000), Verb::Write), "overwrites 12 kB");
    assert_eq!(note_of(Target::File(12_000), Verb::Read), "12 kB");
    assert_eq!(note_of(Target::File(12_000), Verb::Delete), "deletes 12 kB");
    assert_eq!(note_of(Target::Folder, Verb::Delete), "folder, with everything in it");
    assert_eq!(note_of(Target::Missing, Verb::Read), "nothing is there");
}

#[test]
fn several_paths_and_a_link() {
    let item = |verb, path: &str, asked: Option<&str>, target| Item {
        verb,
        path: path.into(),
        asked_for: asked.map(Into::into),
        target,
    };
    let items = vec![
        item(Verb::Read, "/home/ada/a", Some("/home/ada/link"), Target::File(1)),
        item(Verb::Write, "/srv/b", None, Target::Folder),
    ];
    let view = ConsentView::new(&Question { items, ..question() }, Path::new("/home/ada"));
    assert_eq!(view.sentence(), "Claude Code wants to write a file and a folder");
    assert_eq!(
        view.paths,
        vec![
            PathLine {
                path: vec![span("", Tone::Quiet), span("~/a", Tone::Strong)],
                note: "read: 1 byte".into(),
                asked_for: Some("reached through ~/link".into()),
            },
            PathLine {
                path: vec![span("/", Tone::Quiet), span("srv/b", Tone::Strong)],
                note: "write: folder".into(),
                asked_for: None,
            },
        ]
    );
}

#[test]
fn a_call_without_paths_names_its_tool() {
    let view = ConsentView::new(&Question { items: vec![], ..question() }, Path::new("/"));
    assert_eq!(view.sentence(), "Claude Code wants to use write_file");
    assert_eq!(view.paths, vec![]);
}

#[test]
fn a_hostile_name_neither_hides_the_verb_nor_keeps_its_controls() {
    let mut asked = question();
    asked.client.name = format!("x\u{202e}\n\0<b>{}", "y".repeat(5000));
    let view = ConsentView::new(&asked, Path::new("/"));
    let sentence = view.sentence();
    assert!(sentence.ends_with("\u{2026} wants to write a file"), "{sentence}");
    assert!(sentence.starts_with("x\\u{202e}\\u{a}\\u{0}<b>yyy"), "{sentence}");
    assert!(sentence.chars().count() < 80);
}

fn question() -> Question {
    let process =
        |pid, name: &str, exe: Option<&str>| ProcessView { pid, name: name.into(), exe: exe.map(Into::into) };
    let path = "/home/ada/Documents/tax/2026/summary.md";
    Question {
        id: "q1".into(),
        session: "s1".into(),
        client: ClientView {
            name: "Claude Code".into(),
            exe: Some("/usr/bin/claude".into()),
            chain: vec![
                process(12, "claude", Some("/usr/bin/claude")),
                process(11, "zsh", Some("/usr/bin/zsh")),
                process(10, "gnome-terminal", None),
            ],
            cwd: Some("/home/ada/src/app".into()),
            says_it_is: Some("claude-code 2.1".into()),
            label: None,
        },
        server: "filesystem".into(),
        server_command: "ironcurtain-filesystem".into(),
        sandboxed: true,
        tool: Some("write_file".into()),
        host: None,
        verb: Verb::Write,
        items: vec![Item { verb: Verb::Write, path: path.into(), asked_for: None, target: Target::Missing }],
        rule: "ask-outside".into(),
        reason: "outside the folders you granted".into(),
        arguments: vec![("path".into(), path.into()), ("content".into(), "# 2026\n".into())],
        preview: Some(Preview::Content("# 2026\n".into())),
        offers: vec![Offer {
            reach: Reach::Paths,
            label: "this file".into(),
            sentence: "Claude Code may create this one file".into(),
            lifetimes: vec![Lifetime::Once, Lifetime::Session],
        }],
        deadline: Duration::from_secs(45),
    }
}

#[test]
fn a_host_is_shown_whole_and_a_tool_where_there_is_one() {
    let host = "docs.example.org:443";
    let item = |address: Option<&str>| HostItem { target: host.into(), address: address.map(Into::into) };
    let reach = Question {
        tool: None,
        verb: Verb::Reach,
        items: vec![],
        host: Some(item(None)),
        arguments: vec![],
        preview: None,
        ..question()
    };
    let view = ConsentView::new(&reach, Path::new("/home/ada"));
    assert_eq!(view.sentence(), "Claude Code wants to reach a host on the network");
    let line =
        PathLine { path: vec![span(host, Tone::Strong)], note: "host and port".into(), asked_for: None };
    assert_eq!(view.paths, [line]);
    assert_eq!(plain(&view.facts[1].lines[0]), "filesystem server, sandboxed");
    assert!(
        view.details.starts_with("reach: docs.example.org:443\nserver: filesystem\n"),
        "{}",
        view.details
    );
    let whole = "https://docs.example.org/simple?a=\u{202e}b";
    let fetch = Question { tool: Some("fetch".into()), host: Some(item(Some(whole))), ..reach };
    let view = ConsentView::new(&fetch, Path::new("/home/ada"));
    assert_eq!(view.sentence(), "Claude Code wants to reach a host on the network");
    let asked_for = "whole address: https://docs.example.org/simple?a=\\u{202e}b";
    assert_eq!(view.paths[0].asked_for.as_deref(), Some(asked_for));
    assert_eq!(plain(&view.facts[1].lines[0]), "filesystem server, fetch, sandboxed");
}
