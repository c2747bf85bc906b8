//! `cargo xtask`: developer tasks for a checkout, on a machine that has only Rust.
//!
//! - Compiles in seconds and needs no system libraries, because it installs them for the other tasks.
//! - Packages are installed without asking only as root and in CI. Otherwise, the task runs `sudo`, which asks for a
//!   password, or prints the command to run.
//! - A task succeeds only if all of it is completed. A stage that cannot run counts as failed.

mod arguments;
mod bench;
mod book;
mod cargo;
mod check;
mod desktop;
mod foreign;
mod fuzz;
mod machine;
mod package;
mod page;
mod parts;
mod process;
mod programs;
mod servers;
mod suite;
mod terminal;
mod totals;

use arguments::Task;
use std::process::ExitCode;

fn main() -> ExitCode {
    let done = match arguments::read(std::env::args().skip(1)) {
        Ok(Task::Help) => terminal::say(arguments::HELP),
        Ok(Task::Run { arguments }) => programs::run(&arguments),
        Ok(Task::Demo { arguments }) => programs::demo(&arguments),
        Ok(Task::Release) => package::release(),
        Ok(Task::Package { in_clean_root }) => package::debug(in_clean_root),
        Ok(Task::Test(scope)) => suite::run(scope),
        Ok(Task::Bench(measuring)) => bench::run(measuring),
        Ok(Task::BenchDesktop { write }) => desktop::measure(write),
        Ok(Task::BenchFleet { write }) => bench::simulate_fleet(write),
        Ok(Task::Pictures) => desktop::pictures(),
        Ok(Task::Fuzz { target, seconds }) => fuzz::run(target.as_deref(), seconds),
        Ok(Task::Soak { campaign, minutes }) => suite::soak(campaign.as_deref(), minutes),
        Ok(Task::Servers { name }) => foreign::run(name.as_deref()),
        Ok(Task::Check(scope)) => check::run(scope),
        Ok(Task::CheckCross) => check::cross(),
        Ok(Task::Book) => book::build(),
        Err(problem) => Err(problem),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            terminal::complain(&format!("{problem:#}"));
            ExitCode::FAILURE
        }
    }
}
