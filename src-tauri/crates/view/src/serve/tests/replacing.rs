//! Tests lock, backup and temporary files. Each belongs to the file that a program is changing.

use super::*;

const NEW_FILE: [u8; 16] = [0xa4, 0x81, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Scene {
    fn create(&self, name: &str) -> u64 {
        let reply = self.call(8, 1, &named(&NEW_FILE, name)).unwrap();
        u64::from_ne_bytes(reply[..8].try_into().unwrap())
    }

    fn rename(&self, from: &str, to: &str) -> ServedReply {
        self.call(12, 1, &[&1_u64.to_ne_bytes()[..], format!("{from}\0{to}\0").as_bytes()].concat())
    }

    /// Starts to open a file. Returns the request's number and the accesses that require permission.
    fn asked_on_open(&self, node: u64) -> (u64, Vec<WantedAccess>) {
        let unique = self.send(14, node, &[WRITE.to_ne_bytes(), [0; 4]].concat());
        (unique, self.asked())
    }

    /// Opens a file, denies the request and returns the accesses that required permission.
    fn denied_on_open(&self, node: u64) -> Vec<WantedAccess> {
        let (unique, asked) = self.asked_on_open(node);
        self.answer(false);
        assert_eq!(self.reply(unique), Err(errno(Errno::ACCESS)));
        asked
    }
}

#[test]
fn a_lock_file_asks_about_the_file_that_it_then_replaces() {
    let scene = Scene::new();
    let node = scene.create("a.txt.lock");
    let (unique, asked) = scene.asked_on_open(node);
    assert_eq!(asked, [wanted("/a.txt", AccessKind::ReadWrite)]);
    scene.answer(true);
    let handle = u64::from_ne_bytes(scene.reply(unique).unwrap()[..8].try_into().unwrap());
    scene.write(handle, b"new").unwrap();
    // The answer applied to one change. The change is complete once the file has been replaced.
    scene.rename("a.txt.lock", "a.txt").unwrap();
    assert_eq!(scene.asked(), []);
    assert_eq!(fs::read(scene.path("a.txt")).unwrap(), b"new");
    let node = scene.create("a.txt.lock");
    assert_eq!(scene.denied_on_open(node), [wanted("/a.txt", AccessKind::ReadWrite)]);
    // The new file belongs to the user, so removing it requires permission.
    scene.send(10, 1, &named(&[], "a.txt"));
    while scene.asked().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Delete)]);
}

#[test]
fn one_answer_does_not_replace_another_file() {
    let scene = Scene::new();
    fs::write(scene.path("b.txt"), "b").unwrap();
    let node = scene.create("a.txt.lock");
    scene.open(node, WRITE, true).unwrap();
    let body = [&1_u64.to_ne_bytes()[..], b"a.txt.lock\0b.txt\0"].concat();
    let unique = scene.send(12, 1, &body);
    assert_eq!(scene.asked(), [wanted("/b.txt", AccessKind::Write)]);
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    // The same path requires permission again after another program has replaced the file.
    fs::rename(scene.path("b.txt"), scene.path("a.txt")).unwrap();
    let body = [&1_u64.to_ne_bytes()[..], b"a.txt.lock\0a.txt\0"].concat();
    let unique = scene.send(12, 1, &body);
    assert_eq!(scene.asked(), [wanted("/a.txt", AccessKind::Write)]);
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    assert_eq!(fs::read(scene.path("a.txt")).unwrap(), b"b");
}

#[test]
fn an_editor_changes_a_file_with_one_permission() {
    let scene = Scene::new();
    scene.gate.permitted.lock().unwrap().push(wanted("/a.txt", AccessKind::ReadWrite));
    for name in [".a.txt.swp", "4913"] {
        // The second name contains no file name, so it belongs to the file that was used last.
        let node = scene.create(name);
        let (unique, asked) = scene.asked_on_open(node);
        assert_eq!(asked, [], "{name}");
        scene.reply(unique).unwrap();
    }
    scene.call(10, 1, &named(&[], "4913")).unwrap();
    scene.rename("a.txt", "a.txt~").unwrap();
    let node = scene.create("a.txt");
    let handle = scene.open(node, WRITE, true).unwrap();
    scene.write(handle, b"edited").unwrap();
    scene.call(10, 1, &named(&[], "a.txt~")).unwrap();
    assert_eq!(scene.asked(), []);
    assert_eq!(fs::read(scene.path("a.txt")).unwrap(), b"edited");
    assert!(!scene.path("a.txt~").exists());
}

#[test]
fn what_was_moved_aside_stays_after_a_revocation() {
    let scene = Scene::new();
    scene.gate.permitted.lock().unwrap().push(wanted("/a.txt", AccessKind::ReadWrite));
    scene.look_up(1, "a.txt").unwrap();
    scene.rename("a.txt", "a.txt~").unwrap();
    scene.gate.permitted.lock().unwrap().clear();
    assert!(scene.server.revoke());
    let unique = scene.send(10, 1, &named(&[], "a.txt~"));
    assert_eq!(scene.asked(), [wanted("/a.txt~", AccessKind::Delete)]);
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    assert_eq!(fs::read(scene.path("a.txt~")).unwrap(), b"content");
}

#[test]
fn a_name_that_other_programs_run_belongs_to_no_other_file() {
    let scene = Scene::new();
    fs::write(scene.path("run"), "").unwrap();
    let node = scene.look_up(1, "run").unwrap();
    scene.open(node, READ, true).unwrap();
    let node = scene.create("run-me");
    assert_eq!(scene.denied_on_open(node), [wanted("/run-me", AccessKind::Write)]);
    // A similar name that programs do not run belongs to the open file.
    let node = scene.create("run-it");
    assert_eq!(scene.denied_on_open(node), [wanted("/run", AccessKind::ReadWrite)]);
    // A file cannot be moved aside to such a name either.
    let body = [&1_u64.to_ne_bytes()[..], b"run\0run-me\0"].concat();
    scene.send(12, 1, &body);
    while scene.asked().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(scene.asked(), [wanted("/run", AccessKind::Read)]);
}

#[test]
fn an_extension_of_a_file_that_was_not_used_is_a_file_of_its_own() {
    let scene = Scene::new();
    let node = scene.create("a.txt-final");
    assert_eq!(scene.denied_on_open(node), [wanted("/a.txt-final", AccessKind::Write)]);
    // A name never belongs to a missing or hidden file.
    for name in ["missing.lock", "secret.lock"] {
        let node = scene.create(name);
        assert_eq!(scene.denied_on_open(node), [wanted(&format!("/{name}"), AccessKind::Write)]);
    }
}
