//! Tests the stream of unsolicited messages when its login ends or cannot be renewed.

use super::{LoginHost, command, log_in, world_of};
use crate::client::{Client, TIMEOUT};
use crate::secret_file::run;
use crate::world::{World, eventually};
use serde_json::{Value, json};

/// Logs in and opens a session that receives unsolicited messages.
fn listen(host: &LoginHost) -> (World, Client) {
    let world = world_of(&json!({ "url": host.url() }));
    log_in(command(&world, &[]));
    let mut client = world.connect("far");
    client.say("hello").ok();
    host.control("/announce?text=before");
    client.wait_for(message("before"));
    (world, client)
}

fn message(text: &'static str) -> impl Fn(&Value) -> bool {
    move |message| message["params"]["data"] == text
}

#[test]
fn nothing_is_received_on_a_stream_after_its_login_has_ended() {
    let host = LoginHost::start();
    let (world, mut client) = listen(&host);
    let out = run(&world.ours(), &["servers", "logout", "far"], "");
    assert!(out.0, "{out:?}");
    host.control("/announce?text=secret");
    log_in(command(&world, &[]));
    client.say("back").ok();
    // The new stream is opened only after the message above was discarded.
    let mut announced = 0;
    eventually("a message arrives on the new stream", TIMEOUT, || {
        announced += 1;
        host.control("/announce?text=after");
        client.has(message("after"))
    });
    assert!(!client.has(message("secret")), "after {announced} messages");
}

#[test]
fn a_short_outage_of_the_authorization_server_does_not_end_the_stream() {
    let host = LoginHost::start();
    let (_world, mut client) = listen(&host);
    host.control("/expire");
    host.control("/outage");
    eventually("a renewal has failed", TIMEOUT, || host.control("/failed") != "0");
    host.control("/recovery");
    eventually("a message arrives on a new stream", TIMEOUT, || {
        host.control("/announce?text=after");
        client.has(message("after"))
    });
}
