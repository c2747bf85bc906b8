//! MCP sessions of an agent in a run. IronCurtain mediates the agent's servers as it does outside a run, through a
//! socket that serves nothing else.

use crate::client::{Client, TIMEOUT};
use crate::hostile;
use crate::runs::Shell;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::{Reply, Request, SessionView};
use std::process::Command;

/// Returns a command that starts a run in the project and runs a shell script in it.
pub fn in_run(world: &World, script: &str) -> Command {
    in_run_with(world, &["--quiet"], script)
}

pub fn in_run_with(world: &World, options: &[&str], script: &str) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.arg("run").args(options).args(["--", "/bin/sh", "-c", script]);
    command.current_dir(world.path("project"));
    command
}

/// Connects an agent in a run to a server.
pub fn connect(world: &World, server: &str) -> Client {
    let shim = programs().join("ironcurtain-shim");
    let script = format!("{} --server {server}", shim.display());
    let mut client = Client::spawn(in_run(world, &script), &world.ours());
    client.handshake();
    client
}

/// Returns the MCP sessions of the run, and the run itself.
pub fn sessions(world: &World) -> (Vec<SessionView>, SessionView) {
    let (mut runs, sessions): (Vec<_>, Vec<_>) =
        world.sessions().into_iter().partition(|session| session.server == "run:sh");
    assert_eq!(runs.len(), 1);
    (sessions, runs.remove(0))
}

#[test]
fn an_agent_in_a_run_uses_its_configured_servers() {
    let world = hostile::world();
    world.file("project/own", "own");
    let secret = world.file("docs/secret.txt", "secret");
    let mut client = connect(&world, "hostile");
    let (found, run) = sessions(&world);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].server.as_str(), found[0].run.as_ref()), ("hostile", Some(&run.id)));
    assert_eq!((found[0].client.name.as_str(), found[0].sandboxed), ("sh", true));
    let status = world.status();
    assert_eq!((status.sessions, status.runs, status.in_runs), (2, 1, 1));
    // The server cannot see the run's folders, and its calls require approval.
    client.sneak(&world.path("project/own")).refused("os error 2");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
    assert_eq!(client.open(&secret).ok(), "secret");
    let asked = world.user.asked();
    assert_eq!((asked[0].client.name.as_str(), asked[0].server.as_str()), ("sh", "hostile"));
    client.open(&world.file("docs/other.txt", "other")).refused("the user denied");
    let outside = world.connect("hostile");
    // Ending the run ends its sessions and no others.
    assert!(matches!(world.request(Request::EndSession { session: run.id }), Reply::Done));
    let all = || world.sessions();
    eventually("its sessions end", TIMEOUT, || all().len() == 1);
    assert_eq!((all()[0].server.as_str(), all()[0].run.as_ref()), ("hostile", None));
    drop(outside);
}

#[test]
fn sessions_of_a_run_end_before_it_reports_its_end() {
    let world = hostile::world();
    world.file("project/own", "own");
    let shim = programs().join("ironcurtain-shim");
    let script =
        format!("exec 3<&0; {} --server hostile <&3 & until [ -e end ]; do sleep 0.1; done", shim.display());
    let mut client = Client::spawn(in_run(&world, &script), &world.ours());
    client.handshake();
    client.plain("heard").ok();
    let (found, run) = sessions(&world);
    world.file("project/end", "");
    assert!(client.wait_until_ended());
    let log = world.log();
    let position = |session: &str, what: &str| {
        let is_it = |line: &str| line.contains(session) && line.contains(what);
        log.lines().position(is_it).unwrap_or_else(|| panic!("{what}: {log}"))
    };
    assert!(position(&found[0].id, "ended its session") < position(&run.id, "run:sh exited with status 0"));
}

#[test]
fn a_run_that_denies_without_asking_denies_calls_too() {
    let world = hostile::world();
    world.file("project/own", "own");
    let secret = world.file("docs/secret.txt", "secret");
    let script = format!("{} --server hostile", programs().join("ironcurtain-shim").display());
    let mut client = Client::spawn(in_run_with(&world, &["--quiet", "--deny"], &script), &world.ours());
    client.handshake();
    client.open(&secret).refused("the run was started with `--deny`");
    assert_eq!(world.user.count(), 0);
    // The same call raises a question in another run.
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(connect(&world, "hostile").open(&secret).ok(), "secret");
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn several_servers_behind_one_entry_belong_to_the_run() {
    let world = hostile::world();
    world.file("project/own", "own");
    let shim = programs().join("ironcurtain-shim");
    let mut client = Client::spawn(in_run(&world, shim.to_str().unwrap()), &world.ours());
    client.handshake();
    eventually("the session opens", TIMEOUT, || world.sessions().len() > 1);
    let (found, run) = sessions(&world);
    assert!(found.iter().all(|session| session.run.as_ref() == Some(&run.id)), "{found:?}");
    client.hang_up();
    eventually("everything ends", TIMEOUT, || world.sessions().is_empty());
}

/// Python function that sends a hello, optionally with the descriptors of standard input and output, and prints the
/// answer.
const HELLO: &str = "
import array, json, socket, sys
def hello(path, purpose, rights=False):
    try:
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(path)
    except OSError as error:
        return type(error).__name__
    line = json.dumps({'version': 1, 'purpose': purpose}).encode() + b'\\n'
    stream.settimeout(20)
    if rights:
        stream.sendmsg([line], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array('i', [0, 1]))])
    else:
        stream.sendall(line)
    answer = json.loads(stream.makefile().readline())
    if 'refused' in answer:
        return answer['refused']['message']
    return ' '.join(answer)
";

#[test]
fn the_socket_of_a_run_opens_new_sessions_and_nothing_else() {
    let world = hostile::world();
    let control = world.ours().join("run/socket");
    assert!(control.exists());
    let session = |more: &str| {
        format!("{{'session': {{'server': 'hostile', 'label': None, 'stdio': 'relayed'{more}}}}}")
    };
    let run = "{'run': {'argv': ['/bin/sh'], 'cwd': '/', 'env': {}}}";
    let attempts = [
        ("control", "'control'".to_owned(), ""),
        ("another trusted process", "'take-over'".to_owned(), ""),
        ("a run", run.to_owned(), ""),
        ("another session", session(", 'resume': 'ticket'"), ""),
        ("descriptors", session("").replace("relayed", "handed-over"), ", True"),
        ("a session", session(""), ""),
        ("a session, with descriptors that nobody reads", session(""), ", True"),
    ];
    let mut script = HELLO.to_owned();
    for (name, purpose, rights) in &attempts {
        script += &format!("print('{name}:', hello('/run/ironcurtain/sessions', {purpose}{rights}))\n");
    }
    script += &format!("print('outside:', hello('{}', 'control'))\n", control.display());
    world.file("project/hello.py", &script);
    let mut shell = Shell::start(&world, &world.path("project"));
    let said = shell.run("/usr/bin/python3 hello.py");
    let refused = "a program in a run can only open new sessions";
    let expected: String = attempts
        .iter()
        .map(|(name, ..)| {
            let outcome = if name.starts_with("a session") { "accepted" } else { refused };
            format!("{name}: {outcome}\n")
        })
        .collect();
    assert_eq!(said, format!("{expected}outside: FileNotFoundError\nstatus 0\n"));
    let refusals = world.log().matches("sh was refused a session: a program in a run").count();
    assert_eq!(refusals, 5);
    // Outside the run, the same requests are answered.
    assert!(matches!(world.request(Request::Status), Reply::Status(_)));
    assert_eq!(world.user.count(), 0);
}

#[test]
fn unix_sockets_work_only_inside_the_run() {
    let world = World::new();
    let outside = world.file("project/none", "").with_file_name("outside");
    let listener = std::os::unix::net::UnixListener::bind(&outside).unwrap();
    listener.set_nonblocking(true).unwrap();
    let script = "
import socket
own = socket.socket(socket.AF_UNIX); own.bind('/tmp/own'); own.listen()
def attempt(path):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print('connected')
    except OSError as error:
        print(type(error).__name__)
attempt('/tmp/own')
attempt('outside')
";
    world.file("project/sockets.py", script);
    let mut shell = Shell::start(&world, &world.path("project"));
    assert_eq!(shell.run("/usr/bin/python3 sockets.py"), "connected\nConnectionRefusedError\nstatus 0\n");
    assert!(listener.accept().is_err());
    assert_eq!(shell.run("printf '%s' $(ls /run/ironcurtain)"), "sessionsstatus 0\n");
}
