//! Tests standard streams that are files. The command gets only the data of such files.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Read, Write},
    process::{Command, Stdio},
};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use super::{CommandFixture, Outcome};

/// Returns bytes that do not repeat within a short distance.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn file_streams_cannot_be_reopened() {
    let desk = CommandFixture::new();
    let secret = desk.fixture.file("home/secret");
    fs::write(&secret, "kept\n").unwrap();
    let line =
        "cat; for n in 0 1 2; do echo changed >>/proc/self/fd/$n; truncate -s 0 /proc/self/fd/$n; done; true";
    let run = |input: &str, output: &str| {
        let open = |name: &str| OpenOptions::new().read(true).write(true).open(name).unwrap();
        let mut command = desk.command(&["-c", line]);
        command.stdin(open(input)).stdout(open(output)).stderr(Stdio::null());
        assert_eq!(command.status().unwrap().code(), Some(0));
        (fs::read_to_string(input).unwrap(), fs::read_to_string(output).unwrap())
    };
    let output = desk.fixture.file("home/output");
    fs::write(&output, "longer than what is said\nand longer\n").unwrap();
    let (input, output) = run(&secret, &output);
    // Data is read and written at the right offsets, and the rest of each file is unchanged.
    assert_eq!(input, "kept\n");
    assert!(output.starts_with("kept\n") && output.ends_with("\nand longer\n"), "{output:?}");
    // A pipe is passed on unchanged.
    assert_eq!(desk.stdout_of("test -p /proc/self/fd/1 && echo pipe"), "pipe\n");
}

#[test]
fn folder_as_a_stream_is_refused() {
    let desk = CommandFixture::new();
    desk.fixture.file("home/secret");
    let folder = || File::open(desk.path("home")).unwrap();
    let line = "ls /proc/self/fd/0/ /proc/self/fd/1/; true";
    let refused = |outcome: Outcome, name: &str| {
        assert_eq!((outcome.status, outcome.output.as_str()), (Some(125), ""), "{outcome:?}");
        assert!(outcome.complained.contains(&format!("{name} is a folder")), "{outcome:?}");
    };
    refused(
        Outcome::from_output(&desk.command(&["-c", line]).stdin(folder()).output().unwrap()),
        "standard input",
    );
    let child = desk.command(&["-c", line]).stdout(folder()).stderr(Stdio::piped()).spawn().unwrap();
    refused(Outcome::from_output(&child.wait_with_output().unwrap()), "standard output");
    let child = desk.command(&["-c", line]).stderr(folder()).status().unwrap();
    assert_eq!(child.code(), Some(125));
    assert_eq!(desk.line("true").status, Some(0));
}

#[test]
fn copied_data_is_complete_and_in_order() {
    let desk = CommandFixture::new();
    let bytes = noise(5_000_003);
    let (input, output) = (desk.fixture.file("home/in"), desk.fixture.file("home/out"));
    fs::write(&input, &bytes).unwrap();
    let run = |line: &str, input: Stdio, output: Stdio, errors: Stdio| {
        desk.command(&["-c", line]).stdin(input).stdout(output).stderr(errors).status().unwrap().code()
    };
    let from = |path: &str| Stdio::from(File::open(path).unwrap());
    let to = |path: &str| Stdio::from(File::create(path).unwrap());
    assert_eq!(run("cat; exit 3", from(&input), to(&output), Stdio::null()), Some(3));
    assert!(fs::read(&output).unwrap() == bytes);

    // The command need not read all its input. The output of background processes is copied to the end.
    let line = "head -c 70000; (cat /dev/zero | head -c 200000 >&2) & wait";
    let errors = desk.fixture.file("home/errors");
    assert_eq!(run(line, from(&input), to(&output), to(&errors)), Some(0));
    assert!(fs::read(&output).unwrap() == bytes[..70_000]);
    assert_eq!(fs::read(&errors).unwrap(), vec![0; 200_000]);

    // Both output streams append to the same file.
    let one = OpenOptions::new().append(true).open(&errors).unwrap();
    fs::write(&errors, "before\n").unwrap();
    let line = "for n in $(seq 500); do echo out $n; echo err $n >&2; done";
    assert_eq!(run(line, Stdio::null(), one.try_clone().unwrap().into(), one.into()), Some(0));
    let expected: String = (1..=500).map(|n| format!("out {n}\nerr {n}\n")).collect();
    assert_eq!(fs::read_to_string(&errors).unwrap(), format!("before\n{expected}"));
    // Reading an empty file reaches EOF immediately.
    fs::write(&input, "").unwrap();
    assert_eq!(run("cat", from(&input), to(&output), Stdio::null()), Some(0));
    assert_eq!(fs::read(&output).unwrap(), b"");
}

#[test]
fn write_errors_are_reported_and_fail_the_command() {
    let desk = CommandFixture::new();
    let output_file = desk.fixture.file("home/out");
    let run = |line: &str| {
        let mut command = desk.command(&["-c", line]);
        command.stdout(File::open(&output_file).unwrap()).stderr(Stdio::piped());
        Outcome::from_output(&command.spawn().unwrap().wait_with_output().unwrap())
    };
    let outcome = run("echo lost");
    assert_eq!(outcome.status, Some(125));
    assert!(
        outcome.complained.contains("failed to write standard output: Bad file descriptor"),
        "{outcome:?}"
    );
    assert_eq!(run("echo lost; exit 7").status, Some(7));
    assert_eq!(run("true").status, Some(0));
}

#[test]
fn file_size_limit_kills_the_command_not_the_copier() {
    let desk = CommandFixture::new();
    let run = |first: &str, last: &str, most: u64| {
        let output_file = desk.fixture.file("home/out");
        let line = format!("{first}; echo ready >&2; read line; head -c 100000 /dev/zero; {last}");
        let mut command = desk.command(&["-c", &line]);
        command.stdin(Stdio::piped()).stdout(File::create(&output_file).unwrap()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut output = String::new();
        errors.read_line(&mut output).unwrap();
        // Raises the limit of only the copying process.
        let limit = Rlimit { current: Some(most), maximum: None };
        prlimit(Pid::from_raw(child.id().try_into().unwrap()), Resource::Fsize, limit).unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input).unwrap();
        errors.read_to_string(&mut output).unwrap();
        (child.wait().unwrap().code(), output, fs::metadata(&output_file).unwrap().len())
    };
    for (first, status) in [("true", 128 + 25), ("trap 'exit 9' XFSZ", 9)] {
        let (ended, output, written) = run(first, "sleep 60", 4096);
        assert_eq!((ended, written), (Some(status), 4096), "{output}");
        assert!(output.contains("failed to write standard output: File too large"), "{output}");
    }
    assert_eq!(run("true", "true", 100_000), (Some(0), "ready\n".to_owned(), 100_000));
}

#[test]
fn inherited_descriptors_are_closed_at_once() {
    let desk = CommandFixture::new();
    let fifo = desk.path("home/fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let ours = desk.command(&["cat"]);
    let mut command = Command::new("sh");
    command.args(["-c", r#"exec 9>"$0"; exec "$@""#, &fifo]).arg(ours.get_program()).args(ours.get_args());
    command.envs(ours.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(desk.path("work")).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // Standard output reaches EOF once no process holds it, even while the command is still running.
    assert_eq!(fs::read_to_string(&fifo).unwrap(), "");
    child.stdin.take().unwrap().write_all(b"said\n").unwrap();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!((output.as_str(), child.wait().unwrap().code()), ("said\n", Some(0)));
}
