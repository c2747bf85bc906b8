//! Programs that ignore the proxy variables: the same questions, denials and checks as with the proxy.

use super::{inside, network_log, probe, shell, world};
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use std::process::Command;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

const HELLO: &str = "hello from outside\nstatus 0\n";
const REFUSED: &str = "Connection refused";

/// Removes the proxy's variables from a command's environment.
const WITHOUT_PROXY: &str =
    "env -u HTTP_PROXY -u HTTPS_PROXY -u http_proxy -u https_proxy -u NODE_USE_ENV_PROXY";

fn allow(world: &World, lifetime: Lifetime) {
    world.user.will(Next::Allow(Reach::Host, lifetime));
}

#[test]
fn programs_without_the_proxy_wait_for_the_answer() {
    inside("run_network::direct::programs_without_the_proxy_wait_for_the_answer", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        for (command, expected, reached) in [
            ("/usr/bin/python3 probe.py echo files.example.test 8443", "alive\nstatus 0\n", "9.9.9.9 8443"),
            (
                "/usr/bin/python3 probe.py blocking other.example.test 8443",
                "alive\nstatus 0\n",
                "9.9.9.9 8443",
            ),
            (
                "curl -sS --noproxy '*' http://files.example.test/hello",
                HELLO,
                "9.9.9.9 80 files.example.test",
            ),
            (
                "curl -sS -k --noproxy '*' https://files.example.test/hello",
                HELLO,
                "9.9.9.9 443 files.example.test",
            ),
            (
                "node -e 'fetch(\"http://other.example.test/hello\").then(r => r.text()).then(t => process.stdout.write(t))'",
                HELLO,
                "9.9.9.9 80 other.example.test",
            ),
        ] {
            allow(&world, Lifetime::Once);
            assert_eq!(shell.run(&format!("{WITHOUT_PROXY} {command}")), expected, "{command}");
            assert_eq!(world.user.asked().len(), 1, "{command}");
            assert_eq!(ground.reached().last().map(String::as_str), Some(reached));
        }
        assert!(world.grants().is_empty());
        let log = network_log(&world);
        assert_eq!(log.len(), 5, "{log:#?}");
        assert_eq!(log[0], "files.example.test:8443 allow once");
        assert!(world.audit().intact);
    });
}

#[test]
fn a_denial_refuses_the_connection_and_holds() {
    inside("run_network::direct::a_denial_refuses_the_connection_and_holds", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        for how in ["echo", "blocking"] {
            assert_eq!(probe(&mut shell, &format!("{how} other.example.test 8443")), REFUSED);
        }
        let curl = shell.run("curl -sS --noproxy '*' http://other.example.test:8443/ 2>&1");
        assert!(curl.contains("Failed to connect") || curl.contains("onnection refused"), "{curl}");
        assert_eq!((world.user.asked().len(), ground.reached().len()), (1, 0));
        // The proxy and these programs share denials and grants.
        assert_eq!(probe(&mut shell, "connect other.example.test:8443"), "403 said-no");
        allow(&world, Lifetime::Session);
        assert_eq!(probe(&mut shell, "connect files.example.test:8443"), "200");
        assert_eq!(probe(&mut shell, "echo files.example.test 8443"), "alive");
        assert_eq!(world.user.asked().len(), 1);
    });
}

#[test]
fn addresses_and_local_names_are_refused_without_a_question() {
    inside("run_network::direct::addresses_and_local_names_are_refused_without_a_question", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        for host in [
            "9.9.9.9",
            "9.9.9.1",
            "10.9.9.9",
            "10.0.2.2",
            "192.168.1.1",
            "169.254.169.254",
            "100.100.100.200",
            "198.18.0.1",
            "198.18.1.200",
            "198.19.255.254",
            "printer.local",
            "metadata.google.internal",
        ] {
            assert_eq!(probe(&mut shell, &format!("echo {host} 8443")), REFUSED, "{host}");
        }
        assert!(probe(&mut shell, "echo router 80").contains("not known"));
        assert_eq!(probe(&mut shell, "echo 2620:fe::9 80"), "Network is unreachable");
        for host in ["9.9.9.9", "169.254.169.254", "198.18.0.1"] {
            assert_eq!(probe(&mut shell, &format!("send {host} 443")), REFUSED, "{host}");
        }
        assert_eq!((world.user.count(), ground.reached().len()), (0, 0));
        // An allowed name that resolves to such an address stays refused.
        for name in ["sly", "two", "metadata"] {
            allow(&world, Lifetime::Session);
            assert_eq!(probe(&mut shell, &format!("echo {name}.example.test 8443")), REFUSED, "{name}");
        }
        assert_eq!((world.user.asked().len(), ground.reached().len()), (3, 0));
        allow(&world, Lifetime::Session);
        assert_eq!(probe(&mut shell, "echo files.example.test 8443"), "alive");
        // The allowed name later resolves to another address.
        ground.resolve("files.example.test", "10.9.9.9");
        assert_eq!(probe(&mut shell, "echo files.example.test 8443"), REFUSED);
        let log = network_log(&world);
        assert!(log.contains(&"169.254.169.254:8443 deny address-literal".to_owned()), "{log:#?}");
    });
}

#[test]
fn tls_must_name_the_allowed_host() {
    inside("run_network::direct::tls_must_name_the_allowed_host", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        allow(&world, Lifetime::Session);
        assert_eq!(probe(&mut shell, "secure files.example.test 443 files.example.test"), "200");
        assert_eq!(probe(&mut shell, "secure files.example.test 443 evil.example.test"), "cut");
        assert_eq!(probe(&mut shell, "echo files.example.test 443"), "cut");
        assert_eq!(ground.reached(), ["9.9.9.9 443 files.example.test"]);
        assert_eq!(world.user.asked().len(), 1);
    });
}

#[test]
fn a_revoked_host_is_disconnected() {
    inside("run_network::direct::a_revoked_host_is_disconnected", |_| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        allow(&world, Lifetime::Session);
        shell.run("mkfifo /tmp/ask /tmp/said");
        shell.run("/usr/bin/python3 probe.py keep other.example.test 8443 < /tmp/ask > /tmp/said & exec 8>/tmp/ask 9</tmp/said");
        assert_eq!(shell.run("read -r line <&9; echo $line"), "200\nstatus 0\n");
        assert_eq!(shell.run("echo >&8; read -r line <&9; echo $line"), "alive\nstatus 0\n");
        world.revoke_only_grant();
        assert_eq!(shell.run("echo >&8; read -r line <&9; echo $line"), "cut\nstatus 0\n");
        assert_eq!(probe(&mut shell, "echo other.example.test 8443"), REFUSED);
        assert_eq!(world.user.asked().len(), 2);
    });
}

#[test]
fn a_program_that_ends_withdraws_its_question() {
    inside("run_network::direct::a_program_that_ends_withdraws_its_question", |_| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        // A socket with a time limit, one without, and one whose program handles the signal.
        for (signal, how, status) in
            [("KILL", "echo", 137), ("KILL", "blocking", 137), ("INT", "blocking", 130)]
        {
            let before = world.user.withdrawn().len();
            world.user.will(Next::Ignore);
            // A shell starts its background programs with SIGINT ignored.
            let program = "env --default-signal=INT /usr/bin/python3 probe.py";
            shell.run(&format!("{program} {how} files.example.test 8443 2> /dev/null & true"));
            eventually("the question is asked", TIMEOUT, || !world.user.asked().is_empty());
            let said = shell.run(&format!("kill -{signal} $!; wait $!"));
            assert!(said.ends_with(&format!("status {status}\n")), "{signal} {how}: {said}");
            eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() > before);
        }
        allow(&world, Lifetime::Once);
        assert_eq!(probe(&mut shell, "echo files.example.test 8443"), "alive");
    });
}

#[test]
fn nobody_to_ask_means_refused() {
    inside("run_network::direct::nobody_to_ask_means_refused", |_| {
        let world = world(|_| {});
        let run = |options: &[&str], what: &str| {
            let run = Command::new(programs().join("ironcurtain"))
                .args(["run"])
                .args(options)
                .args(["--", "/usr/bin/python3", "probe.py"])
                .args(what.split(' '))
                .current_dir(world.path("project"))
                .env("IRONCURTAIN_HOME", world.ours())
                .output()
                .unwrap();
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            (text(&run.stdout), text(&run.stderr))
        };
        let (said, lines) = run(&["--deny", "--verbose"], "echo files.example.test 8443");
        assert_eq!(said, format!("{REFUSED}\n"), "{lines}");
        assert!(lines.contains("denied files.example.test:8443"), "{lines}");
        assert_eq!(world.user.count(), 0);
        allow(&world, Lifetime::Once);
        assert_eq!(run(&[], "echo files.example.test 8443").0, "alive\n");
    });
}

#[test]
fn without_the_device_file_the_run_says_so() {
    inside("run_network::direct::without_the_device_file_the_run_says_so", |_| {
        let hidden = Command::new("mount").args(["-t", "tmpfs", "none", "/dev/net"]).status();
        assert!(hidden.unwrap().success());
        let world = world(|_| {});
        let mut shell = shell(&world);
        assert_eq!(probe(&mut shell, "echo 9.9.9.9 8443"), "Network is unreachable");
        assert!(probe(&mut shell, "echo files.example.test 8443").contains("name resolution"));
        allow(&world, Lifetime::Once);
        assert_eq!(probe(&mut shell, "connect files.example.test:8443"), "200");
        let run = |options: &[&str]| {
            let run = Command::new(programs().join("ironcurtain"))
                .args(["run"])
                .args(options)
                .args(["--", "true"])
                .current_dir(world.path("project"))
                .env("IRONCURTAIN_HOME", world.ours())
                .output()
                .unwrap();
            [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
        };
        let why = "programs that ignore the proxy variables have no network: `/dev/net/tun`: No such file or directory";
        for options in [&["--verbose"][..], &["--check"]] {
            let said = run(options);
            assert!(said.contains(why), "{options:?}: {said}");
        }
    });
}
