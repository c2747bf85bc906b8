//! `run`: asks the trusted process to run a program in a sandbox, with its input and output on this terminal.
//!
//! - The program has its own terminal. This process copies data between the program's and the user's terminal, and
//!   restores the user's terminal at the end.

mod checkpointing;
mod program_terminal;
mod question_terminal;
mod relay;
mod run_lines;
pub mod terminal_guard;
mod terminal_modes;
mod user_terminal;

use crate::connection::StartedRun;
use crate::note_stream::NoteStream;
use crate::run_profile;
use crate::screen::Screen;
use anyhow::{Context, bail};
use checkpointing::RunCheckpoint;
use clap::{Args, ValueEnum};
use ironcurtain_config::RunProfile;
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{RunAsk, RunHello, RunProfileChoice};
use ironcurtain_sandbox::Signals;
use ironcurtain_sandbox::run_link::{RunLink, RunTerminal};
use ironcurtain_visible as visible;
use program_terminal::ProgramTerminal;
use question_terminal::QuestionTerminal;
use relay::{Relay, RelayState};
use run_lines::RunLines;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::Signal;
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use user_terminal::UserTerminal;

/// Exit status if the run is terminated before the program exits.
const CONNECTION_LOST: u8 = 125;

/// Environment variable with the socket of the user's ssh agent.
const SSH_AGENT: &str = "SSH_AUTH_SOCK";

/// Signals that are forwarded to the program or indicate that the terminal has changed.
const SIGNALS: [Signal; 9] = [
    Signal::HUP,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
    Signal::TSTP,
];

/// Options of `run`.
#[derive(Debug, Args)]
pub struct RunArguments {
    /// Let the run connect to this port of this computer. Without this option, you are asked.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub port: Vec<u16>,
    /// Make this port of the run available on 127.0.0.1.
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    pub publish: Vec<u16>,
    /// Name of a run profile, or a JSON file that contains one. Default: the profile that recognizes the
    /// program.
    #[arg(long, value_name = "NAME|FILE")]
    pub profile: Option<String>,
    /// Show the access that the program would get, without running it.
    #[arg(long, conflicts_with = "learn")]
    pub check: bool,
    /// Ask about every file, and write a profile with the files that you allowed to this new JSON file. Starts with the
    /// profile of `--profile`, if given.
    #[arg(long, value_name = "FILE")]
    pub learn: Option<PathBuf>,
    /// Answer the run's questions on this terminal. The answers hold for this run only.
    #[arg(long, value_enum, value_name = "WHERE")]
    pub ask: Option<RunAskOption>,
    /// Deny every access that needs your approval, without asking.
    #[arg(long, conflicts_with = "ask")]
    pub deny: bool,
    /// Copy the folder before the run, so that `ironcurtain undo` can restore it.
    #[arg(long)]
    pub checkpoint: bool,
    /// Print what the run may use and what it used, even if standard error is not a terminal.
    #[arg(long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Print nothing but the program's own output.
    #[arg(long)]
    pub quiet: bool,
    /// Program to run, with its arguments.
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<String>,
}

/// Value of `run --ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RunAskOption {
    /// Answer on the terminal that started the run.
    Terminal,
}

/// Runs the program and returns its exit status.
pub fn perform(options: RunArguments, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    let cwd = std::env::current_dir().context("failed to determine the working directory")?;
    let cwd = cwd.into_os_string().into_string();
    let cwd = cwd.map_err(|cwd| anyhow::anyhow!("the path `{}` is not valid UTF-8", cwd.display()))?;
    let mut choice = run_profile::choice(options.profile.as_deref())?;
    if options.learn.is_some() {
        choice.get_or_insert_with(run_profile::plain_profile);
    }
    let profile = run_profile::choose_profile(&home, choice.as_ref(), &options.command, Path::new(&cwd))?;
    if options.check {
        return run_profile::check(&home, profile, &options.command, Path::new(&cwd), screen);
    }
    options.learn.as_deref().map(run_profile::check_proposal_file).transpose()?;
    let checkpoint = options.checkpoint.then(|| RunCheckpoint::take(&home, Path::new(&cwd))).transpose()?;
    let is_terminal = [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()];
    let is_shown = !options.quiet && (options.verbose || is_terminal[2]);
    if let Some(line) = checkpoint.as_ref().and_then(RunCheckpoint::gaps)
        && is_shown
    {
        screen.note(&format!("ironcurtain: {line}"))?;
    }
    // Another program may use the terminal's input, as in `ironcurtain run -- PROGRAM | less`.
    let is_shared = !(is_terminal[0] && is_terminal[1]);
    let user = UserTerminal::find(is_shared).context("failed to open the terminal")?;
    let asks_here = options.ask == Some(RunAskOption::Terminal);
    if asks_here && user.is_none() {
        bail!("`--ask terminal` needs a terminal");
    }
    let signals = Signals::block(&unignored_signals(SIGNALS)?)?;
    let (link, inner) = RunLink::pair()?;
    let question_terminal = user.as_ref().filter(|_| asks_here).map(QuestionTerminal::new).transpose()?;
    let (questions, daemon_side) = question_terminal.unzip();
    let mut descriptors = streams(is_terminal)?;
    descriptors.extend([inner].into_iter().chain(daemon_side));
    let run = StartedRun::request(&run_hello(&options, cwd, choice, &profile), descriptors)?;

    // If the terminal is shared, the program moves to the foreground when it reads input.
    let foreground = !is_shared && user.as_ref().is_some_and(UserTerminal::is_ours);
    let terminal = RunTerminal { streams: is_terminal, foreground };
    let (program, notes, session) = match start(&link, run, (user.as_ref(), terminal), &signals) {
        Ok(started) => started,
        Err(problem) => {
            // Terminates the run.
            drop(link);
            return Err(match checkpoint {
                Some(checkpoint) => checkpoint.for_failed_start(problem),
                None => problem,
            });
        }
    };
    let checkpoint = checkpoint.map(|checkpoint| checkpoint.for_run(&session)).transpose()?;
    let relay = Relay {
        link: Some(link),
        notes,
        signals,
        user,
        program,
        questions,
        lines: RunLines::new(is_shown),
        session,
        lines_on_terminal: is_terminal[2],
        state: RelayState::new(foreground),
    };
    let (status, learned) = relay.serve()?;
    let (line, is_needed) = match checkpoint.map(RunCheckpoint::finish) {
        None => (String::new(), false),
        Some(Ok(line)) => (line, is_shown),
        Some(Err(problem)) => (visible::line(&format!("{problem:#}")), true),
    };
    if is_needed {
        // Ignores the error, which could not be reported.
        let _ = writeln!(io::stderr(), "ironcurtain: {line}");
    }
    if let Some(file) = &options.learn {
        run_profile::write_proposal(&home, file, profile, learned)?;
        screen.note(&format!("The proposed profile is in {}.", file.display()))?;
    }
    Ok(ExitCode::from(u8::try_from(status).unwrap_or(CONNECTION_LOST)))
}

/// Starts the program after its terminal was prepared. Returns the terminal, the run's note stream and its session id.
fn start(
    link: &RunLink,
    run: StartedRun,
    (user, terminal): (Option<&UserTerminal>, RunTerminal),
    signals: &Signals,
) -> anyhow::Result<(Option<ProgramTerminal>, NoteStream, String)> {
    link.begin(user.map(|_| terminal))?;
    let mut program = None;
    if let Some(user) = user {
        wait_for_terminal(link, &run, signals)?;
        // After an error, the connection to the trusted process reports the reason.
        if let Ok(file) = link.receive_terminal() {
            program = Some(ProgramTerminal::new(file, user)?);
            link.start()?;
        }
    }
    let (notes, session) = run.started()?;
    Ok((program, notes, session))
}

fn run_hello(
    options: &RunArguments,
    cwd: String,
    choice: Option<RunProfileChoice>,
    profile: &RunProfile,
) -> RunHello {
    // The trusted process receives only variables that the profile names.
    let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    let passed = |(name, _): &(String, String)| profile.passes(name);
    let env = std::env::vars_os().filter_map(text).filter(passed).collect();
    let ask = match options.ask {
        Some(RunAskOption::Terminal) => RunAsk::Terminal,
        None if options.deny => RunAsk::Deny,
        None => RunAsk::Default,
    };
    RunHello {
        argv: options.command.clone(),
        cwd,
        env,
        ask,
        ports: options.port.clone(),
        publish: options.publish.clone(),
        profile: choice,
        learn: options.learn.is_some(),
        ssh_agent: std::env::var(SSH_AGENT).ok().filter(|path| Path::new(path).is_absolute()),
    }
}

/// Returns the program's standard streams, with `/dev/null` in place of each terminal.
fn streams(is_terminal: [bool; 3]) -> io::Result<Vec<OwnedFd>> {
    let (stdin, stdout, stderr) = (io::stdin(), io::stdout(), io::stderr());
    let streams = [stdin.as_fd(), stdout.as_fd(), stderr.as_fd()];
    let passed = streams.into_iter().zip(is_terminal).map(|(stream, is_terminal)| match is_terminal {
        false => stream.try_clone_to_owned(),
        true => Ok(OpenOptions::new().read(true).write(true).open("/dev/null")?.into()),
    });
    passed.collect()
}

/// Returns the signals that are not ignored. A signal that a parent such as `nohup` ignores stays ignored.
fn unignored_signals<const N: usize>(signals: [Signal; N]) -> anyhow::Result<Vec<Signal>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = u64::from_str_radix(mask.context("`/proc/self/status` has no `SigIgn`")?.trim(), 16)?;
    let is_ignored = |signal: &Signal| mask >> (signal.as_raw() - 1) & 1 == 1;
    Ok(signals.into_iter().filter(|signal| !is_ignored(signal)).collect())
}

/// Waits for the run's terminal or the trusted process's reply. Fails if a signal cancels the run first.
fn wait_for_terminal(link: &RunLink, run: &StartedRun, signals: &Signals) -> anyhow::Result<()> {
    loop {
        let mut polled = [
            PollFd::new(link, PollFlags::IN),
            PollFd::from_borrowed_fd(run.as_fd(), PollFlags::IN),
            PollFd::new(signals, PollFlags::IN),
        ];
        match poll(&mut polled, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(io::Error::from(error).into()),
        }
        let [linked, answered, signalled] = polled.map(|polled| !polled.revents().is_empty());
        if linked || answered {
            return Ok(());
        }
        if signalled
            && let Some(signal) = signals.next()?
            && ![Signal::WINCH, Signal::CONT, Signal::TSTP].contains(&signal)
        {
            bail!("the run was cancelled before it started");
        }
    }
}

/// Reads the available bytes. Returns `None` if no bytes are available yet, and an empty list at EOF.
fn read_some(file: &OwnedFd) -> io::Result<Option<Vec<u8>>> {
    let mut piece = vec![0; 16 * 1024];
    match rustix::io::read(file, &mut piece) {
        Ok(count) => {
            piece.truncate(count);
            Ok(Some(piece))
        }
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        // The other end of the terminal is closed.
        Err(Errno::IO) => Ok(Some(Vec::new())),
        Err(error) => Err(error.into()),
    }
}

/// Writes as many bytes as possible without blocking and removes them from `text`.
fn write_some(file: &OwnedFd, text: &mut Vec<u8>) -> io::Result<()> {
    while !text.is_empty() {
        match rustix::io::write(file, text) {
            Ok(count) => drop(text.drain(..count)),
            Err(Errno::AGAIN) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(Errno::IO) => text.clear(),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
