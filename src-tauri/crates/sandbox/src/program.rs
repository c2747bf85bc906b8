//! The `ironcurtain-sandbox` program: its first word says which of its parts it is to be.
//!
//! - It stays resident with every sandbox, so it has no more in it than that needs. What reads settings is another program,
//!   [`COMMAND_PROGRAM`], which this becomes and which becomes this again.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    process::ExitCode,
};

use ironcurtain_paths::OwnProgram;

use crate::{
    enter,
    supervisor::{self, FOREGROUND, NAME, run_in_foreground},
};

/// The program that reads settings and plans; it lies beside this one.
pub const COMMAND_PROGRAM: &str = "ironcurtain-sandbox-command";

const CONNECT_USAGE: &str = "\
usage: ironcurtain-sandbox --connect HOST PORT

Inside of a sandbox: connects the standard streams to HOST by way of the sandbox's proxy, as ssh's `ProxyCommand` needs it.
";

/// Runs the program with `args`, its name not among them.
pub fn program(args: impl Iterator<Item = String>) -> ExitCode {
    // Started by descriptor, the kernel would call it by a number.
    let _ = rustix::thread::set_name(c"ironcurtain-sandbox");
    let args: Vec<String> = args.collect();
    match args.split_first() {
        Some((part, rest)) if part == "--supervise" => supervisor::run(rest),
        Some((part, rest)) if part == FOREGROUND => run_in_foreground(rest),
        Some((part, rest)) if part == "--enter" => enter::run(rest),
        Some((part, rest)) if part == "--connect" => connect(rest),
        _ => become_command(&args),
    }
}

/// What ssh's `ProxyCommand` is, inside a sandbox with a proxy.
fn connect(target: &[String]) -> ExitCode {
    let said = match target {
        [host, port] => {
            ironcurtain_egress::connect::run(host, port, std::env::var("HTTP_PROXY").ok().as_deref())
                .map_err(|error| format!("{NAME}: {error}\n"))
        }
        _ => Err(CONNECT_USAGE.to_owned()),
    };
    let Err(problem) = said else { return ExitCode::SUCCESS };
    // If standard error is closed, the exit status still says it.
    let _ = io::stderr().write_all(problem.as_bytes());
    ExitCode::FAILURE
}

/// Becomes the program that reads settings; returns when it could not.
fn become_command(args: &[String]) -> ExitCode {
    let problem = match std::env::current_exe() {
        Ok(own) => {
            let program = own.with_file_name(COMMAND_PROGRAM);
            let opened = OwnProgram::open(&program);
            let become_it = |it: OwnProgram| it.command().arg(own).args(args).exec();
            let error = opened.map_or_else(|error| error, become_it);
            format!("the program `{}` that reads settings could not be started: {error}", program.display())
        }
        Err(error) => format!("the place of this program is not known: {error}"),
    };
    // If standard error is closed, the exit status still says it.
    let _ = writeln!(io::stderr(), "{NAME}: {problem}");
    ExitCode::from(enter::FAILED)
}
