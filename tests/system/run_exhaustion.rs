//! A program in a run that exhausts threads or connections, or that is paused while it waits in the kernel, affects
//! only its own run.

use crate::machine::{descendants, is_uninterruptible};
use crate::runs::Shell;
use crate::world::{World, eventually};
use ironcurtain_protocol::{Reply, Request};
use std::fs::{read_dir, read_to_string};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(60);

fn started() -> (World, Shell, u32) {
    let world = World::new();
    world.file("project/own", "own");
    let mut shell = Shell::start(&world, &world.path("project"));
    assert_eq!(shell.run("true"), "status 0\n");
    eventually("the run is listed", TIMEOUT, || world.sessions().len() == 1);
    let supervisor = world.sessions()[0].server_pid.unwrap();
    (world, shell, supervisor)
}

/// Returns the largest number of threads in any IronCurtain process that serves the run.
fn threads(supervisor: u32) -> usize {
    let ours = descendants(supervisor);
    let ours = ours.iter().filter(|one| one.exe().ends_with("ironcurtain-sandbox"));
    let tasks = ours.map(|one| read_dir(format!("/proc/{}/task", one.pid)).map_or(0, Iterator::count));
    tasks.max().unwrap_or(0)
}

#[test]
fn waiting_connections_use_a_limited_number_of_threads_and_all_succeed() {
    const CROWD: &str = "
import os, socket, threading, time
own = socket.socket(socket.AF_UNIX); own.bind('/tmp/own'); own.listen(0)
made = []
def call():
    stream = socket.socket(socket.AF_UNIX); stream.connect('/tmp/own'); made.append(stream)
threads = [threading.Thread(target=call) for _ in range(400)]
for one in threads: one.start()
while not os.path.exists('go'): time.sleep(0.02)
taken = [own.accept() for _ in threads]
for one in threads: one.join()
print(len(made))
";
    let (world, mut shell, supervisor) = started();
    world.file("project/crowd.py", CROWD);
    assert_eq!(shell.run("/usr/bin/python3 crowd.py > /tmp/out 2>&1 & true"), "status 0\n");
    eventually("the connections wait", TIMEOUT, || threads(supervisor) > 250);
    // Waits until all 400 threads of the program have started. The number of threads that serve them must never exceed
    // the limit.
    eventually("all threads have started", TIMEOUT, || {
        let all =
            descendants(supervisor).into_iter().filter(|one| one.exe().to_string_lossy().contains("python"));
        // One connection fits into the listener's queue, so the thread that made it has ended.
        all.map(|one| read_dir(format!("/proc/{}/task", one.pid)).map_or(0, Iterator::count)).max()
            == Some(400)
    });
    assert!(threads(supervisor) <= 256 + 4, "{}", threads(supervisor));
    world.file("project/go", "");
    assert_eq!(shell.run("wait; cat /tmp/out"), "400\nstatus 0\n");
}

#[test]
fn a_program_that_waits_in_the_kernel_can_be_paused_and_resumed() {
    const SPAWNS: &str = "
import os
os.posix_spawn('/bin/true', ['true'], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, '/tmp/pipe', os.O_RDONLY, 0)])
print('spawned')
";
    let (world, mut shell, supervisor) = started();
    world.file("project/spawns.py", SPAWNS);
    assert_eq!(
        shell.run("mkfifo /tmp/pipe; /usr/bin/python3 spawns.py > /tmp/out 2>&1 & true"),
        "status 0\n"
    );
    // The parent waits in `vfork` until its child has opened the pipe. Nothing is written to the pipe, because the
    // child may exit first.
    eventually("a program waits in the kernel", TIMEOUT, || {
        descendants(supervisor).iter().any(is_uninterruptible)
    });
    let session = world.sessions()[0].id.clone();
    for request in [Request::Pause { session: session.clone() }, Request::Resume { session }] {
        assert_eq!(world.request(request), Reply::Done);
    }
    assert_eq!(shell.run(": > /tmp/pipe; wait; cat /tmp/out"), "spawned\nstatus 0\n");
    assert_eq!(world.sessions().len(), 1);
    assert_eq!(read_to_string(world.path("project/own")).unwrap(), "own");
}
