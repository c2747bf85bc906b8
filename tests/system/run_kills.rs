//! Kills a random process of a run at a random moment. `cargo xtask soak kills` repeats this with other seeds.

use crate::client::TIMEOUT;
use crate::machine::{Machine, Running, descendants, is_uninterruptible, pid, sandbox_groups};
use crate::run_terminal::run;
use crate::terminal::Terminal;
use crate::world::eventually;
use ironcurtain_testkit::seed::{Random, seed};
use rustix::process::{Signal, kill_process};
use std::time::Duration;

/// Number of kills for each seed.
const ROUNDS: u32 = 20;

/// Maximum time for every process to exit after a kill.
const EXITABLE: Duration = Duration::from_secs(1);

/// Process to kill.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Starter,
    Supervisor,
    Inside(usize),
    Daemon,
}

#[test]
fn kills_at_any_point_restore_the_terminal_and_leave_nothing() {
    let mut random = Random::new(seed());
    let mut next = |limit| random.below(limit);
    for round in 0..ROUNDS {
        let mut machine = Machine::new(|_| {});
        machine.file("project/own", "own");
        machine.file("notes.txt", "notes");
        machine.start();
        let terminal = Terminal::new(24, 80);
        let before = terminal.modes();
        let folder = machine.home.user_home.join("project");
        let command =
            run(&machine.ours(), &folder, &[], &["sh", "-c", "printf '\\033[?1049h'; cat ~/notes.txt; cat"]);
        let starter = terminal.start(&command);
        let victim = match next(4) {
            0 => Victim::Starter,
            1 => Victim::Supervisor,
            2 => Victim::Inside(usize::try_from(next(8)).unwrap()),
            _ => Victim::Daemon,
        };
        // Sometimes kills before the program runs.
        match next(4) {
            0 => {}
            1 => eventually("a process runs", TIMEOUT, || !descendants(machine.pid()).is_empty()),
            2 => terminal.becomes_raw(),
            _ => machine.wait_for_output("Your answer: "),
        }
        // The final check finds processes that start after this point.
        let below = descendants(machine.pid());
        match victim {
            Victim::Starter => kill_process(pid(starter.pid()), Signal::KILL).unwrap(),
            Victim::Supervisor => killed(&machine, |all| all.into_iter().find(is_supervisor)),
            Victim::Inside(index) => killed(&machine, |mut all| {
                all.retain(|one| !is_supervisor(one));
                all.into_iter().cycle().nth(index)
            }),
            Victim::Daemon => drop(machine.kill()),
        }
        eventually(
            &format!("round {round}: `ironcurtain run` exits after the death of {victim:?}"),
            TIMEOUT,
            || {
                let has_ended = starter.status().is_some();
                // The program may survive the death of a helper, or a kill before the program starts.
                if !has_ended && matches!(victim, Victim::Inside(_) | Victim::Supervisor) {
                    // Fails only if the process is exiting right now.
                    let _ = kill_process(pid(starter.pid()), Signal::TERM);
                }
                has_ended
            },
        );
        terminal.has_modes(&before);
        // Files served by the view must not leave a process stuck in the kernel.
        eventually(
            &format!("round {round}: no process is stuck after the death of {victim:?}"),
            EXITABLE,
            || !below.iter().any(is_uninterruptible),
        );
        eventually("all processes of the run have exited", TIMEOUT, || {
            let all = if matches!(victim, Victim::Daemon) { vec![] } else { descendants(machine.pid()) };
            below.iter().chain(&all).all(|one| !one.is_alive())
        });
        if !matches!(victim, Victim::Daemon) {
            eventually("the control group is removed", TIMEOUT, || sandbox_groups(machine.pid()).is_empty());
            machine.kill();
        }
        drop(starter);
        machine.assert_clean(&below);
    }
}

fn is_supervisor(process: &Running) -> bool {
    process.command_line().contains("--supervise")
}

/// Kills the chosen process of a run, once it exists.
fn killed(machine: &Machine, choose: impl Fn(Vec<Running>) -> Option<Running>) {
    eventually("a process is killed", TIMEOUT, || {
        let chosen = choose(descendants(machine.pid()));
        chosen.is_some_and(|chosen| kill_process(pid(chosen.pid), Signal::KILL).is_ok())
    });
}
