//! Many sessions, or sessions that use many resources, do not block or terminate others.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::machine::{Machine, descendants};
use crate::protocol::assert_session_works;
use crate::scripted;
use crate::test_home::Prepared;
use crate::world::eventually;
use serde_json::{Value, json};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1024 * 1024;

/// Adds these keys to the hostile server's entry and writes these settings.
fn configure(prepared: &Prepared, entry: &Value, settings: &Value) {
    let file = prepared.home.config.join("mcp-servers.json");
    let mut servers: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for (name, value) in entry.as_object().unwrap() {
        servers["hostile"][name] = value.clone();
    }
    std::fs::write(file, servers.to_string()).unwrap();
    std::fs::write(prepared.home.config.join("config.json"), settings.to_string()).unwrap();
}

/// Returns a value from the daemon's `/proc/PID/status`, in bytes.
pub fn status(machine: &Machine, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", machine.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let number: u64 = line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap();
    if line.ends_with("kB") { number * 1024 } else { number }
}

#[test]
fn sessions_beyond_blocking_threads_work_and_excess_session_gets_a_reason() {
    const SESSIONS: usize = 530;
    let mut machine = Machine::new(|prepared| {
        hostile::install(prepared);
        configure(prepared, &json!({ "sandbox": false }), &json!({ "maxSessions": SESSIONS }));
    });
    machine.start();
    let before = status(&machine, "VmRSS");
    let mut clients: Vec<Client> = (0..SESSIONS).map(|_| machine.connect()).collect();
    for client in &mut clients {
        assert_session_works(client);
    }
    let each = status(&machine, "VmRSS").saturating_sub(before) / SESSIONS as u64;
    assert!(each < 300_000, "{each} bytes per session");
    let mut refused = machine.client();
    let answer = refused.request("initialize", json!({}));
    let message = answer["error"]["message"].as_str().unwrap();
    let why = format!("{SESSIONS} sessions are open, the maximum that `maxSessions` in `config.json` allows");
    assert!(message.contains(&why), "{message}");
    clients.pop().unwrap().hang_up();
    eventually("a session slot is free", TIMEOUT, || {
        let mut client = machine.client();
        client.request("initialize", json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        }))["result"].is_object()
    });
    assert_session_works(&mut clients[0]);
}

/// Returns the number of concurrent sandboxed sessions, from `IRONCURTAIN_SANDBOXED`.
fn sandboxed() -> usize {
    std::env::var("IRONCURTAIN_SANDBOXED").map_or(40, |n| n.parse().unwrap())
}

/// Machine resources other than memory that sessions use.
#[derive(Debug)]
struct Taken {
    processes: usize,
    descriptors: usize,
    mounts: usize,
    /// Number of Unix sockets with a path. Each connection counts as one.
    sockets: usize,
    control_groups: usize,
    /// Number of files outside the session folders, which are kept for the user.
    files: usize,
}

/// Returns the number of files below a folder.
fn files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
}

/// Returns the number of lines in a file that contain a word.
fn lines_with(file: &str, word: &str) -> usize {
    std::fs::read_to_string(file).unwrap().lines().filter(|line| line.contains(word)).count()
}

/// Returns the number of sandbox control groups next to the daemon's control group, if it has its own.
fn control_groups(trusted: u32) -> usize {
    let own = std::fs::read_to_string(format!("/proc/{trusted}/cgroup")).unwrap();
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let beside = Path::new("/sys/fs/cgroup").join(own);
    let groups = beside.parent().unwrap().read_dir().into_iter().flatten().flatten();
    groups.filter(|group| group.file_name().to_string_lossy().starts_with("sandbox-")).count()
}

impl Taken {
    fn of(machine: &Machine) -> Self {
        let process = format!("/proc/{}", machine.pid());
        Self {
            processes: descendants(machine.pid()).len(),
            descriptors: std::fs::read_dir(format!("{process}/fd")).unwrap().count(),
            mounts: std::fs::read_to_string(format!("{process}/mountinfo")).unwrap().lines().count(),
            sockets: lines_with(&format!("{process}/net/unix"), machine.ours().to_str().unwrap()),
            control_groups: control_groups(machine.pid()),
            files: files(&machine.home.sandboxes()) + files(&machine.temporary()),
        }
    }
}

#[test]
fn many_sandboxed_sessions_answer_concurrently_and_leave_no_trace() {
    let sessions = sandboxed();
    let mut machine = Machine::new(|prepared| {
        hostile::install(prepared);
        configure(prepared, &json!({}), &json!({ "maxSessions": sessions }));
    });
    machine.start_with_login_descriptor_limit();
    let at_rest = Taken::of(&machine);
    // The first session allocates resources that later sessions share.
    let mut first = machine.connect();
    assert_session_works(&mut first);
    let one = Taken::of(&machine);
    first.hang_up();
    let is_over = |machine: &Machine| {
        let now = Taken::of(machine);
        let count = |taken: &Taken| (taken.processes, taken.mounts, taken.control_groups, taken.files);
        // The first connection only checked that a process is listening on the socket.
        count(&now) == count(&at_rest) && now.sockets <= at_rest.sockets
    };
    eventually("the first session ends", TIMEOUT, || is_over(&machine));
    let before = Taken::of(&machine);
    assert!(one.processes > 1 && one.descriptors > before.descriptors, "{one:?} {before:?}");
    let began = Instant::now();
    let connect = |count: usize| (0..count).map(|_| machine.connect());
    // The first half of the sessions allocates resources that all sessions share.
    let mut clients: Vec<Client> = connect(sessions / 2).collect();
    let memory = status(&machine, "VmRSS");
    clients.extend(connect(sessions - sessions / 2));
    let each = status(&machine, "VmRSS").saturating_sub(memory) / (sessions - sessions / 2) as u64;
    let calls: Vec<u64> =
        clients.iter_mut().map(|client| client.begin_call("echo", json!({ "n": 1 }))).collect();
    for (client, call) in clients.iter_mut().zip(calls) {
        assert_eq!(client.outcome(call).ok(), r#"{"n":1}"#);
    }
    let all = Taken::of(&machine);
    let _ = writeln!(
        std::io::stderr(),
        "{sessions} sandboxed sessions answer after {:?}: {each} bytes each, {all:?}",
        began.elapsed()
    );
    assert!(all.processes >= sessions * one.processes, "{all:?}");
    assert!(each < 300_000, "{each} bytes per session");
    clients.into_iter().for_each(Client::hang_up);
    let bound = Instant::now() + TIMEOUT + Duration::from_millis(100) * u32::try_from(sessions).unwrap();
    let is_more = |now: Taken| now.descriptors > before.descriptors || now.sockets > before.sockets;
    while !is_over(&machine) || is_more(Taken::of(&machine)) {
        assert!(Instant::now() < bound, "{:?} is left; before it was {before:?}", Taken::of(&machine));
        std::thread::sleep(Duration::from_millis(50));
    }
    let _ = writeln!(std::io::stderr(), "after all of them: {:?}", Taken::of(&machine));
    let below = machine.kill();
    machine.assert_clean(&below);
}

#[test]
fn all_sandboxes_share_one_inotify_instance() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let instances = |pid: u32| {
        let all = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let targets = all.filter_map(|fd| std::fs::read_link(fd.path()).ok());
        targets.filter(|target| target.to_string_lossy().contains("inotify")).count()
    };
    let mut first = machine.connect();
    let count = || {
        let below = descendants(machine.pid());
        instances(machine.pid()) + below.iter().map(|process| instances(process.pid)).sum::<usize>()
    };
    let with_one = count();
    let mut more: Vec<Client> = (0..12).map(|_| machine.connect()).collect();
    more.iter_mut().for_each(assert_session_works);
    assert_session_works(&mut first);
    assert!(with_one > 0);
    // An instance from the previous run may still exist for a moment.
    assert!(count() <= with_one);
}

#[test]
fn endless_stderr_line_is_logged_in_bounded_memory() {
    let mut machine = Machine::new(|prepared| {
        scripted::install(
            prepared,
            r#"
for m in messages():
    if m["method"] == "initialize": greet(m)
    elif m["method"] == "tools/call":
        if m["params"]["name"] == "noise":
            for n in range(60):
                sys.stderr.write("x" * 1000000)
            sys.stderr.flush()
        answer(m)
"#,
        );
    });
    machine.start();
    let mut client = machine.connect();
    client.plain("echo").ok();
    let before = status(&machine, "VmHWM");
    client.plain("noise").ok();
    client.plain("echo").ok();
    assert!(status(&machine, "VmHWM") < before + 20 * MIB, "{} MiB", status(&machine, "VmHWM") / MIB);
    let logs = || -> String {
        let sessions = std::fs::read_dir(machine.home.sessions()).unwrap().flatten();
        sessions.map(|s| std::fs::read_to_string(s.path().join("session.log")).unwrap_or_default()).collect()
    };
    eventually("the output is in the log", TIMEOUT, || logs().lines().any(|line| line.starts_with("xxxx")));
    assert!(logs().lines().all(|line| line.len() < 10_000));
}

#[test]
fn giant_messages_of_six_sessions_stay_within_budget() {
    const LENGTH: usize = 3_000_000;
    let mut machine = Machine::new(|prepared| {
        hostile::install(prepared);
        configure(prepared, &json!({}), &json!({ "memoryMib": 64, "sessionMemoryMib": 4 }));
    });
    machine.start();
    let mut clients: Vec<Client> = (0..6).map(|_| machine.connect()).collect();
    let before = status(&machine, "VmRSS");
    let text = "x".repeat(LENGTH);
    let outcomes: Vec<bool> = std::thread::scope(|scope| {
        let calls: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                let text = &text;
                scope.spawn(move || {
                    let sent = client.call("echo", json!({ "text": text }));
                    // A message that exceeds the memory limit is refused with a reason.
                    assert!(!sent.is_error || sent.text.contains("memoryMib"), "{:.300}", sent.text);
                    let got = client.call("big", json!({ "bytes": LENGTH }));
                    assert!(!got.is_error || got.text.contains("memoryMib"), "{:.300}", got.text);
                    !sent.is_error && !got.is_error
                })
            })
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    let most = status(&machine, "VmHWM").saturating_sub(before);
    // The limit includes all small allocations.
    assert!(most < 90 * MIB, "{} MiB", most / MIB);
    assert!(outcomes.contains(&true));
    clients.iter_mut().for_each(assert_session_works);
}

#[test]
fn non_reading_clients_hold_only_their_share_of_the_budget() {
    let mut machine = Machine::new(hostile::install);
    machine.start();
    let before = status(&machine, "VmRSS");
    let mut deaf: Vec<Client> = (0..6).map(|_| machine.connect_non_reading()).collect();
    for client in &mut deaf {
        for _ in 0..20 {
            client.begin_call("big", json!({ "bytes": 10_000_000 }));
        }
    }
    let mut client = machine.connect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(3) {
        assert_session_works(&mut client);
    }
    let most = status(&machine, "VmHWM").saturating_sub(before);
    assert!(most < 560 * MIB, "{} MiB", most / MIB);
}
