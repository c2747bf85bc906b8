//! Test directory on the host, and a probe in a sandbox that reports what it can access.

use std::{
    env,
    fs::{self, File},
    io::{BufRead, BufReader, Read, Write},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{self, Receiver},
    time::Duration,
};

use ironcurtain_sandbox::{
    ControlAnswer, ControlOp, Egress, KillHandle, Mount, MountAccess, MountRefusal, NetworkAccess,
    ResourceLimits, SandboxEvent, SandboxExit, Spec, UnixSockets, UnmountProof, View, client::ControlClient,
    launch,
};
use ironcurtain_testkit::{
    programs::{built, is_root},
    wait,
};
use tempfile::TempDir;

/// Timeout that only failing tests reach.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// Environment variable with the folder of the programs under test, used when the suite runs again.
pub(crate) const PROGRAMS: &str = "SANDBOX_TEST_PROGRAMS";

/// Id of an ordinary user. The user need not exist.
pub(crate) const USER: u32 = 64_321;

/// Directory on the host that contains a session directory.
pub(crate) struct Fixture {
    pub(crate) dir: TempDir,
}

impl Fixture {
    /// Creates a place outside `/tmp`, because sandboxes have their own `/tmp`.
    pub(crate) fn new() -> Self {
        Self::below(&programs().map_or_else(|| PathBuf::from("/var/tmp"), |dir| dir.join("tmp")))
    }

    pub(crate) fn below(base: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("sb").tempdir_in(base).unwrap();
        fs::create_dir(dir.path().join("session")).unwrap();
        Self { dir }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Creates a file and its parent directories. The file contains its own name.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.path(name);
        fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs::write(&path, name).unwrap();
        path
    }

    pub(crate) fn spec(&self, argv: &[&str]) -> Spec {
        Spec {
            argv: argv.iter().map(|word| (*word).to_owned()).collect(),
            env: [("PATH", "/usr/bin:/bin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            cwd: None,
            home: None,
            view: View::Roots { session_dir: self.path("session"), programs: vec![probe()] },
            mounts: vec![],
            network: NetworkAccess::None,
            unix_sockets: UnixSockets::None,
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            limits: ResourceLimits::default(),
            state_dir: self.path("state"),
            allow_root: true,
        }
    }

    pub(crate) fn probe_spec(&self) -> Spec {
        self.spec(&[&probe()])
    }

    /// Starts a probe in its sandbox.
    pub(crate) fn probe(&self) -> Probe {
        Probe::start(&self.probe_spec())
    }
}

/// Sandbox with a running probe.
pub(crate) struct Probe {
    pub(crate) control: ControlClient,
    pub(crate) stdin: Option<File>,
    pub(crate) stdout: BufReader<File>,
    pub(crate) stderr: File,
    pub(crate) pid: u32,
    pub(crate) kill: KillHandle,
    pub(crate) egress: Option<Egress>,
    pub(crate) ended: Receiver<SandboxExit>,
}

impl Probe {
    /// Launches a sandbox and waits until it has started.
    pub(crate) fn start(spec: &Spec) -> Self {
        let mut probe = Self::launch(spec);
        assert_eq!(probe.control.event().unwrap(), SandboxEvent::Started);
        probe
    }

    /// Launches a sandbox without reading its first event.
    pub(crate) fn launch(spec: &Spec) -> Self {
        let (end, ended) = mpsc::channel();
        let launched = launch(spec, &supervisor(), move |how| _ = end.send(how)).unwrap();
        Self {
            control: ControlClient::new(launched.control, TIMEOUT).unwrap(),
            stdin: Some(launched.stdin.into()),
            stdout: BufReader::new(launched.stdout.into()),
            stderr: launched.stderr.into(),
            pid: launched.pid,
            kill: launched.kill,
            egress: launched.egress,
            ended,
        }
    }

    /// Sends a request to the probe and returns the answer.
    pub(crate) fn send_command(&mut self, line: &str) -> String {
        writeln!(self.stdin.as_ref().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        if self.stdout.read_line(&mut answer).unwrap() == 0 {
            let mut complaints = String::new();
            self.stderr.read_to_string(&mut complaints).unwrap();
            panic!("the probe has exited: {complaints}");
        }
        answer.trim_end().to_owned()
    }

    pub(crate) fn add(&mut self, path: &str, access: MountAccess) {
        let answer = self.try_add(path, access);
        assert_eq!(answer, ControlAnswer::Added, "{path}");
    }

    pub(crate) fn try_add(&mut self, path: &str, access: MountAccess) -> ControlAnswer {
        self.control.request(ControlOp::Add(Mount::new(path, access))).unwrap()
    }

    /// Requests a mount. A refusal is returned as the error.
    pub(crate) fn try_add_mount(&mut self, mount: Mount) -> Result<(), MountRefusal> {
        match self.control.request(ControlOp::Add(mount)).unwrap() {
            ControlAnswer::Added => Ok(()),
            ControlAnswer::Refused { code, .. } => Err(code),
            other @ (ControlAnswer::Narrowed { .. }
            | ControlAnswer::Removed { .. }
            | ControlAnswer::Mounts { .. }
            | ControlAnswer::Checked
            | ControlAnswer::Closing
            | ControlAnswer::Broken { .. }) => {
                panic!("{other:?}")
            }
        }
    }

    pub(crate) fn expect_refusal(&mut self, path: &str, access: MountAccess) -> MountRefusal {
        let before = self.mounts();
        let ControlAnswer::Refused { code, .. } = self.try_add(path, access) else {
            panic!("{path} was not refused")
        };
        assert_eq!(self.mounts(), before);
        code
    }

    pub(crate) fn narrow(&mut self, path: &str) -> UnmountProof {
        let answer = self.control.request(ControlOp::Narrow { path: path.to_owned(), file: false }).unwrap();
        let ControlAnswer::Narrowed { proof } = answer else { panic!("{answer:?}") };
        proof
    }

    pub(crate) fn remove(&mut self, path: &str) -> UnmountProof {
        let answer = self.control.request(ControlOp::Remove { path: path.to_owned() }).unwrap();
        let ControlAnswer::Removed { proof } = answer else { panic!("{answer:?}") };
        proof
    }

    pub(crate) fn mounts(&mut self) -> Vec<Mount> {
        let answer = self.control.request(ControlOp::List).unwrap();
        let ControlAnswer::Mounts { mounts } = answer else { panic!("{answer:?}") };
        mounts
    }

    /// Waits until the supervisor exits.
    pub(crate) fn wait(&self) -> SandboxExit {
        self.ended.recv_timeout(TIMEOUT).unwrap()
    }
}

/// Returns the path of the supervisor under test.
pub(crate) fn supervisor() -> PathBuf {
    programs().unwrap_or_else(built).join("ironcurtain-sandbox")
}

/// Returns the path of the program that runs in the sandbox.
pub(crate) fn probe() -> String {
    example("sandbox-probe").to_str().unwrap().to_owned()
}

/// Returns the path of the example program that launches a sandbox and waits.
pub(crate) fn launcher() -> PathBuf {
    example("sandbox-launch")
}

/// Returns the path of a file system test program that `cargo xtask test` installs.
pub(crate) fn tool(name: &str) -> PathBuf {
    let path = programs().unwrap_or_else(|| built().join("../posix/bin")).join(name);
    assert!(path.exists(), "`{}` is missing; `cargo xtask test` installs it", path.display());
    path
}

/// Returns a command that runs its arguments as an ordinary user who owns the `name` folder of a place.
pub(crate) fn as_ordinary_user(fixture: &Fixture, name: &str) -> Command {
    let id = USER.to_string();
    let mut command = Command::new("setpriv");
    if is_root() {
        fs::set_permissions(fixture.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(fixture.path(name), Some(USER), Some(USER)).unwrap();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]);
    }
    command.arg("--");
    command
}

fn example(name: &str) -> PathBuf {
    let path = programs().unwrap_or_else(|| built().join("examples")).join(name);
    assert!(path.exists(), "build the examples of this crate first, as a plain `cargo test` does");
    path
}

pub(crate) fn programs() -> Option<PathBuf> {
    env::var_os(PROGRAMS).map(PathBuf::from)
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn eventually(what: &str, condition: impl FnMut() -> bool) {
    wait::eventually(what, TIMEOUT, condition);
}

/// Returns the processes with `marker` in their environment or arguments, except zombies.
pub(crate) fn processes_with(marker: &str) -> Vec<(u32, String)> {
    let pids =
        fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: u32| {
        let has = |file| fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| contains(&bytes, marker));
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        (has("environ") || has("cmdline")).then_some((pid, name.trim().to_owned()))
    })
    .collect()
}

fn contains(bytes: &[u8], marker: &str) -> bool {
    bytes.windows(marker.len()).any(|window| window == marker.as_bytes())
}
