//! Entry point of `ironcurtain-sandbox`. The first argument selects one of its roles.
//!
//! - All roles share one program, because executing a different one takes about a millisecond.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use crate::{
    command, enter, served,
    supervisor::{self, NAME},
    tun,
};

const CONNECT_USAGE: &str = "\
usage: ironcurtain-sandbox --connect HOST PORT

Connects the standard streams to HOST through the sandbox's proxy. For use inside a sandbox, as ssh's `ProxyCommand`.
";

/// Runs the program. `args` excludes the program name.
pub fn program(args: impl Iterator<Item = String>) -> ExitCode {
    // A program that is executed by descriptor would otherwise be named after the descriptor number.
    let _ = rustix::thread::set_name(c"ironcurtain-sandbox");
    let args: Vec<String> = args.collect();
    match args.split_first() {
        Some((role, rest)) if role == "--supervise" => supervisor::run(rest),
        Some((role, rest)) if role == "--enter" => enter::run(rest),
        Some((role, rest)) if role == "--view" => served::run(rest),
        Some((role, rest)) if role == "--tun" => tun::run(rest),
        Some((role, rest)) if role == "--connect" => connect(rest),
        _ => command::run(args),
    }
}

/// Runs as ssh's `ProxyCommand` inside a sandbox that has a proxy.
fn connect(target: &[String]) -> ExitCode {
    let result = match target {
        [host, port] => {
            ironcurtain_egress::connect::run(host, port, std::env::var("HTTP_PROXY").ok().as_deref())
                .map_err(|error| format!("{NAME}: {error}\n"))
        }
        _ => Err(CONNECT_USAGE.to_owned()),
    };
    let Err(problem) = result else { return ExitCode::SUCCESS };
    // Ignores a closed standard error: the exit status still reports the failure.
    let _ = io::stderr().write_all(problem.as_bytes());
    ExitCode::FAILURE
}
