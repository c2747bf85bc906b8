//! `ironcurtain servers add`: one command turns a name, a package or a snippet into a working server.

use crate::annotating::{listing, served, tool};
use crate::client::{Client, TIMEOUT};
use crate::scripted_user::{Next, paths};
use crate::test_home::TestHome;
use crate::world::{World, eventually, installed, is_root, programs};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Reach, Verb};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_testkit::programs::output_with_input;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `servers add`. Returns `true` if it succeeded, and its output.
fn add(ours: &Path, person: &Path, words: &[&str], snippet: &str) -> (bool, String) {
    let root: &[&str] = if is_root() { &["--allow-root"] } else { &[] };
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args([&["servers", "add"], words, root].concat());
    let output = output_with_input(command.env("IRONCURTAIN_HOME", ours).env("HOME", person), snippet);
    let said = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    (output.status.success(), said)
}

fn entry(place: &TestHome, name: &str) -> Value {
    let file = place.home.config.join("mcp-servers.json");
    let text = std::fs::read_to_string(file).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str::<Value>(&text).unwrap()[name].clone()
}

fn snippet(script: &str) -> String {
    let server = json!({ "command": "/usr/bin/python3", "args": ["-c", script] });
    json!({ "mcpServers": { "printed": server } }).to_string()
}

#[test]
fn snippet_is_inspected_and_gets_least_privilege() {
    let place = TestHome::new(|_| {});
    let wants = "import urllib.request, sys\ntry: urllib.request.urlopen('http://a.example.test/', timeout=3)\nexcept Exception: pass\nsys.stderr.write(\"PermissionError: [Errno 13] Permission denied: '/var/lib/x'\\n\")\n";
    let script = wants.to_owned() + &listing(&json!([tool("zap", &["what"]), tool("read_it", &["path"])]));
    let (added, said) = add(&place.ours(), &place.home.user_home, &["-"], &snippet(&script));
    assert!(!added && said.contains("nothing was added: no terminal to confirm on"), "{said}");
    assert_eq!(entry(&place, "printed"), Value::Null);
    let (added, said) = add(&place.ours(), &place.home.user_home, &["-", "--yes"], &snippet(&script));
    assert!(added, "{said}");
    for words in [
        "During the trial, it wants to reach `a.example.test:80`.",
        "it wants the file or folder `/var/lib/x`",
        "  path  read-path  (high: ",
        "  zap: you will be asked at every call, \
         because it is unclear what `what` means. To decide now: ironcurtain servers annotate printed",
        "2 tools: 1 understood, 1 will ask every time.",
        "When it opens or changes a file, it waits until you allow that.",
        "It has no network.",
    ] {
        assert!(said.contains(words), "{words} in\n{said}");
    }
    let written = entry(&place, "printed");
    let data = place.home.server_data("printed");
    assert_eq!(written["sandbox"], json!({ "filesystem": { "allowWrite": [data] } }));
    assert_eq!((&written["access"], &written["env"]["XDG_DATA_HOME"]), (&json!("ask"), &json!(data)));
    let (again, said) = add(&place.ours(), &place.home.user_home, &["-", "--yes"], &snippet(&script));
    assert!(!again && said.contains("`printed` already exists in"), "{said}");
}

#[test]
fn server_that_fails_to_start_is_not_added() {
    let place = TestHome::new(|_| {});
    let script = "import sys; sys.stderr.write('no key in KEY'); sys.exit(3)";
    let (added, said) = add(&place.ours(), &place.home.user_home, &["-", "--yes"], &snippet(script));
    assert!(!added && said.contains("it said: no key in KEY"), "{said}");
    assert_eq!(entry(&place, "printed"), Value::Null);
    let sandboxed = json!({ "x": { "command": "c", "sandbox": false } }).to_string();
    let (added, said) = add(&place.ours(), &place.home.user_home, &["-", "--yes"], &sandboxed);
    assert!(!added && said.contains("it sets `sandbox`, which only you may decide"), "{said}");
}

#[test]
fn added_server_keeps_its_data_without_questions() {
    let script = "import os\nopen(os.environ['XDG_DATA_HOME'] + '/.cache-of-mine', 'w').write('kept')\n"
        .to_owned()
        + &served(
            "{'tools': [{'name': 'zap', 'inputSchema': {'type': 'object', 'properties': {'what': {'type': 'string'}}}}]}",
            "",
        );
    let world = World::with(|prepared| {
        let home = &prepared.home;
        let ours = home.config.parent().unwrap();
        let (added, said) = add(ours, &home.user_home, &["-", "--yes"], &snippet(&script));
        assert!(added, "{said}");
    });
    assert_eq!(
        std::fs::read_to_string(world.home.server_data("printed").join(".cache-of-mine")).unwrap(),
        "kept"
    );
    let mut client = world.connect("printed");
    assert_eq!(world.user.count(), 0);
    // The server can access the user's files, so a tool without a reviewed annotation needs approval.
    client.call("zap", json!({ "what": "x" })).refused("the user denied this call");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn readded_server_keeps_permissions_only_for_the_same_program() {
    let tools = json!([tool("read_it", &["path"])]);
    let world = World::with(|prepared| {
        let home = &prepared.home;
        let words = snippet(&listing(&tools));
        let (added, said) = add(home.config.parent().unwrap(), &home.user_home, &["-", "--yes"], &words);
        assert!(added && !said.contains("existed before"), "{said}");
    });
    let (plan, data) = (world.file("plans/next", "x"), world.home.server_data("printed"));
    std::fs::write(data.join("memo"), "kept").unwrap();
    let client = world.connect("printed");
    let key = std::env::current_exe().unwrap().canonicalize().unwrap().display().to_string();
    let read = GrantTarget::Files { path: plan.clone(), access: AccessSet::only(Access::Read) };
    let request =
        GrantRequest { client: key, server: "printed".into(), what: read, lifetime: Lifetime::Always };
    world.wait(world.daemon.grant(request)).unwrap();
    client.hang_up();
    let command = |words: &[&str]| {
        let mut command = Command::new(programs().join("ironcurtain"));
        command.args(words).stdin(Stdio::null());
        command.env("IRONCURTAIN_HOME", world.ours()).env("HOME", &world.home.user_home);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let again = |script: &str, more: &[&str]| {
        command(&["servers", "remove", "printed", "--yes"]);
        let words = [&["-", "--yes"], more].concat();
        let (added, said) = add(&world.ours(), &world.home.user_home, &words, &snippet(script));
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
    eventually("the entry is in force again", TIMEOUT, is_in_force);
    world.connect("printed").hang_up();
    assert_eq!(world.grants().iter().map(|grant| grant.server_changed).collect::<Vec<_>>(), [false]);

    let said = again(&format!("# Another one.\n{}", listing(&tools)), &["--json"]);
    let added: Value = serde_json::from_str(&said[said.find('{').unwrap()..]).unwrap();
    let kept = &added["kept"];
    let grant = world.grants()[0].id.clone();
    assert_eq!((&kept["grants"], &kept["data"]), (&json!([grant]), &json!(data)));
    eventually("another program is refused", TIMEOUT, || {
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

/// Uses the npm and Python registries configured on this machine.
#[test]
fn registry_package_is_added_with_one_command() {
    let mut folder = String::new();
    let world = World::with(|prepared| {
        let home = &prepared.home;
        let ours = home.config.parent().unwrap();
        std::fs::create_dir_all(home.user_home.join("db")).unwrap();
        folder = format!("folder={}", home.user_home.join("db").display());
        // The catalog contains the package and its required arguments.
        let words = ["pypi:mcp-server-sqlite", "--yes", "--set", &folder];
        let (added, said) = add(ours, &home.user_home, &words, "");
        assert!(added && said.contains("It has 6 tools, already annotated."), "{said}");
        let (added, said) =
            add(ours, &home.user_home, &["npm:@modelcontextprotocol/server-everything", "--yes"], "");
        assert!(added && said.contains("Added `everything` to"), "{said}");
        let (added, said) =
            add(ours, &home.user_home, &["pypi:mcp-server-calculator", "--yes", "--name", "sums"], "");
        assert!(added && said.contains("Installed `mcp-server-calculator=="), "{said}");
    });
    let mut client = world.connect("sqlite");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.call("create_table", json!({ "query": "CREATE TABLE t (x TEXT)" })).ok();
    assert!(world.path("db/database.db").is_file());
    assert!(world.user.asked().iter().all(|question| question.consequences[0].verb != Verb::Call));
    client.hang_up();
    let mut client = world.connect("sums");
    // The server can ask for network access to any host, so calls to an unreviewed tool require approval.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert!(client.call("calculate", json!({ "expression": "6 * 7" })).ok().contains("42"));
}

/// Builds a bundle with a Python program. A setting of the bundle passes a folder to the program.
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
fn bundle_is_added_with_the_chosen_folder() {
    let place = TestHome::new(|_| {});
    let packed = &bundle(place.base(), &listing(&json!([tool("read_it", &["path"])])));
    let (added, said) = add(&place.ours(), &place.home.user_home, &[packed, "--yes"], "");
    let proposed = "the bundle requires `--set folder=...`: Where notes are (suggested: `${HOME}`)";
    assert!(!added && said.contains(proposed), "{said}");
    let unpacked = place.home.data.join("bundles");
    assert_eq!(std::fs::read_dir(&unpacked).unwrap().count(), 0, "the files are removed");
    let folder = place.home.user_home.join("docs");
    let set = format!("folder={}", folder.display());
    let (added, said) = add(&place.ours(), &place.home.user_home, &[packed, "--set", &set, "--yes"], "");
    assert!(added && said.contains("  path  read-path  (high: "), "{said}");
    let proposed = format!("It is meant to work with `{}`. You will be asked about that", folder.display());
    assert!(said.contains(&proposed) && said.contains("It has no network."), "{said}");
    let entry = entry(&place, "notes");
    let here = std::fs::read_dir(&unpacked).unwrap().next().unwrap().unwrap().path();
    assert_eq!(entry["args"], json!([here.join("server/main.py"), folder]));
    assert_eq!(entry["sandbox"]["filesystem"]["allowRead"], json!([here]));
    assert_eq!(entry["sandbox"]["filesystem"]["allowWrite"], json!([place.home.server_data("notes")]));
    assert_eq!(entry["worksWith"], json!([folder]));
}

/// Creates a test environment with a bundle's server. Its tool runs `first` and then writes a note to its folder.
fn world_with_note_server(first: &str) -> World {
    let put = "def put():\n    try: open(sys.argv[1] + '/note.txt', 'w').write('x')\n    except OSError as e: return str(e)\n    return 'kept'\n";
    let answer = "if m.get('method') == 'tools/call': print(json.dumps({'jsonrpc': '2.0', 'id': m['id'], 'result': {'content': [{'type': 'text', 'text': put()}]}}), flush=True); continue";
    let tools = json!({ "tools": [tool("put", &[])] }).to_string();
    let script = format!("import os, sys\n{put}{first}\n{}", served(&tools, answer));
    World::with(|prepared| {
        let home = &prepared.home;
        // The test checks the access that the kernel allows, so the policy allows the tool itself.
        let rule = |name: &str, condition: Value, then: &str| json!({ "name": name, "description": name, "principle": name, "if": condition, "then": then, "reason": name });
        let rules = [
            rule("notes", json!({ "server": ["notes"], "tool": ["put"] }), "allow"),
            rule("ask", json!({}), "escalate"),
        ];
        let policy = json!({ "schemaVersion": 1, "rules": rules }).to_string();
        std::fs::write(home.policy().join("compiled-policy.json"), policy).unwrap();
        let folder = home.user_home.join("notes");
        std::fs::create_dir(&folder).unwrap();
        let ours = home.config.parent().unwrap();
        let packed = bundle(ours.parent().unwrap(), &script);
        let set = format!("folder={}", folder.display());
        let (added, said) = add(ours, &home.user_home, &[&packed, "--set", &set, "--yes"], "");
        assert!(added, "{said}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0, "the preview changes nothing");
    })
}

#[test]
fn bundle_folder_is_mounted_only_between_approval_and_revocation() {
    let world = world_with_note_server("");
    let (folder, note) = (world.path("notes"), world.path("notes/note.txt"));
    let mut client = world.connect("notes");
    let put = |client: &mut Client| client.call("put", json!({})).text;
    assert!(put(&mut client).starts_with("[Errno 2] No such file or directory"));
    let question = world.user.asked().remove(0);
    assert_eq!(
        (question.consequences[0].verb, paths(&question)),
        (Verb::WorkIn, vec![folder.to_str().unwrap()])
    );
    assert_eq!(
        question.reason,
        "the server is configured to use this, but cannot see it unless you allow it"
    );
    client.hang_up();
    // The denial holds until the user removes it.
    let mut client = world.connect("notes");
    assert!(put(&mut client).starts_with("[Errno 2]") && world.user.asked().is_empty());
    client.hang_up();
    world.revoke_only_grant();
    world.user.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
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
fn server_needing_its_folder_at_start_waits_for_approval() {
    let world =
        world_with_note_server("put()\nif not os.path.isdir(sys.argv[1]): sys.exit('where is my folder?')");
    let mut client = world.start("notes");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let refused = client.request("initialize", greeting);
    assert!(refused.to_string().contains("where is my folder?"), "{refused}");
    client.hang_up();
    world.revoke_only_grant();
    world.user.will(Next::Allow(Reach::ProjectToChange, Lifetime::Session));
    let mut client = world.connect("notes");
    assert_eq!(client.call("put", json!({})).text, "kept");
}

#[test]
fn revocation_does_not_wait_for_a_pending_approval() {
    let world = world_with_note_server("");
    let other = world.file("docs/other.txt", "other");
    world.user.will(Next::Ignore);
    let mut client = world.start("notes");
    let greeting = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" } });
    let greeted = client.begin("initialize", greeting);
    eventually("the folder is asked about", TIMEOUT, || world.user.count() == 1);
    let agent = world.daemon.known_clients().remove(0).key;
    let what = GrantTarget::Files { path: other, access: AccessSet::only(Access::Read) };
    let request = GrantRequest { client: agent, server: "notes".into(), what, lifetime: Lifetime::Hour };
    world.wait(world.daemon.grant(request)).unwrap();
    assert_eq!(world.revoke_only_grant(), [""; 0]);
    assert_eq!(world.questions().waiting.len(), 1, "the revocation is proved while the server waits");
    world.user.answer_late(Answer::Deny { note: None, reach: DenialReach::Call });
    assert_eq!(
        client.answer(greeted)["result"]["protocolVersion"],
        "2025-06-18",
        "calls received in between are answered"
    );
}
