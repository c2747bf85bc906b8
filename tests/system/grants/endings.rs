//! Grants that end by themselves: with the call that they are for, or at their expiry.

use super::{MISSING, READ_ONLY, allow, assert_inaccessible_soon, server_pid};
use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::eventually;
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::json;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

#[test]
fn one_call_grant_is_unmounted_when_the_call_ends() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Once);
    assert_inaccessible_soon(&mut client, &secret, Instant::now());
}

#[test]
fn one_call_grant_is_listed_in_flight_and_can_be_revoked() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let linger = |client: &mut Client| {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let call = client.begin_call("linger", json!({ "path": secret }));
        eventually("the grant is listed", TIMEOUT, || world.grants().len() == 1);
        assert_eq!(client.sneak(&secret).ok(), "secret");
        call
    };
    // The client cancels the call.
    let call = linger(&mut client);
    let listed = &world.grants()[0];
    assert_eq!(
        (listed.path.as_str(), listed.kind.as_str(), listed.access.as_slice(), listed.lifetime.as_str()),
        (secret.to_str().unwrap(), "file", &["read".to_owned()][..], "this call")
    );
    assert!(listed.suspended.is_none() && listed.expires_ms.is_some());
    client.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": call } }),
    );
    assert_inaccessible_soon(&mut client, &secret, Instant::now());
    eventually("the grant disappears from the list", TIMEOUT, || world.grants().is_empty());

    // The user revokes access. The path is unmounted by the time the request returns, even though the call may still be
    // answered.
    linger(&mut client);
    assert_eq!(world.revoke_only_grant(), [""; 0]);
    client.sneak(&secret).refused(MISSING);
    assert_eq!(world.grants(), []);
    for what in ["a grant was revoked", "one-time access was closed: it was revoked"] {
        let names = |line: &str| line.contains(what) && line.contains(secret.to_str().unwrap());
        eventually(what, TIMEOUT, || world.log().lines().any(names));
    }
    // No grant covers the next call, so it raises another question.
    client.open(&secret).refused("the user denied this call");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Once);
    assert!(world.audit().intact);
}

#[test]
fn file_kept_open_after_one_call_grant_restarts_server() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let pid = server_pid(&world);
    client.call("hold", json!({ "path": secret })).ok();
    eventually("the server is a new process", TIMEOUT, || {
        server_pid(&world).is_some_and(|now| Some(now) != pid)
    });
    client.plain("recall").refused("entity not found");
    client.sneak(&secret).refused(MISSING);
}

#[test]
fn one_call_write_grant_does_not_expose_siblings() {
    let world = hostile::world();
    let (note, other) = (world.file("docs/note.txt", "note"), world.file("docs/other.txt", "other"));
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.call("change", json!({ "path": note })).ok();
    // The file is alone in an otherwise empty directory.
    client.scribble(&other).refused(READ_ONLY);
    client.sneak(&other).refused(MISSING);
}

#[test]
fn timed_grant_expires_without_a_call() {
    let mut world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::QuarterHour);
    client.hang_up();
    world.restart();
    world.user.asked();
    let mut client = world.connect("hostile");
    assert_eq!(client.open(&secret).ok(), "secret");
    assert_eq!(world.user.asked(), []);
    client.hang_up();
    let database = world.home.database();
    // The 15-minute grant is now about to expire.
    world.restart_after(|| {
        let ends = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3);
        let ends = i64::try_from(ends.as_millis()).unwrap();
        let changed = rusqlite::Connection::open(database)
            .unwrap()
            .execute("UPDATE grants SET expires_ms = ?1", [ends]);
        assert_eq!(changed.unwrap(), 1);
    });
    let mut client = world.connect("hostile");
    eventually("the grant expires", TIMEOUT, || world.grants().is_empty());
    eventually("the path is unmounted", TIMEOUT, || client.sneak(&secret).text.contains(MISSING));
    client.open(&secret).refused("the user denied this call");
    eventually("the expiry is recorded", TIMEOUT, || {
        world.activity().iter().any(|e| e.summary.contains("A grant expired"))
    });
}
