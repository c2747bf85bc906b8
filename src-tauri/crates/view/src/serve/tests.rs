//! Tests the operations. A fake kernel sends requests as bytes, but the files are real.

mod locking;
mod moving;
mod replacing;
mod scene;

use std::{fs, path::Path, time::Duration};

use rustix::io::Errno;

use crate::gate::{AccessKind, Ticket, WantedAccess};
use scene::{READ, Scene, ServedReply, TIMEOUT, WRITE, errno, named, wanted};

#[test]
fn lookups_need_no_permission_and_hidden_files_do_not_exist() {
    let scene = Scene::new();
    let reply = scene.call(1, 1, &named(&[], "a.txt")).unwrap();
    let inode = u64::from_ne_bytes(reply[40..48].try_into().unwrap());
    use std::os::unix::fs::MetadataExt;
    assert_eq!(inode, fs::metadata(scene.path("a.txt")).unwrap().ino());
    assert_eq!(scene.look_up(1, "missing"), Err(errno(Errno::NOENT)));
    assert_eq!(scene.look_up(1, &"x".repeat(256)), Err(errno(Errno::NAMETOOLONG)));
    // The file is hidden under its own name and under its second name.
    assert_eq!(scene.look_up(1, "secret"), Err(errno(Errno::NOENT)));
    assert_eq!(scene.look_up(1, "linked"), Err(errno(Errno::NOENT)));
    assert_eq!(scene.names(1), [".", "..", "a.txt", "link", "sub"]);
    let link = scene.look_up(1, "link").unwrap();
    assert_eq!(scene.call(5, link, &[]).unwrap(), b"a.txt");
    assert_eq!(scene.asked(), []);
}

#[test]
fn a_listing_looks_up_the_entries() {
    let scene = Scene::new();
    let listed = scene.names_and_nodes(1);
    let names: Vec<&str> = listed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, [".", "..", "a.txt", "link", "sub"]);
    let nodes: Vec<u64> = listed.iter().map(|(_, node)| *node).collect();
    assert_eq!(nodes[..2], [0, 0]);
    assert!(nodes[2..].iter().all(|node| *node > 1));
    assert_eq!(scene.look_up(1, "a.txt"), Ok(nodes[2]));
    // The node exists until the kernel has forgotten both the listing and the lookup.
    scene.send(2, nodes[2], &1_u64.to_ne_bytes());
    assert_eq!(scene.look_up(1, "a.txt"), Ok(nodes[2]));
    scene.send(2, nodes[2], &2_u64.to_ne_bytes());
    assert_ne!(scene.look_up(1, "a.txt"), Ok(nodes[2]));
    // Entries that the kernel has in its cache are not looked up again. On a slow machine, the cache time can pass between
    // two listings.
    let has_no_nodes = || scene.names_and_nodes(1).iter().all(|(_, node)| *node == 0);
    assert!((0..100).any(|_| has_no_nodes()));
    assert_eq!(scene.asked(), []);
}

#[test]
fn an_open_waits_and_then_reads_the_real_file() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let unique = scene.send(14, node, &[0; 8]);
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Read)]);
    scene.answer(true);
    let handle = u64::from_ne_bytes(scene.reply(unique).unwrap()[..8].try_into().unwrap());
    assert_eq!(scene.read(handle, 0).unwrap(), b"content");
    assert_eq!(scene.read(handle, 3).unwrap(), b"tent");
    assert_eq!(scene.read(handle, 7).unwrap(), b"");
    // The answer applied to only one open.
    assert_eq!(scene.open(node, READ, false), Err(errno(Errno::ACCESS)));
    // A standing permission needs no question.
    scene.gate.permitted.lock().unwrap().push(wanted("/a.txt", AccessKind::Read));
    scene.call(14, node, &[0; 8]).unwrap();
    assert_eq!(scene.asked(), []);
}

#[test]
fn an_answer_is_not_used_for_a_file_that_was_replaced() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let unique = scene.send(14, node, &[0; 8]);
    fs::write(scene.path("other"), "other").unwrap();
    fs::rename(scene.path("other"), scene.path("a.txt")).unwrap();
    scene.answer(true);
    assert_eq!(scene.reply(unique), Err(errno(Errno::STALE)));
    // The file is replaced by a link to a hidden file.
    let node = scene.look_up(1, "a.txt").unwrap();
    let unique = scene.send(14, node, &[0; 8]);
    // The additional name prevents the inode number from being reused.
    fs::hard_link(scene.path("a.txt"), scene.path("kept")).unwrap();
    fs::remove_file(scene.path("a.txt")).unwrap();
    std::os::unix::fs::symlink("secret", scene.path("a.txt")).unwrap();
    scene.answer(true);
    assert_eq!(scene.reply(unique), Err(errno(Errno::STALE)));
}

#[test]
fn a_new_file_exists_only_in_the_view_until_it_is_allowed() {
    let scene = Scene::new();
    let fields = [0o100_644_u32.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat();
    let create = |name: &str| {
        let reply = scene.call(8, 1, &named(&fields, name)).unwrap();
        u64::from_ne_bytes(reply[..8].try_into().unwrap())
    };
    let denied = create("new");
    assert_eq!((scene.path("new").exists(), scene.look_up(1, "new")), (false, Ok(denied)));
    assert!(scene.names(1).contains(&"new".to_owned()));
    assert_eq!(scene.open(denied, WRITE, false), Err(errno(Errno::ACCESS)));
    assert_eq!(scene.look_up(1, "new"), Err(errno(Errno::NOENT)));
    let allowed = create("new");
    let handle = scene.open(allowed, WRITE, true).unwrap();
    scene.write(handle, b"hello").unwrap();
    assert_eq!(fs::read(scene.path("new")).unwrap(), b"hello");
    // The run may remove the file that it created. Removing any other file requires permission.
    scene.call(10, 1, &named(&[], "new")).unwrap();
    assert!(!scene.path("new").exists());
    let unique = scene.send(10, 1, &named(&[], "a.txt"));
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Delete)]);
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    assert!(scene.path("a.txt").exists());
    // A hidden name cannot be created.
    assert_eq!(scene.call(8, 1, &named(&fields, "secret")), Err(errno(Errno::ACCESS)));
}

#[test]
fn a_folder_becomes_real_with_the_first_file_in_it() {
    let scene = Scene::new();
    let folder = scene.call(9, 1, &named(&[0o755_u32.to_ne_bytes(), [0; 4]].concat(), "d")).unwrap();
    let folder = u64::from_ne_bytes(folder[..8].try_into().unwrap());
    assert!(!scene.path("d").exists());
    let fields = [0o100_644_u32.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat();
    let file = scene.call(8, folder, &named(&fields, "f")).unwrap();
    let file = u64::from_ne_bytes(file[..8].try_into().unwrap());
    assert_eq!(scene.call(11, 1, &named(&[], "d")), Err(errno(Errno::NOTEMPTY)));
    scene.open(file, WRITE, true).unwrap();
    assert!(scene.path("d/f").is_file());
}

#[test]
fn a_run_keeps_working_in_a_folder_that_becomes_real() {
    let scene = Scene::new();
    let fields = [0o100_644_u32.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat();
    let folder = scene.call(9, 1, &named(&[0o755_u32.to_ne_bytes(), [0; 4]].concat(), "d")).unwrap();
    let folder = u64::from_ne_bytes(folder[..8].try_into().unwrap());
    // Granting a folder creates the real folders in it before it is mounted.
    fs::create_dir(scene.path("d")).unwrap();
    assert_eq!(scene.look_up(1, "d"), Ok(folder));
    let file = scene.call(8, folder, &named(&fields, "f")).unwrap();
    let file = u64::from_ne_bytes(file[..8].try_into().unwrap());
    scene.open(file, WRITE, true).unwrap();
    assert!(scene.path("d/f").is_file());
}

#[test]
fn a_rename_needs_permission_to_read_remove_and_write() {
    let scene = Scene::new();
    scene.look_up(1, "a.txt").unwrap();
    let body = [&1_u64.to_ne_bytes()[..], b"a.txt\0b.txt\0"].concat();
    let unique = scene.send(12, 1, &body);
    for (path, kind) in
        [("/a.txt", AccessKind::Read), ("/a.txt", AccessKind::Delete), ("/b.txt", AccessKind::Write)]
    {
        while scene.asked().is_empty() {
            std::thread::yield_now();
        }
        assert_eq!(scene.asked(), [wanted(path, kind)]);
        scene.answer(true);
    }
    scene.reply(unique).unwrap();
    assert_eq!(fs::read(scene.path("b.txt")).unwrap(), b"content");
    // A hidden file cannot be moved or replaced.
    let body = [&1_u64.to_ne_bytes()[..], b"b.txt\0secret\0"].concat();
    assert_eq!(scene.call(12, 1, &body), Err(errno(Errno::ACCESS)));
}

#[test]
fn shared_memory_of_databases_is_neither_created_nor_moved() {
    let scene = Scene::new();
    let fields = [0o100_644_u32.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat();
    let reply = scene.call(8, 1, &named(&fields, "db-shm")).unwrap();
    let node = u64::from_ne_bytes(reply[..8].try_into().unwrap());
    assert_eq!(scene.open(node, 2, true), Err(errno(Errno::ACCESS)));
    let body = [&1_u64.to_ne_bytes()[..], b"a.txt\0db2-shm\0"].concat();
    assert_eq!(scene.call(12, 1, &body), Err(errno(Errno::ACCESS)));
    assert!(!scene.path("db-shm").exists() && !scene.path("db2-shm").exists());
}

#[test]
fn a_file_that_is_open_for_writing_can_be_truncated() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let mut truncate = vec![0_u8; 88];
    truncate[0] = 1 << 3;
    let unique = scene.send(4, node, &truncate);
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Write)]);
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    // A file that is open for reading only cannot be truncated.
    scene.open(node, READ, true).unwrap();
    let unique = scene.send(4, node, &truncate);
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Write)]);
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    scene.open(node, WRITE, true).unwrap();
    scene.call(4, node, &truncate).unwrap();
    assert_eq!(fs::read(scene.path("a.txt")).unwrap(), b"");
}

#[test]
fn a_revoked_file_fails_although_it_is_open() {
    let scene = Scene::new();
    scene.gate.permitted.lock().unwrap().push(wanted("/a.txt", AccessKind::ReadWrite));
    let node = scene.look_up(1, "a.txt").unwrap();
    let handle = scene.open(node, 2, true).unwrap();
    assert!(scene.server.revoke());
    assert_eq!(scene.read(handle, 0).unwrap(), b"content");
    scene.gate.permitted.lock().unwrap().clear();
    assert!(scene.server.revoke());
    assert_eq!(scene.read(handle, 0), Err(errno(Errno::IO)));
    assert_eq!(scene.write(handle, b"x"), Err(errno(Errno::IO)));
    assert_eq!(fs::read(scene.path("a.txt")).unwrap(), b"content");
}

#[test]
fn a_permission_that_ends_before_the_file_is_open_does_not_open_it() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let unique = scene.send(14, node, &[0; 8]);
    // The permission is revoked before the answer arrives.
    let asked = std::mem::take(&mut *scene.gate.asked.lock().unwrap());
    asked.into_values().flatten().for_each(Ticket::retry);
    while scene.asked().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Read)]);
    scene.gate.permitted.lock().unwrap().push(wanted("/a.txt", AccessKind::Read));
    let asked = std::mem::take(&mut *scene.gate.asked.lock().unwrap());
    asked.into_values().flatten().for_each(Ticket::retry);
    let handle = u64::from_ne_bytes(scene.reply(unique).unwrap()[..8].try_into().unwrap());
    assert_eq!(scene.read(handle, 0).unwrap(), b"content");
    // The gate permits the first check but not the second one, after the open.
    *scene.gate.permits_times.lock().unwrap() = Some(1);
    assert_eq!(scene.call(14, node, &[0; 8]), Err(errno(Errno::ACCESS)));
}

#[test]
fn a_created_file_stays_open_while_its_permission_to_write_holds() {
    let scene = Scene::new();
    scene.gate.permitted.lock().unwrap().push(wanted("/new", AccessKind::Write));
    let fields = [0o100_644_u32.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat();
    let reply = scene.call(8, 1, &named(&fields, "new")).unwrap();
    let node = u64::from_ne_bytes(reply[..8].try_into().unwrap());
    let handle = scene.open(node, 2, true).unwrap();
    scene.write(handle, b"mine").unwrap();
    assert!(scene.server.revoke());
    assert_eq!(scene.read(handle, 0).unwrap(), b"mine");
    scene.gate.permitted.lock().unwrap().clear();
    assert!(scene.server.revoke());
    assert_eq!(scene.read(handle, 0), Err(errno(Errno::IO)));
}

#[test]
fn a_file_with_the_inode_of_a_removed_one_is_not_the_runs_own() {
    let scene = Scene::new();
    let created = crate::created_files::CreatedFiles::default();
    let (first, other) = (scene.path("first"), scene.path("other"));
    fs::write(&first, "").unwrap();
    let stat = fs::metadata(&first).unwrap();
    created.add(&stat, crate::created_files::Origin::Created);
    assert!(created.contains(&stat));
    fs::write(&other, "").unwrap();
    assert!(!created.contains(&fs::metadata(&other).unwrap()));
    // The file system may reuse the inode number, but the creation time always differs.
    fs::remove_file(&first).unwrap();
    while std::time::SystemTime::now() <= stat.created().unwrap() + Duration::from_millis(20) {
        std::thread::yield_now();
    }
    fs::write(&first, "").unwrap();
    assert!(!created.contains(&fs::metadata(&first).unwrap()));
}

#[test]
fn pipes_are_shown_without_permissions_and_never_opened() {
    let scene = Scene::new();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        scene.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o666),
        0,
    )
    .unwrap();
    let reply = scene.call(1, 1, &named(&[], "pipe")).unwrap();
    let mode = u32::from_ne_bytes(reply[100..104].try_into().unwrap());
    assert_eq!(mode, 0o010_000);
    let node = u64::from_ne_bytes(reply[..8].try_into().unwrap());
    assert_eq!(scene.call(14, node, &[0; 8]), Err(errno(Errno::ACCESS)));
}

#[test]
fn a_malformed_request_is_refused_and_the_next_one_served() {
    let scene = Scene::new();
    assert_eq!(scene.call(14, 1, &[1]), Err(errno(Errno::INVAL)));
    assert_eq!(scene.call(999, 1, &[]), Err(errno(Errno::NOSYS)));
    scene.server.handle(&[1, 2, 3], Vec::new());
    scene.look_up(1, "a.txt").unwrap();
}

#[test]
fn every_operation_is_served_or_refused_whatever_its_length_and_content() {
    let scene = Scene::new();
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        state >> 56
    };
    // All opcodes up to `FUSE_STATX`, with bodies from empty to longer than the longest fixed part.
    for opcode in 0..=52 {
        for length in 0..=160 {
            let body: Vec<u8> = (0..length).map(|_| u8::try_from(random()).unwrap()).collect();
            scene.send(opcode, random() % 4, &body);
        }
    }
    while scene.written.try_recv().is_ok() {}
    scene.look_up(1, "a.txt").unwrap();
    assert_eq!(fs::read_to_string(scene.path("a.txt")).unwrap(), "content");
}

#[test]
fn a_thread_that_ends_does_not_wait() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    let unique = scene.send(14, node, &[0; 8]);
    scene.server.interrupt(unique);
    assert_eq!(scene.reply(unique), Err(errno(Errno::INTR)));
    assert_eq!(*scene.gate.withdrawn.lock().unwrap(), [unique]);
    // A late answer has no effect: the next reply belongs to the next request.
    scene.answer(true);
    scene.look_up(1, "a.txt").unwrap();
    scene.look_up(1, "sub").unwrap();
}
