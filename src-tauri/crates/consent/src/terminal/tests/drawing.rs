//! Tests the layout of a question.

use super::super::super::tests::question;
use super::super::super::{Consequence, Preview, Question, TextPart, Verb};
use super::super::{choices, rows};
use super::{of_file, read};

#[test]
fn a_remote_server_is_labelled_as_remote() {
    let mut asked = of_file("q", "/home/u/a.txt", "../a.txt");
    (asked.sandboxed, asked.remote) = (false, true);
    let lines = rows::question(&asked, &choices(&asked), 120, false).lines.join("\n");
    assert!(lines.contains("This server is REMOTE and not sandboxed. It sees what is sent to it"), "{lines}");
    assert!(!lines.contains("NOT SANDBOXED"), "{lines}");
}

#[test]
fn a_question_about_another_desktop_names_no_server_and_no_program() {
    let mut asked = of_file("q", "/home/u/a.txt", "../a.txt");
    (asked.sandboxed, asked.tool, asked.client.exe) = (false, None, None);
    let shown = |asked: &Question| rows::question(asked, &choices(asked), 120, false).lines.join("\n");
    let warned = shown(&asked);
    assert!(warned.contains("NOT SANDBOXED") && warned.contains("Unknown program"), "{warned}");
    asked.server = String::new();
    let lines = shown(&asked);
    assert!(lines.contains("Another desktop wants to READ:"), "{lines}");
    let absent = ["NOT SANDBOXED", "Unknown program", " server ", "A program"];
    assert!(!absent.into_iter().any(|text| lines.contains(text)), "{lines}");
}

#[test]
fn a_question_shows_everything_needed_to_answer() {
    let mut asked = of_file("q", "/home/u/a.txt", "../a.txt");
    asked.client.claimed_name = Some("Claude 2".into());
    asked.client.label = Some("work".into());
    asked.client.exe = Some("/usr/bin/claude".into());
    asked.with = vec![("branch".into(), "main".into())];
    asked.also = vec!["its server can reach the other files in ~/docs".into()];
    asked.preview = Some(Preview::Diff("-old\n+new".into()));
    asked.sandboxed = false;
    let to = TextPart::Untrusted("https://evil.example/\"x".into());
    let object = vec![TextPart::Untrusted("main".into()), TextPart::Fixed(" to "), to];
    let push = Consequence { allowed: true, ..Consequence::new(Verb::Push, object) };
    asked.consequences.insert(0, push);
    let lines = rows::question(&asked, &choices(&asked), 60, false).lines;
    let expected = [
        " What it would change:",
        " text       | -old",
        " text       | +new",
        " program    | claude",
        " file       | /usr/bin/claude",
        " says it is | Claude 2",
        " own label  | work",
        " server     | filesystem",
        " tool       | read_file",
        " why        | because",
        " rule       | ask",
        " This server is NOT SANDBOXED and has all your rights. Deny",
        " stops this call, but not what the server does on its own.",
        " A program wants to PUSH:",
        " PUSH       | \"main\" to \"https://evil.example/\\\"x\"",
        "   (already allowed)",
        " READ       | /home/u/a.txt",
        " note       | 3 bytes",
        " asked as   | ../a.txt",
        " with       | branch = main",
        " also       | its server can reach the other files in ~/docs",
        " if allowed | claude may read it",
        " answer 1   | once, this file",
        " answer s   | denies read_file in /home/u until this session",
        " answer s   |  ends",
        " a denies this and the agent's other pending questions. p",
        " denies and pauses the agent. n with a text denies and sends",
        " the agent your text.",
        " The most serious of these 2 effects: PUSH",
        " worst      | \"main\" to \"https://evil.example/\\\"x\"",
        " Type an answer's number to allow, or d for all details.",
        " Anything else denies.",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn an_effect_is_shown_in_full_or_with_its_end() {
    let of = |length: usize| {
        let path = format!("/home/u/{}/passwords.txt", "y".repeat(length));
        let lines = rows::question(&of_file("q", &path, "q"), &[], 80, false).lines;
        let rows = lines.iter().filter_map(|line| line.strip_prefix(" READ       | "));
        (path, rows.map(str::to_owned).collect::<Vec<_>>())
    };
    let (path, rows) = of(200);
    assert_eq!(rows.concat(), path);
    let (_, rows) = of(4000);
    assert!(rows.len() <= 5 && rows.concat().ends_with("/passwords.txt"), "{rows:?}");
    assert!(rows.concat().contains(" more)"), "{rows:?}");
}

#[test]
fn the_worst_effect_is_repeated_next_to_the_answer() {
    let mut worst = read("/home/u/photos", "photos");
    worst.verb = Verb::Delete;
    let harmless = (0..16).map(|n| read(&format!("/home/u/{}{n}", "x".repeat(150)), "x"));
    let consequences = std::iter::once(worst.clone()).chain(harmless).collect();
    let asked = Question { consequences, ..question("q") };
    let lines = rows::question(&asked, &choices(&asked), 80, false).lines;
    assert!(lines.len() > 24);
    let (_, last) = lines.split_at(lines.len() - 3);
    assert_eq!(last[..2], [" The most serious of these 17 effects: DELETE", " worst      | /home/u/photos"]);
    // The worst effect is not repeated if there is only one effect.
    let alone = Question { consequences: vec![worst], ..question("q") };
    let lines = rows::question(&alone, &choices(&alone), 80, false).lines;
    assert_eq!(lines.iter().filter(|line| line.contains("/home/u/photos")).count(), 1);
}

#[test]
fn the_effect_of_allowing_is_never_cut() {
    let folder = format!("~/{}/the last of it", "x".repeat(600));
    let mut asked = question("q");
    asked.also = vec![format!("Opens {folder}")];
    asked.offers[0].sentence = format!("claude may write {folder}");
    let lines = rows::question(&asked, &choices(&asked), 60, false).lines;
    let text_after = |mark: &str| lines.iter().filter_map(|line| line.strip_prefix(mark)).collect::<String>();
    assert_eq!(text_after(" also       | "), asked.also[0]);
    assert_eq!(text_after(" if allowed | "), asked.offers[0].sentence);
}

#[test]
fn a_long_preview_states_the_omitted_lines() {
    let asked = |lines: usize| {
        let preview = Some(Preview::Content("x\n".repeat(lines)));
        rows::question(&Question { preview, ..question("q") }, &[], 80, false)
    };
    let short = asked(11);
    assert_eq!(short.lines.iter().filter(|line| **line == " text       | x").count(), 11);
    let long = asked(500);
    assert_eq!((short.is_whole, long.is_whole), (true, false));
    let long = long.lines;
    assert_eq!(long.iter().filter(|line| **line == " text       | x").count(), 12);
    assert!(long.contains(&" ... 489 more lines, not shown; d shows all of it.".to_owned()), "{long:?}");
}

#[test]
fn cut_text_is_announced_and_numbers_do_not_allow_yet() {
    let last = |asked: &Question, was_read| {
        let screen = rows::question(asked, &choices(asked), 80, was_read);
        let not_yet = screen.lines.iter().any(|line| line.contains("NOT ALL IS SHOWN"));
        (screen.is_whole, not_yet)
    };
    let with = |value: String| Question { with: vec![("query".into(), value)], ..question("q") };
    let whole = with("SELECT 1".into());
    let many = (0..13).map(|n| (format!("a{n}"), "x".into())).collect();
    let run = Consequence::new(Verb::Run, vec![TextPart::Untrusted("x ".repeat(200))]);
    for cut in [
        with(format!("{} DROP TABLE customers", "x".repeat(300))),
        with("a\nb\nc\nd\nDROP TABLE customers".into()),
        Question { with: many, ..question("q") },
        Question { consequences: (0..21).map(|n| read(&format!("/{n}"), "x")).collect(), ..question("q") },
        Question { consequences: vec![run], ..question("q") },
    ] {
        assert_eq!((last(&cut, false), last(&cut, true)), ((false, true), (false, false)), "{cut:?}");
    }
    assert_eq!(last(&whole, false), (true, false));
}
