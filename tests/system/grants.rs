//! A grant is a mount: what a hostile server can reach by itself, before, during and after.

use crate::client::{BOUND, Client};
use crate::consent::{Next, paths};
use crate::hostile;
use crate::machine::Machine;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{Gift, GiftOf};
use ironcurtain_policy::{Access, AccessSet};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const MISSING: &str = "os error 2)";
const READ_ONLY: &str = "os error 30)";

/// Lets the server open a path with the person's word.
fn allow(world: &World, client: &mut Client, path: &Path, reach: Reach, lifetime: Lifetime) {
    world.person.will(Next::Allow(reach, lifetime));
    client.open(path).ok();
}

fn server_pid(world: &World) -> Option<u32> {
    world.sessions()[0].server_pid
}

#[test]
fn what_is_not_granted_does_not_exist_and_a_session_grant_makes_it_exist() {
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
fn once_is_gone_from_the_kernels_view_when_the_call_is_over() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Once);
    gone(&mut client, &secret, Instant::now());
}

#[test]
fn once_is_listed_while_the_call_is_under_way_and_ends_when_it_is_taken_back() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let linger = |client: &mut Client| {
        world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
        let call = client.begin_call("linger", json!({ "path": secret }));
        eventually("it is listed", BOUND, || world.grants().len() == 1);
        assert_eq!(client.sneak(&secret).ok(), "secret");
        call
    };
    // By the client.
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
    gone(&mut client, &secret, Instant::now());
    eventually("it is listed no more", BOUND, || world.grants().is_empty());

    // By the person, and then it is gone when that is said. The call still may be answered.
    linger(&mut client);
    assert_eq!(world.revoke_only_grant(), [""; 0]);
    client.sneak(&secret).refused(MISSING);
    assert_eq!(world.grants(), []);
    for what in ["a grant was revoked", "what was allowed once is closed: it was revoked"] {
        let names = |line: &str| line.contains(what) && line.contains(secret.to_str().unwrap());
        eventually(what, BOUND, || world.log().lines().any(names));
    }
    // It opened nothing for the next one, and a yes opens it again.
    client.open(&secret).refused("the user denied this call");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Once);
    assert!(world.audit().intact);
}

#[test]
fn a_revoked_grant_is_gone_within_100_ms_without_a_restart() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let pid = server_pid(&world);
    // The machine may be busy with other things; that is not what is measured.
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
fn a_held_file_forces_the_restart_and_the_session_lives() {
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
fn a_file_held_beyond_its_one_call_costs_the_server_its_process() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let pid = server_pid(&world);
    client.call("hold", json!({ "path": secret })).ok();
    eventually("a new process", BOUND, || server_pid(&world).is_some_and(|now| Some(now) != pid));
    client.plain("recall").refused("entity not found");
    client.sneak(&secret).refused(MISSING);
}

#[test]
fn a_grant_for_reading_cannot_be_written_and_one_for_writing_can() {
    let world = hostile::world();
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    client.scribble(&note).refused(READ_ONLY);
    client.scribble(&world.path("docs/new.txt")).refused(READ_ONLY);
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
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
fn writing_a_file_once_does_not_open_what_lies_beside_it() {
    let world = hostile::world();
    let (note, other) = (world.file("docs/note.txt", "note"), world.file("docs/other.txt", "other"));
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Session));
    client.call("change", json!({ "path": note })).ok();
    // Beside the file there is only the empty folder it is shown in.
    client.scribble(&other).refused(READ_ONLY);
    client.sneak(&other).refused(MISSING);
}

#[test]
fn a_granted_file_that_is_replaced_is_shown_as_it_is_now() {
    let world = hostile::world();
    let note = world.file("docs/note.txt", "old");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Paths, Lifetime::Session);
    // As editors save.
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
fn a_grant_whose_path_became_a_link_is_suspended_and_not_followed() {
    let world = hostile::world();
    let (note, key) = (world.file("docs/note.txt", "note"), world.file("keys/key.txt", "key"));
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    std::fs::rename(world.path("docs"), world.path("moved")).unwrap();
    assert_eq!(world.grants()[0].suspended.as_deref().map(|why| why.contains("does not exist")), Some(true));
    std::os::unix::fs::symlink(world.path("keys"), world.path("docs")).unwrap();
    assert_eq!(world.grants()[0].suspended.as_deref().map(|why| why.contains("is now a symlink")), Some(true));
    world.person.asked();
    client.open(&world.path("docs/key.txt")).refused("the user denied this call");
    let asked = world.person.asked();
    assert_eq!(paths(&asked[0]), [key.to_str().unwrap()]);
    client.sneak(&key).refused(MISSING);
    client.sneak(&world.path("docs/key.txt")).refused(MISSING);
}

#[test]
fn a_new_file_in_a_folder_that_holds_protected_paths_is_refused() {
    let world = hostile::world();
    world.file(".ssh/id_ed25519", "key");
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    client.call("change", json!({ "path": world.path("new.txt") })).refused("structural-protected-path");
    assert_eq!(world.person.asked(), []);
    client.call("change", json!({ "path": world.path("docs/new.txt") })).ok();
    assert_eq!(std::fs::read_to_string(world.path("docs/new.txt")).unwrap(), "scribbled");
}

#[test]
fn uses_are_counted_and_shown() {
    let world = hostile::world();
    hostile::answers_before(&world);
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Always);
    for _ in 0..3 {
        client.open(&note).ok();
    }
    eventually("the last use", BOUND, || world.grants()[0].uses == 4);
    let grants = world.grants();
    assert_eq!(
        (grants[0].uses, grants[0].lifetime.as_str(), grants[0].kind.as_str()),
        (4, "always", "folder")
    );
    assert!(grants[0].last_used_ms >= Some(grants[0].created_ms));
}

#[test]
fn a_server_that_dawdles_cannot_put_off_a_revocation() {
    let world = hostile::dawdling();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
    // Its answer comes after the server has asked for its roots; one that never asks is waited for less long.
    assert!(client.sneak(&secret).is_error);
    let call = client.begin_call("open", json!({ "path": secret }));
    eventually("the mount", BOUND, || !client.sneak(&secret).is_error);
    std::thread::scope(|scope| {
        let since = Instant::now();
        scope.spawn(|| world.revoke_only_grant());
        gone(&mut client, &secret, since);
    });
    client.outcome(call).refused("changed before the server got it");
}

/// The time within which a server that ignores its roots is given up on: 5 s, and what a busy machine adds.
const GIVEN_UP: Duration = Duration::from_secs(15);

#[test]
fn a_call_that_needs_nothing_does_not_wait_until_a_server_that_dawdles_has_understood() {
    let world = hostile::dawdling();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    assert!(client.sneak(&secret).is_error);
    for _ in 0..3 {
        world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
        let open = client.begin_call("open", json!({ "path": secret }));
        // So many that one is between its judgement and the server at the moment when that reaches something.
        let (mut sent, mut answered) = (0, 0);
        while client.sneak(&secret).is_error {
            for _ in 0..20 {
                client.begin_call("sneak", json!({ "path": secret }));
                sent += 1;
            }
            while answered < sent {
                let (id, _) = client.next_outcome();
                assert_ne!(id, open, "a call that needs nothing waited as long as one that needs the grant");
                answered += 1;
            }
        }
        client.outcome(open).ok();
        world.revoke_only_grant();
    }
}

#[test]
fn grants_of_other_servers_do_not_prolong_the_wait_for_a_server_that_dawdles() {
    let world = hostile::dawdling();
    hostile::answers_before(&world);
    let (mine, other) = (world.file("docs/secret.txt", "secret"), world.path("other"));
    std::fs::create_dir(&other).unwrap();
    let mut client = world.connect("hostile");
    client.sneak(&mine).refused(MISSING);
    let key = world.daemon.known_clients()[0].key.clone();
    world.person.will(Next::Allow(Reach::Folders, Lifetime::Session));
    let began = Instant::now();
    let open = client.begin_call("open", json!({ "path": mine }));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let elsewhere = scope.spawn(|| {
            let mut changes = 0;
            while !done.load(Ordering::Relaxed) && began.elapsed() < GIVEN_UP * 2 {
                // A grant that this session cannot use, given and revoked.
                let access = AccessSet::default().with(Access::Read);
                let what = GiftOf::Files { path: other.clone(), access };
                let gift =
                    Gift { client: key.clone(), server: "another".into(), what, lifetime: Lifetime::Hour };
                world.wait(world.daemon.give(gift)).unwrap();
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
fn a_server_that_takes_old_roots_for_the_newest_is_told_again() {
    let world = hostile::mislaying();
    let note = world.file("docs/note.txt", "note");
    let mut client = world.connect("hostile");
    let roots = |client: &mut Client| client.plain(hostile::LISTS).ok().to_owned();
    assert!(!roots(&mut client).contains("docs"));
    allow(&world, &mut client, &note, Reach::Folders, Lifetime::Session);
    // By the time the call is answered.
    assert!(roots(&mut client).contains("docs"));
}

#[test]
fn a_grant_ends_by_the_clock_without_anybody_asking() {
    let mut world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::QuarterHour);
    client.hang_up();
    world.restart();
    world.person.asked();
    let mut client = world.connect("hostile");
    assert_eq!(client.open(&secret).ok(), "secret");
    assert_eq!(world.person.asked(), []);
    client.hang_up();
    let database = world.home.database();
    // A quarter of an hour that is nearly over.
    world.restart_after(|| {
        let ends = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + Duration::from_secs(3);
        let ends = i64::try_from(ends.as_millis()).unwrap();
        let changed = rusqlite::Connection::open(database)
            .unwrap()
            .execute("UPDATE grants SET expires_ms = ?1", [ends]);
        assert_eq!(changed.unwrap(), 1);
    });
    let mut client = world.connect("hostile");
    eventually("the end of the grant", BOUND, || world.grants().is_empty());
    eventually("the end of the mount", BOUND, || client.sneak(&secret).text.contains(MISSING));
    client.open(&secret).refused("the user denied this call");
    eventually("its record", BOUND, || {
        world.activity().iter().any(|e| e.summary.contains("A grant ended by the clock"))
    });
}

#[test]
fn the_command_takes_a_grant_back_and_says_so_when_it_is_gone() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    machine.start();
    hostile::answers_before_on(&machine);
    let mut client = machine.connect();
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_until_said("Your answer: ");
    machine.types("5");
    client.outcome(call).ok();
    let listed = String::from_utf8(machine.command(&["grants"]).stdout).unwrap();
    assert!(listed.contains(secret.to_str().unwrap()) && listed.contains("always"), "{listed}");
    let id = listed.split_whitespace().next().unwrap();
    let revoked = machine.command(&["grants", "revoke", id]);
    assert_eq!(String::from_utf8(revoked.stdout).unwrap(), format!("Taken back: {id}\n"));
    client.sneak(&secret).refused(MISSING);
    assert!(!machine.command(&["grants", "revoke", id]).status.success());
    assert_eq!(machine.command(&["grants"]).stdout, b"Nothing is granted.\n");
    machine.verify();
}

#[test]
fn a_grant_taken_back_during_a_call_leaves_the_call_nothing() {
    let world = hostile::world();
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    allow(&world, &mut client, &secret, Reach::Paths, Lifetime::Session);
    client.call("clutch", json!({ "where": secret })).ok();
    let slow = client.begin_call("slow", json!({}));
    client.plain("heard").ok();
    assert_eq!(world.revoke_only_grant().len(), 1);
    client.outcome(slow).refused("the server ended before it answered");
    client.sneak(&secret).refused(MISSING);
    client.open(&secret).refused("the user denied this call");
}

/// A path is gone soon after `since`.
fn gone(client: &mut Client, path: &Path, since: Instant) {
    let bound = Duration::from_secs(2);
    while !client.sneak(path).is_error {
        assert!(since.elapsed() < bound, "still there after {:?}", since.elapsed());
    }
    client.sneak(path).refused(MISSING);
}

#[test]
fn what_a_rule_opens_is_there_from_the_start_and_what_it_does_not_open_is_not() {
    let world = World::with(|w| {
        hostile::install(w);
        let folder = w.home.person.join("docs");
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
    assert_eq!(world.person.asked(), []);
    let roots = world.sessions().remove(0).roots;
    let found: Vec<_> = roots.iter().map(|r| (r.path.clone(), r.source.clone())).skip(1).collect();
    assert_eq!(found, [(world.path("docs").to_str().unwrap().to_owned(), "rule docs".to_owned())]);
}
