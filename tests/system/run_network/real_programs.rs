//! Common programs (curl, git and Python) connect, wait for the answer and then continue.

use super::{inside, network_log, of_hosts, policy, shell, world};
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach, TextPart, Verb};
use ironcurtain_protocol::{GrantView, Reply, Request};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

const HELLO: &str = "hello from outside\nstatus 0\n";

fn allow(world: &World, lifetime: Lifetime) {
    world.user.will(Next::Allow(Reach::Host, lifetime));
}

#[test]
fn curl_waits_for_the_answer_which_lasts_its_lifetime() {
    inside("run_network::real_programs::curl_waits_for_the_answer_which_lasts_its_lifetime", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        allow(&world, Lifetime::Once);
        assert_eq!(shell.run("curl -sS http://files.example.test/hello"), HELLO);
        let asked = world.user.asked();
        let host = || TextPart::Untrusted("files.example.test:80".to_owned());
        let lines: Vec<_> =
            asked[0].consequences.iter().map(|line| (line.verb, line.object.clone())).collect();
        assert_eq!(
            lines,
            [
                (Verb::Send, vec![TextPart::Fixed("anything that it can read to "), host()]),
                (Verb::Reach, vec![host()])
            ]
        );
        assert_eq!(
            (asked.len(), asked[0].client.name.as_str(), asked[0].server.as_str()),
            (1, "sh", "run:sh")
        );
        assert!(world.grants().is_empty());

        allow(&world, Lifetime::Session);
        assert_eq!(shell.run("curl -sS http://files.example.test/hello"), HELLO);
        assert_eq!(shell.run("curl -sS http://files.example.test/hello"), HELLO);
        assert_eq!(world.user.asked().len(), 1);
        let short = |grant: &GrantView| (grant.kind.clone(), grant.path.clone(), grant.server.clone());
        let expected = ("host".to_owned(), "files.example.test:80".to_owned(), "run:sh".to_owned());
        assert_eq!(world.grants().iter().map(short).collect::<Vec<_>>(), [expected]);
        assert_eq!(world.sessions()[0].hosts, ["files.example.test:80"]);
        // Another port of the host raises another question.
        let denied = shell.run("curl -sS -k https://files.example.test/hello");
        assert!(denied.contains("403") && !denied.ends_with("status 0\n"), "{denied}");
        assert_eq!(shell.exit(), Some(0));
        eventually("the grant ended with the run", TIMEOUT, || world.grants().is_empty());

        let mut shell = super::shell(&world);
        world.user.asked();
        allow(&world, Lifetime::Always);
        assert_eq!(shell.run("curl -sS -k https://files.example.test/hello"), HELLO);
        drop(shell);
        let mut shell = super::shell(&world);
        assert_eq!(shell.run("curl -sS -k https://files.example.test/hello"), HELLO);
        assert_eq!(world.user.asked().len(), 1);
        assert_eq!(ground.reached().len(), 5);
        assert_eq!(
            network_log(&world),
            [
                "files.example.test:80 allow once",
                "files.example.test:80 allow grant",
                "files.example.test:80 allow grant",
                "files.example.test:443 deny said-no",
                "files.example.test:443 allow grant",
                "files.example.test:443 allow grant",
            ]
        );
        assert!(world.audit().intact);
    });
}

#[test]
fn a_denial_holds_for_the_run_and_can_be_forgotten() {
    inside("run_network::real_programs::a_denial_holds_for_the_run_and_can_be_forgotten", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        for _ in 0..2 {
            let said = shell.run("curl -sS http://other.example.test/hello");
            assert!(said.contains("`other.example.test:80` was not allowed: the user denied"), "{said}");
        }
        assert_eq!(world.user.asked().len(), 1);
        let denied = world.questions().denied;
        assert_eq!(denied.len(), 1);
        assert!(ground.reached().is_empty());
        assert_eq!(world.request(Request::Forget { question: denied[0].id.clone() }), Reply::Done);
        allow(&world, Lifetime::Once);
        assert_eq!(shell.run("curl -sS http://other.example.test/hello"), HELLO);
    });
}

#[test]
fn a_revoked_host_is_disconnected_before_the_confirmation() {
    inside("run_network::real_programs::a_revoked_host_is_disconnected_before_the_confirmation", |_| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        allow(&world, Lifetime::Session);
        shell.run("mkfifo /tmp/ask /tmp/said");
        shell.run("/usr/bin/python3 probe.py hold other.example.test:8443 < /tmp/ask > /tmp/said & exec 8>/tmp/ask 9</tmp/said");
        assert_eq!(shell.run("read -r line <&9; echo $line"), "200\nstatus 0\n");
        assert_eq!(shell.run("echo >&8; read -r line <&9; echo $line"), "alive\nstatus 0\n");
        world.revoke_only_grant();
        assert_eq!(shell.run("echo >&8; read -r line <&9; echo $line"), "cut\nstatus 0\n");
        // The next connection raises a question, which is denied.
        let said = shell.run("/usr/bin/python3 probe.py connect other.example.test:8443");
        assert_eq!(said, "403 said-no\nstatus 0\n");
        assert_eq!(world.user.asked().len(), 2);
        let log = network_log(&world);
        assert!(log.contains(&"other.example.test:8443 deny withdrawn".to_owned()), "{log:#?}");
    });
}

#[test]
fn git_and_python_use_the_proxy() {
    inside("run_network::real_programs::git_and_python_use_the_proxy", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        allow(&world, Lifetime::Session);
        let cloned = shell
            .run("git clone -q http://files.example.test/project.git copy && git -C copy log --format=%s");
        assert_eq!(cloned, "first\nstatus 0\n");
        assert_eq!(world.user.asked().len(), 1);
        allow(&world, Lifetime::Session);
        let secure =
            shell.run("git -c http.sslVerify=false clone -q https://files.example.test/project.git secure");
        assert_eq!((secure.as_str(), world.user.asked().len()), ("status 0\n", 1));
        let python =
            "import urllib.request as r; print(r.urlopen(\"http://files.example.test/hello\").read())";
        assert_eq!(
            shell.run(&format!("/usr/bin/python3 -c '{python}'")),
            "b'hello from outside\\n'\nstatus 0\n"
        );
        assert_eq!(world.user.count(), 0);
        assert!(ground.reached().iter().all(|line| line.starts_with("9.9.9.9 ")));
    });
}

#[test]
fn services_of_the_run_itself_are_reached_without_the_proxy() {
    inside("run_network::real_programs::services_of_the_run_itself_are_reached_without_the_proxy", |_| {
        let world = world(|_| {});
        world.file("project/page", "own page\n");
        let mut shell = shell(&world);
        shell.run("/usr/bin/python3 -u -m http.server 8000 > /tmp/log 2>&1 & while ! grep -q Serving /tmp/log; do :; done");
        assert_eq!(shell.run("curl -sS http://localhost:8000/page"), "own page\nstatus 0\n");
        assert_eq!(shell.run("curl -sS http://127.0.0.1:8000/page"), "own page\nstatus 0\n");
        assert_eq!(world.user.count(), 0);
    });
}

#[test]
fn rules_can_match_a_run_and_its_hosts() {
    inside("run_network::real_programs::rules_can_match_a_run_and_its_hosts", |ground| {
        let rules = [
            ("no-evil", of_hosts(&["evil.example.test"]), "deny"),
            ("files-free", of_hosts(&["files.example.test"]), "allow"),
        ];
        let world = world(|prepared| policy(prepared, &rules));
        let mut shell = shell(&world);
        assert_eq!(shell.run("curl -sS http://files.example.test/hello"), HELLO);
        let denied = shell.run("curl -sS http://evil.example.test/hello");
        assert!(denied.contains("no-evil"), "{denied}");
        assert_eq!((world.user.count(), ground.reached().len()), (0, 1));
        allow(&world, Lifetime::Session);
        assert_eq!(shell.run("curl -sS http://other.example.test/hello"), HELLO);
        assert_eq!(world.user.asked().len(), 1);
        // A new rule closes open connections and takes precedence over the grant. Once the rule is removed, the user
        // is asked again.
        for host in ["files", "other"] {
            shell.run(&format!("mkfifo /tmp/{host}.ask /tmp/{host}.said"));
        }
        allow(&world, Lifetime::Session);
        shell.run("/usr/bin/python3 probe.py hold other.example.test:8443 < /tmp/other.ask > /tmp/other.said & exec 8>/tmp/other.ask 9</tmp/other.said");
        assert_eq!(shell.run("read -r line <&9; echo $line"), "200\nstatus 0\n");
        world.user.asked();
        let prepared = crate::test_home::Prepared { home: world.home.clone() };
        policy(&prepared, &[("no-other", of_hosts(&["other.example.test"]), "deny")]);
        assert_eq!(
            shell.run("while echo >&8 && read -r line <&9 && [ $line = alive ]; do :; done; echo $line"),
            "cut\nstatus 0\n"
        );
        let denied = shell.run("curl -sS http://other.example.test/hello");
        assert!(denied.contains("`other.example.test:80` is on the list of denied domains"), "{denied}");
        assert_eq!(world.user.count(), 0);
        let asks = shell.run("curl -sS http://files.example.test/hello");
        assert!(asks.contains("the user denied"), "{asks}");
        assert_eq!(world.user.asked().len(), 1);
        let log = network_log(&world);
        assert_eq!(log[0], "files.example.test:80 allow files-free");
    });
}

#[test]
fn a_question_ends_with_its_program() {
    inside("run_network::real_programs::a_question_ends_with_its_program", |ground| {
        let world = world(|_| {});
        let mut shell = shell(&world);
        world.user.will(Next::Ignore);
        let said = shell.run("timeout 1 curl -sS http://other.example.test/hello");
        assert_eq!(said, "status 124\n");
        eventually("the question is withdrawn", TIMEOUT, || !world.user.withdrawn().is_empty());
        assert!(ground.reached().is_empty());
        // The run can end while a program is still waiting for an answer.
        world.user.will(Next::Ignore);
        let mut child = std::process::Command::new(crate::world::programs().join("ironcurtain"))
            .args(["run", "--", "/bin/sh", "-c", "curl -sS http://third.example.test/hello & sleep 1"])
            .current_dir(world.path("project"))
            .env("IRONCURTAIN_HOME", world.ours())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        drop(child.stdin.take().map(|mut stdin| stdin.flush()));
        eventually("the run has ended", TIMEOUT, || world.sessions().len() == 1);
    });
}
