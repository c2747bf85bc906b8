//! Taking back is at once, whatever the agent does meanwhile, and what was taken back stays so.

use crate::client::{BOUND, Client};
use crate::consent::Next;
use crate::hostile;
use crate::machine::Machine;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The calls that are under way at any time.
const LOOPING: usize = 16;

/// The time after the request from which on nothing that arrives is allowed.
const AT_ONCE: Duration = Duration::from_millis(10);

/// The time within which it is proved that it is gone.
const PROVED: Duration = Duration::from_millis(100);

/// The number of times that it is taken back, unless the environment says otherwise.
const ROUNDS: usize = 50;

/// The most rounds with one trusted process, which asks a person at most a thousand times a minute: for the file, and again for
/// calls that were under way when it was taken back.
const ROUNDS_TOGETHER: usize = 100;

/// The number of rounds, by `IRONCURTAIN_REVOCATIONS`.
fn rounds() -> usize {
    std::env::var("IRONCURTAIN_REVOCATIONS").map_or(ROUNDS, |n| n.parse().unwrap())
}

/// One revocation under looping calls.
struct Round {
    /// From the request to the proof.
    proved: Duration,
    /// From the request to the sending of the last call that was allowed.
    last_allowed: Duration,
    /// The servers that were restarted for the proof.
    restarts: usize,
}

#[test]
fn nothing_is_allowed_that_comes_after_a_revocation_whatever_the_agent_does() {
    let mut found = Vec::new();
    while found.len() < rounds() {
        found.extend(revocations((rounds() - found.len()).min(ROUNDS_TOGETHER)));
    }
    found.sort_by_key(|round| round.proved);
    let at = |part: usize| found[(found.len() - 1) * part / 100].proved;
    let last = found.iter().map(|round| round.last_allowed).max().unwrap();
    let late = found.iter().filter(|round| round.last_allowed > AT_ONCE).count();
    let slow = found.iter().filter(|round| round.proved > PROVED).count();
    let restarts: usize = found.iter().map(|round| round.restarts).sum();
    // It is for whoever reads the figures.
    let _ = writeln!(
        std::io::stderr(),
        "{} revocations under {LOOPING} looping calls: the last allowed call was sent {last:?} after the request, {late} \
         beyond {AT_ONCE:?}; proved in p50 {:?}, p99 {:?}, at most {:?}, {slow} beyond {PROVED:?}; {restarts} restarts",
        found.len(),
        at(50),
        at(99),
        at(100),
    );
    assert_eq!(late, 0, "a call was allowed that was sent {last:?} after the request");
    // The machine may be busy with other things; one in ten may be slow for that.
    assert!(slow * 10 <= found.len(), "{slow} of {} were not proved within {PROVED:?}", found.len());
}

/// Grants a file and takes it back so many times, under looping calls.
fn revocations(rounds: usize) -> Vec<Round> {
    let world = hostile::world();
    hostile::answers_before(&world);
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let found = (0..rounds).map(|_| round(&world, &mut client, &secret)).collect();
    assert!(world.audit().intact);
    found
}

fn round(world: &World, client: &mut Client, secret: &Path) -> Round {
    world.person.will(Next::Allow(Reach::Paths, Lifetime::Always));
    client.open(secret).ok();
    let grant = world.grants()[0].id.clone();
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (requested, proved, restarts, calls) = std::thread::scope(|scope| {
        let looping = scope.spawn(|| looping(client, secret, &done, &answered));
        eventually("the calls loop", BOUND, || answered.load(Ordering::Relaxed) > 10 * LOOPING);
        let requested = Instant::now();
        let reply = world.request(Request::Revoke { grant });
        let proved = requested.elapsed();
        done.store(true, Ordering::Relaxed);
        let Reply::Revoked { restarted, unstored: None, .. } = reply else { panic!("{reply:?}") };
        (requested, proved, restarted.len(), looping.join().unwrap())
    });
    client.sneak(secret).refused("os error 2)");
    let allowed = calls.into_iter().filter_map(|(sent, allowed)| allowed.then_some(sent));
    let last = allowed.max().unwrap();
    world.person.asked();
    Round { proved, last_allowed: last.saturating_duration_since(requested), restarts }
}

/// Calls until told, always as many at a time; when each was sent, and if it was allowed.
fn looping(
    client: &mut Client,
    secret: &Path,
    done: &AtomicBool,
    answered: &AtomicUsize,
) -> Vec<(Instant, bool)> {
    let send = |client: &mut Client| {
        let sent = Instant::now();
        (client.begin_call("open", json!({ "path": secret })), sent)
    };
    let mut open: HashMap<u64, Instant> = (0..LOOPING).map(|_| send(client)).collect();
    let mut calls = Vec::new();
    while !open.is_empty() {
        let (id, outcome) = client.next_outcome();
        answered.fetch_add(1, Ordering::Relaxed);
        calls.push((open.remove(&id).unwrap(), !outcome.is_error));
        if !done.load(Ordering::Relaxed) {
            open.extend([send(client)]);
        }
    }
    calls
}

/// Allows a file for good, with the person's word.
fn allow_always(machine: &mut Machine, client: &mut Client, path: &Path) -> String {
    let before = grants(machine).len();
    let call = client.begin_call("open", json!({ "path": path }));
    machine.wait_until_said("Your answer: ");
    machine.types("5");
    client.outcome(call).ok();
    let grants = grants(machine);
    assert_eq!(grants.len(), before + 1);
    let is_its = |grant: &&Value| grant["path"] == json!(path);
    grants.iter().find(is_its).unwrap()["id"].as_str().unwrap().to_owned()
}

/// The grants, as the command lists them.
fn grants(machine: &Machine) -> Vec<Value> {
    let listed: Value = serde_json::from_slice(&machine.command(&["grants", "--json"]).stdout).unwrap();
    listed["grants"].as_array().unwrap().clone()
}

fn said(machine: &Machine, arguments: &[&str]) -> String {
    String::from_utf8(machine.command(arguments).stdout).unwrap()
}

/// The number of ends of a grant that are on record.
fn ends_on_record(machine: &Machine, id: &str) -> usize {
    let log = std::fs::read_to_string(machine.home.audit().join("audit.jsonl")).unwrap();
    let is_its = |line: &&str| line.contains("\"event\":\"revoked\"") && line.contains(&format!("\"{id}\""));
    log.lines().filter(is_its).count()
}

/// Takes a grant back while that cannot be stored, is killed, and starts again when it can be.
fn taken_back_while<T>(breaks: impl FnOnce(&Machine) -> T, mends: impl FnOnce(&Machine, T), because: &str) {
    let mut machine = Machine::new(hostile::install);
    let (secret, other) =
        (machine.file("docs/secret.txt", "secret"), machine.file("docs/other.txt", "other"));
    machine.start();
    hostile::answers_before_on(&machine);
    let mut client = machine.connect();
    let id = allow_always(&mut machine, &mut client, &secret);
    let kept = allow_always(&mut machine, &mut client, &other);
    assert_eq!(client.open(&secret).ok(), "secret");
    let broken = breaks(&machine);
    let revoked = machine.command(&["grants", "revoke", &id]);
    let told = String::from_utf8(revoked.stdout).unwrap();
    assert!(
        revoked.status.success() && told.starts_with(&format!("Taken back: {id}\n  NOT STORED YET: ")),
        "{told}"
    );
    assert!(told.contains(because), "{told}");
    // It is denied, listed as what it is, and a trouble; a second request says what became of it.
    let listed = grants(&machine);
    let ending = listed.iter().find(|grant| grant["id"] == json!(id)).unwrap();
    let words = ending["ending"].as_str().unwrap();
    assert!(words.starts_with("it is denied since ") && words.contains(because), "{words}");
    assert!(said(&machine, &["grants"]).contains("BEING TAKEN BACK: it is denied since"));
    let status = said(&machine, &["status"]);
    assert!(
        status.contains(" is in trouble ") && status.contains("1 grant has ended, but that could not be stored"),
        "{status}"
    );
    let again = machine.command(&["grants", "revoke", &id]);
    assert!(!again.status.success());
    let again = String::from_utf8(again.stderr).unwrap();
    assert!(
        again.contains(&format!("the grant `{id}` was revoked at ")) && again.contains("not stored yet"),
        "{again}"
    );
    client.sneak(&secret).is_error.then_some(()).unwrap();
    machine.kill();
    mends(&machine, broken);
    machine.start();
    let mut client = machine.connect();
    let ids =
        || grants(&machine).iter().map(|grant| grant["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    eventually("only the other one is left", BOUND, || ids() == [kept.clone()]);
    eventually("it is on record", BOUND, || ends_on_record(&machine, &id) >= 1);
    eventually("there is no trouble", BOUND, || said(&machine, &["status"]).contains(" is protecting "));
    assert_eq!(client.open(&other).ok(), "other");
    let again = machine.command(&["grants", "revoke", &id]);
    let again = String::from_utf8(again.stderr).unwrap();
    assert!(again.contains("and that is stored"), "{again}");
    let call = client.begin_call("open", json!({ "path": secret }));
    machine.wait_until_said("Your answer: ");
    machine.types("0");
    client.outcome(call).refused("the user denied this call");
    client.sneak(&secret).refused("os error 2)");
    machine.verify();
}

#[test]
fn what_is_taken_back_on_a_full_disk_does_not_come_back() {
    let fill = |machine: &Machine| machine.limit_files(Some(room_of_the_log(machine)));
    taken_back_while(fill, |_, ()| {}, "the audit log cannot be written: File too large");
}

fn room_of_the_log(machine: &Machine) -> u64 {
    std::fs::metadata(machine.home.audit().join("audit.jsonl")).unwrap().len()
}

#[test]
fn what_is_taken_back_beside_a_locked_database_does_not_come_back() {
    let lock = |machine: &Machine| {
        let other = rusqlite::Connection::open(machine.home.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        other
    };
    taken_back_while(lock, |_, other| drop(other), "database is locked");
}

/// The capabilities by which the modes of files do not hinder a process.
const BEYOND_MODES: u64 = 0b110;

#[test]
fn what_is_taken_back_in_a_folder_that_cannot_be_written_is_stored_in_the_files_that_are_open() {
    let mut machine = Machine::new(hostile::install);
    let (secret, other) =
        (machine.file("docs/secret.txt", "secret"), machine.file("docs/other.txt", "other"));
    machine.start_minding_modes();
    let status = std::fs::read_to_string(format!("/proc/{}/status", machine.pid())).unwrap();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(capabilities, 16).unwrap() & BEYOND_MODES, 0, "modes do not hinder it");
    hostile::answers_before_on(&machine);
    let mut client = machine.connect();
    let id = allow_always(&mut machine, &mut client, &secret);
    let kept = allow_always(&mut machine, &mut client, &other);
    assert_eq!(client.open(&secret).ok(), "secret");
    let state = machine.home.state.clone();
    let set = |mode| std::fs::set_permissions(&state, std::fs::Permissions::from_mode(mode)).unwrap();
    set(0o500);
    let told = said(&machine, &["grants", "revoke", &id]);
    assert!(told.starts_with(&format!("Taken back: {id}")) && !told.contains("NOT STORED"), "{told}");
    assert!(said(&machine, &["status"]).contains(" is protecting "));
    client.sneak(&secret).refused("os error 2)");
    assert_eq!(client.open(&other).ok(), "other");
    machine.kill();
    set(0o700);
    machine.start_minding_modes();
    let left: Vec<Value> = grants(&machine).iter().map(|grant| grant["id"].clone()).collect();
    assert_eq!(left, [json!(kept)]);
    assert_eq!(ends_on_record(&machine, &id), 1);
    machine.verify();
}

/// The number of kills, by `IRONCURTAIN_KILLS`.
fn kills() -> u64 {
    std::env::var("IRONCURTAIN_KILLS").map_or(12, |n| n.parse().unwrap())
}

#[test]
fn a_kill_at_any_instant_of_a_revocation_leaves_the_record_and_the_grants_of_one_mind() {
    let mut machine = Machine::new(hostile::install);
    let secret = machine.file("docs/secret.txt", "secret");
    let (mut gone, mut there) = (0, 0);
    machine.start();
    hostile::answers_before_on(&machine);
    for n in 0..kills() {
        let mut client = machine.connect();
        let mut ids: Vec<String> =
            grants(&machine).iter().map(|grant| grant["id"].as_str().unwrap().to_owned()).collect();
        if ids.is_empty() {
            ids.push(allow_always(&mut machine, &mut client, &secret));
        }
        let id = ids.remove(0);
        let after = Duration::from_micros(n * 7919 % 17_000);
        let home = machine.ours();
        let answered = std::thread::scope(|scope| {
            let revoking = scope.spawn(|| revoke(&home, &id));
            std::thread::sleep(after);
            machine.kill();
            revoking.join().unwrap()
        });
        machine.start();
        eventually("what was left is stored", BOUND, || {
            said(&machine, &["status"]).contains(" is protecting ")
        });
        let left = grants(&machine);
        let is_there = left.iter().any(|grant| grant["id"] == json!(id) && grant["ending"].is_null());
        if is_there {
            there += 1
        } else {
            gone += 1
        }
        assert!(!(answered && is_there), "{n}: it was said to be taken back, and is there");
        eventually("the record says the same", BOUND, || is_there == (ends_on_record(&machine, &id) == 0));
        machine.verify();
    }
    // It is for whoever reads the figures.
    let _ = writeln!(std::io::stderr(), "killed {} times: {gone} grants gone, {there} still there", kills());
}

/// Takes a grant back by a program of the person; true when it was told that it is done.
fn revoke(home: &Path, id: &str) -> bool {
    let command = Command::new(programs().join("ironcurtain"))
        .args(["grants", "revoke", id])
        .env("IRONCURTAIN_HOME", home)
        .output()
        .unwrap();
    command.stdout.starts_with(b"Taken back: ")
}

#[test]
fn two_that_take_back_the_same_at_once_and_everything_at_once() {
    let mut machine = Machine::new(hostile::install);
    let files: Vec<_> = (0..4).map(|n| machine.file(&format!("docs/{n}.txt"), "text")).collect();
    machine.start();
    hostile::answers_before_on(&machine);
    let mut client = machine.connect();
    let ids: Vec<String> = files.iter().map(|file| allow_always(&mut machine, &mut client, file)).collect();
    let home = machine.ours();
    let done: Vec<bool> = std::thread::scope(|scope| {
        let each = ids.iter().chain(&ids).map(|id| scope.spawn(|| revoke(&home, id))).collect::<Vec<_>>();
        each.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|done| **done).count(), ids.len(), "each was taken back once: {done:?}");
    assert!(grants(&machine).is_empty());
    files.iter().for_each(|file| drop(client.sneak(file).refused("os error 2)").to_owned()));
    assert!(ids.iter().all(|id| ends_on_record(&machine, id) == 1));
    machine.verify();
}
