//! Deceptive paths: they are refused, or the user sees the real target before allowing them.

use crate::hostile;
use crate::reference::Files;
use crate::scripted_user::{Next, paths};
use crate::world::World;
use ironcurtain_consent::{Lifetime, Question, Reach};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::Path;

fn only(world: &World) -> Question {
    let asked = world.user.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    asked.into_iter().next().unwrap()
}

#[test]
fn symlink_is_judged_by_its_target() {
    let world = World::new();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("filesystem");
    let link = world.sandbox().join("link.txt");
    symlink(&secret, &link).unwrap();
    client.read(&link).refused("the user denied this call");
    let question = only(&world);
    let line = &question.consequences[0];
    assert_eq!(paths(&question), [secret.to_str().unwrap()]);
    assert_eq!((line.note.as_deref(), line.asked_for.as_deref()), (Some("6 bytes"), link.to_str()));
    client.write(&link, "x").refused("the user denied this call");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    symlink(world.path("docs"), world.sandbox().join("folder")).unwrap();
    client.read(&world.sandbox().join("folder/secret.txt")).refused("the user denied this call");
    symlink(world.home.audit(), world.sandbox().join("audit")).unwrap();
    client.read(&world.sandbox().join("audit/audit.jsonl")).refused("structural-protected-path");
    world.user.asked();
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&link).ok(), "secret");
}

#[test]
fn dot_segments_and_sibling_prefixes_are_resolved() {
    let world = World::new();
    let (one, two) = (world.file("docs/one.txt", "1"), world.file("docs2/two.txt", "2"));
    let mut client = world.connect("filesystem");
    let up = world.sandbox().join("../../../../../person/docs/one.txt");
    client.read(&up).refused("the user denied this call");
    assert_eq!(paths(&only(&world)), [one.to_str().unwrap()]);
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.read(&one).ok(), "1");
    world.user.asked();
    for twin in [two.clone(), world.path("docs/../docs2/two.txt"), world.path("docs//..//docs2/./two.txt")] {
        client.read(&twin).refused("the user denied this call");
        assert_eq!(paths(&only(&world)), [two.to_str().unwrap()], "{}", twin.display());
    }
    assert_eq!(client.read(&world.path("docs2/../docs/one.txt")).ok(), "1");
}

#[test]
fn path_replaced_by_symlink_during_question_asks_again() {
    let world = World::new();
    let (plain, key) = (world.file("docs/plain.txt", "plain"), world.file("keys/key.txt", "the key"));
    let mut client = world.connect("filesystem");
    let swap = {
        let (plain, key) = (plain.clone(), key.clone());
        move |_: &Question| {
            std::fs::remove_file(&plain).unwrap();
            symlink(&key, &plain).unwrap();
        }
    };
    let allow = || Box::new(Next::Allow(Reach::Paths, Lifetime::Session));
    world.user.will(Next::After(Box::new(swap), allow()));
    world.user.will(Next::Deny);
    client.read(&plain).refused("the user denied this call");
    let asked = world.user.asked();
    let paths: Vec<_> = asked.iter().map(|q| (paths(q)[0], q.consequences[0].asked_for.as_deref())).collect();
    let (plain, key) = (plain.to_str().unwrap(), key.to_str().unwrap());
    assert_eq!(paths, [(plain, None), (key, Some(plain))]);
    // The grant for the path in the question remains, but the symlink is not followed.
    assert!(world.grants()[0].suspended.is_some());
    client.read(plain.as_ref()).refused("the user denied this call");
    assert!(world.activity().iter().all(|e| e.event != "outcome"), "no call reached the server");
}

#[test]
fn folder_replaced_by_symlink_during_question_cannot_reach_protected_paths() {
    let world = World::new();
    world.file(".ssh/id", "key");
    let plain = world.file("docs/sub/id", "plain");
    let mut client = world.connect("filesystem");
    let (sub, ssh) = (world.path("docs/sub"), world.path(".ssh"));
    let swap = move |_: &Question| {
        std::fs::remove_dir_all(&sub).unwrap();
        symlink(&ssh, &sub).unwrap();
    };
    world.user.will(Next::After(Box::new(swap), Box::new(Next::Allow(Reach::Paths, Lifetime::Once))));
    client.read(&plain).refused("structural-protected-path");
}

#[test]
fn deceptive_names_are_escaped_or_refused() {
    let world = World::new();
    let mut client = world.connect("filesystem");
    let bidi = world.file("docs/\u{202e}txt.exe", "x");
    client.read(&bidi).refused("the user denied this call");
    let shown = paths(&only(&world))[0].to_owned();
    assert!(shown.ends_with("docs/\\u{202e}txt.exe"), "{shown}");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.read(&bidi).ok();
    let is_shown = |path: &str| path.ends_with("docs/\\u{202e}txt.exe");
    assert!(is_shown(paths(&only(&world))[0]) && is_shown(&world.grants()[0].path));
    let about: Vec<String> = world.activity().into_iter().flat_map(|entry| entry.paths).collect();
    assert!(!about.is_empty() && about.iter().all(|path| is_shown(path)), "{about:?}");
    let plain = world.file("docs/grüße 文書.txt", "hello");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(client.read(&plain).ok(), "hello");
    assert_eq!(paths(&only(&world)), [plain.to_str().unwrap()]);
    let line = world.file("docs/two\nlines.txt", "x");
    let outcome = client.read(&line);
    assert!(outcome.is_error, "{outcome:?}");
    for question in world.user.asked() {
        assert!(!paths(&question)[0].contains('\n'), "{question:?}");
    }
    let long = world.path(&format!("docs/{}", "x".repeat(4000)));
    client.read(&long).refused("DENIED: ");
    client.read("docs/nul\0.txt".as_ref()).refused("DENIED: ");
    client.read("~root/x".as_ref()).refused("DENIED: ");
    client.read("".as_ref()).refused("DENIED: ");
    assert_eq!(world.user.asked(), []);
    assert!(world.audit().intact);
}

#[test]
fn other_unicode_form_of_name_is_refused_for_every_server() {
    for files in [Files::Embedded, Files::Reference] {
        names_in_another_form(&files.world(|_| {}));
    }
}

fn names_in_another_form(world: &World) {
    let mut client = world.connect("filesystem");
    let forms = [
        ("priv\u{e9}/s.txt", "prive\u{301}/s.txt"),
        ("e\u{301}t\u{e9}.txt", "\u{e9}te\u{301}.txt"),
        ("Keys/s.txt", "\u{212a}eys/s.txt"),
        ("\u{3a9}.txt", "\u{2126}.txt"),
    ];
    let other = world.file("docs/other.txt", "x");
    for _ in ["read", "write"] {
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    }
    client.read(&other).ok();
    client.write(&other, "y").ok();
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    for (name, twin) in forms {
        let there = world.file(&format!("docs/{name}"), "judged apart");
        let twin = world.path(&format!("docs/{twin}"));
        let because = "is the same text in another Unicode form";
        client.read(&twin).refused(because);
        client.write(&twin, "new").refused(because);
        client.call("create_directory", json!({ "path": twin })).refused(because);
        assert!(!twin.exists());
        assert_eq!(read(&there), "judged apart");
        assert_eq!(client.read(&there).ok(), "judged apart");
    }
}

#[test]
fn non_path_arguments_are_never_skipped() {
    let world = World::new();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("filesystem");
    for paths in [
        json!([[secret]]),
        json!([{ "path": secret }]),
        json!([7]),
        json!([null]),
        json!(null),
        json!({ "a": secret }),
    ] {
        client.call("read_multiple_files", json!({ "paths": paths })).refused("DENIED: ");
        client.call("read_text_file", json!({ "path": paths })).refused("DENIED: ");
    }
    client
        .call("read_text_file", json!({ "path": secret, "Path": "x" }))
        .refused("the tool has no argument `Path`");
    client.call("read_secret_file", json!({ "path": secret })).refused("has not been reviewed yet");
    assert_eq!(world.user.asked(), []);
    let mine = world.sandbox().join("mine.txt");
    client.write(&mine, "mine").ok();
    client
        .call("read_multiple_files", json!({ "paths": [mine, secret] }))
        .refused("the user denied this call");
    assert_eq!(paths(&only(&world)), [mine.to_str().unwrap(), secret.to_str().unwrap()]);
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let both = client.call("read_multiple_files", json!({ "paths": [mine, secret] }));
    assert!(both.ok().contains("mine") && both.ok().contains("secret"), "{both:?}");
}

#[test]
fn resource_read_cannot_bypass_policy() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let secret = secret.display();
    for (uri, because) in [
        (format!("file://{secret}"), "the user denied this call"),
        (format!("FILE://{secret}"), "that servers interpret differently"),
        (format!(" FILE://{secret}"), "has invalid characters"),
        (
            format!("file://{}/../audit/audit.jsonl", world.home.sessions().display()),
            "that servers interpret differently",
        ),
        (format!("file://{}", world.home.audit().join("audit.jsonl").display()), "is protected"),
    ] {
        let answer = client.request("resources/read", json!({ "uri": uri }));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.starts_with("DENIED: ") && message.contains(because), "{uri}: {answer}");
    }
    assert_eq!(client.request("resources/read", json!({ "uri": "test://x" }))["result"], json!({}));
}
