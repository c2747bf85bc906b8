//! `ironcurtain servers add`: one command from a name, a package or a maker's snippet to a server that works.

use crate::annotating::{listing, served, tool};
use crate::client::{BOUND, Client};
use crate::consent::{Next, paths};
use crate::place::Place;
use crate::world::{World, eventually, installed, is_root, programs};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Reach, Verb};
use ironcurtain_daemon::{Gift, GiftOf};
use ironcurtain_policy::{Access, AccessSet};
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `servers add`; whether it worked, and all it said.
fn add(ours: &Path, person: &Path, words: &[&str], snippet: &str) -> (bool, String) {
    let root: &[&str] = if is_root() { &["--allow-root"] } else { &[] };
    let mut child = Command::new(programs().join("ironcurtain"))
        .args([&["servers", "add"], words, root].concat())
        .env("IRONCURTAIN_HOME", ours)
        .env("HOME", person)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(snippet.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.success(), said)
}

fn entry(place: &Place, name: &str) -> Value {
    let file = place.home.config.join("mcp-servers.json");
    let text = std::fs::read_to_string(file).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str::<Value>(&text).unwrap()[name].clone()
}

fn snippet(script: &str) -> String {
    let server = json!({ "command": "/usr/bin/python3", "args": ["-c", script] });
    json!({ "mcpServers": { "printed": server } }).to_string()
}

#[test]
fn what_a_maker_prints_is_looked_at_and_gets_the_least() {
    let place = Place::new(|_| {});
    let wants = "import urllib.request, sys\ntry: urllib.request.urlopen('http://a.example.test/', timeout=3)\nexcept Exception: pass\nsys.stderr.write(\"PermissionError: [Errno 13] Permission denied: '/var/lib/x'\\n\")\n";
    let script = wants.to_owned() + &listing(&json!([tool("zap", &["what"]), tool("read_it", &["path"])]));
    let (added, said) = add(&place.ours(), &place.home.person, &["-"], &snippet(&script));
    assert!(!added && said.contains("nothing was added: there is no terminal to ask at"), "{said}");
    assert_eq!(entry(&place, "printed"), Value::Null);
    let (added, said) = add(&place.ours(), &place.home.person, &["-", "--yes"], &snippet(&script));
    assert!(added, "{said}");
    for words in [
        "While it was looked at, it wants to reach `a.example.test:80`.",
        "it wants the file or folder `/var/lib/x`",
        "  path  read-path  (high: ",
        "  zap: calls run without a question while the server reaches nothing, and you will be asked at every call once it does, \
         because it is unclear what `what` means. To decide now: ironcurtain servers annotate printed",
        "2 tools: 1 understood, 1 will ask every time once the server reaches anything.",
        "It has no network.",
    ] {
        assert!(said.contains(words), "{words} in\n{said}");
    }
    let written = entry(&place, "printed");
    let data = place.home.server_data("printed");
    assert_eq!(written["sandbox"], json!({ "view": "roots", "filesystem": { "allowWrite": [data] } }));
    assert_eq!((&written["unannotated"], &written["env"]["HOME"]), (&json!("ask"), &json!(data)));
    let (again, said) = add(&place.ours(), &place.home.person, &["-", "--yes"], &snippet(&script));
    assert!(!again && said.contains("has `printed` already; `--replace` replaces it"), "{said}");
}

#[test]
fn a_server_that_does_not_start_is_not_added() {
    let place = Place::new(|_| {});
    let script = "import sys; sys.stderr.write('no key in KEY'); sys.exit(3)";
    let (added, said) = add(&place.ours(), &place.home.person, &["-", "--yes"], &snippet(script));
    assert!(!added && said.contains("it said: no key in KEY"), "{said}");
    assert_eq!(entry(&place, "printed"), Value::Null);
    let sandboxed = json!({ "x": { "command": "c", "sandbox": false } }).to_string();
    let (added, said) = add(&place.ours(), &place.home.person, &["-", "--yes"], &sandboxed);
    assert!(!added && said.contains("it sets `sandbox`, which only you decide"), "{said}");
}

#[test]
fn a_server_that_was_added_works_with_a_home_of_its_own() {
    let script = "import os\nopen(os.path.expanduser('~/.cache-of-mine'), 'w').write('kept')\n".to_owned()
        + &served(
            "{'tools': [{'name': 'zap', 'inputSchema': {'type': 'object', 'properties': {'what': {'type': 'string'}}}}]}",
            "",
        );
    let world = World::with(|prepared| {
        let home = &prepared.home;
        let ours = home.config.parent().unwrap();
        let (added, said) = add(ours, &home.person, &["-", "--yes"], &snippet(&script));
        assert!(added, "{said}");
    });
    assert_eq!(
        std::fs::read_to_string(world.home.server_data("printed").join(".cache-of-mine")).unwrap(),
        "kept"
    );
    assert!(!world.path(".cache-of-mine").exists());
    let mut client = world.connect("printed");
    // It reaches nothing, and so even a tool that nobody has looked at is free.
    client.call("zap", json!({ "what": "x" }));
    assert_eq!(world.person.count(), 0);
}

#[test]
fn a_name_that_existed_before_gives_its_permissions_to_the_same_program_alone() {
    let tools = json!([tool("read_it", &["path"])]);
    let world = World::with(|prepared| {
        let home = &prepared.home;
        let words = snippet(&listing(&tools));
        let (added, said) = add(home.config.parent().unwrap(), &home.person, &["-", "--yes"], &words);
        assert!(added && !said.contains("existed before"), "{said}");
    });
    let (plan, data) = (world.file("plans/next", "x"), world.home.server_data("printed"));
    std::fs::write(data.join("memo"), "kept").unwrap();
    let client = world.connect("printed");
    let key = std::env::current_exe().unwrap().canonicalize().unwrap().display().to_string();
    let read = GiftOf::Files { path: plan.clone(), access: AccessSet::only(Access::Read) };
    let gift = Gift { client: key, server: "printed".into(), what: read, lifetime: Lifetime::Always };
    world.wait(world.daemon.give(gift)).unwrap();
    client.hang_up();
    let command = |words: &[&str]| {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(words).stdin(Stdio::null());
        command.env("IRONCURTAIN_HOME", world.ours()).env("HOME", &world.home.person);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let again = |script: &str, more: &[&str]| {
        command(&["servers", "remove", "printed", "--yes"]);
        let words = [&["-", "--yes"], more].concat();
        let (added, said) = add(&world.ours(), &world.home.person, &words, &snippet(script));
        assert!(added, "{said}");
        said
    };
    let said = again(&listing(&tools), &[]);
    for words in [
        "A server named `printed` existed before. Kept from it:",
        &format!("  the permission to read {}, for ", plan.display()),
        &format!("  its data in {}", data.display()),
        "  the review of 1 tool",
        "The same program gets all of it again. Any other program gets none of it: it is blocked until you decide with `ironcurtain \
         servers identity printed`.",
    ] {
        assert!(said.contains(words), "{words} in\n{said}");
    }
    let is_in_force = || world.status().servers.iter().any(|name| name == "printed");
    eventually("the entry is in force again", BOUND, is_in_force);
    world.connect("printed").hang_up();
    assert_eq!(world.grants().iter().map(|grant| grant.server_changed).collect::<Vec<_>>(), [false]);

    let said = again(&format!("# Another one.\n{}", listing(&tools)), &["--json"]);
    let added: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    let kept = &added["kept"];
    let grant = world.grants()[0].id.clone();
    assert_eq!((&kept["grants"], &kept["data"]), (&json!([grant]), &json!(data)));
    eventually("another program is refused", BOUND, || {
        let mut client = world.start("printed");
        let about = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about });
        let answer = client.request("initialize", params).to_string();
        client.hang_up();
        answer.contains(
            "the server `printed` is not the program that you allowed before: its arguments changed",
        )
    });
    let listed = command(&["grants"]);
    let suspended = "  SUSPENDED: the server changed: `ironcurtain servers identity printed`";
    assert!(listed.contains(suspended), "{listed}");
    let listed: Value = serde_json::from_str(&command(&["grants", "--json"])).unwrap();
    let listed = &listed["grants"][0];
    assert_eq!(
        (&listed["suspended"], &listed["server_changed"]),
        (&json!("the server changed"), &json!(true))
    );
    command(&["servers", "identity", "printed", "--keep", "--yes"]);
    assert_eq!((world.grants()[0].suspended.as_deref(), world.grants()[0].server_changed), (None, false));
    world.connect("printed").hang_up();
}

/// With the real registry.
#[test]
fn a_package_of_a_registry_is_one_command_away() {
    let mut folder = String::new();
    let world = World::with(|prepared| {
        let home = &prepared.home;
        let ours = home.config.parent().unwrap();
        std::fs::create_dir_all(home.person.join("db")).unwrap();
        folder = format!("folder={}", home.person.join("db").display());
        // The catalog knows the package, and what it needs to start.
        let words = ["pypi:mcp-server-sqlite", "--yes", "--set", &folder];
        let (added, said) = add(ours, &home.person, &words, "");
        assert!(added && said.contains("It has 6 tools; what they mean is known."), "{said}");
        let (added, said) =
            add(ours, &home.person, &["npm:@modelcontextprotocol/server-everything", "--yes"], "");
        assert!(added && said.contains("`everything` is in"), "{said}");
        let (added, said) =
            add(ours, &home.person, &["pypi:mcp-server-calculator", "--yes", "--name", "sums"], "");
        assert!(added && said.contains("Installed `mcp-server-calculator=="), "{said}");
    });
    let mut client = world.connect("sqlite");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.call("create_table", json!({ "query": "CREATE TABLE t (x TEXT)" })).ok();
    assert!(world.path("db/database.db").is_file());
    assert!(world.person.asked().iter().all(|question| question.consequences[0].verb != Verb::Call));
    client.hang_up();
    let mut client = world.connect("sums");
    assert!(client.call("calculate", json!({ "expression": "6 * 7" })).ok().contains("42"));
}

/// A bundle with a Python program, which is given the folder that its settings ask for.
fn bundle(base: &Path, script: &str) -> String {
    let (bundle, packed) = (base.join("bundle"), base.join("notes.mcpb"));
    std::fs::create_dir_all(bundle.join("server")).unwrap();
    std::fs::write(bundle.join("server/main.py"), script).unwrap();
    let start = json!({ "command": "/usr/bin/python3", "args": ["${__dirname}/server/main.py", "${user_config.folder}"] });
    let manifest = json!({
        "manifest_version": "0.3", "name": "notes", "version": "1.0.0", "description": "Notes", "author": { "name": "a" },
        "server": { "type": "python", "entry_point": "server/main.py", "mcp_config": start },
        "user_config": { "folder": { "type": "directory", "title": "Where notes are", "description": "A folder", "required": true, "default": "${HOME}" } },
    });
    std::fs::write(bundle.join("manifest.json"), manifest.to_string()).unwrap();
    let mcpb = installed("clients").join("node_modules/@anthropic-ai/mcpb/dist/cli/cli.js");
    let made = Command::new("node").arg(mcpb).arg("pack").args([&bundle, &packed]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    packed.to_str().unwrap().to_owned()
}

#[test]
fn a_bundle_is_added_with_the_folder_that_the_person_named() {
    let place = Place::new(|_| {});
    let packed = &bundle(place.base(), &listing(&json!([tool("read_it", &["path"])])));
    let (added, said) = add(&place.ours(), &place.home.person, &[packed, "--yes"], "");
    let proposed = "it needs `--set folder=...`: Where notes are (it proposes `${HOME}`)";
    assert!(!added && said.contains(proposed), "{said}");
    let unpacked = place.home.data.join("bundles");
    assert_eq!(std::fs::read_dir(&unpacked).unwrap().count(), 0, "nothing of it stays");
    let folder = place.home.person.join("docs");
    let set = format!("folder={}", folder.display());
    let (added, said) = add(&place.ours(), &place.home.person, &[packed, "--set", &set, "--yes"], "");
    assert!(added && said.contains("  path  read-path  (high: "), "{said}");
    let proposed = format!("It is to work with `{}`, which stays closed until you say yes", folder.display());
    assert!(said.contains(&proposed) && said.contains("It has no network."), "{said}");
    let entry = entry(&place, "notes");
    let here = std::fs::read_dir(&unpacked).unwrap().next().unwrap().unwrap().path();
    assert_eq!(entry["args"], json!([here.join("server/main.py"), folder]));
    assert_eq!(entry["sandbox"]["filesystem"]["allowRead"], json!([here]));
    assert_eq!(entry["sandbox"]["filesystem"]["allowWrite"], json!([place.home.server_data("notes")]));
    assert_eq!(entry["worksWith"], json!([folder]));
}

/// A world with a server of a bundle whose tool writes a note to its folder, and does this first.
fn noting(first: &str) -> World {
    let put = "def put():\n    try: open(sys.argv[1] + '/note.txt', 'w').write('x')\n    except OSError as e: return str(e)\n    return 'kept'\n";
    let answer = "if m.get('method') == 'tools/call': print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': {'content': [{'type': 'text', 'text': put()}]}}), flush=True); continue";
    let tools = json!({ "tools": [tool("put", &[])] }).to_string();
    let script = format!("import os, sys\n{put}{first}\n{}", served(&tools, answer));
    World::with(|prepared| {
        let home = &prepared.home;
        // It is about what the kernel shows, so the tool itself is free.
        let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
        let rules = [
            rule("notes", json!({ "server": ["notes"], "tool": ["put"] }), "allow"),
            rule("ask", json!({}), "escalate"),
        ];
        let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
        std::fs::write(home.policy().join("compiled-policy.json"), policy).unwrap();
        let folder = home.person.join("notes");
        std::fs::create_dir(&folder).unwrap();
        let ours = home.config.parent().unwrap();
        let packed = bundle(ours.parent().unwrap(), &script);
        let set = format!("folder={}", folder.display());
        let (added, said) = add(ours, &home.person, &[&packed, "--set", &set, "--yes"], "");
        assert!(added, "{said}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "looked at, it changes nothing");
    })
}

#[test]
fn what_a_bundle_works_with_is_closed_before_a_yes_open_after_it_and_closed_when_that_is_taken_back() {
    let world = noting("");
    let (folder, note) = (world.path("notes"), world.path("notes/note.txt"));
    let mut client = world.connect("notes");
    let put = |client: &mut Client| client.call("put", json!({})).text;
    assert!(put(&mut client).starts_with("[Errno 2] No such file or directory"));
    let question = world.person.asked().remove(0);
    assert_eq!(
        (question.consequences[0].verb, paths(&question)),
        (Verb::WorkIn, vec![folder.to_str().unwrap()])
    );
    assert_eq!(question.reason, "the server is configured to use this, but cannot see it unless you allow it");
    client.hang_up();
    // The no stands until it is taken back.
    let mut client = world.connect("notes");
    assert!(put(&mut client).starts_with("[Errno 2]") && world.person.asked().is_empty());
    client.hang_up();
    world.revoke_only_grant();
    world.person.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
    let mut client = world.connect("notes");
    assert_eq!(put(&mut client), "kept");
    assert!(note.is_file());
    let grant = world.grants().remove(0);
    assert_eq!((grant.server.as_str(), grant.path.as_str()), ("notes", folder.to_str().unwrap()));
    world.revoke_only_grant();
    std::fs::remove_file(&note).unwrap();
    assert!(put(&mut client).starts_with("[Errno 2]") && !note.exists());
    assert!(world.audit().intact);
}

#[test]
fn a_server_that_does_not_start_without_its_folder_waits_for_the_answer() {
    let world = noting("put()\nif not os.path.isdir(sys.argv[1]): sys.exit('where is my folder?')");
    let mut client = world.start("notes");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let refused = client.request("initialize", greeting);
    assert!(refused.to_string().contains("where is my folder?"), "{refused}");
    client.hang_up();
    world.revoke_only_grant();
    world.person.will(Next::Allow(Reach::ProjectToChange, Lifetime::Session));
    let mut client = world.connect("notes");
    assert_eq!(client.call("put", json!({})).text, "kept");
}

#[test]
fn taking_back_does_not_wait_for_the_answer_that_a_server_waits_for() {
    let world = noting("");
    let other = world.file("docs/other.txt", "other");
    world.person.will(Next::Ignore);
    let mut client = world.start("notes");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let greeted = client.begin("initialize", greeting);
    eventually("it is asked about its folder", BOUND, || world.person.count() == 1);
    let agent = world.daemon.known_clients().remove(0).key;
    let what = GiftOf::Files { path: other, access: AccessSet::only(Access::Read) };
    let gift = Gift { client: agent, server: "notes".into(), what, lifetime: Lifetime::Hour };
    world.wait(world.daemon.give(gift)).unwrap();
    assert_eq!(world.revoke_only_grant(), [""; 0]);
    assert_eq!(world.questions().waiting.len(), 1, "it is proved while the server waits");
    world.person.answers_late(Answer::Deny { note: None, reach: DenialReach::Call });
    assert_eq!(
        client.answer(greeted)["result"]["protocolVersion"],
        "2025-06-18",
        "what came meanwhile is served"
    );
}
