//! Checks that the commands' output about a server and its tools agrees with the behaviour of a session.

use crate::annotating::{served, tool};
use crate::remote_servers::FakeServer;
use crate::scripted_user::Next;
use crate::secret_file::{PASSPHRASE, create_file_with_secret, run};
use crate::world::{World, is_root};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::fs;

/// Treatment of calls to an unannotated tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Free,
    Asked,
    Refused,
}

impl Fate {
    fn words(self) -> &'static str {
        match self {
            Self::Free => {
                "calls run without asking while the server can reach nothing, and you will be asked at every call once it can"
            }
            Self::Asked => "you will be asked at every call",
            Self::Refused => "calls are refused",
        }
    }
}

/// Creates a test environment with these servers and the shipped policy.
fn world(servers: &Value) -> World {
    World::with(|prepared| {
        fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
        let _ = fs::remove_file(prepared.home.policy().join("compiled-policy.json"));
    })
}

fn command_output(world: &World, words: &[&str]) -> String {
    let root: &[&str] = if is_root() && words.contains(&"annotate") { &["--allow-root"] } else { &[] };
    let (done, said) = run(&world.ours(), &[words, root].concat(), "");
    assert!(done, "{said}");
    said
}

#[test]
fn unannotated_tool_behaves_as_the_command_says() {
    let far = FakeServer::start();
    let tools = json!({ "tools": [tool("zap", &["what"])] });
    let list = tools.to_string();
    far.set_behaviour(move |asked, back| {
        let lists = asked.method() == "tools/list";
        if lists {
            back.json(&json!({ "jsonrpc": "2.0", "id": asked.body["id"], "result": tools }));
        }
        lists
    });
    let answer = "if m.get('method') == 'tools/call': print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': {'content': [{'type': 'text', 'text': 'done'}]}}), flush=True); continue";
    let local = |keys: Value| {
        let mut entry = json!({ "command": "/usr/bin/python3", "args": ["-c", served(&list, answer)] });
        entry.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
        entry
    };
    let network = json!({ "network": { "allowedDomains": ["a.example"] } });
    let table = [
        ("local-deny", local(json!({})), Fate::Refused),
        ("local-ask", local(json!({ "unannotated": "ask" })), Fate::Free),
        ("local-network", local(json!({ "unannotated": "ask", "sandbox": network })), Fate::Asked),
        ("open", local(json!({ "sandbox": false })), Fate::Refused),
        ("far-deny", json!({ "url": far.url() }), Fate::Refused),
        ("far-ask", json!({ "url": far.url(), "unannotated": "ask" }), Fate::Asked),
    ];
    let servers: serde_json::Map<String, Value> =
        table.iter().map(|(name, entry, _)| ((*name).to_owned(), entry.clone())).collect();
    let world = world(&servers.into());
    for (name, entry, fate) in &table {
        // The argument of `zap` has no description.
        let said = command_output(&world, &["servers", "annotate", name, "--yes"]);
        let line = format!("  zap: {}, because it is unclear what `what` means.", fate.words());
        assert!(said.contains(&line), "{name}: {line} in\n{said}");
        let mut client = world.connect(name);
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let outcome = client.call("zap", json!({ "what": "x" }));
        let asked = world.user.asked().len();
        match fate {
            Fate::Free => assert!(asked == 0 && !outcome.ok().is_empty(), "{name}"),
            Fate::Asked => assert!(asked == 1 && !outcome.ok().is_empty(), "{name}"),
            Fate::Refused => {
                outcome.refused(&format!("the user can run: ironcurtain servers annotate {name}"));
                assert_eq!(asked, 0, "{name}");
            }
        }
        world.user.forget();
        let Reply::Sessions(sessions) = world.request(Request::Sessions) else { panic!() };
        assert_eq!(
            (sessions[0].remote, sessions[0].sandboxed),
            (entry["url"].is_string(), entry["command"].is_string() && entry["sandbox"] != false)
        );
        client.hang_up();
        crate::world::eventually(
            "the session is closed",
            crate::client::TIMEOUT,
            || matches!(world.request(Request::Sessions), Reply::Sessions(sessions) if sessions.is_empty()),
        );
    }
}

#[test]
fn pasted_url_is_added_as_remote_and_asks_at_every_call() {
    let far = FakeServer::start();
    let world = World::with(|prepared| {
        let _ = fs::remove_file(prepared.home.policy().join("compiled-policy.json"));
        let ours = prepared.home.config.parent().unwrap();
        let url = far.url();
        let (added, said) = run(ours, &["servers", "add", &url, "--later", "--name", "far"], "");
        let place = format!("It runs on 127.0.0.1:{}, outside this computer's sandbox.", far.port);
        assert!(added && said.contains(&place) && !said.contains("It runs in a sandbox"), "{said}");
        assert!(said.contains("you will be asked at every call"), "{said}");
        assert!(far.asked().is_empty(), "the server was connected to");
    });
    let mut client = world.connect("far");
    for _ in 0..2 {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        client.call("say", json!({ "text": "hello" })).ok();
    }
    let asked = world.user.asked();
    assert_eq!((asked.len(), asked[0].remote, asked[0].sandboxed), (2, true, false));
}

/// Makes the server reject later requests that lack its token.
fn wants_a_token(far: &FakeServer) {
    far.set_behaviour(move |asked, back| {
        let is_known = asked.header("authorization") == "Bearer t0ken-for-far";
        if !is_known {
            back.answer("401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "");
        }
        !is_known
    });
}

#[test]
fn login_required_message_names_a_working_command() {
    let (place, far) = (crate::test_home::TestHome::new(|_| {}), FakeServer::start());
    wants_a_token(&far);
    let url = far.url();
    let add = |more: &[&str], input: &str| {
        run(&place.ours(), &[&["servers", "add", &url, "--yes"], more].concat(), input)
    };
    let (added, said) = add(&[], "");
    let wanted = format!(
        "Its tools can be listed once you are logged in: `{url}` wants you to log in (401); run: ironcurtain servers login 127.0.0.1   (if \
         you have a token, run: ironcurtain servers add {url} --token)\n"
    );
    assert!(added && said.contains(&wanted) && !said.contains('{'), "{said}");
}

#[test]
fn typed_token_is_stored_and_sent_only_after_approval() {
    let (place, far) = (crate::test_home::TestHome::new(|_| {}), FakeServer::start());
    wants_a_token(&far);
    let (ours, url) = (place.ours(), far.url());
    create_file_with_secret(&ours);
    let typed = format!("t0ken-for-far\n{PASSPHRASE}\n");
    let (added, said) = run(&ours, &["servers", "add", &url, "--name", "far", "--token", "--yes"], &typed);
    assert!(added && said.contains("It gets your secret `far-token` as `Authorization`."), "{said}");
    assert!(
        far.asked().iter().all(|asked| asked.header("authorization").is_empty()),
        "the trial run had no token"
    );
    let (done, said) = run(&ours, &["servers", "annotate", "far", "--yes"], &format!("{PASSPHRASE}\n"));
    assert!(done && said.contains("look - look"), "{said}");
    // A server with the same address and a different token is the same server.
    let typed = format!("another-token\n{PASSPHRASE}\n");
    let (added, said) = run(&ours, &["servers", "add", &url, "--token", "--later"], &typed);
    assert!(added && said.contains("Added `far` to"), "{said}");
    let (done, said) = run(&ours, &["servers", "annotate", "far", "--yes"], &format!("{PASSPHRASE}\n"));
    let refused = "did not accept your secret `far-token` (401); to replace the secret, run: ironcurtain secrets set far-token";
    assert!(!done && said.contains(refused), "{said}");
}
