//! Grants are mounts. The tests check what a hostile server can access before, during and after a grant.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::Machine;
use crate::scripted_user::{Next, paths};
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MISSING: &str = "os error 2)";
const READ_ONLY: &str = "os error 30)";

/// Opens a path, which the user allows.
fn allow(world: &World, client: &mut Client, path: &Path, reach: Reach, lifetime: Lifetime) {
    world.user.will(Next::Allow(reach, lifetime));
    client.open(path).ok();
}

fn server_pid(world: &World) -> Option<u32> {
    world.sessions()[0].server_pid
}

#[test]
fn ungranted_path_is_invisible_until_session_grant() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    client.sneak(&secret).refused(MISSING);
    client.call("look", json!({ "path": world.sandbox() })).ok();
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Session);
    assert_eq!(client.sneak(&secret).ok(), "secret");
    client.sneak(&world.file("docs/other.txt", "other")).refused(MISSING);
}

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
fn revoked_grant_is_unmounted_within_100_ms_without_restart() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let pid = server_pid(&world);
    // Takes the fastest of five runs, because other load on the machine only makes a run slower.
    let fastest = (0..5).map(|_| {
        allow(&world, &mut client, &secret, Reach::Folders, Lifetime::Session);
        assert_eq!(client.sneak(&secret).ok(), "secret");
        let asked = Instant::now();
        assert_eq!(world.revoke_only_grant(), [""; 0]);
        client.sneak(&secret).refused(MISSING);
        asked.elapsed()
    });
    let fastest = fastest.min().unwrap();
    assert!(fastest < Duration::from_millis(100), "{fastest:?}");
    assert_eq!(server_pid(&world), pid);
    client.open(&secret).refused("the user denied this call");
    assert!(world.audit().intact);
}

#[test]
fn revoking_an_open_file_restarts_server_and_keeps_session() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Session);
    client.call("clutch", json!({ "where": secret })).ok();
    assert_eq!(client.plain("recall").ok(), "secret");
    let (pid, session) = (server_pid(&world), world.sessions()[0].id.clone());
    assert_eq!(world.revoke_only_grant(), [session]);
    client.plain("recall").refused("entity not found");
    client.sneak(&secret).refused(MISSING);
    assert_ne!(server_pid(&world), pid);
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
fn read_grant_is_read_only_and_write_grant_is_writable() {
    let world = hostile::world();
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    client.scribble(&note).refused(READ_ONLY);
    client.scribble(&world.path("docs/new.txt")).refused(READ_ONLY);
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    client.call("change", json!({ "path": note })).ok();
    client.scribble(&note).ok();
    assert_eq!(std::fs::read_to_string(&note).unwrap(), "scribbled");
    for grant in world.grants().iter().filter(|g| g.access.contains(&"write".to_owned())) {
        let revoked = world.request(Request::Revoke { grant: grant.id.clone() });
        assert!(matches!(revoked, Reply::Revoked { .. }), "{revoked:?}");
    }
    client.scribble(&note).refused(READ_ONLY);
    assert_eq!(client.sneak(&note).ok(), "scribbled");
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
fn replaced_granted_file_shows_current_content() {
    let world = hostile::world();
    let note = world.file("docs/note.txt", "old");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Paths, Lifetime::Session);
    // Replaces the file as editors do.
    let beside = world.file("docs/note.txt.tmp", "new");
    std::fs::rename(beside, &note).unwrap();
    assert_eq!(client.open(&note).ok(), "new");
    std::fs::remove_file(&note).unwrap();
    client.open(&note).refused(MISSING);
    world.file("docs/note.txt", "newer");
    assert_eq!(client.open(&note).ok(), "newer");
    let folder = world.path("docs");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    std::fs::rename(&folder, world.path("elsewhere")).unwrap();
    world.file("docs/note.txt", "newest");
    assert_eq!(client.open(&note).ok(), "newest");
}

#[test]
fn grant_whose_path_became_a_symlink_is_suspended() {
    let world = hostile::world();
    let (note, key) = (world.file("docs/note.txt", "note"), world.file("keys/key.txt", "key"));
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    std::fs::rename(world.path("docs"), world.path("moved")).unwrap();
    assert_eq!(world.grants()[0].suspended.as_deref().map(|why| why.contains("does not exist")), Some(true));
    std::os::unix::fs::symlink(world.path("keys"), world.path("docs")).unwrap();
    assert_eq!(
        world.grants()[0].suspended.as_deref().map(|why| why.contains("is now a symlink")),
        Some(true)
    );
    world.user.asked();
    client.open(&world.path("docs/key.txt")).refused("the user denied this call");
    let asked = world.user.asked();
    assert_eq!(paths(&asked[0]), [key.to_str().unwrap()]);
    client.sneak(&key).refused(MISSING);
    client.sneak(&world.path("docs/key.txt")).refused(MISSING);
}

#[test]
fn creating_file_beside_protected_paths_is_refused() {
    let world = hostile::world();
    world.file(".ssh/id_ed25519", "key");
    let mut client = world.connect("hostile");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.call("change", json!({ "path": world.path("new.txt") })).refused("structural-protected-path");
    assert_eq!(world.user.asked(), []);
    client.call("change", json!({ "path": world.path("docs/new.txt") })).ok();
    assert_eq!(std::fs::read_to_string(world.path("docs/new.txt")).unwrap(), "scribbled");
}

#[test]
fn grant_uses_are_counted_and_listed() {
    let world = hostile::world();
    hostile::answers_before(&world);
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Always);
    for _ in 0..3 {
        client.open(&note).ok();
    }
    eventually("the last use is counted", TIMEOUT, || world.grants()[0].uses == 4);
    let grants = world.grants();
    assert_eq!(
        (grants[0].uses, grants[0].lifetime.as_str(), grants[0].kind.as_str()),
        (4, "always", "folder")
    );
    assert!(grants[0].last_used_ms >= Some(grants[0].created_ms));
}

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

#[test]
fn revoke_command_reports_after_unmount() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    hostile::make_server_known_on(&machine);
    let mut client = machine.connect();
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_for_output("Your answer: ");
    machine.types("5");
    client.outcome(call).ok();
    let listed = String::from_utf8(machine.command(&["grants"]).stdout).unwrap();
    assert!(listed.contains(secret.to_str().unwrap()) && listed.contains("always"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let revoked = machine.command(&["grants", "revoke", id]);
    assert_eq!(String::from_utf8(revoked.stdout).unwrap(), format!("Revoked: {id}\n"));
    client.sneak(&secret).refused(MISSING);
    assert!(!machine.command(&["grants", "revoke", id]).status.success());
    assert_eq!(machine.command(&["grants"]).stdout, b"Nothing is granted.\n");
    machine.verify();
}

#[test]
fn grant_revoked_during_call_is_removed_from_that_call() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Session);
    client.call("clutch", json!({ "where": secret })).ok();
    let slow = client.begin_call("slow", json!({}));
    client.plain("heard").ok();
    assert_eq!(world.revoke_only_grant().len(), 1);
    client.outcome(slow).refused("the server stopped before it answered");
    client.sneak(&secret).refused(MISSING);
    client.open(&secret).refused("the user denied this call");
}

/// Asserts that the path becomes inaccessible shortly after `since`.
fn assert_inaccessible_soon(client: &mut Client, path: &Path, since: Instant) {
    let bound = Duration::from_secs(2);
    while !client.sneak(path).is_error {
        assert!(since.elapsed() < bound, "the path is still visible after {:?}", since.elapsed());
    }
    client.sneak(path).refused(MISSING);
}

#[test]
fn rule_grants_are_mounted_from_the_start() {
    let world = World::with(|w| {
        hostile::install(w);
        let folder = w.home.user_home.join("docs");
        let within = json!({ "roles": ["read-path"], "within": folder });
        let open = json!({ "name": "docs", "description": "d", "principle": "p", "reason": "docs are free",
            "if": { "paths": within }, "then": "allow" });
        let file = w.home.policy().join("compiled-policy.json");
        let mut policy: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        policy["rules"].as_array_mut().unwrap().insert(0, open);
        std::fs::write(file, policy.to_string()).unwrap();
    });
    let (open, shut) = (world.file("docs/open.txt", "open"), world.file("shut/shut.txt", "shut"));
    let mut client = world.connect("hostile");
    assert_eq!(client.sneak(&open).ok(), "open");
    client.sneak(&shut).refused("os error 2)");
    assert_eq!(client.call("open", json!({ "path": open })).ok(), "open");
    assert_eq!(world.user.asked(), []);
    let roots = world.sessions().remove(0).roots;
    let found: Vec<_> = roots.iter().map(|r| (r.path.clone(), r.source.clone())).skip(1).collect();
    assert_eq!(found, [(world.path("docs").to_str().unwrap().to_owned(), "rule docs".to_owned())]);
}
