//! Whole-value tests of what a question looks like.

use super::*;
use ironcurtain_daemon::consent::Offer;
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
                span(" ", Tone::Plain),
                span("2026/summary.md", Tone::Strong),
            ],
            kind: "Claude Code wants to write a file or folder".into(),
            band: None,
            lines: vec![LineView {
                words: vec![
                    span("write", Tone::Strong),
                    span(" ", Tone::Plain),
                    span("~/Documents/tax/", Tone::Quiet),
                    span("2026/summary.md", Tone::Strong),
                    span(" (new file, 7 bytes)", Tone::Quiet),
                ],
                asked_for: None,
            }],
            with: vec![LineView {
                words: vec![
                    span("with ", Tone::Plain),
                    span("mode", Tone::Strong),
                    span(": ", Tone::Plain),
                    span("\n\u{2502} 06\n\u{2502} 44\\u{7}", Tone::Plain),
                ],
                asked_for: None,
            }],
            also: vec!["Opens ~/Documents/tax/2026.".into()],
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
                "  mode: 0644\n",
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
                reads_one_file: false,
            }],
            calls: vec![],
            denial: "write_file in ~/docs".into(),
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
    let far = Question { sandboxed: false, remote: true, ..question() };
    let far = ConsentView::new(&far, Path::new("/"));
    assert_eq!(far.band, Some(REMOTE));
    assert!(!far.outcome(0, Lifetime::Once).contains("anything else"));
    assert!(far.details.contains("sandboxed: no, it runs elsewhere and cannot be"));
    let view = ConsentView::new(&Question { sandboxed: false, ..question() }, Path::new("/"));
    let how = view.facts.iter().find(|fact| fact.label == "How").map(|fact| fact.lines.clone());
    let expected = vec![vec![
        span("filesystem server, write_file", Tone::Plain),
        span(", ", Tone::Plain),
        span("\u{26a0} NOT SANDBOXED", Tone::Danger),
    ]];
    assert_eq!(how, Some(expected));
    assert!(view.band.is_some_and(|band| band.contains("NOT SANDBOXED")));
    assert_eq!(
        view.outcome(0, Lifetime::Once),
        "Claude Code may create this one file, once, and anything else that you can."
    );
}

#[test]
fn a_link_is_called_one_and_what_is_allowed_already_says_so() {
    let linked =
        Consequence { asked_for: Some("/home/ada/link".into()), ..on(Verb::Change, "/home/ada/a", "1 byte") };
    let allowed = Consequence { allowed: true, ..on(Verb::Read, "/srv/b", "folder") };
    let view = of(vec![linked, allowed]);
    assert_eq!(view.sentence(), "Claude Code wants to change ~/a and 1 other thing");
    assert_eq!(
        view.lines,
        vec![
            LineView {
                words: vec![
                    span("change", Tone::Strong),
                    span(" ", Tone::Plain),
                    span("", Tone::Quiet),
                    span("~/a", Tone::Strong),
                    span(" (1 byte)", Tone::Quiet),
                ],
                asked_for: Some("reached through ~/link".into()),
            },
            LineView {
                words: vec![
                    span("read", Tone::Strong),
                    span(" ", Tone::Plain),
                    span("/", Tone::Quiet),
                    span("srv/b", Tone::Strong),
                    span(" (folder, allowed already)", Tone::Quiet),
                ],
                asked_for: None,
            },
        ]
    );
}

#[test]
fn a_push_is_called_a_push_with_its_branch_and_where_it_leads() {
    let foreign = |text: &str| Piece::Foreign(text.into());
    let object = vec![foreign("main"), Piece::Ours(" to "), foreign("https://evil.example/x")];
    let push = Consequence { object, note: None, asked_for: Some("origin".into()), ..on(Verb::Push, "", "") };
    let view = of(vec![push, on(Verb::Record, "/home/ada/app", "folder")]);
    assert_eq!(view.sentence(), "Claude Code wants to push main to https://evil.example/x and 1 other thing");
    assert_eq!(plain(&view.lines[0].words), "push main to https://evil.example/x");
    assert_eq!(view.lines[0].asked_for.as_deref(), Some("asked for as origin"));
    assert_eq!(plain(&view.lines[1].words), "change the history of ~/app (folder)");
    assert!(view.details.starts_with("push: main to https://evil.example/x\n  asked for as: origin\n"));
}

#[test]
fn what_the_agent_says_cannot_go_on_as_a_line_of_ours() {
    let foreign = |text: &str| Piece::Foreign(text.into());
    let object = vec![
        foreign("main to https://good.example/x"),
        Piece::Ours(" to "),
        foreign("https://evil.example/x"),
    ];
    let view = of(vec![Consequence { object, note: None, ..on(Verb::Push, "", "") }]);
    let said = "push \u{201c}main to https://good.example/x\u{201d} to https://evil.example/x";
    assert_eq!(plain(&view.lines[0].words), said);
    assert_eq!(view.sentence(), format!("Claude Code wants to {said}"));
    let object = vec![foreign("x\u{201d} to \u{201c}y"), Piece::Ours(" to "), foreign("z")];
    let view = of(vec![Consequence { object, note: None, ..on(Verb::Push, "", "") }]);
    assert_eq!(view.sentence(), "Claude Code wants to push \u{201c}x\\u{201d} to \\u{201c}y\u{201d} to z");
}

#[test]
fn several_of_a_kind_are_counted_and_each_has_its_line() {
    let read = |n: usize| on(Verb::Read, &format!("/p/{n}"), "1 byte");
    let view = of((0..10).map(read).collect());
    assert_eq!(view.sentence(), "Claude Code wants to read /p/0 and 9 more");
    assert_eq!(view.lines.len(), 10);
}

#[test]
fn a_program_that_hides_its_file_is_not_named_and_a_label_is_the_clients_own_word() {
    let mut asked = question();
    asked.client.exe = None;
    asked.client.label = Some("work".into());
    let view = ConsentView::new(&asked, Path::new("/"));
    let who = &view.facts[0].lines;
    assert_eq!(who[0][0], span("a program that hides what it is", Tone::Danger));
    assert_eq!(who[2], [span("calls itself \u{201c}work\u{201d}", Tone::Quiet)]);
}

fn of(consequences: Vec<Consequence>) -> ConsentView {
    ConsentView::new(&Question { consequences, ..question() }, Path::new("/home/ada"))
}

fn on(verb: Verb, path: &str, note: &str) -> Consequence {
    let object = vec![Piece::Path(path.into())];
    Consequence { verb, object, note: Some(note.into()), asked_for: None, allowed: false }
}

#[test]
fn every_line_that_begins_with_letters_from_right_to_left_begins_at_the_left() {
    let mut asked = question();
    asked.client.name = "\u{5e2}\u{5d5}\u{5d6}\u{5e8}".into();
    asked.client.exe = Some("\u{5d0}".into());
    asked.reason = "\u{5d1}".into();
    asked.server = "\u{5d2}".into();
    asked.denial = "\u{5d3}".into();
    asked.also = vec!["\u{5d4}".into()];
    asked.offers[0].label = "\u{5d5} and below".into();
    asked.offers[0].sentence = format!("{} may read this file", asked.client.name);
    let view = ConsentView::new(&asked, Path::new("/home/ada"));
    let facts = view.facts.iter().map(|fact| plain(&fact.lines[0]));
    let mut lines: Vec<String> = facts.collect();
    let choice = &view.choices[0];
    lines.extend([view.sentence(), view.kind.clone(), view.denial.clone(), view.also[0].clone()]);
    lines.extend([choice.label.clone(), view.outcome(0, Lifetime::Once)]);
    assert_eq!(lines.iter().find(|line| !line.starts_with("\u{200e}\u{2068}")), None, "{lines:#?}");
    assert_eq!(choice.label, "\u{200e}\u{2068}\u{5d5}\u{2069} and below");
    let marks = |line: &&LineView| plain(&line.words).contains('\u{200e}');
    assert_eq!(view.lines.iter().find(marks), None, "no mark where none is needed");
}

#[test]
fn a_hostile_name_neither_hides_the_verb_nor_keeps_its_controls() {
    let mut asked = question();
    asked.client.name = format!("x\u{202e}\n\0<b>{}", "y".repeat(5000));
    let view = ConsentView::new(&asked, Path::new("/"));
    let sentence = view.sentence();
    assert!(sentence.ends_with("\u{2026} wants to write 2026/summary.md"), "{sentence}");
    assert!(sentence.starts_with("x\\u{202e}\\u{a}\\u{0}<b>yyy"), "{sentence}");
    assert!(sentence.chars().count() < 100);
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
            says_it_is: Some("claude-code 2.1".into()),
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
    }
}

#[test]
fn a_host_is_shown_whole_and_a_tool_where_there_is_one() {
    let foreign = |verb, text: &str| Consequence {
        object: vec![Piece::Foreign(text.into())],
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
    assert_eq!(plain(&view.facts[1].lines[0]), "filesystem server, sandboxed");
    assert!(
        view.details.starts_with("reach: docs.example.org:443\nserver: filesystem\n"),
        "{}",
        view.details
    );
    let whole = "https://docs.example.org/simple?a=\u{202e}b";
    let fetch =
        Question { tool: Some("fetch".into()), consequences: vec![foreign(Verb::Fetch, whole)], ..reach };
    let view = ConsentView::new(&fetch, Path::new("/home/ada"));
    assert_eq!(plain(&view.lines[0].words), "fetch https://docs.example.org/simple?a=\\u{202e}b");
    assert_eq!(plain(&view.facts[1].lines[0]), "filesystem server, fetch, sandboxed");
}

#[test]
fn one_file_to_read_is_told_from_all_that_opens_more() {
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
