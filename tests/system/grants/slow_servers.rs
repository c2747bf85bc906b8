//! Servers that are slow to request their roots again, or that keep stale roots, after a grant has changed.

use super::{MISSING, allow, assert_inaccessible_soon};
use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::eventually;
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::Request;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

#[test]
fn slow_server_cannot_delay_revocation() {
    let world = hostile::ignoring_root_changes();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    // This call is answered only after the server has requested its roots. The daemon waits less for a server that
    // never requests roots.
    assert!(client.sneak(&secret).is_error);
    let call = client.begin_call("open", json!({ "path": secret }));
    eventually("the mount is visible", TIMEOUT, || !client.sneak(&secret).is_error);
    std::thread::scope(|scope| {
        let since = Instant::now();
        scope.spawn(|| world.revoke_only_grant());
        assert_inaccessible_soon(&mut client, &secret, since);
    });
    client.outcome(call).refused("changed before the server got it");
}

/// Time after which the daemon stops waiting for a server that ignores its roots: 5 s, plus a margin for busy
/// machines.
const GIVEN_UP: Duration = Duration::from_secs(15);

#[test]
fn call_without_grants_does_not_wait_for_slow_roots_update() {
    let world = hostile::ignoring_root_changes();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    assert!(client.sneak(&secret).is_error);
    for _ in 0..3 {
        world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
        let open = client.begin_call("open", json!({ "path": secret }));
        // Sends enough calls that one of them has been decided on but has not reached the server when the server gains
        // access.
        let (mut sent, mut answered) = (0, 0);
        while client.sneak(&secret).is_error {
            for _ in 0..20 {
                client.begin_call("sneak", json!({ "path": secret }));
                sent += 1;
            }
            while answered < sent {
                let (id, _) = client.next_outcome();
                assert_ne!(id, open, "a call without grants waited as long as one that needs the grant");
                answered += 1;
            }
        }
        client.outcome(open).ok();
        world.revoke_only_grant();
    }
}

#[test]
fn other_servers_grants_do_not_extend_wait_for_slow_server() {
    let world = hostile::ignoring_root_changes();
    hostile::answers_before(&world);
    let (mine, other) = (world.file("docs/secret.txt", "secret"), world.path("other"));
    std::fs::create_dir(&other).unwrap();
    let mut client = world.connect("hostile");
    client.sneak(&mine).refused(MISSING);
    let key = world.daemon.known_clients()[0].key.clone();
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let began = Instant::now();
    let open = client.begin_call("open", json!({ "path": mine }));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            let mut changes = 0;
            while !done.load(Ordering::Relaxed) && began.elapsed() < GIVEN_UP * 2 {
                // Creates and revokes a grant that does not apply to this session.
                let access = AccessSet::default().with(Access::Read);
                let what = GrantTarget::Files { path: other.clone(), access };
                let gift = GrantRequest {
                    client: key.clone(),
                    server: "another".into(),
                    what,
                    lifetime: Lifetime::Hour,
                };
                world.wait(world.daemon.grant(gift)).unwrap();
                let grants = world.grants();
                let id =
                    grants.iter().find(|grant| grant.path == other.to_str().unwrap()).unwrap().id.clone();
                world.request(Request::Revoke { grant: id });
                changes += 2;
            }
            changes
        });
        let opened = client.outcome(open);
        let took = began.elapsed();
        done.store(true, Ordering::Relaxed);
        let changes = elsewhere.join().unwrap();
        opened.ok();
        assert!(changes > 10 && took < GIVEN_UP, "{took:?}, {changes} changes");
    });
}

#[test]
fn server_with_stale_roots_is_notified_again() {
    let world = hostile::with_stale_roots();
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    let roots = |client: &mut Client| client.plain(hostile::LISTS).ok().to_owned();
    assert!(!roots(&mut client).contains("docs"));
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    // The roots are up to date when the call is answered.
    assert!(roots(&mut client).contains("docs"));
}
