//! Made-up questions: ordinary ones, and ones that try to mislead.

use ironcurtain_daemon::consent::{HostItem, Item, Lifetime, Offer, Preview, Question, Reach, Target, Verb};
use ironcurtain_protocol::{ClientView, ProcessView};
use std::time::Duration;

/// The question of that name.
pub(crate) fn named(name: &str, id: &str, deadline: Duration) -> Option<Question> {
    let write = write(id, deadline);
    match name {
        "write" => Some(write),
        "edit" => Some(edit(write)),
        "unsandboxed" => Some(unsandboxed(write)),
        "many" => Some(many(write)),
        "host" => Some(host(write)),
        "fetch" => Some(fetch(host(write))),
        "hostile" => Some(hostile(write)),
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
        tool: Some("write_file".into()),
        verb: Verb::Write,
        items: vec![item(Verb::Write, path, None, Target::Missing)],
        host: None,
        rule: "ask-outside".into(),
        reason: "outside the folders you granted".into(),
        arguments: vec![("path".into(), path.into()), ("content".into(), content.into())],
        preview: Some(Preview::Content(content.into())),
        offers: offers("~/Documents/tax/2026"),
        deadline,
    }
}

fn edit(base: Question) -> Question {
    let path = "/home/ada/notes/plan.md";
    Question {
        tool: Some("edit_file".into()),
        items: vec![item(Verb::Write, path, Some("/home/ada/src/app/plan.md"), Target::File(12_345))],
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
        verb: Verb::Delete,
        items: vec![item(Verb::Delete, "/srv/photos", None, Target::Folder)],
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

fn many(base: Question) -> Question {
    let items = (0..40)
        .map(|n| {
            let path = format!("/home/ada/Pictures/2026/holiday-{n:02}.jpg");
            item(Verb::Read, &path, None, Target::File(2_000_000 + n * 31_000))
        })
        .collect();
    Question { verb: Verb::Read, tool: Some("read_multiple_files".into()), items, preview: None, ..base }
}

/// A server wants to go somewhere by itself.
fn host(base: Question) -> Question {
    use Lifetime::{Always, Hour, Once, QuarterHour, Session};
    Question {
        server: "fetch".into(),
        server_command: "/usr/bin/python3 -m mcp_server_fetch".into(),
        tool: None,
        verb: Verb::Reach,
        items: vec![],
        host: Some(HostItem { target: "files.example.org:443".into(), address: None }),
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
    offers.insert(
        0,
        Offer {
            reach: Reach::Paths,
            label: "this call".into(),
            sentence: "Claude Code may make this call".into(),
            lifetimes: vec![Lifetime::Once],
        },
    );
    Question {
        tool: Some("fetch".into()),
        host: Some(HostItem { target: "files.example.org:443".into(), address: Some(address.into()) }),
        rule: "structural-domain-escalate".into(),
        reason: "`files.example.org` is not among the hosts of the server `fetch`".into(),
        arguments: vec![("url".into(), address.into())],
        offers,
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
        items: vec![
            item(Verb::Write, &long, Some(&long), Target::Missing),
            item(Verb::Write, markup, None, Target::File(u64::MAX)),
        ],
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

fn item(verb: Verb, path: &str, asked_for: Option<&str>, target: Target) -> Item {
    Item { verb, path: path.into(), asked_for: asked_for.map(Into::into), target }
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
