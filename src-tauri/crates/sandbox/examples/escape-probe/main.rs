//! Program that the escape suite runs inside, and sometimes outside, a sandbox. Each attack technique has a verb.
//!
//! - The program does not judge its own success. The suite judges it by changed files, received messages and leaked
//!   secrets on the host.
//! - A technique that leaves no trace on the host creates a file, the *claim*, when it succeeds.

#![expect(unsafe_code, reason = "the techniques under test are raw system calls")]
#![expect(clippy::print_stdout, reason = "results go to standard output")]
#![cfg(target_os = "linux")]

mod calls;
mod carrier;
mod files;
mod foreign;
mod load;
mod pipes;
mod processes;
mod proxied;
mod sockets;
mod sys;
mod terminal;
mod victim;
mod watching;

use std::{env, process::ExitCode};

use sys::Outcome;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match act(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("{}: {error}", words.join(" "));
            ExitCode::FAILURE
        }
    }
}

fn act(words: &[&str]) -> Outcome {
    let all = [
        files::act,
        pipes::act,
        watching::act,
        processes::act,
        victim::act,
        carrier::act,
        sockets::act,
        proxied::act,
        foreign::act,
        terminal::act,
        load::act,
        calls::act,
    ];
    all.into_iter().find_map(|part| part(words)).unwrap_or_else(|| Err("unknown technique".into()))
}
