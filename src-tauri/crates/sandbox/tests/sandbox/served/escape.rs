//! Tests attempts to escape from a served view or to block it. Each attempt is refused for its own reason, and a
//! similar permitted operation works.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use ironcurtain_testkit::seed::is_soak;

use super::*;

/// Returns the value of a field in `/proc/PID/status`.
fn status(process: &str, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

/// Runs a line of Python and returns its output.
fn python(shell: &mut Shell, line: &str) -> String {
    shell.run(&format!("/usr/bin/python3 -c '{line}' 2>&1"))
}

#[test]
fn a_stopped_view_holds_only_programs_that_need_it() {
    let fixture = fixture();
    let work = fixture.path("work");
    let mut shell = Shell::start(fixture, &[&work], Box::new(|_, _| Some(true)));
    let view = view_process(&shell);
    assert_eq!(shell.run("cd work"), "status 0\n");
    signal(&view, "STOP");
    // The mounted folder and the sandbox's own folders remain usable.
    assert_eq!(shell.run("cat own; echo x > /tmp/x; cat /tmp/x"), "work/ownx\nstatus 0\n");
    assert_eq!(shell.run("{ cat ../notes.txt > /tmp/out & }"), "status 0\n");
    assert_eq!(shell.run("cat own"), "work/ownstatus 0\n");
    assert_eq!(shell.asked(), []);
    signal(&view, "CONT");
    assert_eq!(shell.run("wait; cat /tmp/out"), "notes.txtstatus 0\n");
}

#[test]
fn a_sandbox_with_a_stopped_view_ends() {
    let mut shell = waiting();
    let view = view_process(&shell);
    signal(&view, "STOP");
    shell.stdin = None;
    shell.kill.kill();
    assert_eq!(shell.ended.recv_timeout(TIMEOUT).unwrap().signal, Some(9));
    all_programs_end(&mut shell);
    // The process dies with the supervisor even though it is stopped.
    eventually("the view has exited", || !fs::exists(format!("/proc/{view}")).unwrap());
}

#[test]
fn names_are_bounded_and_memory_is_too() {
    let mut shell = Shell::allowed(fixture());
    let view = view_process(&shell);
    assert_eq!(shell.run("cat docs/a"), "docs/astatus 0\n");
    let before = status(&view, "VmRSS:");
    // Creates names that exist only in the view.
    let (names, result) = if is_soak() { (70_000, "True No space left on device") } else { (5_000, "all") };
    let create = format!(
        "import os\nmade = 0\ntry:\n  for made in range({names}): os.mkdir(\"docs/v%d\" % made)\n  print(\"all\")\n\
         except OSError as error: print(made > 60000, os.strerror(error.errno))"
    );
    fs::write(shell.path("work/create.py"), create).unwrap();
    assert_eq!(shell.run("/usr/bin/python3 work/create.py"), format!("{result}\nstatus 0\n"));
    // Removing a name frees its slot.
    assert_eq!(shell.run("rmdir docs/v1 && mkdir docs/again"), "status 0\n");
    // Names that do not exist need no memory.
    let count = if is_soak() { 1_000_000 } else { 20_000 };
    let look = format!("import os; print(any(os.path.exists(\"docs/none%d\" % n) for n in range({count})))");
    assert_eq!(python(&mut shell, &look), "False\nstatus 0\n");
    let grown = status(&view, "VmRSS:").saturating_sub(before);
    assert!(grown < memory_for(names), "{grown} kB for {names} names");
    assert_eq!(shell.run("cat docs/a"), "docs/astatus 0\n");
    assert_eq!(fs::read_dir(shell.path("docs")).unwrap().count(), 2);
}

/// Returns the maximum memory in kB that a view may use for this number of names.
fn memory_for(names: u64) -> u64 {
    2_000 + names
}

#[test]
fn many_real_names_need_little_memory() {
    let fixture = fixture();
    let (folders, files) = if is_soak() { (1000, 1000) } else { (50, 100) };
    for folder in 0..folders {
        let folder = fixture.path(&format!("many/{folder}"));
        fs::create_dir_all(&folder).unwrap();
        (0..files).for_each(|file| fs::write(format!("{folder}/{file}"), "").unwrap());
    }
    let mut shell = Shell::allowed(fixture);
    let view = view_process(&shell);
    let before = status(&view, "VmRSS:");
    let output = shell.run("find many -type f -size 0 | wc -l");
    assert_eq!(output, format!("{}\nstatus 0\n", folders * files));
    let grown = status(&view, "VmRSS:").saturating_sub(before);
    // The kernel drops many of the cached names.
    let most = if is_soak() { 400_000 } else { memory_for(folders * files) };
    assert!(grown < most, "{grown} kB for {} names", folders * files);
}

#[test]
fn two_hundred_programs_wait_without_holding_others_up() {
    let mut shell = Shell::start(fixture(), &[], Box::new(|path, _| (!path.ends_with("/a")).then_some(true)));
    let view = view_process(&shell);
    let threads = status(&view, "Threads:");
    assert_eq!(shell.run("for i in $(seq 200); do cat docs/a & done"), "status 0\n");
    eventually("a question is asked", || !shell.asked.lock().unwrap().is_empty());
    assert_eq!(shell.run("cat docs/b notes.txt; ls docs"), "docs/bnotes.txta\nb\nstatus 0\n");
    assert_eq!(status(&view, "Threads:"), threads);
    let asked = shell.asked().into_iter().filter(|(path, _)| path.ends_with("/a")).count();
    assert_eq!(asked, 1);
    let output = shell.run("pkill -x cat; wait; cat notes.txt");
    assert!(output.ends_with("notes.txtstatus 0\n"), "{output}");
}

#[test]
fn other_ways_into_the_kernel_are_refused() {
    let fixture = fixture();
    let listening = fixture.path("docs/socket");
    let _listening = std::os::unix::net::UnixListener::bind(&listening).unwrap();
    let mut shell = Shell::allowed(fixture);
    let call = |number: u32, arguments: &str| {
        format!(
            "import ctypes; c = ctypes.CDLL(None, use_errno=True); print(c.syscall({number}, {arguments}), ctypes.get_errno())"
        )
    };
    // io_uring_setup and ptrace are refused; getpid is allowed.
    for (number, arguments) in [(425, "8, 0"), (101, "0, 0, 0, 0")] {
        assert_eq!(python(&mut shell, &call(number, arguments)), "-1 1\nstatus 0\n", "{number}");
    }
    assert!(python(&mut shell, &call(39, "0")).ends_with(" 0\nstatus 0\n"));
    // Connecting to the user's socket is refused; a socket pair is allowed.
    let connect =
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"docs/socket\"); print(\"connected\")";
    let output = python(&mut shell, connect);
    assert!(output.contains("Operation not permitted") && !output.contains("connected"), "{output}");
    assert_eq!(
        python(&mut shell, "import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))"),
        "b'x'\nstatus 0\n"
    );
    // Injecting terminal input is refused; querying the terminal's size is allowed.
    let terminal = "import fcntl, os, termios; m, s = os.openpty(); print(len(fcntl.ioctl(s, termios.TIOCGWINSZ, bytes(8)))); \
                    fcntl.ioctl(s, termios.TIOCSTI, b\"x\")";
    let output = python(&mut shell, terminal);
    assert!(output.contains("8\n") && output.contains("Operation not permitted"), "{output}");
}

#[test]
fn no_program_gains_rights_from_a_file() {
    let fixture = fixture();
    let program = fixture.path("docs/program");
    fs::copy("/usr/bin/id", &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o6755)).unwrap();
    let owner = fs::metadata(&program).unwrap().uid();
    let work = fixture.path("work");
    fs::copy("/usr/bin/id", fixture.path("work/program")).unwrap();
    fs::set_permissions(fixture.path("work/program"), fs::Permissions::from_mode(0o6755)).unwrap();
    let mut shell = Shell::start(fixture, &[&work], Box::new(|_, _| Some(true)));
    for program in ["docs/program", "work/program"] {
        assert_eq!(shell.run(&format!("{program} -u")), format!("{owner}\nstatus 0\n"));
    }
    let privileges = shell.run("grep -E 'NoNewPrivs|CapEff|CapBnd' /proc/self/status");
    let none = "0000000000000000";
    assert_eq!(privileges, format!("CapEff:\t{none}\nCapBnd:\t{none}\nNoNewPrivs:\t1\nstatus 0\n"));
    // Both mounts ignore the setuid bit.
    let mounts = shell.run(&format!(
        "grep -E ' ({}|{}) ' /proc/self/mountinfo",
        shell.fixture.dir.path().display(),
        work
    ));
    let lines: Vec<&str> = mounts.lines().filter(|line| line.contains(" - ")).collect();
    assert!(
        lines.len() == 2 && lines.iter().all(|line| line.contains("nosuid") && line.contains("nodev")),
        "{mounts}"
    );
    let denied = shell.run("chmod u+s docs/a 2>&1");
    assert!(denied.contains("Operation not permitted"), "{denied}");
    assert_eq!(shell.run("chmod 700 docs/a && stat -c %a docs/a"), "700\nstatus 0\n");
}

#[test]
fn other_runs_are_out_of_reach() {
    let mut victim = Shell::allowed(fixture());
    assert_eq!(
        victim.run("sleep 1234567 & echo secret > /tmp/mine; cat notes.txt > /dev/null"),
        "status 0\n"
    );
    let mut shell = Shell::allowed(fixture());
    let found =
        shell.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[1]234567'; cat /tmp/mine 2>&1");
    assert!(found.starts_with("0\n") && found.contains("No such file or directory"), "{found}");
    // The view of one run does not serve files from another run's view, because views serve only local file systems.
    let root = format!("/proc/{}/root{}", view_process(&victim), victim.path("notes.txt"));
    let output = shell.run(&format!("cat {root} 2>&1"));
    assert!(output.contains("No such file or directory"), "{output}");
    assert_eq!(victim.run("cat /tmp/mine"), "secret\nstatus 0\n");
}

#[test]
fn hard_links_to_hidden_files_do_not_exist() {
    let fixture = fixture();
    fixture.file("secret.txt");
    fs::hard_link(fixture.path("secret.txt"), fixture.path("docs/before")).unwrap();
    fs::hard_link(fixture.path("notes.txt"), fixture.path("docs/plain")).unwrap();
    let mut shell = Shell::allowed(fixture);
    fs::hard_link(shell.path("secret.txt"), shell.path("docs/after")).unwrap();
    assert_eq!(shell.run("ls docs"), "a\nb\nplain\nstatus 0\n");
    for name in ["docs/before", "docs/after", "secret.txt"] {
        let output = shell.run(&format!("cat {name} 2>&1; ln {name} docs/mine 2>&1"));
        assert_eq!(output.matches("No such file or directory").count(), 2, "{output}");
    }
    assert_eq!(shell.asked(), []);
    assert_eq!(shell.run("cat docs/plain"), "notes.txtstatus 0\n");
}
