//! Benchmarks our sandbox and others side by side, and prints a Markdown table. Run by `cargo xtask bench`.
//!
//! `sandbox-bench [--smoke] PROGRAM [SRT]`: PROGRAM is a release build of our program, and SRT is `srt`, if installed.
//! `--smoke` takes each measurement only once. The benchmark starts itself in each sandbox with `--work FOLDER FILES` or
//! `--receive HOST PORT`.
//!
//! - Each sandbox runs the same commands through its command line, like a user.
//! - Memory and processes are measured for the launched process and all its descendants.

#![expect(clippy::print_stdout, reason = "the table goes to standard output")]

#[path = "sandbox-bench/grants.rs"]
mod grants;
#[path = "sandbox-bench/others.rs"]
mod others;
#[path = "sandbox-bench/served.rs"]
mod served;
#[path = "sandbox-bench/tree.rs"]
mod tree;
#[path = "sandbox-bench/tun.rs"]
mod tun;
#[path = "sandbox-bench/work.rs"]
mod work;

use ironcurtain_testkit::measurements::{megabytes, time};
use others::{Other, Setting};
use std::{
    env,
    error::Error,
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write as _},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use work::Files;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Number of repetitions of each measurement.
struct Rounds {
    /// Launches of each sandbox. The number is small because `srt` is slow.
    launches: usize,
    /// Lines echoed by the server.
    echoes: usize,
    /// Grants added and removed.
    grants: usize,
    /// Runs of the file workload, and of the reception.
    works: usize,
    /// MiB to receive.
    received: u32,
}

const MEASURED: Rounds = Rounds { launches: 30, echoes: 2000, grants: 200, works: 5, received: 256 };
const SMOKE: Rounds = Rounds { launches: 1, echoes: 1, grants: 1, works: 1, received: 1 };

fn main() -> Fallible<()> {
    let mut arguments = env::args().skip(1).peekable();
    if arguments.next_if_eq("--work").is_some() {
        let (folder, small) =
            (arguments.next().ok_or("missing folder")?, arguments.next().ok_or("missing number")?);
        println!("{}", work::perform(folder.as_ref(), small.parse()?)?);
        return Ok(());
    }
    if arguments.next_if_eq("--receive").is_some() {
        let (host, port) = (arguments.next().ok_or("missing host")?, arguments.next().ok_or("missing port")?);
        println!("{}", tun::receive(&host, port.parse()?)?.as_nanos());
        return Ok(());
    }
    let is_smoke = arguments.next_if_eq("--smoke").is_some();
    let (rounds, files) = if is_smoke { (SMOKE, Files::SMOKE) } else { (MEASURED, Files::MEASURED) };
    let ours = arguments.next().ok_or("missing argument: PROGRAM")?;
    let setting = Setting::make(ours.clone(), arguments.next())?;
    let others = Other::all(&setting);
    let costs =
        others.iter().map(|other| Costs::of(other, &setting, &rounds)).collect::<Fallible<Vec<_>>>()?;
    print!("{}", table(&others, &costs)?);
    let live = grants::measure(&ours, setting.dir.path(), rounds.grants)?;
    println!(
        "\nA live grant: added in {}, removed with proof in {} (goal: added in <= 3 ms).",
        time(live.add),
        time(live.remove)
    );
    println!("\n{}", tun::measure(&setting, rounds.received, rounds.works)?);
    print!("\n{}", served::table(&setting, &files, rounds.works)?);
    Ok(())
}

/// Measurements of one sandbox: time, memory and processes.
struct Costs {
    start_and_exit: Duration,
    first_byte: Duration,
    resident_kib: u64,
    processes: usize,
    echo: Duration,
}

impl Costs {
    fn of(other: &Other, setting: &Setting, rounds: &Rounds) -> Fallible<Self> {
        let start_and_exit = median(rounds.launches, || {
            let began = Instant::now();
            let status = other.command(setting, &["true"]).stdin(Stdio::null()).status()?;
            if status.success() {
                Ok(began.elapsed())
            } else {
                Err(format!("{}: {status}", other.name()).into())
            }
        })?;
        let first_byte = median(rounds.launches, || {
            let began = Instant::now();
            let mut child = piped(other.command(setting, &["echo", "x"]))?;
            child.stdout.take().ok_or("no output")?.read_exact(&mut [0])?;
            let took = began.elapsed();
            child.wait()?;
            Ok(took)
        })?;
        let mut cat = piped(other.command(setting, &["cat"]))?;
        let mut stdin = cat.stdin.take().ok_or("no input")?;
        let mut stdout = BufReader::new(cat.stdout.take().ok_or("no output")?);
        let echo = median(rounds.echoes, || {
            let began = Instant::now();
            stdin.write_all(b"x\n")?;
            stdout.read_line(&mut String::new())?;
            Ok(began.elapsed())
        })?;
        let tree = tree::at_rest(cat.id())?;
        drop(stdin);
        cat.wait()?;
        Ok(Self {
            start_and_exit,
            first_byte,
            resident_kib: tree.resident_kib,
            processes: tree.processes,
            echo,
        })
    }
}

fn piped(mut command: Command) -> Fallible<Child> {
    Ok(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?)
}

fn table(others: &[Other], costs: &[Costs]) -> Fallible<String> {
    type Figure = fn(&Costs) -> String;
    let figures: [(&str, &str, Figure); 5] = [
        ("start and exit of `true`", "<= 20 ms", |c| time(c.start_and_exit)),
        ("launch to first byte", "<= 20 ms", |c| time(c.first_byte)),
        ("resident, all processes", "<= 7 MB", |c| megabytes(c.resident_kib)),
        ("processes", "<= 4", |c| c.processes.to_string()),
        ("echo, there and back", "<= 8 us", |c| time(c.echo)),
    ];
    let mut page = String::from("| sandbox |");
    others.iter().try_for_each(|other| write!(page, " {} |", other.name()))?;
    write!(page, " goal |\n| --- |{} --- |\n", " --- |".repeat(others.len()))?;
    for (what, goal, figure) in figures {
        write!(page, "| {what} |")?;
        costs.iter().try_for_each(|cost| write!(page, " {} |", figure(cost)))?;
        writeln!(page, " {goal} |")?;
    }
    Ok(page)
}

fn median(rounds: usize, mut once: impl FnMut() -> Fallible<Duration>) -> Fallible<Duration> {
    let mut figures = (0..rounds).map(|_| once()).collect::<Fallible<Vec<_>>>()?;
    figures.sort();
    figures.get(rounds / 2).copied().ok_or_else(|| "no rounds".into())
}
