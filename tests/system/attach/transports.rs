//! Attaching through a real sshd, and to a daemon in the mount namespace of a container.

use super::{Attach, Remote, file, kill};
use crate::client::{Client, TIMEOUT};
use crate::scripted_user::Next;
use crate::world::{World, eventually, is_root, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_testkit::wait::until;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The guide whose commands these tests run.
const GUIDE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/remote.md"));

/// Program that is terminated when the test ends.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An sshd on loopback for this user.
struct Sshd {
    _sshd: Running,
    client_config: String,
}

impl Sshd {
    fn start(remote: &Remote) -> Self {
        let dir = remote.place.base().join("ssh");
        std::fs::create_dir(&dir).unwrap();
        for key in ["host", "user"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f"];
            let made = Command::new("ssh-keygen").args(words).arg(dir.join(key)).status().unwrap();
            assert!(made.success());
        }
        let keys = dir.join("authorized_keys");
        std::fs::copy(dir.join("user.pub"), &keys).unwrap();
        std::fs::set_permissions(&keys, PermissionsExt::from_mode(0o600)).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = |name: &str| dir.join(name).display().to_string();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nUsePAM no\n\
             StrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             SetEnv IRONCURTAIN_HOME={} PATH={}:/usr/bin:/bin\n",
            at("host"),
            at("authorized_keys"),
            remote.place.ours().display(),
            programs().display(),
        );
        std::fs::write(dir.join("sshd_config"), server).unwrap();
        if is_root() {
            std::fs::create_dir_all("/run/sshd").unwrap();
        }
        let sshd = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &at("sshd_config")])
            .stderr(std::fs::File::create(dir.join("log")).unwrap())
            .spawn()
            .unwrap();
        let client_config = at("config");
        let user = user_name();
        let client = format!(
            "Host devbox\nHostName 127.0.0.1\nPort {port}\nUser {user}\nIdentityFile {}\nIdentitiesOnly yes\n\
             StrictHostKeyChecking accept-new\nUserKnownHostsFile {}\n",
            at("user"),
            at("known_hosts"),
        );
        std::fs::write(&client_config, client).unwrap();
        until("sshd listens", TIMEOUT, || TcpStream::connect(("127.0.0.1", port)).ok());
        Self { _sshd: Running(sshd), client_config }
    }

    /// Returns a folder with an `ssh` that reads this configuration instead of the user's.
    fn bin(&self) -> PathBuf {
        let script = format!("exec /usr/bin/ssh -F {} \"$@\"", self.client_config);
        program_in(&Path::new(&self.client_config).with_file_name("bin"), "ssh", &script)
    }
}

/// Writes a shell script to a new folder. Returns the folder.
fn program_in(bin: &Path, name: &str, script: &str) -> PathBuf {
    std::fs::create_dir(bin).unwrap();
    std::fs::write(bin.join(name), format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(bin.join(name), PermissionsExt::from_mode(0o755)).unwrap();
    bin.to_path_buf()
}

/// Returns the command in the guide that starts with these words, without `ironcurtain`.
fn in_guide(start: &str) -> Vec<&'static str> {
    let commands = GUIDE.lines().filter_map(|line| line.strip_prefix("$ ironcurtain "));
    let mut matching = commands.filter(|line| line.starts_with(start));
    matching.next().unwrap().split(' ').collect()
}

fn user_name() -> String {
    let output = Command::new("id").arg("-un").output().unwrap();
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_desktop_attaches_through_sshd_and_again_after_ssh_was_killed() {
    let (desktop, remote) = (World::new(), Remote::new());
    let sshd = Sshd::start(&remote);
    let words = in_guide("attach devbox");
    assert_eq!(words, ["attach", "devbox"]);
    let attach = Attach::typed(&desktop.ours(), &words, &sshd.bin(), &remote.place.ours());
    attach.attached(1);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(agent.read(&path).ok(), "remote content");
    desktop.user.will(Next::Ignore);
    let pending = agent.begin_call("read_text_file", serde_json::json!({ "path": path }));
    eventually("the question is shown", TIMEOUT, || desktop.user.count() == 2);
    attach.transport().into_iter().for_each(kill);
    agent.outcome(pending).refused(super::LOST);
    attach.attached(2);
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
}

/// Starts a daemon in a mount namespace in which the desktop's directories do not exist.
fn container(hidden: &Path, home: &Path) -> Running {
    let allow_root: &[&str] = if is_root() { &["--allow-root"] } else { &[] };
    let child = Command::new("bwrap")
        .args(["--dev-bind", "/", "/", "--tmpfs"])
        .arg(hidden)
        .arg("--die-with-parent")
        .arg(programs().join("ironcurtain"))
        .args(["daemon", "--ask", "deny"])
        .args(allow_root)
        .env("IRONCURTAIN_HOME", home)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Running(child)
}

#[test]
fn a_desktop_attaches_to_a_daemon_in_another_mount_namespace() {
    let desktop = World::new();
    let place = crate::test_home::TestHome::new(|_| {});
    let container = container(desktop.home.user_home.parent().unwrap(), &place.ours());
    let socket = place.home.socket.clone();
    eventually("the daemon listens", TIMEOUT, || socket.exists());
    // Like `docker exec -i`, starts a process in the container's namespaces with the caller's standard streams.
    let pid = container.0.id().to_string();
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    let inside = children.split_whitespace().next().unwrap_or(&pid).to_owned();
    let enter = if is_root() { "-m" } else { "-U --preserve-credentials -m" };
    let script = format!(
        "test \"$1 $2 $3\" = \"exec -i mybox\" && shift 3 && \
         exec nsenter -t {inside} {enter} env IRONCURTAIN_HOME={} PATH={}:/usr/bin:/bin \"$@\"",
        place.ours().display(),
        programs().display(),
    );
    let bin = program_in(&place.base().join("bin"), "docker", &script);
    let attach = Attach::typed(&desktop.ours(), &in_guide("attach docker:"), &bin, &place.ours());
    attach.attached(1);
    let path = place.file("docs/first.txt", "content of the container");
    let mut agent = Client::connect(&programs(), &place.ours(), "filesystem");
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(agent.read(&path).ok(), "content of the container");
    assert_eq!(desktop.user.asked()[0].host.as_deref(), Some("docker:mybox"));
}
