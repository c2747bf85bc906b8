//! The daemon's memory use while grants are created and revoked.

use crate::client::Client;
use crate::hostile;
use crate::scripted_user::Next;
use crate::world::World;
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_daemon::{GrantRequest, GrantTarget};
use ironcurtain_policy::{Access, AccessSet};
use peak_alloc::PeakAlloc;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Counts the allocated bytes of all Rust code. The memory that the system reports would include fragments, which
/// grow by up to 350 bytes for each of the first thousands of grants. `cargo xtask bench` measures that memory, which
/// also includes SQLite's.
#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Returns the number of grants to create and revoke, from `IRONCURTAIN_CHURN`.
fn churn() -> u64 {
    std::env::var("IRONCURTAIN_CHURN").map_or(150, |n| n.parse().unwrap())
}

/// Maximum memory that a revoked grant may leave allocated, in bytes. The measured value is 0 once all bounded buffers
/// are full.
const LEFT_BY_EACH: u64 = 256;

/// Maximum number of measurements before the test fails.
const BATCHES: usize = 10;

/// Variable that marks the process that runs only this test.
const ALONE: &str = "IRONCURTAIN_CHURN_ALONE";

/// Minimum duration of a round. Keeps the test below the limit of a thousand questions per minute.
const EACH_LASTS: Duration = Duration::from_millis(61);

#[test]
fn granting_and_revoking_leaks_no_memory() {
    alone("memory::granting_and_revoking_leaks_no_memory", |world, client, secret| {
        let paced = (BATCHES as u64 * churn() >= 1000).then(Instant::now);
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Always));
        client.open(secret).ok();
        world.revoke_only_grant();
        world.user.asked();
        if let Some(began) = paced {
            std::thread::sleep(EACH_LASTS.saturating_sub(began.elapsed()));
        }
    });
}

#[test]
fn pregranting_and_revoking_leaks_no_memory() {
    alone("memory::pregranting_and_revoking_leaks_no_memory", |world, client, secret| {
        let (access, lifetime) = (AccessSet::only(Access::Read), Lifetime::Hour);
        let agent = world.daemon.known_clients().remove(0).key;
        let what = GrantTarget::Files { path: secret.to_path_buf(), access };
        let gift = GrantRequest { client: agent, server: "hostile".into(), what, lifetime };
        world.wait(world.daemon.grant(gift)).unwrap();
        client.open(secret).ok();
        world.revoke_only_grant();
    });
}

/// Measures the rounds of a test in its own process.
fn alone(test: &str, mut round: impl FnMut(&World, &mut Client, &Path)) {
    if std::env::var_os(ALONE).is_none() {
        let this = ["--exact", test, "--nocapture"];
        let mut alone = Command::new(std::env::current_exe().unwrap());
        let alone = alone.args(this).env(ALONE, "1").status().unwrap();
        assert!(alone.success(), "{alone}");
        return;
    }
    let world = hostile::world();
    hostile::answers_before(&world);
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = world.connect("hostile");
    let mut rounds = |count: u64| {
        (0..count).for_each(|_| round(&world, &mut client, &secret));
        u64::try_from(ALLOCATOR.current_usage()).unwrap()
    };
    // The first batch allocates memory that later batches reuse, so it is ignored. Bounded buffers grow during the first
    // thousand questions, so one later measurement below the limit is enough. With a leak, every measurement is higher
    // than the one before it.
    let mut taken: Vec<u64> = (0..3).map(|_| rounds(churn())).collect();
    let limit = taken[1].min(taken[2]) + 2 * churn() * LEFT_BY_EACH;
    while taken.len() < BATCHES && taken[3..].iter().all(|bytes| *bytes >= limit) {
        taken.push(rounds(churn()));
    }
    let _ = writeln!(std::io::stderr(), "each time {} grants came and went: {taken:?} bytes", churn());
    assert!(taken[3..].iter().any(|bytes| *bytes < limit), "{taken:?}");
}
