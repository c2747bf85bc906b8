//! Snippets from other people: they cannot refer to the user's secrets, and nothing in them is started or connected
//! to before the user confirms.

use crate::annotating::{listing, tool};
use crate::remote_servers::FakeServer;
use crate::secret_file::{PASSPHRASE, create_file_with_secret, run, type_at_terminal};
use crate::secrets::{NONE, on_a_bus};
use crate::test_home::TestHome;
use serde_json::{Value, json};
use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::Path;

/// Writes a file that contains a settings snippet with one server. Returns its path.
fn snippet(place: &TestHome, entry: &Value) -> String {
    let file = place.base().join("snippet.json");
    fs::write(&file, json!({ "mcpServers": { "printed": entry } }).to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

fn entry(place: &TestHome, name: &str) -> Value {
    let text =
        fs::read_to_string(place.home.config.join("mcp-servers.json")).unwrap_or_else(|_| "{}".to_owned());
    serde_json::from_str::<Value>(&text).unwrap()[name].clone()
}

#[test]
fn snippet_with_secret_reference_is_refused_before_connecting() {
    let place = TestHome::new(|_| {});
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    for header in ["keyring:bank", "Bearer keyring:bank"] {
        let file = snippet(&place, &json!({ "url": url, "headers": { "Authorization": header } }));
        for how in ["--yes", "--later"] {
            let (added, said) = run(&place.ours(), &["servers", "add", &file, how, "--allow-root"], "");
            let refused = "`headers.Authorization` asks for your secret `bank`, which may belong to another server; to pass it \
                to this server, add `--secret Authorization=bank`";
            assert!(!added && said.contains(refused), "{said}");
        }
    }
    let elsewhere = snippet(&place, &json!({ "url": format!("{url}?key=keyring:bank") }));
    let (added, said) = run(&place.ours(), &["servers", "add", &elsewhere, "--yes"], "");
    assert!(!added && said.contains("`url` contains `keyring:`"), "{said}");
    assert_eq!(listener.accept().unwrap_err().kind(), ErrorKind::WouldBlock, "something connected");
    assert_eq!(entry(&place, "printed"), Value::Null);
}

#[test]
fn user_secret_is_in_the_entry_but_not_in_the_trial_run() {
    on_a_bus("untrusted_snippets::user_secret_is_in_the_entry_but_not_in_the_trial_run", NONE, || {
        let (place, far) = (TestHome::new(|_| {}), FakeServer::start());
        create_file_with_secret(&place.ours());
        let headers = json!({ "Authorization": "Bearer <your token>", "X-Team": "blue" });
        let file = snippet(&place, &json!({ "url": far.url(), "headers": headers }));
        let words = ["servers", "add", &file, "--yes", "--secret", "Authorization=api"];
        let (added, said) = run(&place.ours(), &words, &format!("{PASSPHRASE}\n"));
        assert!(added && said.contains("It gets your secret `api` as `Authorization`."), "{said}");
        assert_eq!(entry(&place, "printed")["headers"]["Authorization"], "Bearer keyring:api");
        let asked = far.asked();
        assert!(
            !asked.is_empty() && asked.iter().all(|asked| asked.header("authorization").is_empty()),
            "{asked:?}"
        );
        assert!(asked.iter().all(|asked| asked.header("x-team") == "blue"));
    });
}

/// Writes a snippet whose server saves the variable `KEY` to a file when it starts. Returns the paths of the snippet
/// and of that file.
fn marking(place: &TestHome) -> (String, std::path::PathBuf) {
    let mark = "import os\nopen(os.environ['XDG_DATA_HOME'] + '/started', 'w').write(os.environ.get('KEY', 'none'))\n";
    let script = mark.to_owned() + &listing(&json!([tool("read_it", &["path"])]));
    let entry =
        json!({ "command": "/usr/bin/python3", "args": ["-c", script], "env": { "KEY": "keyring:api" } });
    (snippet(place, &entry), place.home.server_data("printed").join("started"))
}

#[test]
fn nothing_starts_before_approval_and_trial_run_has_no_secret() {
    on_a_bus("untrusted_snippets::nothing_starts_before_approval_and_trial_run_has_no_secret", NONE, || {
        let place = TestHome::new(|_| {});
        let ours = place.ours();
        create_file_with_secret(&ours);
        let (file, mark) = marking(&place);
        let words = ["servers", "add", &file, "--secret", "KEY=api", "--allow-root"];
        let first = "in its sandbox, without your secrets, to read its list of tools? [y/N]";
        let unlock = ("Passphrase of your secrets (not shown)", PASSPHRASE);
        let (added, said) = type_at_terminal(&ours, &words, &[unlock, (first, "n")]);
        assert!(!added && said.contains("Nothing was started or added."), "{said}");
        assert!(!mark.exists() && entry(&place, "printed").is_null(), "{said}");
        let second = "Add it as `printed`? [y/N]";
        let (added, said) = type_at_terminal(&ours, &words, &[unlock, (first, "y"), (second, "n")]);
        assert!(
            !added && said.contains("Nothing was added.") && entry(&place, "printed").is_null(),
            "{said}"
        );
        assert_eq!(fs::read_to_string(&mark).unwrap(), "withheld", "a placeholder in place of the secret");
        let (added, said) = type_at_terminal(&ours, &words, &[unlock, (first, "y"), (second, "y")]);
        assert!(added && entry(&place, "printed")["env"]["KEY"] == "keyring:api", "{said}");
    });
}

#[test]
fn first_question_names_program_and_downloads() {
    let place = TestHome::new(|_| {});
    let asks = |what: &[&str], question: &str| {
        let words = [&["servers", "add", "--allow-root"], what].concat();
        let (added, said) = type_at_terminal(&place.ours(), &words, &[(question, "n")]);
        assert!(!added && said.contains("Nothing was started or added."), "{said}");
    };
    asks(
        &["npx", "-y", "@a/some-mcp", "--port", "1"],
        "Download `@a/some-mcp` and start it in its sandbox, without your secrets",
    );
    asks(
        &["pypi:some-mcp==1.2"],
        "Download `some-mcp==1.2` and start it in its sandbox, without your secrets",
    );
    asks(
        &["https://mcp.example.com:8443/mcp?k=v"],
        "Connect to `mcp.example.com:8443`, without your secrets",
    );
    assert!(!place.home.data.join("installs").exists());
    let (added, said) =
        run(&place.ours(), &["servers", "add", "https://good.example@evil.example/mcp", "--later"], "");
    let host = "`url` contains credentials before `@`, in an address that leads to `evil.example`";
    assert!(!added && said.contains(host), "{said}");
}

#[test]
fn snippet_cannot_set_ironcurtain_options() {
    let place = TestHome::new(|_| {});
    let local = json!({ "command": "/usr/bin/python3" });
    let far = json!({ "url": "https://mcp.example.com/mcp" });
    for (base, key, value) in [
        (&local, "sandbox", json!(false)),
        (&local, "passEnv", json!("*")),
        (&local, "worksWith", json!(["~/notes"])),
        (&local, "fileWrites", json!("replace")),
        (&local, "unannotated", json!("deny")),
        (&far, "sampling", json!("allow")),
        (&far, "allowedAddresses", json!(["169.254.169.254"])),
    ] {
        let mut entry = base.clone();
        entry[key] = value;
        let (added, said) = run(&place.ours(), &["servers", "add", &snippet(&place, &entry), "--later"], "");
        let refused = format!("it sets `{key}`, which only you may decide; remove it");
        assert!(!added && said.contains(&refused), "{said}");
    }
    let talks = json!({ "command": "/usr/bin/python3", "autoApprove": ["*"], "description": "Safe.", "disabled": false });
    let (added, said) = run(&place.ours(), &["servers", "add", &snippet(&place, &talks), "--later"], "");
    assert!(added, "{said}");
    let keys = entry(&place, "printed");
    assert_eq!(keys.as_object().unwrap().keys().collect::<Vec<_>>(), ["command", "sandbox", "env", "access"]);
}

/// Moves a project's Claude Code servers to IronCurtain.
fn moved(place: &TestHome, project: &Path, more: &[&str]) -> (bool, String) {
    let folder = project.to_str().unwrap();
    let words = ["clients", "connect", "claude-code", "--move", "--yes", "--project", folder];
    run(&place.ours(), &[&words, more].concat(), "")
}

#[test]
fn server_moved_from_client_settings_gets_no_existing_secret() {
    let place = TestHome::new(|_| {});
    let project = place.home.user_home.join("docs");
    fs::create_dir_all(project.join(".git")).unwrap();
    let server = |env: Value| json!({ "command": "npx", "args": ["-y", "x"], "env": env });
    let servers =
        json!({ "takes": server(json!({ "KEY": "keyring:bank" })), "plain": server(json!({ "KEY": "k" })) });
    let settings = project.join(".mcp.json");
    fs::write(&settings, json!({ "mcpServers": servers }).to_string()).unwrap();
    let (done, said) = moved(&place, &project, &[]);
    let stays = "Not changed: `takes`, because it is rejected: `env.KEY` asks for your secret `bank`";
    assert!(done && said.contains(stays), "{said}");
    assert_eq!((entry(&place, "takes"), &entry(&place, "plain")["env"]["KEY"]), (Value::Null, &json!("k")));
    let (done, said) = moved(&place, &project, &["--secret", "KEY=bank", "--only", "takes"]);
    assert!(done, "{said}");
    assert_eq!(entry(&place, "takes")["env"], json!({ "KEY": "keyring:bank" }));
    let (done, said) =
        moved(&place, &project, &["--secret", "KEY=bank", "--only", "takes", "--only", "plain"]);
    assert!(!done && said.contains("`--secret` applies to one server"), "{said}");
}
