//! Fake questions, ordinary and misleading.

mod files;
mod hostile;
mod long;
mod outgoing;

use ironcurtain_consent::{Consequence, Lifetime, Offer, Preview, Question, Reach, TextPart, Verb};
use ironcurtain_protocol::{ClientView, ProcessView};
use std::time::Duration;

/// Returns the question with this name, or `None` if there is none.
pub(crate) fn named(name: &str, id: &str, deadline: Duration) -> Option<Question> {
    let write = write(id, deadline);
    match name {
        "write" => Some(write),
        "edit" => Some(files::edit(write)),
        "whole" => Some(files::whole(write)),
        "commit" => Some(outgoing::commit(write)),
        "unknown" => Some(outgoing::unknown(write)),
        "changed-tool" => Some(outgoing::changed_tool(write)),
        "unsandboxed" => Some(files::unsandboxed(write)),
        "album" => Some(files::album(write)),
        "many" => Some(files::many(write, 40)),
        "ten" => Some(files::many(write, 10)),
        "one" => Some(files::many(write, 1)),
        "push" => Some(outgoing::push(write)),
        "mail" => Some(outgoing::mail(write)),
        "issue" => Some(outgoing::issue(write)),
        "move" => Some(files::moved(write)),
        "host" => Some(outgoing::host(write)),
        "fetch" => Some(outgoing::fetch(outgoing::host(write))),
        "hostile" => Some(hostile::hostile(write)),
        "hebrew" => Some(files::hebrew(write)),
        "offers" => Some(files::five_offers(write)),
        "folders" => Some(files::folders(write)),
        "long" => Some(files::long(write)),
        "tool" => Some(outgoing::tool(write)),
        "hidden" => Some(long::hidden(write)),
        "command" => Some(long::command(write)),
        "script" => Some(long::script(write)),
        "hook" => Some(files::hook(write)),
        "picture" => Some(long::picture(write)),
        "book" => Some(long::book(write)),
        "lines" => Some(Question { fits_a_batch: true, ..files::edit(write) }),
        _ => name.strip_prefix("file-").map(|file| files::to_read(write, file)),
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
            "To do this, the server briefly gets access to everything in ~/Documents/tax/2026.".into(),
        ],
        rule: "ask-outside".into(),
        reason: "outside the folders you granted".into(),
        arguments: vec![("path".into(), path.into()), ("content".into(), content.into())],
        preview: Some(Preview::Content(content.into())),
        offers: offers("~/Documents/tax/2026"),
        denial: "write_file in ~/notes".into(),
        fits_a_batch: false,
        deadline,
        notice: None,
        host: None,
    }
}

/// Returns an offer to allow one call, with this sentence about its effect.
fn call_once(what: &str) -> Offer {
    Offer {
        reach: Reach::Paths,
        label: "this exact call".into(),
        sentence: format!("Claude Code may {what}"),
        lifetimes: vec![Lifetime::Once],
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
            label: format!("everything in {folder}"),
            sentence: format!("Claude Code may create and change everything in {folder}"),
            lifetimes: vec![Session, QuarterHour, Hour],
        },
    ]
}

fn reading(folder: &str) -> Vec<Offer> {
    let mut all = offers(folder);
    for offer in &mut all {
        offer.sentence = offer.sentence.replace("create and change", "read");
    }
    all
}

fn line(verb: Verb, path: &str, note: &str) -> Consequence {
    Consequence { note: Some(note.into()), ..Consequence::new(verb, vec![TextPart::Path(path.into())]) }
}

fn foreign(text: &str) -> TextPart {
    TextPart::Untrusted(text.into())
}

/// Returns a client named Cursor that the desktop started.
fn cursor() -> ClientView {
    let process = |pid, name: &str, exe: &str| ProcessView { pid, name: name.into(), exe: Some(exe.into()) };
    ClientView {
        name: "Cursor".into(),
        exe: Some("/opt/cursor/cursor".into()),
        chain: vec![
            process(5210, "cursor", "/opt/cursor/cursor"),
            process(2890, "gnome-shell", "/usr/bin/gnome-shell"),
        ],
        claimed_name: None,
        ..client()
    }
}

/// Returns a client named Claude Code that zsh started in a terminal.
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
        claimed_name: Some("claude-code 2.1.7".into()),
        label: None,
    }
}
