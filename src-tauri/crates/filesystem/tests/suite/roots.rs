//! Tests roots that the client sends, changes and removes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Client, directory};

const CHANGED: &str = "notifications/roots/list_changed";

#[test]
fn the_clients_roots_replace_the_command_line() {
    let (_keep, [one, two]) = two_directories();
    let mut client = Client::ours_with_roots(&[&one]);
    client.send_roots(&[&two]);
    assert_eq!(allowed(&mut client), format!("Allowed directories:\n{}", two.display()));
    assert!(reads(&mut client, &two));
    assert!(!reads(&mut client, &one));
}

#[test]
fn a_call_sent_right_after_a_change_is_judged_by_the_changed_roots() {
    let (_keep, [one, two]) = two_directories();
    let mut client = Client::ours_with_roots(&[]);
    client.send_roots(&[&one]);
    assert!(reads(&mut client, &one));
    for round in 0..50 {
        let (new, old) = if round % 2 == 0 { (&two, &one) } else { (&one, &two) };
        // These calls are sent before the client has sent its roots.
        client.notify(CHANGED);
        let granted = client.send_request("tools/call", &read_call(new));
        let revoked = client.send_request("tools/call", &read_call(old));
        client.send_roots(&[new]);
        let mut answers = [client.receive(), client.receive()];
        answers.sort_by_key(|answer| answer["id"].as_u64());
        assert_eq!(answers[0]["id"], granted);
        assert_eq!(answers[0]["result"]["content"][0]["text"], "content", "round {round}");
        assert_eq!(answers[1]["id"], revoked);
        assert_eq!(
            answers[1]["result"]["content"][0]["text"],
            format!(
                "Access denied - path outside allowed directories: {} not in {}",
                old.join("file").display(),
                new.display()
            )
        );
    }
}

#[test]
fn an_empty_list_allows_nothing() {
    let (_keep, [one, two]) = two_directories();
    for nothing in [&[][..], &[Path::new("/nonexistent")], &[&one.join("file")]] {
        let mut client = Client::ours_with_roots(&[&one]);
        client.send_roots(&[&two]);
        assert!(reads(&mut client, &two));
        client.notify(CHANGED);
        client.send_roots(nothing);
        assert_eq!(allowed(&mut client), "Allowed directories:\n");
        assert!(!reads(&mut client, &one));
        assert!(!reads(&mut client, &two));
        client.notify(CHANGED);
        client.send_roots(&[&one]);
        assert!(reads(&mut client, &one));
    }
}

#[test]
fn a_client_that_stops_sending_roots_loses_access() {
    let (_keep, [one, two]) = two_directories();
    let mut client = Client::ours_with_roots(&[&one]);
    fail_roots(&mut client);
    assert!(reads(&mut client, &one), "the command line applies until roots are sent");
    client.notify(CHANGED);
    client.send_roots(&[&two]);
    assert!(reads(&mut client, &two));
    client.notify(CHANGED);
    fail_roots(&mut client);
    assert!(!reads(&mut client, &one));
    assert!(!reads(&mut client, &two));
}

#[test]
fn waiting_for_an_unresponsive_client_times_out() {
    let (_keep, [one, two]) = two_directories();
    let mut client = Client::ours_with_roots(&[&one]);
    client.send_roots(&[&two]);
    client.notify(CHANGED);
    let call = client.send_request("tools/call", &read_call(&two));
    let question = client.receive();
    assert_eq!(question["method"], "roots/list");
    let start = Instant::now();
    let mut answer = client.receive();
    while answer["id"] != call {
        answer = client.receive();
    }
    assert!(start.elapsed() < Duration::from_secs(12), "{:?}", start.elapsed());
    assert_eq!(answer["result"]["isError"], true);
}

#[test]
fn roots_may_have_any_name() {
    let (_keep, root) = directory();
    let odd = root.join("a b#ü%?");
    fs::create_dir(&odd).expect("directory");
    fs::write(odd.join("file"), "content").expect("file");
    let mut client = Client::ours_with_roots(&[]);
    let question = client.receive();
    let uri = format!("file://{}/a%20b%23%C3%BC%25%3F", root.display());
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [{ "uri": uri }] } }));
    assert_eq!(allowed(&mut client), format!("Allowed directories:\n{}", odd.display()));
    assert!(reads(&mut client, &odd));
}

#[test]
fn long_operations_stop_when_their_directory_is_removed() {
    let (_keep, [one, two]) = two_directories();
    for directory in 0..300 {
        let directory = one.join(format!("directory {directory}"));
        fs::create_dir(&directory).expect("directory");
        for file in 0..100 {
            fs::write(directory.join(format!("file {file}")), "").expect("file");
        }
    }
    let mut client = Client::ours_with_roots(&[]);
    client.send_roots(&[&one]);
    // The search is deliberately slow: it checks many patterns for each entry.
    let patterns: Vec<String> = (0..2000).map(|number| format!("**/*{number}x*/**")).collect();
    let search = json!({ "name": "search_files", "arguments": {
        "path": one, "pattern": "**", "excludePatterns": patterns,
    } });
    let id = client.send_request("tools/call", &search);
    client.request("ping", &json!({}));
    client.notify(CHANGED);
    client.send_roots(&[&two]);
    let answer = client.receive();
    assert_eq!(answer["id"], id);
    let text = "Cancelled: the call was cancelled or its directory is no longer allowed";
    assert_eq!(answer["result"]["content"][0]["text"], text);
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_below_a_root_is_held_open_between_calls() {
    let (_keep, [one, _]) = two_directories();
    let mut client = Client::ours_with_roots(&[]);
    client.send_roots(&[&one]);
    assert!(reads(&mut client, &one));
    client.text("search_files", &json!({ "path": one, "pattern": "**" }));
    client.text("write_file", &json!({ "path": one.join("new"), "content": "x" }));
    let process = PathBuf::from(format!("/proc/{}", client.child.id()));
    let mut links = vec![process.join("cwd")];
    links.extend(
        fs::read_dir(process.join("fd")).expect("descriptors").map(|entry| entry.expect("entry").path()),
    );
    for link in links {
        let target = fs::read_link(&link).expect("a link");
        assert!(!target.starts_with(&one), "{} is {}", link.display(), target.display());
    }
}

fn two_directories() -> (tempfile::TempDir, [PathBuf; 2]) {
    let (keep, root) = directory();
    let pair = ["one", "two"].map(|name| root.join(name));
    for directory in &pair {
        fs::create_dir(directory).expect("directory");
        fs::write(directory.join("file"), "content").expect("file");
    }
    (keep, pair)
}

fn read_call(directory: &Path) -> Value {
    json!({ "name": "read_text_file", "arguments": { "path": directory.join("file") } })
}

fn reads(client: &mut Client, directory: &Path) -> bool {
    let result = client.call("read_text_file", &json!({ "path": directory.join("file") }));
    let text = result["content"][0]["text"].as_str().expect("a text");
    let denied = text.starts_with("Access denied - path outside allowed directories: ");
    assert!(denied || text == "content", "{text}");
    !denied
}

fn allowed(client: &mut Client) -> String {
    client.text("list_allowed_directories", &json!({}))
}

fn fail_roots(client: &mut Client) {
    let question = client.receive();
    assert_eq!(question["method"], "roots/list");
    let error = json!({ "code": -32603, "message": "internal error" });
    client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
}
