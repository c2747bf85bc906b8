//! The ssh agent in a run: keys are listed, each signature requires approval, and no other request reaches the user's
//! agent.

use crate::runs::Shell;
use crate::scripted_user::Next;
use crate::test_home::Prepared;
use crate::world::{World, eventually, programs};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ironcurtain_consent::{Lifetime, Question, Reach, TextPart, Verb};
use std::fs::{Permissions, read_to_string};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Path of the agent's socket in a run.
const IN_RUN: &str = "/run/ironcurtain/ssh-agent";

/// Python program that sends requests to an agent.
const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../tests/system/run_ssh/agent.py");

/// A real `ssh-agent`.
struct Agent {
    process: Child,
    dir: tempfile::TempDir,
}

impl Agent {
    fn start() -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let process =
            Command::new("ssh-agent").arg("-D").arg("-a").arg(dir.path().join("agent")).spawn().unwrap();
        let agent = Self { process, dir };
        eventually("the agent listens", TIMEOUT, || agent.socket().exists());
        agent
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("agent")
    }

    /// Creates a key and adds it to the agent. Returns the public key.
    fn add(&self, kind: &str, comment: &str) -> Vec<u8> {
        let file = self.dir.path().join(comment);
        let mut make = Command::new("ssh-keygen");
        make.args(["-q", "-N", "", "-t", kind, "-C", comment, "-f"]).arg(&file);
        assert!(make.status().unwrap().success());
        assert!(self.ssh_add(&[file.to_str().unwrap()]).status().unwrap().success());
        let public = self.public(comment);
        STANDARD.decode(public.split(' ').nth(1).unwrap()).unwrap()
    }

    /// Returns the line of the public key file.
    fn public(&self, comment: &str) -> String {
        read_to_string(self.dir.path().join(format!("{comment}.pub"))).unwrap()
    }

    fn ssh_add(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ssh-add");
        command.arg("-q").args(arguments).env("SSH_AUTH_SOCK", self.socket());
        command
    }

    /// Returns the comments of the agent's keys.
    fn keys(&self) -> String {
        let listed = self.ssh_add(&["-L"]).output().unwrap();
        let lines = String::from_utf8(listed.stdout).unwrap();
        lines.lines().map(|line| line.split(' ').next_back().unwrap()).collect::<Vec<_>>().join(" ")
    }

    /// Signs arbitrary data, which the agent in a run refuses to do.
    fn sign(&self, key: &[u8], data: &[u8], flags: u32) -> Vec<u8> {
        let mut command = Command::new("python3");
        command.arg(CLIENT).arg(self.socket()).arg(hex(&sign_request(key, data, flags)));
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let digits = said.trim().strip_prefix("14 ").unwrap();
        let bytes =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        // Omits the length prefix of the signature.
        bytes.skip(4).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Both calls fail only if the process has exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&u32::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn sign_request(key: &[u8], data: &[u8], flags: u32) -> Vec<u8> {
    [&[13][..], &string(key), &string(data), &flags.to_be_bytes()].concat()
}

/// Returns the data to sign for a login as `git`.
fn login(session: &[u8], key: &[u8], host_key: Option<&[u8]>) -> Vec<u8> {
    let method = if host_key.is_some() { "publickey-hostbound-v00@openssh.com" } else { "publickey" };
    let parts = [string(b"git"), string(b"ssh-connection"), string(method.as_bytes())].concat();
    let signed = [string(session), vec![50], parts, vec![1], string(b"ssh-ed25519"), string(key)].concat();
    [signed, host_key.map(string).unwrap_or_default()].concat()
}

fn bind_request(host_key: &[u8], session: &[u8], signature: &[u8], is_forwarding: bool) -> Vec<u8> {
    let name = string(b"session-bind@openssh.com");
    [&[27][..], &name, &string(host_key), &string(session), &string(signature), &[u8::from(is_forwarding)]]
        .concat()
}

fn world() -> World {
    world_with(|_| {})
}

fn world_with(prepare: impl FnOnce(&Prepared)) -> World {
    let world = World::with(prepare);
    world.file("project/own", "own\n");
    std::fs::copy(CLIENT, world.path("project/agent.py")).unwrap();
    world
}

fn shell(world: &World, agent: &Agent, options: &[&str]) -> Shell {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.arg("run").args(options).args(["--", "/bin/sh"]).current_dir(world.path("project"));
    Shell::of(command.env("IRONCURTAIN_HOME", world.ours()).env("SSH_AUTH_SOCK", agent.socket()))
}

/// Sends requests on one connection. Returns the response types.
fn send(shell: &mut Shell, requests: &[Vec<u8>]) -> Vec<u8> {
    let requests: Vec<String> = requests.iter().map(|request| hex(request)).collect();
    let said = shell.run(&format!("/usr/bin/python3 agent.py {IN_RUN} {}", requests.join(" ")));
    assert!(said.ends_with("status 0\n"), "{said}");
    let answers = said.lines().filter(|line| !line.starts_with("status"));
    answers.map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

fn allow(world: &World) {
    world.user.will(Next::Allow(Reach::Request, Lifetime::Once));
}

/// Returns the description of the signed data in a question.
fn signed(question: &Question) -> String {
    let consequence = &question.consequences[0];
    assert_eq!(consequence.verb, Verb::Sign);
    let piece = |piece: &TextPart| match piece {
        TextPart::Fixed(text) => (*text).to_owned(),
        TextPart::Path(text) | TextPart::Untrusted(text) => text.clone(),
    };
    consequence.object.iter().map(piece).collect()
}

#[test]
fn each_signature_is_asked_about_and_keys_are_listed() {
    let (world, agent) = (world(), Agent::start());
    agent.add("ed25519", "my-key");
    world.file("project/my-key.pub", &agent.public("my-key"));
    let mut shell = shell(&world, &agent, &[]);
    let listed = shell.run("ssh-add -L");
    assert_eq!(listed, format!("{}status 0\n", agent.public("my-key")));
    assert_eq!(world.user.count(), 0);
    allow(&world);
    let said =
        shell.run("ssh-keygen -q -Y sign -f my-key.pub -n file own 2> /dev/null; cat own.sig | head -1");
    assert_eq!(said, "-----BEGIN SSH SIGNATURE-----\nstatus 0\n");
    let mut verify = Command::new("ssh-keygen");
    verify.args(["-Y", "check-novalidate", "-n", "file", "-s"]).arg(world.path("project/own.sig"));
    let verify = verify.stdin(std::fs::File::open(world.path("project/own")).unwrap()).output().unwrap();
    assert!(verify.status.success(), "{verify:?}");
    let asked = world.user.asked();
    assert_eq!((asked.len(), signed(&asked[0]).as_str()), (1, "a text for file"));
    let key = &asked[0].with[0];
    assert!(key.0 == "key" && key.1.starts_with("my-key (SHA256:"), "{key:?}");
    // An approval covers one signature.
    let denied = shell.run("rm own.sig; ssh-keygen -q -Y sign -f my-key.pub -n file own; ls own.sig");
    assert!(denied.contains("agent refused operation") && denied.contains("No such file"), "{denied}");
    assert_eq!(world.user.asked().len(), 1);
    let log = world.log();
    assert!(log.contains("allowed: signing a text for file with the key my-key (SHA256:"), "{log}");
}

#[test]
fn git_signs_a_commit_after_the_answer() {
    let (world, agent) = (world(), Agent::start());
    agent.add("ed25519", "my-key");
    world.file("project/my-key.pub", &agent.public("my-key"));
    world.file("signers", &format!("me@example.com {}", agent.public("my-key")));
    let mut shell = shell(&world, &agent, &[]);
    allow(&world);
    let set = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=Me GIT_AUTHOR_EMAIL=me@example.com \
        GIT_COMMITTER_NAME=Me GIT_COMMITTER_EMAIL=me@example.com";
    let commit = "git init -q && git -c gpg.format=ssh -c user.signingKey=my-key.pub commit -q --allow-empty -S -m one";
    let said = shell.run(&format!("{set}; {commit}"));
    assert_eq!(said, "status 0\n");
    let asked = world.user.asked();
    assert_eq!((asked.len(), signed(&asked[0]).as_str()), (1, "a git commit or tag"));
    let mut verify = Command::new("git");
    verify.args(["-c", "safe.directory=*", "-c"]);
    verify.arg(format!("gpg.ssh.allowedSignersFile={}", world.path("signers").display()));
    let verify = verify.args(["verify-commit", "HEAD"]).current_dir(world.path("project")).output().unwrap();
    assert!(verify.status.success(), "{verify:?}");
    // Without an approval, git creates no commit.
    let denied = shell.run(&format!("{} ; git log --oneline | wc -l", commit.replace("git init -q && ", "")));
    assert!(denied.ends_with("1\nstatus 0\n"), "{denied}");
}

/// Directory with a new gpg key of the user, whose gpg agent is stopped at the end.
struct GpgKeys(PathBuf);

impl GpgKeys {
    fn new(world: &World) -> Self {
        let keys = Self(world.path(".gnupg"));
        std::fs::create_dir(&keys.0).unwrap();
        std::fs::set_permissions(&keys.0, Permissions::from_mode(0o700)).unwrap();
        let mut make = keys.command("gpg");
        make.args(["-q", "--batch", "--passphrase", "", "--quick-generate-key", "Me <me@example.test>"]);
        assert!(make.status().unwrap().success());
        keys
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("GNUPGHOME", &self.0);
        command
    }
}

impl Drop for GpgKeys {
    fn drop(&mut self) {
        // Ignores the error: a process that remains exits when its directory is removed.
        let _ = self.command("gpgconf").args(["--kill", "all"]).status();
    }
}

#[test]
fn gpg_does_not_sign_in_a_run_and_the_commit_can_be_signed_afterwards() {
    let (world, agent) = (world(), Agent::start());
    let keys = GpgKeys::new(&world);
    let mut shell = shell(&world, &agent, &[]);
    let set = "export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=Me GIT_AUTHOR_EMAIL=me@example.test \
        GIT_COMMITTER_NAME=Me GIT_COMMITTER_EMAIL=me@example.test";
    let commit = "git -c commit.gpgSign=true commit -q --allow-empty -m one";
    let refused = shell.run(&format!("{set}; git init -q && {commit}"));
    assert!(refused.contains("gpg failed to sign the data"), "{refused}");
    assert!(shell.run("ls ~/.gnupg").contains("No such file or directory"));
    assert_eq!(shell.run(&format!("{commit} --no-gpg-sign; git log --format=%G?")), "N\nstatus 0\n");
    assert_eq!(world.user.count(), 0);
    let git = |arguments: &[&str]| {
        let mut git = keys.command("git");
        git.args(["-c", "safe.directory=*", "-c", "user.name=Me", "-c", "user.email=me@example.test"]);
        let done = git.args(arguments).current_dir(world.path("project")).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["commit", "-q", "--amend", "--no-edit", "--allow-empty", "-S"]);
    git(&["verify-commit", "HEAD"]);
}

#[test]
fn nothing_but_listing_and_signing_reaches_the_agent() {
    let (world, agent) = (world(), Agent::start());
    let key = agent.add("ed25519", "my-key");
    let mut shell = shell(&world, &agent, &[]);
    shell.run("ssh-keygen -q -N '' -t ed25519 -f /tmp/theirs; printf '#!/bin/sh\\necho x\\n' > /tmp/answer; chmod +x /tmp/answer");
    let answers = "SSH_ASKPASS=/tmp/answer SSH_ASKPASS_REQUIRE=force";
    for (command, refused) in [
        ("ssh-add -D", "Failed to remove all identities."),
        ("ssh-add /tmp/theirs", "Could not add identity \"/tmp/theirs\": agent refused operation"),
        ("ssh-add -x", "Failed to lock agent: agent refused operation"),
        ("ssh-add -X", "Failed to unlock agent: agent refused operation"),
    ] {
        let said = shell.run(&format!("{answers} {command} < /dev/null"));
        assert_eq!(said, format!("{refused}\nstatus 1\n"), "{command}");
    }
    // Covers removing, adding, locking, unlocking, smartcards, constrained keys, unknown extensions and the requests
    // of SSH protocol 1.
    let password = string(b"x");
    let others =
        [18, 19, 20, 21, 22, 23, 25, 26, 17, 1, 9, 99].map(|kind| [vec![kind], password.clone()].concat());
    let extensions = ["query", "restrict-destination-v00@openssh.com"]
        .map(|name| [vec![27], string(name.as_bytes())].concat());
    let malformed = [vec![13], [vec![11], vec![0]].concat(), sign_request(&key, b"", 0)];
    let all: Vec<Vec<u8>> = others.into_iter().chain(extensions).chain(malformed).collect();
    assert_eq!(send(&mut shell, &all), vec![5; all.len()]);
    // Data with an unknown purpose is refused without a question: a login with another key, and a signature with
    // trailing data.
    let session = [7; 32];
    let login_of_another = login(&session, b"another key", None);
    let longer = [login(&session, &key, None), vec![0]].concat();
    let file = [b"SSHSIG".to_vec(), string(b"git"), string(b""), string(b"md5"), string(&[0; 16])].concat();
    for data in [&b"any data"[..], &login_of_another, &longer, &file, b"SSHSIG"] {
        assert_eq!(send(&mut shell, &[sign_request(&key, data, 0)]), [5], "{}", hex(data));
    }
    // Signing with a key that is not in the user's agent is refused without a question.
    let stranger = sign_request(b"stranger", &login(&session, b"stranger", None), 0);
    assert_eq!(send(&mut shell, &[stranger]), [5]);
    assert_eq!((world.user.count(), agent.keys().as_str()), (0, "my-key"));
    // Permitted counterpart: a login to a host that cannot be determined raises a question.
    allow(&world);
    assert_eq!(send(&mut shell, &[sign_request(&key, &login(&session, &key, None), 0)]), [14]);
    let asked = world.user.asked();
    assert_eq!(signed(&asked[0]), "a login as git at a host that cannot be determined");
    // The user's own agent is unreachable.
    let direct = shell.run(&format!("SSH_AUTH_SOCK={} ssh-add -l", agent.socket().display()));
    assert!(direct.contains("Error connecting to agent"), "{direct}");
}

#[test]
fn the_host_of_a_login_is_the_one_in_the_signed_data() {
    let (world, agent, host) = (world(), Agent::start(), Agent::start());
    let key = agent.add("ed25519", "my-key");
    // The flag selects SHA-512 for the RSA key.
    let kinds = [("ed25519", "one", 0), ("ecdsa", "two", 0), ("rsa", "three", 4)];
    let keys = kinds.map(|(kind, name, flags)| (host.add(kind, name), name, flags));
    let known: String =
        keys.iter().map(|(key, name, _)| format!("{name}.example kind {}\n", STANDARD.encode(key))).collect();
    world.file(".ssh/known_hosts", &known);
    let mut shell = shell(&world, &agent, &[]);
    let session = [7; 32];
    let request = sign_request(&key, &login(&session, &key, None), 0);
    let asked = |world: &World| signed(&world.user.asked()[0]);
    for (host_key, name, flags) in &keys {
        // Another host can obtain this host's signature for its own session, so the signature does not prove the host's
        // name.
        let signature = host.sign(host_key, &session, *flags);
        allow(&world);
        let bind = bind_request(host_key, &session, &signature, false);
        assert_eq!(send(&mut shell, &[bind, request.clone()]), [6, 14]);
        assert_eq!(asked(&world), "a login as git at a host that cannot be determined");
        // No forwarded connection reaches the agent.
        let forwarding = bind_request(host_key, &session, &signature, true);
        assert_eq!(send(&mut shell, &[forwarding]), [5]);
        allow(&world);
        let with_host = sign_request(&key, &login(&session, &key, Some(host_key)), 0);
        assert_eq!(send(&mut shell, &[with_host]), [14]);
        assert_eq!(asked(&world), format!("a login as git at {name}.example"));
    }
    let unknown = host.add("ed25519", "stranger");
    allow(&world);
    assert_eq!(send(&mut shell, &[sign_request(&key, &login(&session, &key, Some(&unknown)), 0)]), [14]);
    assert!(asked(&world).starts_with("a login as git at a host that you do not know, key SHA256:"));
}

#[test]
fn refused_signatures_are_recorded_and_a_denial_is_for_one_key() {
    let world = world_with(|prepared| {
        std::fs::write(prepared.home.config.join("config.json"), r#"{ "denialHoldsSeconds": 60 }"#).unwrap();
    });
    let agent = Agent::start();
    let (one, two) = (agent.add("ed25519", "one"), agent.add("ed25519", "two"));
    let request = |key: &[u8]| sign_request(key, &login(&[7; 32], key, None), 0);
    let mut asking = shell(&world, &agent, &[]);
    assert_eq!(send(&mut asking, &[sign_request(&one, b"any data", 0)]), [5]);
    let stranger = b"stranger";
    assert_eq!(send(&mut asking, &[request(stranger)]), [5]);
    assert_eq!(world.user.count(), 0);
    let mut denying = shell(&world, &agent, &["--deny"]);
    assert_eq!(send(&mut denying, &[request(&one)]), [5]);
    let log = world.log();
    for (what, why) in [
        ("data whose purpose is unknown", "the message is malformed"),
        ("a login as git", "your ssh agent has no such key"),
        ("a login as git", "the run was started with `--deny`"),
    ] {
        let is_recorded =
            |line: &str| line.contains(&format!("denied: signing {what}")) && line.contains(why);
        assert_eq!(log.lines().filter(|line| is_recorded(line)).count(), 1, "{what}: {why}: {log}");
    }
    // The user denies one key, but is still asked about the other key.
    world.user.will(Next::Deny);
    assert_eq!(send(&mut asking, &[request(&one)]), [5]);
    assert_eq!(send(&mut asking, &[request(&one)]), [5]);
    assert_eq!(world.user.asked().len(), 1);
    allow(&world);
    assert_eq!(send(&mut asking, &[request(&two)]), [14]);
    assert_eq!(world.user.asked().len(), 1);
}

#[test]
fn a_run_has_no_agent_without_one_and_no_signature_without_an_answer() {
    let (world, agent) = (world(), Agent::start());
    let key = agent.add("ed25519", "my-key");
    let request = sign_request(&key, &login(&[7; 32], &key, None), 0);
    // The question is withdrawn when the program that raised it stops waiting.
    let mut asking = shell(&world, &agent, &[]);
    world.user.will(Next::Ignore);
    asking.run(&format!("/usr/bin/python3 agent.py {IN_RUN} {} & waiting=$!", hex(&request)));
    eventually("the user is asked", TIMEOUT, || world.user.count() == 1);
    asking.run("kill $waiting");
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
    world.user.asked();
    let mut denying = shell(&world, &agent, &["--deny"]);
    assert_eq!(send(&mut denying, &[request]), [5]);
    assert_eq!(world.user.count(), 0);
    let mut without = Shell::start(&world, &world.path("project"));
    assert_eq!(without.run("echo \"[$SSH_AUTH_SOCK]\"; ls /run/ironcurtain"), "[]\nsessions\nstatus 0\n");
    assert!(Path::new(&agent.socket()).exists());
}
