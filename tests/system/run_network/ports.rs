//! Connections from a run to services on the user's computer, and connections from the computer to a run's ports.

use super::{inside, network_log, of_hosts, policy, probe, shell, world};
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach, TextPart, Verb};
use ironcurtain_protocol::{Reply, Request};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

const REFUSED: &str = "Connection refused";

/// Starts an echo service. Returns its port.
fn service() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut bytes = [0; 100];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    if stream.write_all(&bytes[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

fn allow(world: &World, lifetime: Lifetime) {
    world.user.will(Next::Allow(Reach::Host, lifetime));
}

#[test]
fn a_local_service_is_asked_about_and_reached_after_the_answer() {
    inside("run_network::ports::a_local_service_is_asked_about_and_reached_after_the_answer", |_| {
        let (port, world) = (service(), world(|_| {}));
        let mut shell = shell(&world);
        // No program listens on this port, either on the computer or in the run.
        assert_eq!(probe(&mut shell, "echo localhost 1"), REFUSED);
        assert_eq!(world.user.count(), 0);
        let local = format!("localhost:{port}");
        for address in ["localhost", "127.0.0.1", "::1", "0.0.0.0", "::ffff:127.0.0.1"] {
            allow(&world, Lifetime::Once);
            assert_eq!(probe(&mut shell, &format!("echo {address} {port}")), "alive", "{address}");
            let asked = world.user.asked();
            assert_eq!(asked.len(), 1, "{address}");
            let verbs: Vec<_> = asked[0].consequences.iter().map(|line| line.verb).collect();
            assert_eq!(verbs, [Verb::Change, Verb::Reach]);
            assert!(asked[0].consequences[1].object.contains(&TextPart::Untrusted(local.clone())));
        }
        assert!(world.grants().is_empty());
        // The proxy cannot be used to reach the service.
        assert_eq!(probe(&mut shell, &format!("connect {local}")), "403 unknown-domain");
        // The denial lasts for the rest of the run unless the user removes it.
        for _ in 0..2 {
            assert_eq!(probe(&mut shell, &format!("echo localhost {port}")), REFUSED);
        }
        assert_eq!(world.user.asked().len(), 1);
        let denied = world.questions().denied;
        assert_eq!(world.request(Request::Forget { question: denied[0].id.clone() }), Reply::Done);
        allow(&world, Lifetime::Session);
        for _ in 0..2 {
            assert_eq!(probe(&mut shell, &format!("echo localhost {port}")), "alive");
        }
        assert_eq!((world.user.asked().len(), world.grants()[0].path.as_str()), (1, local.as_str()));
        let log = network_log(&world);
        assert_eq!(log.iter().filter(|line| **line == format!("{local} allow once")).count(), 5, "{log:#?}");
        assert_eq!(log.iter().filter(|line| **line == format!("{local} allow grant")).count(), 2, "{log:#?}");
    });
}

#[test]
fn a_revoked_local_service_is_disconnected() {
    inside("run_network::ports::a_revoked_local_service_is_disconnected", |_| {
        let (port, world) = (service(), world(|_| {}));
        let mut shell = shell(&world);
        allow(&world, Lifetime::Session);
        shell.run("mkfifo /tmp/ask /tmp/said");
        shell.run(&format!("/usr/bin/python3 probe.py keep localhost {port} < /tmp/ask > /tmp/said & exec 8>/tmp/ask 9</tmp/said"));
        assert_eq!(shell.run("read -r line <&9; echo $line"), "200\nstatus 0\n");
        assert_eq!(shell.run("echo >&8; read -r line <&9; echo $line"), "alive\nstatus 0\n");
        world.revoke_only_grant();
        assert_eq!(shell.run("echo >&8; read -r line <&9; echo $line"), "cut\nstatus 0\n");
        world.user.asked();
        assert_eq!(probe(&mut shell, &format!("echo localhost {port}")), REFUSED);
        assert_eq!(world.user.asked().len(), 1);
    });
}

#[test]
fn a_rule_decides_about_a_local_service() {
    inside("run_network::ports::a_rule_decides_about_a_local_service", |_| {
        let port = service();
        let denying = world(|prepared| policy(prepared, &[("none", of_hosts(&["localhost"]), "deny")]));
        assert_eq!(probe(&mut shell(&denying), &format!("echo localhost {port}")), REFUSED);
        assert_eq!(denying.user.count(), 0);
        drop(denying);
        let allowing = world(|prepared| policy(prepared, &[("all", of_hosts(&["localhost"]), "allow")]));
        assert_eq!(probe(&mut shell(&allowing), &format!("echo localhost {port}")), "alive");
        assert_eq!(allowing.user.count(), 0);
    });
}

#[test]
fn a_waiting_connection_withdraws_its_question_when_it_ends() {
    inside("run_network::ports::a_waiting_connection_withdraws_its_question_when_it_ends", |_| {
        let (port, world) = (service(), world(|_| {}));
        let mut shell = shell(&world);
        world.user.will(Next::Ignore);
        let said = shell.run(&format!("timeout 1 /usr/bin/python3 probe.py echo localhost {port}"));
        assert_eq!(said, "status 124\n");
        eventually("the question is withdrawn", TIMEOUT, || !world.user.withdrawn().is_empty());
        allow(&world, Lifetime::Once);
        assert_eq!(probe(&mut shell, &format!("echo localhost {port}")), "alive");
    });
}

#[test]
fn ports_given_as_options_need_no_approval() {
    inside("run_network::ports::ports_given_as_options_need_no_approval", |_| {
        let (named, other, world) = (service(), service(), world(|_| {}));
        let said = |port: u16| {
            let run = Command::new(programs().join("ironcurtain"))
                .args([
                    "run",
                    "--port",
                    &named.to_string(),
                    "--",
                    "/usr/bin/python3",
                    "probe.py",
                    "echo",
                    "localhost",
                ])
                .arg(port.to_string())
                .current_dir(world.path("project"))
                .env("IRONCURTAIN_HOME", world.ours())
                .stderr(Stdio::piped())
                .output()
                .unwrap();
            String::from_utf8(run.stdout).unwrap()
        };
        assert_eq!((said(named).as_str(), world.user.count()), ("alive\n", 0));
        assert_eq!((said(other).trim(), world.user.count()), (REFUSED, 1));
    });
}

#[test]
fn only_a_published_port_of_a_run_is_reachable() {
    inside("run_network::ports::only_a_published_port_of_a_run_is_reachable", |_| {
        let world = world(|_| {});
        world.file("project/page", "page of a run");
        let mut run = Command::new(programs().join("ironcurtain"))
            .args(["run", "--publish", "8000", "--", "/bin/sh", "-c"])
            .arg("python3 -m http.server 8001 & exec python3 -m http.server 8000")
            .current_dir(world.path("project"))
            .env("IRONCURTAIN_HOME", world.ours())
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let page = |address: &str| {
            let mut stream = TcpStream::connect(address).ok()?;
            stream.write_all(b"GET /page HTTP/1.0\r\n\r\n").ok()?;
            let mut text = String::new();
            stream.read_to_string(&mut text).ok()?;
            text.ends_with("page of a run").then_some(())
        };
        eventually("the published port is reached", TIMEOUT, || page("127.0.0.1:8000").is_some());
        // The run's other ports are unreachable, and the published port is unreachable from the network.
        for address in ["127.0.0.1:8001", "127.0.0.1:3128", "9.9.9.1:8000"] {
            let refused = TcpStream::connect(address).unwrap_err();
            assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "{address}");
        }
        assert!(world.log().contains("port 8000 of run:sh is available at 127.0.0.1:8000"));
        // A port that another program uses cannot be published.
        let taken = Command::new(programs().join("ironcurtain"))
            .args(["run", "--publish", "8000", "--", "true"])
            .current_dir(world.path("project"))
            .env("IRONCURTAIN_HOME", world.ours())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&taken.stderr).into_owned();
        assert!(!taken.status.success() && said.contains("failed to publish port 8000"), "{said}");
        let sessions = world.sessions();
        assert_eq!(world.request(Request::EndSession { session: sessions[0].id.clone() }), Reply::Done);
        run.wait().unwrap();
        eventually("the port is closed", TIMEOUT, || TcpStream::connect("127.0.0.1:8000").is_err());
    });
}

#[test]
fn a_run_cannot_connect_to_its_own_published_port() {
    inside("run_network::ports::a_run_cannot_connect_to_its_own_published_port", |_| {
        let world = world(|_| {});
        let run = Command::new(programs().join("ironcurtain"))
            .args([
                "run",
                "--publish",
                "8000",
                "--",
                "/usr/bin/python3",
                "probe.py",
                "echo",
                "localhost",
                "8000",
            ])
            .current_dir(world.path("project"))
            .env("IRONCURTAIN_HOME", world.ours())
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(run.stdout).unwrap().trim(), REFUSED);
        assert_eq!(world.user.count(), 0);
    });
}

#[test]
fn connections_to_a_service_are_limited_and_the_others_wait() {
    inside("run_network::ports::connections_to_a_service_are_limited_and_the_others_wait", |_| {
        const CROWD: &str = "
import select, socket, sys
streams = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(300)]
for stream in streams: stream.sendall(b'x')
def answered(count):
    found = set()
    while len(found) < count:
        ready = [stream for stream in select.select(streams, [], [])[0] if stream not in found]
        found.update(ready)
        for stream in ready: assert stream.recv(1) == b'x'
    return found
first = answered(256)
for stream in first: stream.close(); streams.remove(stream)
print(len(first), len(answered(44)))
";
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (now, peak) = (open.clone(), most.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, open) = (stream.unwrap(), now.clone());
                peak.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::spawn(move || {
                    let mut bytes = [0; 100];
                    while let Ok(count @ 1..) = stream.read(&mut bytes) {
                        if stream.write_all(&bytes[..count]).is_err() {
                            break;
                        }
                    }
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        let world = world(|_| {});
        world.file("project/crowd.py", CROWD);
        let mut shell = shell(&world);
        allow(&world, Lifetime::Session);
        assert_eq!(shell.run(&format!("/usr/bin/python3 crowd.py {port}")), "256 44\nstatus 0\n");
        assert!(most.load(Ordering::SeqCst) <= 256, "{most:?}");
        eventually("all connections are closed", TIMEOUT, || open.load(Ordering::SeqCst) == 0);
    });
}
