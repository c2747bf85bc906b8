//! Tests locks on real files.

use std::{fs::File, os::unix::fs::MetadataExt, time::Instant};

use rustix::fs::{FlockOperation, flock};

use super::*;

const SET: u32 = 32;
const SET_AND_WAIT: u32 = 33;
const SHARED: u32 = 0;
const EXCLUSIVE: u32 = 1;
const NONE: u32 = 2;

/// Returns the body of a lock request.
fn lock(handle: u64, owner: u64, range: (u64, u64), kind: u32, is_whole: bool) -> Vec<u8> {
    let numbers = [handle, owner, range.0, range.1].into_iter().flat_map(u64::to_ne_bytes);
    numbers.chain([kind, 0, u32::from(is_whole), 0].into_iter().flat_map(u32::to_ne_bytes)).collect()
}

const WHOLE: (u64, u64) = (0, i64::MAX as u64);

#[test]
fn owners_lock_ranges_against_each_other_and_closing_releases() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let (one, two) = (scene.open(node, 2, true).unwrap(), scene.open(node, 2, true).unwrap());
    scene.call(SET, node, &lock(one, 1, (0, 4), EXCLUSIVE, false)).unwrap();
    assert_eq!(scene.call(SET, node, &lock(two, 2, (4, 4), SHARED, false)), Err(errno(Errno::AGAIN)));
    scene.call(SET, node, &lock(two, 2, (5, 9), EXCLUSIVE, false)).unwrap();
    // The same owner can lock through another open file.
    scene.call(SET, node, &lock(two, 1, (0, 4), SHARED, false)).unwrap();
    let found = scene.call(31, node, &lock(one, 1, WHOLE, EXCLUSIVE, false)).unwrap();
    assert_eq!(found[..16], [5_u64.to_ne_bytes(), 9_u64.to_ne_bytes()].concat());
    // Closing a descriptor releases its owner's locks on the file.
    scene.call(25, node, &[two, 0, 1].map(u64::to_ne_bytes).concat()).unwrap();
    scene.call(SET, node, &lock(two, 2, (0, 9), EXCLUSIVE, false)).unwrap();
    scene.call(SET, node, &lock(two, 2, WHOLE, NONE, false)).unwrap();
    scene.call(SET, node, &lock(one, 1, WHOLE, EXCLUSIVE, false)).unwrap();
    // Closing the open file releases its remaining locks.
    scene.call(18, node, &[&one.to_ne_bytes()[..], &[0; 16]].concat()).unwrap();
    scene.call(SET, node, &lock(two, 2, WHOLE, EXCLUSIVE, false)).unwrap();
}

#[test]
fn programs_outside_see_locks_and_a_waiting_lock_follows_theirs() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let handle = scene.open(node, 2, true).unwrap();
    let outside = File::options().read(true).write(true).open(scene.path("a.txt")).unwrap();
    scene.call(SET, node, &lock(handle, 1, WHOLE, EXCLUSIVE, true)).unwrap();
    assert_eq!(flock(&outside, FlockOperation::NonBlockingLockShared), Err(Errno::AGAIN));
    scene.call(SET, node, &lock(handle, 1, WHOLE, NONE, true)).unwrap();
    flock(&outside, FlockOperation::NonBlockingLockExclusive).unwrap();
    let unique = scene.send(SET_AND_WAIT, node, &lock(handle, 1, WHOLE, EXCLUSIVE, true));
    // Other requests are served while a lock is waiting.
    scene.look_up(1, "sub").unwrap();
    flock(&outside, FlockOperation::Unlock).unwrap();
    scene.reply(unique).unwrap();
    assert_eq!(flock(&outside, FlockOperation::NonBlockingLockShared), Err(Errno::AGAIN));
}

#[test]
fn a_waiting_lock_can_be_interrupted_and_is_not_taken_later() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let handle = scene.open(node, 2, true).unwrap();
    let outside = File::options().read(true).write(true).open(scene.path("a.txt")).unwrap();
    flock(&outside, FlockOperation::NonBlockingLockExclusive).unwrap();
    let unique = scene.send(SET_AND_WAIT, node, &lock(handle, 1, WHOLE, EXCLUSIVE, true));
    // The interruption succeeds even while the lock thread is trying to set the lock.
    scene.send(36, 0, &unique.to_ne_bytes());
    assert_eq!(scene.reply(unique), Err(errno(Errno::INTR)));
    flock(&outside, FlockOperation::Unlock).unwrap();
    flock(&outside, FlockOperation::NonBlockingLockExclusive).unwrap();
    let unique = scene.send(SET_AND_WAIT, node, &lock(handle, 1, WHOLE, SHARED, true));
    let began = Instant::now();
    flock(&outside, FlockOperation::Unlock).unwrap();
    scene.reply(unique).unwrap();
    assert!(began.elapsed() < TIMEOUT);
}

#[test]
fn a_lock_on_a_revoked_file_fails() {
    let scene = Scene::new();
    scene.gate.permitted.lock().unwrap().push(wanted("/a.txt", AccessKind::ReadWrite));
    let node = scene.look_up(1, "a.txt").unwrap();
    let handle = scene.open(node, 2, true).unwrap();
    let outside = File::options().read(true).write(true).open(scene.path("a.txt")).unwrap();
    flock(&outside, FlockOperation::NonBlockingLockExclusive).unwrap();
    let waiting = scene.send(SET_AND_WAIT, node, &lock(handle, 1, WHOLE, EXCLUSIVE, true));
    scene.gate.permitted.lock().unwrap().clear();
    assert!(scene.server.revoke());
    assert_eq!(scene.reply(waiting), Err(errno(Errno::IO)));
    assert_eq!(scene.call(SET, node, &lock(handle, 1, (0, 1), SHARED, false)), Err(errno(Errno::IO)));
    // Closing a revoked file still releases its locks.
    scene.call(25, node, &[handle, 0, 1].map(u64::to_ne_bytes).concat()).unwrap();
}

#[test]
fn attributes_of_a_locked_file_are_not_cached() {
    let scene = Scene::new();
    let valid = |reply: &[u8]| u64::from_ne_bytes(reply[..8].try_into().unwrap());
    let node = scene.look_up(1, "a.txt").unwrap();
    assert_eq!(valid(&scene.call(3, node, &[0; 16]).unwrap()), 1);
    let handle = scene.open(node, 2, true).unwrap();
    scene.call(SET, node, &lock(handle, 1, (0, 1), SHARED, false)).unwrap();
    let reply = scene.call(3, node, &[0; 16]).unwrap();
    assert_eq!(valid(&reply), 0);
    let inode = u64::from_ne_bytes(reply[16..24].try_into().unwrap());
    assert_eq!(inode, fs::metadata(scene.path("a.txt")).unwrap().ino());
}

#[test]
fn closed_descriptors_are_reported_if_they_can_write_or_the_file_was_locked() {
    const NOFLUSH: u32 = 1 << 5;
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let open = |flags: i32| {
        let unique = scene.send(14, node, &[flags.to_ne_bytes(), [0; 4]].concat());
        scene.answer(true);
        let reply = scene.reply(unique).unwrap();
        let skips_flush = u32::from_ne_bytes(reply[8..12].try_into().unwrap()) & NOFLUSH != 0;
        (u64::from_ne_bytes(reply[..8].try_into().unwrap()), skips_flush)
    };
    let (to_read, skips_flush) = open(0);
    assert!(skips_flush);
    assert!(!open(1).1 && !open(2).1, "opened for writing");
    scene.call(SET, node, &lock(to_read, 1, WHOLE, SHARED, false)).unwrap();
    assert!(!open(0).1, "locked");
    // Closing the open file releases a lock that was set before.
    let (to_write, _) = open(2);
    let exclusive = lock(to_write, 2, WHOLE, EXCLUSIVE, false);
    assert_eq!(scene.call(SET, node, &exclusive), Err(errno(Errno::AGAIN)));
    scene.call(18, node, &[&to_read.to_ne_bytes()[..], &[0; 16]].concat()).unwrap();
    scene.call(SET, node, &exclusive).unwrap();
}
