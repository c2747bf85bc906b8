//! Tests that compare complete views.

mod remote;
mod texts;

use super::*;
use ironcurtain_consent::{Consequence, Offer, Preview};
use ironcurtain_protocol::{ClientView, ProcessView};

#[test]
fn a_foreign_home_directory_shows_a_warning() {
    let notice = Some("Not your usual rules: `HOME` was set to `/repo`".to_owned());
    let view = ConsentView::new(&Question { notice, sandboxed: false, ..question() }, Path::new("/"));
    assert_eq!(view.notice.as_deref(), Some("\u{26a0} Not your usual rules: `HOME` was set to `/repo`"));
    assert_eq!(view.band, Some(NOT_SANDBOXED));
    assert_eq!(ConsentView::new(&question(), Path::new("/")).notice, None);
}

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
                span("write ", Tone::Strong),
                span("~/Documents/tax/", Tone::Quiet),
                span("2026/summary.md", Tone::Strong),
                span(" (new file, 7 bytes)", Tone::Plain),
            ],
            kind: "Claude Code wants to write a file or folder".into(),
            notice: None,
            host: None,
            band: None,
            lines: vec![],
            with: vec![LineView {
                words: vec![
                    span("with ", Tone::Plain),
                    span("mode", Tone::Strong),
                    span(": ", Tone::Plain),
                    span("\n\u{2502} 06\n\u{2502} 44\\u{7}", Tone::Plain),
                ],
                note: None,
                notes: vec![],
            }],
            also: vec!["Opens ~/Documents/tax/2026.".into()],
            client: "Claude Code".into(),
            server: ServerIcon::Sandboxed,
            facts: vec![
                Fact {
                    label: "Who",
                    lines: vec![
                        vec![
                            span("/usr/bin/claude", Tone::Plain),
                            span(", started by zsh in gnome-terminal", Tone::Plain),
                            span(", in ~/src/app", Tone::Plain),
                        ],
                        vec![span("claims to be \u{201c}claude-code 2.1\u{201d}", Tone::Quiet)],
                    ],
                },
                Fact {
                    label: "How",
                    lines: vec![vec![span(
                        "write_file, a tool of the server filesystem, sandboxed",
                        Tone::Plain,
                    )]],
                },
            ],
            preview: Some(TextBlock { title: "What it would write", text: "# 2026\n".into(), diff: false }),
            rest: None,
            details: concat!(
                "write: /home/ada/Documents/tax/2026/summary.md\n",
                "tool: write_file\n",
                "  path: /home/ada/Documents/tax/2026/summary.md\n",
                "  content: # 2026\n\n",
                "  mode: 0644\n",
                "server: filesystem\n",
                "  command: ironcurtain-filesystem\n",
                "  sandboxed: yes, it can reach only what you granted\n",
                "agent and its parent processes:\n",
                "  12 claude (/usr/bin/claude)\n",
                "  11 zsh (/usr/bin/zsh)\n",
                "  10 gnome-terminal (file could not be read)\n",
                "why: outside the folders you granted (rule ask-outside)\n",
                "session: s1\n",
                "question: q1",
            )
            .into(),
            choices: vec![Choice {
                label: "this file".into(),
                sentence: "Claude Code may create this one file".into(),
                lifetimes: vec![Lifetime::Once, Lifetime::Session],
                reads_one_file: false,
                is_decision: false,
            }],
            calls: vec![],
            denial: "write_file in ~/docs".into(),
            deadline: Duration::from_secs(45),
        }
    );
}

#[test]
fn outcome_names_scope_and_lifetime() {
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
            "Claude Code may create this one file until you revoke it.",
        ]
    );
    assert_eq!(view.outcome(7, Lifetime::Once), "", "a choice that is not there does nothing");
}

#[test]
fn warns_about_an_unsandboxed_server() {
    let far = Question { sandboxed: false, remote: true, ..question() };
    let far = ConsentView::new(&far, Path::new("/"));
    assert_eq!(far.band, Some(REMOTE));
    assert!(!far.outcome(0, Lifetime::Once).contains("anything you can"));
    assert!(far.details.contains("sandboxed: no, it is a remote server"));
    let view = ConsentView::new(&Question { sandboxed: false, ..question() }, Path::new("/"));
    let how = view.facts.iter().find(|fact| fact.label == "How").map(|fact| fact.lines.clone());
    let expected = vec![vec![span("write_file, a tool of the server filesystem", Tone::Plain)]];
    assert_eq!(how, Some(expected));
    assert!(view.band.is_some_and(|band| band.contains("NOT SANDBOXED")));
    assert_eq!(
        view.outcome(0, Lifetime::Once),
        "Claude Code may create this one file, once. This server is NOT SANDBOXED and has all your rights. Deny stops this call, but not what the server does on its own."
    );
}

#[test]
fn links_are_noted_and_those_out_of_their_folder_warn() {
    let linked = Consequence {
        asked_for: Some("/home/ada/src/link".into()),
        out_of: Some("/home/ada/src".into()),
        ..on(Verb::Change, "/home/ada/a", "1 byte")
    };
    let notes =
        vec![span("reached through ~/src/link", Tone::Quiet), span("\u{26a0} link out of ~/src", Tone::Warn)];
    let view = of(vec![linked.clone(), on(Verb::Read, "/srv/b", "folder")]);
    assert_eq!(view.sentence(), "Claude Code wants to change ~/a (1 byte) and 1 other thing");
    let path = |verb: &str, lead: Option<&str>, strong: &str| {
        let lead = lead.map(|lead| span(lead, Tone::Quiet));
        let words = [Some(span(verb, Tone::Strong)), lead, Some(span(strong, Tone::Strong))];
        words.into_iter().flatten().collect::<Vec<_>>()
    };
    let expected = vec![
        LineView { words: path("change ", None, "~/a"), note: Some("1 byte".into()), notes: notes.clone() },
        LineView { words: path("read ", Some("/"), "srv/b"), note: Some("folder".into()), notes: vec![] },
    ];
    assert_eq!(view.lines, expected);
    // The headline contains a single effect. This effect is not repeated below.
    let alone = of(vec![linked]);
    assert_eq!(alone.sentence(), "Claude Code wants to change ~/a (1 byte)");
    assert_eq!(alone.lines, [LineView { words: vec![], note: None, notes }]);
}

#[test]
fn a_push_shows_branch_and_destination() {
    let foreign = |text: &str| TextPart::Untrusted(text.into());
    let object = vec![foreign("main"), TextPart::Fixed(" to "), foreign("https://evil.example/x")];
    let push = Consequence { asked_for: Some("origin".into()), ..Consequence::new(Verb::Push, object) };
    let view = of(vec![push, on(Verb::Record, "/home/ada/app", "folder")]);
    assert_eq!(view.sentence(), "Claude Code wants to push main to https://evil.example/x and 1 other thing");
    assert_eq!(plain(&view.lines[0].words), "push main to https://evil.example/x");
    assert_eq!(plain(&view.lines[0].notes), "requested as origin");
    assert_eq!(plain(&view.lines[1].words), "update git's records in ~/app");
    assert_eq!(view.lines[1].note.as_deref(), Some("folder"));
    assert!(view.details.starts_with("push: main to https://evil.example/x\n  requested as: origin\n"));
}

fn of(consequences: Vec<Consequence>) -> ConsentView {
    ConsentView::new(&Question { consequences, ..question() }, Path::new("/home/ada"))
}

fn on(verb: Verb, path: &str, note: &str) -> Consequence {
    let object = vec![TextPart::Path(path.into())];
    Consequence { note: Some(note.into()), ..Consequence::new(verb, object) }
}

pub(in crate::consent) fn question() -> Question {
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
            claimed_name: Some("claude-code 2.1".into()),
            label: None,
        },
        server: "filesystem".into(),
        server_command: "ironcurtain-filesystem".into(),
        sandboxed: true,
        remote: false,
        tool: Some("write_file".into()),
        consequences: vec![on(Verb::Write, path, "new file, 7 bytes")],
        with: vec![("mode".into(), "06\n44\u{7}".into())],
        also: vec!["Opens ~/Documents/tax/2026.".into()],
        rule: "ask-outside".into(),
        reason: "outside the folders you granted".into(),
        arguments: vec![
            ("path".into(), path.into()),
            ("content".into(), "# 2026\n".into()),
            ("mode".into(), "0644".into()),
        ],
        preview: Some(Preview::Content("# 2026\n".into())),
        offers: vec![Offer {
            reach: Reach::Paths,
            label: "this file".into(),
            sentence: "Claude Code may create this one file".into(),
            lifetimes: vec![Lifetime::Once, Lifetime::Session],
        }],
        denial: "write_file in ~/docs".into(),
        fits_a_batch: false,
        deadline: Duration::from_secs(45),
        notice: None,
        host: None,
    }
}

#[test]
fn shows_the_whole_host_and_the_tool_if_any() {
    let foreign = |verb, text: &str| Consequence {
        object: vec![TextPart::Untrusted(text.into())],
        note: None,
        ..on(verb, "", "")
    };
    let reach = Question {
        tool: None,
        consequences: vec![foreign(Verb::Reach, "docs.example.org:443")],
        arguments: vec![],
        preview: None,
        ..question()
    };
    let view = ConsentView::new(&reach, Path::new("/home/ada"));
    assert_eq!(view.sentence(), "Claude Code wants to reach docs.example.org:443");
    assert_eq!(plain(&view.facts[1].lines[0]), "the server filesystem, sandboxed");
    assert!(
        view.details.starts_with("reach: docs.example.org:443\nserver: filesystem\n"),
        "{}",
        view.details
    );
    let whole = "https://docs.example.org/simple?a=\u{202e}b";
    let fetch =
        Question { tool: Some("fetch".into()), consequences: vec![foreign(Verb::Fetch, whole)], ..reach };
    let view = ConsentView::new(&fetch, Path::new("/home/ada"));
    assert_eq!(view.sentence(), "Claude Code wants to fetch https://docs.example.org/simple?a=\\u{202e}b");
    assert_eq!(plain(&view.facts[1].lines[0]), "fetch, a tool of the server filesystem, sandboxed");
}

#[test]
fn reads_one_file_excludes_everything_that_opens_more() {
    let read = |note: &str| on(Verb::Read, "/p/a", note);
    let one = Question { consequences: vec![read("12 kB")], also: vec![], ..question() };
    let reads = |asked: &Question| ConsentView::new(asked, Path::new("/")).choices[0].reads_one_file;
    assert!(reads(&one));
    let folder = Offer { reach: Reach::Folders, ..one.offers[0].clone() };
    let others = [
        Question { consequences: vec![read("folder")], ..one.clone() },
        Question { consequences: vec![read("1 byte"), read("1 byte")], ..one.clone() },
        Question { consequences: vec![on(Verb::Write, "/p/a", "3 bytes")], ..one.clone() },
        Question { also: vec!["Opens ~/x.".into()], ..one.clone() },
        Question { sandboxed: false, ..one.clone() },
        Question { offers: vec![folder], ..one },
    ];
    assert_eq!(others.map(|other| reads(&other)), [false; 6]);
}
