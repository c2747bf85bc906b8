//! Tests that a served folder can be mounted in a running sandbox, and is served again after a proved unmount.

use ironcurtain_sandbox::{ControlAnswer, ControlOp, UnmountProof};

use super::*;

impl Shell {
    fn mount(&mut self, name: &str) -> ControlAnswer {
        let mount = Mount::new(self.path(name), MountAccess::ReadWrite);
        self.control.request(ControlOp::Add(mount)).unwrap()
    }

    fn unmount(&mut self, name: &str) -> UnmountProof {
        let answer = self.control.request(ControlOp::Remove { path: self.path(name) }).unwrap();
        let ControlAnswer::Removed { proof } = answer else { panic!("{answer:?}") };
        proof
    }

    fn reserve(&self, name: &str, number: u64) {
        tell(&self.view, &ToView::Reserve { path: self.path(name), number });
    }

    /// Reports the mounted folders to the view, and waits until the view has processed the message.
    fn mounted(&self, names: &[&str]) {
        tell(&self.view, &ToView::Mounted { paths: names.iter().map(|name| self.path(name)).collect() });
        // Messages are processed in order.
        self.permit(1, vec![]);
    }

    /// Starts a background command and waits until it requests permission. Its output goes to `/tmp/out`.
    fn begin(&mut self, command: &str) {
        let before = self.asked.lock().unwrap().len();
        assert_eq!(self.run(&format!("{{ ({command}) > /tmp/out 2>&1 & }}")), "status 0\n");
        let began = Instant::now();
        while self.asked.lock().unwrap().len() == before {
            assert!(began.elapsed() < TIMEOUT, "{command}");
            thread::yield_now();
        }
    }
}

#[test]
fn a_mounted_folder_asks_nothing_until_it_is_unmounted() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(false)));
    assert!(shell.run("cat docs/a 2>&1").contains("Permission denied"));
    assert_eq!(shell.asked().len(), 1);
    assert_eq!(shell.mount("docs"), ControlAnswer::Added);
    assert_eq!(shell.run("cat docs/a; echo new > docs/new; rm docs/b; ls docs"), "docs/aa\nnew\nstatus 0\n");
    assert_eq!(shell.asked(), []);
    // Mappings of a mounted file are shared with programs outside the sandbox.
    let map = "import mmap, sys; f = open('docs/new', 'r+b'); m = mmap.mmap(f.fileno(), 4); print('mapped', flush=True); \
               sys.stdin.readline(); print(m[:4])";
    writeln!(shell.stdin.as_ref().unwrap(), "/usr/bin/python3 -c \"{map}\"; echo \"status $?\"").unwrap();
    let mut output = String::new();
    shell.stdout.read_line(&mut output).unwrap();
    assert_eq!(output, "mapped\n");
    let outside = fs::OpenOptions::new().write(true).open(shell.path("docs/new")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&outside, b"NEW!", 0).unwrap();
    // The mapping program reads this line.
    assert_eq!(shell.run(":"), "b'NEW!'\nstatus 0\n");
    assert_eq!(shell.unmount("docs"), UnmountProof::Proved);
    assert!(shell.run("cat docs/a 2>&1").contains("Permission denied"));
    assert_eq!(shell.asked(), [(shell.path("docs/a"), FileAccess::Read)]);
}

#[test]
fn a_held_folder_is_reported_as_held() {
    for hold in ["cd docs", "exec 7< docs/a", "exec 7>> docs/a", "exec 7< docs"] {
        let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(false)));
        assert_eq!(shell.mount("docs"), ControlAnswer::Added);
        assert_eq!(shell.run(hold), "status 0\n", "{hold}");
        assert_eq!(shell.unmount("docs"), UnmountProof::StillOpen, "{hold}");
    }
    // Processes that entered the folder before the mount keep using the view, and do not hold the mount.
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(true)));
    assert_eq!(shell.run("exec 7< docs/a; cd docs"), "status 0\n");
    assert_eq!(shell.mount("docs"), ControlAnswer::Added);
    assert_eq!(shell.unmount("docs"), UnmountProof::Proved);
    assert_eq!(shell.run("cat <&7; cat a"), "docs/adocs/astatus 0\n");
}

#[test]
fn a_folder_is_mounted_only_when_the_kernel_holds_no_lock_of_it() {
    let decide = |path: &str, _: FileAccess| (!path.ends_with("/b")).then_some(false);
    let mut shell = Shell::start(fixture(), &[], Box::new(decide));
    // The kernel locks the folder until this question is answered.
    shell.begin("rm docs/b");
    shell.reserve("docs", 1);
    // A different folder can be reserved instead.
    shell.reserve("work", 2);
    assert_eq!(shell.reserved.recv_timeout(TIMEOUT), Ok(2));
    // While a folder is reserved, a request that locks one of its parent folders must not wait for an answer.
    let refused = shell.run("rm notes.txt 2>&1");
    assert!(refused.contains("Stale file handle"), "{refused}");
    assert_eq!(shell.mount("work"), ControlAnswer::Added);
    shell.mounted(&["work"]);
    shell.asked();
    // Afterwards, the same request prompts for permission.
    let denied = shell.run("rm notes.txt 2>&1");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(shell.asked(), [(shell.path("notes.txt"), FileAccess::Delete)]);
    // The first folder is reserved once the program that waits in it has exited.
    shell.reserve("docs", 3);
    shell.permit(1, vec![]);
    // The folder is not reserved yet, so this request prompts for permission at once.
    let denied = shell.run("rm notes.txt 2>&1");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(shell.run("pkill -x rm; wait"), "status 0\n");
    assert_eq!(shell.reserved.recv_timeout(TIMEOUT), Ok(3));
    assert_eq!(shell.mount("docs"), ControlAnswer::Added);
    shell.mounted(&["work", "docs"]);
    assert_eq!(shell.run("rm docs/b && ls docs"), "a\nstatus 0\n");
}

#[test]
fn what_is_removed_beside_a_folder_that_is_being_mounted_is_asked_about_afterwards() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(true)));
    assert_eq!(shell.run("ls work"), "own\nstatus 0\n");
    shell.reserve("work", 1);
    assert_eq!(shell.reserved.recv_timeout(TIMEOUT), Ok(1));
    assert_eq!(shell.run("{ rm notes.txt > /tmp/out 2>&1 & }"), "status 0\n");
    // `rm` waits in the kernel, or has failed.
    let state = "$(cut -d' ' -f3 /proc/$!/stat)";
    let waits = format!("until [ $(cat /proc/$!/comm) = rm ] && [ {state} != R ]; do :; done; echo {state}");
    assert_eq!(shell.run(&waits), "S\nstatus 0\n");
    assert_eq!(shell.mount("work"), ControlAnswer::Added);
    assert_eq!(shell.asked(), []);
    shell.mounted(&["work"]);
    assert_eq!(shell.run("wait; cat /tmp/out"), "status 0\n");
    assert_eq!(shell.asked(), [(shell.path("notes.txt"), FileAccess::Delete)]);
    assert!(!fs::exists(shell.path("notes.txt")).unwrap());
}

#[test]
fn what_contains_a_mounted_folder_is_not_moved() {
    let fixture = fixture();
    fixture.file("outer/inner/x");
    let mut shell = Shell::granted(fixture, &[]);
    assert_eq!(shell.mount("outer/inner"), ControlAnswer::Added);
    shell.mounted(&["outer/inner"]);
    for command in ["mv -T outer moved", "mv -T outer/inner outer/moved", "rm -r outer/inner"] {
        let output = shell.run(&format!("{command} 2>&1"));
        assert!(output.contains("Device or resource busy"), "{command}: {output}");
    }
    assert_eq!(shell.unmount("outer/inner"), UnmountProof::Proved);
    shell.mounted(&[]);
    assert_eq!(shell.run("mv -T outer moved && ls moved"), "inner\nstatus 0\n");
}

#[test]
fn pipes_and_sockets_in_a_mounted_folder_are_masked() {
    let fixture = fixture();
    let _listening = std::os::unix::net::UnixListener::bind(fixture.path("docs/socket")).unwrap();
    assert!(Command::new("mkfifo").arg(fixture.path("docs/pipe")).status().unwrap().success());
    let mut shell = Shell::granted(fixture, &[]);
    assert_eq!(shell.mount("docs"), ControlAnswer::Added);
    let output = shell.run("timeout 10 sh -c 'echo x > docs/pipe' 2>&1; cat docs/a");
    // Root bypasses the mask's mode.
    let is_refused = ["Permission denied", "Read-only file system"].iter().any(|why| output.contains(why));
    assert!(is_refused && output.ends_with("docs/astatus 0\n"), "{output}");
    assert_eq!(shell.run("test -S docs/socket || test -p docs/pipe; echo $?"), "1\nstatus 0\n");
}

#[test]
fn folders_that_existed_only_in_the_view_are_there_after_the_mount() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|_, _| Some(false)));
    assert_eq!(shell.run("mkdir -p docs/new/er work/other"), "status 0\n");
    assert!(!fs::exists(shell.path("docs/new")).unwrap());
    shell.reserve("docs", 1);
    assert_eq!(shell.reserved.recv_timeout(TIMEOUT), Ok(1));
    assert_eq!(shell.mount("docs"), ControlAnswer::Added);
    shell.mounted(&["docs"]);
    assert_eq!(shell.run("echo x > docs/new/er/file; ls docs"), "a\nb\nnew\nstatus 0\n");
    assert_eq!(fs::read_to_string(shell.path("docs/new/er/file")).unwrap(), "x\n");
    // Folders in the view outside the mounted folder are not created on disk.
    assert!(!fs::exists(shell.path("work/other")).unwrap());
}
