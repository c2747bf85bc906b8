//! What a sandbox costs: medians of launching one, of changing its grants, and what it keeps in memory.
//!
//! `sandbox-measure SUPERVISOR_PROGRAM [ROUNDS]`, in a release build; grants the directory it is run in.

#![expect(clippy::print_stdout, reason = "the figures go to standard output")]

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::{BufRead, BufReader, Write},
    path::Path,
    time::{Duration, Instant},
};

use ironcurtain_sandbox::{
    Access, Answer, ControlOp, Event, Launched, Limits, Mount, Network, Persistence, Proof, Spec, View,
    client::ControlClient, launch,
};

type Fallible<T> = Result<T, Box<dyn Error>>;

fn main() -> Fallible<()> {
    let mut args = env::args().skip(1);
    let program = args.next().ok_or("name the supervisor program")?;
    let rounds = args.next().map_or(Ok(50), |rounds| rounds.parse())?;
    let granted = env::current_dir()?.to_str().ok_or("a path of other than text")?.to_owned();
    let session = env::temp_dir().join(format!("sandbox-measure-{}", std::process::id()));
    fs::create_dir(&session)?;
    let figures = Measure { program, rounds, granted, session: session.display().to_string() }.run();
    fs::remove_dir(&session)?;
    figures
}

struct Measure {
    program: String,
    rounds: usize,
    granted: String,
    session: String,
}

impl Measure {
    fn run(&self) -> Fallible<()> {
        let first_byte = self.median(|| {
            let start = Instant::now();
            let launched = self.launch(&["echo", "x"])?;
            BufReader::new(File::from(launched.stdout)).read_line(&mut String::new())?;
            Ok(start.elapsed())
        })?;
        println!("launch to first byte of echo  {first_byte:>10.2?}");

        let server = self.launch(&["cat"])?;
        let pid = server.pid;
        let mut control = ControlClient::new(server.control, Duration::from_secs(10))?;
        if control.event()? != Event::Started {
            return Err("it did not start".into());
        }
        let mut cat = Cat { stdin: server.stdin.into(), stdout: BufReader::new(server.stdout.into()) };
        let mut removals = Vec::new();
        let add = self.median(|| {
            let start = Instant::now();
            let added = control.ask(ControlOp::Add(Mount::new(&self.granted, Access::ReadOnly)))?;
            let took = start.elapsed();
            let start = Instant::now();
            let removed = control.ask(ControlOp::Remove { path: self.granted.clone() })?;
            removals.push(start.elapsed());
            let expected = (Answer::Added, Answer::Removed { proof: Proof::Proved });
            if (added, removed) == expected { Ok(took) } else { Err("a grant failed".into()) }
        })?;
        println!("add a grant                   {add:>10.2?}");
        println!("remove it, proved             {:>10.2?}", middle(removals)?);
        println!("echo roundtrip                {:>10.2?}", self.median(|| cat.roundtrip())?);

        let tree = tree(pid)?;
        let resident: u64 = tree.iter().map(|(_, kilobytes)| kilobytes).sum();
        println!("processes                     {:>10}", tree.len());
        println!("resident memory               {resident:>7} kB");
        for (name, kilobytes) in tree {
            println!("    {name:<24}  {kilobytes:>7} kB");
        }
        Ok(())
    }

    fn launch(&self, argv: &[&str]) -> Fallible<Launched> {
        let spec = Spec {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
            cwd: None,
            view: View::Roots { session_dir: self.session.clone(), programs: vec![] },
            mounts: vec![],
            network: Network::None,
            unix_sockets: false,
            persistence: Persistence::default(),
            limits: Limits::default(),
            state_dir: None,
            allow_root: true,
        };
        Ok(launch(&spec, Path::new(&self.program), |_| ())?)
    }

    fn median(&self, mut once: impl FnMut() -> Fallible<Duration>) -> Fallible<Duration> {
        middle((0..self.rounds).map(|_| once()).collect::<Fallible<Vec<_>>>()?)
    }
}

struct Cat {
    stdin: File,
    stdout: BufReader<File>,
}

impl Cat {
    fn roundtrip(&mut self) -> Fallible<Duration> {
        let start = Instant::now();
        self.stdin.write_all(b"x\n")?;
        self.stdout.read_line(&mut String::new())?;
        Ok(start.elapsed())
    }
}

fn middle(mut figures: Vec<Duration>) -> Fallible<Duration> {
    figures.sort();
    figures.get(figures.len() / 2).copied().ok_or_else(|| "no rounds".into())
}

/// The processes from `pid` down, with what is resident of each, in kilobytes.
fn tree(pid: u32) -> Fallible<Vec<(String, u64)>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let field =
        |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
    let resident = field("VmRSS:").trim_end_matches(" kB").parse()?;
    let mut tree = vec![(field("Name:").to_owned(), resident)];
    for child in fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?.split_whitespace() {
        tree.extend(self::tree(child.parse()?)?);
    }
    Ok(tree)
}
