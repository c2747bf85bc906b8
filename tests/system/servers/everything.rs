//! The reference server that implements every protocol feature.

use super::{allowed, free, world};
use serde_json::json;

/// Any content can be compressed, so the test needs no image.
const DATA: &str = "data:text/plain;base64,aGVsbG8gaGVsbG8gaGVsbG8=";

#[test]
fn everything_server_adds_reports_roots_and_hides_environment() {
    let world = world("everything");
    let mut client = world.connect("everything");
    let sum = free(&world, &mut client, "get-sum", json!({ "a": 1.5, "b": 2 }));
    assert_eq!(sum.ok(), "The sum of 1.5 and 2 is 3.5.");
    let roots = free(&world, &mut client, "get-roots-list", json!({}));
    assert!(roots.ok().contains(world.sandbox().to_str().unwrap()), "{}", roots.text);
    client.call("get-env", json!({})).refused("the tool `everything/get-env` has not been reviewed yet");
    assert_eq!(world.user.asked().len(), 0);
}

#[test]
fn everything_server_compresses_inline_data_and_fetches_nothing() {
    let world = world("everything");
    let mut client = world.connect("everything");
    let zipped = json!({ "name": "a.gz", "data": DATA, "outputType": "resource" });
    allowed(&world, &mut client, "gzip-file-as-resource", zipped).ok();
    // An approval cannot give the server network access, so there is no question.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/a", listener.local_addr().unwrap());
    let fetched = json!({ "name": "a.gz", "data": address, "outputType": "resource" });
    client.call("gzip-file-as-resource", fetched).refused("the server `everything` has no network");
    assert_eq!(world.user.asked().len(), 0);
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "the server reached the host's network");
}
