//! Tests hostile programs. Each attack is refused, and the same operation without the hostile part is allowed.

use std::os::unix::fs::symlink;

use super::*;

#[test]
fn a_file_that_became_a_link_after_the_question_is_not_opened() {
    let fixture = fixture();
    let (notes, docs, key) = (fixture.path("notes.txt"), fixture.path("docs/a"), fixture.path("secret/key"));
    let swap = notes.clone();
    let decide = move |path: &str, _: FileAccess| {
        if path == swap {
            fs::remove_file(&swap).unwrap();
            symlink(&key, &swap).unwrap();
        }
        Some(true)
    };
    let mut shell = Shell::start(fixture, &[], Box::new(decide));
    // The kernel looks up the name again, and the link now leads to a hidden file.
    let output = shell.run("cat notes.txt 2>&1");
    assert!(output.contains("No such file or directory") && !output.contains("secret/key"), "{output}");
    assert_eq!(shell.asked(), [(notes, FileAccess::Read)]);
    assert_eq!(shell.run("cat docs/a"), "docs/astatus 0\n");
    assert_eq!(shell.asked(), [(docs, FileAccess::Read)]);
}

#[test]
fn a_file_that_was_replaced_after_the_question_is_asked_about_again() {
    let fixture = fixture();
    let notes = fixture.path("notes.txt");
    let (swap, asked) = (notes.clone(), std::sync::atomic::AtomicUsize::new(0));
    let decide = move |_: &str, _: FileAccess| {
        let is_first = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
        if is_first {
            fs::write(format!("{swap}.other"), "other").unwrap();
            fs::rename(format!("{swap}.other"), &swap).unwrap();
        }
        Some(is_first)
    };
    let mut shell = Shell::start(fixture, &[], Box::new(decide));
    let output = shell.run("cat notes.txt 2>&1");
    assert!(output.contains("Permission denied") && !output.contains("other"), "{output}");
    assert_eq!(shell.asked(), [(notes.clone(), FileAccess::Read), (notes, FileAccess::Read)]);
}

#[test]
fn a_folder_that_is_renamed_outside_does_not_carry_its_permissions_along() {
    let fixture = fixture();
    let mut shell = Shell::start(fixture, &[], Box::new(|_, _| Some(false)));
    shell.permit(1, vec![shell.permission("docs/a", FileAccess::Read)]);
    assert_eq!(shell.run("cd docs && cat a"), "docs/astatus 0\n");
    fs::rename(shell.path("docs"), shell.path("moved")).unwrap();
    // The kernel caches a name for up to a second.
    let began = Instant::now();
    let mut output = shell.run("cat a 2>&1");
    while !output.contains("No such file or directory") {
        assert!(began.elapsed() < TIMEOUT, "{output}");
        output = shell.run("cat a 2>&1");
    }
    let output = shell.run("cat ../moved/a 2>&1");
    assert!(output.contains("Permission denied"), "{output}");
    assert_eq!(shell.asked(), [(shell.path("moved/a"), FileAccess::Read)]);
}

#[test]
fn pipes_of_other_programs_are_not_opened() {
    let fixture = fixture();
    let pipe = fixture.path("docs/pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut shell = Shell::allowed(fixture);
    for command in ["cat docs/pipe 2>&1", "echo x 2>&1 > docs/pipe"] {
        let output = shell.run(&format!("timeout 10 sh -c '{command}' 2>&1"));
        assert!(output.contains("Permission denied"), "{command}: {output}");
    }
    assert_eq!(shell.asked(), []);
    // A pipe created by the run exists only in the view.
    assert_eq!(
        shell.run("mkfifo docs/own && (echo through > docs/own & cat docs/own)"),
        "through\nstatus 0\n"
    );
    assert!(!fs::exists(shell.path("docs/own")).unwrap());
}

#[test]
fn a_file_is_linked_and_moved_only_with_permission_for_both_names() {
    let decide = |path: &str, access: FileAccess| {
        Some(path.ends_with("/new") && access == FileAccess::Write || path.ends_with("/b"))
    };
    let mut shell = Shell::start(fixture(), &[], Box::new(decide));
    for command in ["ln docs/a docs/new 2>&1", "mv docs/a docs/new 2>&1", "mv docs docs2 2>&1"] {
        let output = shell.run(command);
        assert!(output.contains("Permission denied"), "{command}: {output}");
    }
    assert!(!fs::exists(shell.path("docs/new")).unwrap() && !fs::exists(shell.path("docs2")).unwrap());
    assert_eq!(shell.run("mv docs/b docs/new && cat docs/a 2>/dev/null; ls docs"), "a\nnew\nstatus 0\n");
}

#[test]
fn programs_do_not_trace_each_other() {
    let mut shell = Shell::allowed(fixture());
    let trace = "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.ptrace(0, 0, 0, 0), ctypes.get_errno())";
    assert_eq!(shell.run(&format!("/usr/bin/python3 -c '{trace}'")), "-1 1\nstatus 0\n");
}

#[test]
fn startup_files_are_recognized_in_the_users_home_alone() {
    let fixture = fixture();
    fixture.file("made/autostart/evil.desktop");
    // `HOME` names a different folder, which a server's entry can also do.
    let mut shell = Shell::allowed(fixture);
    let rename = |to: &str| format!("/usr/bin/python3 -c 'import os; os.rename(\"made\", \"{to}\")' 2>&1");
    assert!(shell.run(&rename(".config")).contains("Invalid cross-device link"));
    assert!(shell.run("ln -s /tmp/x .bashrc 2>&1").contains("Operation not permitted"));
    assert_eq!(shell.asked(), []);
    assert_eq!(shell.run(&rename("plain")), "status 0\n");
    assert!(
        !fs::exists(shell.path(".config")).unwrap() && fs::exists(shell.path("plain/autostart")).unwrap()
    );
}
