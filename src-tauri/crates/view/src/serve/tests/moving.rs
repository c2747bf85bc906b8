//! Tests moving folders and creating links.

use super::*;

fn to(names: &str) -> Vec<u8> {
    [&1_u64.to_ne_bytes()[..], names.as_bytes()].concat()
}

impl Scene {
    /// Sends a request and allows every access that it requires. Returns the reply and those accesses.
    fn allowing(&self, opcode: u32, body: &[u8]) -> (ServedReply, Vec<WantedAccess>) {
        let unique = self.send(opcode, 1, body);
        let mut asked = Vec::new();
        loop {
            asked.extend(self.asked());
            self.answer(true);
            if let Ok(message) = self.written.recv_timeout(Duration::from_millis(20)) {
                let number = |at: usize| i32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
                if u64::from_ne_bytes(message[8..16].try_into().unwrap()) == unique {
                    return (
                        if number(4) == 0 { Ok(message[16..].to_vec()) } else { Err(-number(4)) },
                        asked,
                    );
                }
            }
        }
    }
}

#[test]
fn a_folder_is_moved_with_permission_to_read_remove_and_write() {
    let scene = Scene::new();
    fs::write(scene.path("sub/x"), "x").unwrap();
    let (reply, asked) = scene.allowing(12, &to("sub\0moved\0"));
    reply.unwrap();
    let expected = [
        wanted("/sub", AccessKind::Read),
        wanted("/sub", AccessKind::Delete),
        wanted("/moved", AccessKind::Write),
    ];
    assert_eq!(asked, expected);
    assert_eq!(fs::read(scene.path("moved/x")).unwrap(), b"x");
    // Nothing is moved after a denial.
    let unique = scene.send(12, 1, &to("moved\0sub\0"));
    scene.answer(false);
    assert_eq!(scene.reply(unique), Err(errno(Errno::ACCESS)));
    assert!(scene.path("moved/x").exists());
}

#[test]
fn a_folder_of_the_runs_own_needs_permission_only_for_its_new_name() {
    let scene = Scene::new();
    let permitted = |path: &str| scene.gate.permitted.lock().unwrap().push(wanted(path, AccessKind::Write));
    permitted("/d");
    scene.call(9, 1, &named(&[0o755_u32.to_ne_bytes(), [0; 4]].concat(), "d")).unwrap();
    assert!(scene.path("d").is_dir());
    let (reply, asked) = scene.allowing(12, &to("d\0e\0"));
    reply.unwrap();
    assert_eq!(asked, [wanted("/e", AccessKind::Write)]);
    // Moving a folder that contains another program's file requires permission.
    fs::write(scene.path("e/x"), "x").unwrap();
    let (reply, asked) = scene.allowing(12, &to("e\0f\0"));
    reply.unwrap();
    assert_eq!(asked.len(), 3);
}

#[test]
fn a_folder_is_not_moved_where_programs_would_run_its_files() {
    let scene = Scene::new();
    assert_eq!(scene.call(12, 1, &to("sub\0.vscode\0")), Err(errno(Errno::XDEV)));
    fs::create_dir(scene.path("sub/deep")).unwrap();
    fs::write(scene.path("sub/deep/run-me"), "").unwrap();
    assert_eq!(scene.call(12, 1, &to("sub\0other\0")), Err(errno(Errno::XDEV)));
    fs::remove_file(scene.path("sub/deep/run-me")).unwrap();
    // A folder with a hidden file cannot be moved either.
    fs::hard_link(scene.path("secret"), scene.path("sub/deep/other")).unwrap();
    assert_eq!(scene.call(12, 1, &to("sub\0other\0")), Err(errno(Errno::ACCESS)));
    assert_eq!(scene.asked(), []);
    fs::remove_file(scene.path("sub/deep/other")).unwrap();
    scene.allowing(12, &to("sub\0other\0")).0.unwrap();
    assert!(scene.path("other/deep").is_dir() && !scene.path("sub").exists());
}

#[test]
fn a_symlink_needs_permission_for_its_name() {
    let scene = Scene::new();
    let (reply, asked) = scene.allowing(6, b"new\0a.txt\0");
    reply.unwrap();
    assert_eq!(asked, [wanted("/new", AccessKind::Write)]);
    assert_eq!(fs::read_link(scene.path("new")).unwrap(), Path::new("a.txt"));
    // The run may remove a link that it created.
    scene.call(10, 1, &named(&[], "new")).unwrap();
    // A link must not lead to a hidden file, or have a name through which programs run files.
    for target in ["secret", "sub/../secret", "/secret"] {
        let body = format!("new\0{target}\0");
        assert_eq!(scene.call(6, 1, body.as_bytes()), Err(errno(Errno::ACCESS)), "{target}");
    }
    for name in [".git", ".vscode", "run-me"] {
        assert_eq!(scene.call(6, 1, format!("{name}\0sub\0").as_bytes()), Err(errno(Errno::PERM)), "{name}");
    }
    assert_eq!(scene.call(6, 1, b"secret\0a.txt\0"), Err(errno(Errno::ACCESS)));
    // An existing link cannot be moved to such a path either, alone or inside a folder.
    std::os::unix::fs::symlink("a.txt", scene.path("sub/.git")).unwrap();
    assert_eq!(scene.call(12, 1, &to("link\0.git\0")), Err(errno(Errno::PERM)));
    assert_eq!(scene.call(12, 1, &to("sub\0other\0")), Err(errno(Errno::XDEV)));
    assert_eq!(scene.asked(), []);
    assert!(scene.path("new").symlink_metadata().is_err());
}

#[test]
fn hidden_files_are_neither_linked_nor_created() {
    let scene = Scene::new();
    let node = scene.look_up(1, "a.txt").unwrap();
    assert_eq!(scene.call(13, 1, &named(&node.to_ne_bytes(), "secret")), Err(errno(Errno::ACCESS)));
    assert_eq!(scene.call(9, 1, &named(&[0; 8], "secret")), Err(errno(Errno::ACCESS)));
    assert_eq!(scene.asked(), []);
    let (reply, asked) = scene.allowing(13, &named(&node.to_ne_bytes(), "b.txt"));
    reply.unwrap();
    assert_eq!(asked, [wanted("/a.txt", AccessKind::ReadWrite), wanted("/b.txt", AccessKind::Write)]);
    assert_eq!(fs::read(scene.path("b.txt")).unwrap(), b"content");
}
