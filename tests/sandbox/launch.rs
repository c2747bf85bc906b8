//! Runs a script in one of several sandboxes, or without a sandbox, and returns the result.

use std::{
    env, fs,
    os::unix::{fs::MetadataExt, process::CommandExt},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use ironcurtain_sandbox::{
    Mount, MountAccess, NetworkAccess, ResourceLimits, Spec, UnixSockets, View,
    autostart::{AutostartMode, AutostartRules, GitConfig},
};
use ironcurtain_testkit::programs::is_root;
use serde_json::json;

use crate::{
    listeners::Listeners,
    proxied_network::{ALLOWED, FREE, OWN},
    scene::Scene,
    tools::Tools,
};

/// Timeout of a launch. Only a failing launch reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Denied paths: one through a symlink, one inside a writable path, and a single file.
const DENY_READ: [&str; 3] = ["way-to-denied", "work/mixed/private", "readable/locked"];
const ALLOW_WRITE: [&str; 2] = ["work", "granted"];
const DENY_WRITE: [&str; 1] = ["work/sub/deep"];

/// Resource limits that are low enough to be reached quickly.
pub(crate) const LIMITS: ResourceLimits = ResourceLimits {
    processes: Some(60),
    open_files: Some(100),
    file_size: Some(8 << 20),
    tmp_size: Some(4 << 20),
    memory: Some(512 << 20),
    cpu: None,
};

/// Kind of sandbox that a script runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Executor {
    /// No sandbox, with all of the user's rights.
    Bare,
    /// The existing system's command, at this path.
    Srt(String),
    /// IronCurtain's sandbox with the host's file tree, except the denied paths.
    HostRead,
    /// IronCurtain's sandbox with a nearly empty file tree and the granted paths.
    Roots,
    /// IronCurtain's sandbox of a server whose file accesses require approval: the scene is served, and only reading
    /// `readable` is allowed.
    Asking,
}

/// Result of a launch.
pub(crate) struct Run {
    /// Combined output of both streams.
    pub(crate) said: String,
    /// `true` if the command did not exit in time and was killed.
    pub(crate) hung: bool,
}

impl Executor {
    /// Runs a script in the `work` directory and waits until the script has exited.
    pub(crate) fn run(&self, tools: &Tools, scene: &Scene, script: &str, terminal: bool) -> Run {
        finish(scene, self.command(tools, scene, script, terminal))
    }

    /// Returns the command that runs a script. The command has additional descriptors and variables that a sandbox must
    /// not pass on.
    pub(crate) fn command(&self, tools: &Tools, scene: &Scene, script: &str, terminal: bool) -> Command {
        let script = format!("{}\n{script}", scene.prelude(tools));
        let mut command = Command::new(&tools.probe);
        command.args(["carrier", &scene.path("outside"), &scene.path("denied"), &scene.secret]);
        if terminal {
            command.args(["--terminal", &scene.path("typed")]);
        }
        command.arg("--").args(self.argv(tools, scene, &script));
        command.env_clear().envs(environment(scene)).current_dir(scene.path("work"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        command
    }

    fn argv(&self, tools: &Tools, scene: &Scene, script: &str) -> Vec<String> {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        match self {
            Self::Bare => words(&["sh", "-c", script]),
            Self::Srt(program) => words(&["node", program, "-s", &settings(scene), "-c", script]),
            Self::HostRead | Self::Roots | Self::Asking => {
                let file = scene.path("spec.json");
                fs::write(&file, serde_json::to_string(&self.spec(tools, scene, script)).unwrap()).unwrap();
                let autostart = scene.path("autostart.json");
                fs::write(&autostart, serde_json::to_string(&self.autostart(scene)).unwrap()).unwrap();
                let mut argv = words(&[&tools.launch, &tools.sandbox, &file, &autostart]);
                argv.extend(scene.proxied.then(|| rules(scene)));
                argv
            }
        }
    }

    /// Returns the autostart rules, with a different mode for each kind of sandbox. The home directory is the working
    /// directory, because it is the most dangerous folder to grant.
    fn autostart(&self, scene: &Scene) -> AutostartRules {
        let mode = if self.is_strict() { AutostartMode::Strict } else { AutostartMode::Listed };
        AutostartRules {
            mode,
            git_config: GitConfig::Closed,
            allow: vec![],
            home: Some(scene.path("work")),
            denied: vec![],
        }
    }

    /// Returns `true` if every autostart file is quarantined, including files that run only at the user's request.
    pub(crate) fn is_strict(&self) -> bool {
        !matches!(self, Self::Roots | Self::Asking)
    }

    fn spec(&self, tools: &Tools, scene: &Scene, script: &str) -> Spec {
        let env = [
            ("PATH", "/usr/bin:/bin".to_owned()),
            ("HOME", scene.path("work")),
            ("TERM", scene.open.clone()),
            ("LANG", "C.UTF-8".to_owned()),
        ];
        let session_dir = scene.path("work");
        let paths = |names: &[&str]| names.iter().map(|name| scene.path(name)).collect::<Vec<_>>();
        let granted = Mount::new(scene.path("granted"), MountAccess::ReadWrite);
        let (view, mounts) = if *self == Self::Asking {
            let view = View::Served {
                session_dir: Some(session_dir),
                folders: vec![scene.base().to_owned()],
                // Symlinks are resolved by the process that creates the specification.
                hidden: paths(&["denied", "work/mixed/private", "readable/locked", "state"]),
                programs: vec![tools.probe.clone()],
                sockets: vec![],
            };
            (view, vec![granted])
        } else if *self == Self::HostRead {
            let view = View::HostRead {
                session_dir: Some(session_dir),
                deny_read: paths(&DENY_READ),
                // The program may have been built below `/tmp`.
                allow_read: vec![tools.probe.clone()],
                allow_write: paths(&ALLOW_WRITE),
                deny_write: paths(&DENY_WRITE),
                private_tmp: true,
            };
            (view, vec![])
        } else {
            let readable = Mount::new(scene.path("readable"), MountAccess::ReadOnly);
            (View::Roots { session_dir, programs: vec![tools.probe.clone()] }, vec![granted, readable])
        };
        Spec {
            argv: ["sh", "-c", script].map(str::to_owned).into(),
            env: env.map(|(name, value)| (name.to_owned(), value)).into(),
            cwd: Some(scene.path("work")),
            home: Some(scene.path("work")),
            view,
            mounts,
            network: match (scene.proxied, self) {
                (false, _) => NetworkAccess::None,
                (true, Self::Asking) => NetworkAccess::ProxiedWithServices,
                (true, _) => NetworkAccess::Proxied,
            },
            unix_sockets: if *self == Self::Asking { UnixSockets::Own } else { UnixSockets::None },
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            limits: LIMITS,
            state_dir: scene.path("state"),
            allow_root: is_root(),
        }
    }
}

/// Returns the launcher's environment. A sandbox must keep only the first variables.
fn environment(scene: &Scene) -> Vec<(&'static str, String)> {
    vec![
        ("PATH", env::var("PATH").unwrap()),
        ("HOME", scene.path("home")),
        ("USER", "somebody".into()),
        ("LANG", "C.UTF-8".into()),
        ("TERM", scene.open.clone()),
        ("GITHUB_TOKEN", scene.secret.clone()),
        ("LD_HINT", scene.secret.clone()),
        ("SSH_AUTH_SOCK", scene.path("agent.1")),
        ("DBUS_SESSION_BUS_ADDRESS", format!("unix:path={}", scene.path("bus"))),
        ("DISPLAY", ":7".into()),
    ]
}

/// Writes the scene's `srt` settings and returns the path of their file.
fn settings(scene: &Scene) -> String {
    let paths = |names: &[&str]| names.iter().map(|name| scene.path(name)).collect::<Vec<_>>();
    let settings = json!({
        "network": { "allowedDomains": [], "deniedDomains": [] },
        "filesystem": {
            "denyRead": paths(&DENY_READ),
            "allowWrite": paths(&ALLOW_WRITE),
            "denyWrite": paths(&DENY_WRITE),
        },
    });
    let file = scene.path("settings.json");
    fs::write(&file, settings.to_string()).unwrap();
    file
}

/// Returns the proxy's rules and the addresses of host names.
fn rules(scene: &Scene) -> String {
    let port = scene.listeners.as_ref().map_or(0, Listeners::port);
    let rules = json!({
        "allowed": [
            "twin.test", "twin.test:8080", "allowed.test", "*.wild.test", "private.test", "link.test", "own.test",
            "mapped.test", "translated.test", "mixed.test", format!("loopback.test:{port}"),
            format!("rebinding.test:{port}"), "rebinding.test", "nought.test", "spelled.test:8080",
        ],
        "denied": ["bad.wild.test"],
        "names": {
            "twin.test": [[FREE]],
            "allowed.test": [[ALLOWED]],
            "a.wild.test": [[FREE]],
            "bad.wild.test": [["9.9.9.66"]],
            "wild.test": [["9.9.9.66"]],
            "denied.test": [["9.9.9.66"]],
            "sub.allowed.test": [["9.9.9.66"]],
            "allowed.test.denied.test": [["9.9.9.66"]],
            "notallowed.test": [["9.9.9.66"]],
            "localhost": [["127.0.0.1", "::1"]],
            "private.test": [["10.9.9.9"]],
            "link.test": [["169.254.169.254"]],
            "own.test": [[OWN]],
            "mapped.test": [["::ffff:10.9.9.9"]],
            "translated.test": [["64:ff9b::a09:909"]],
            "mixed.test": [[FREE, "10.9.9.9"]],
            "loopback.test": [["127.0.0.1"]],
            "rebinding.test": [[FREE], ["10.9.9.9"], ["127.0.0.1"]],
            "nought.test": [["0.0.0.0"]],
            "spelled.test": [["9.9.9.66"]],
        },
    });
    let file = scene.path("egress.json");
    fs::write(&file, rules.to_string()).unwrap();
    file
}

/// Waits until a command exits. Kills it after the time limit.
fn finish(scene: &Scene, mut command: Command) -> Run {
    let child = command.spawn().unwrap();
    let group = rustix::process::Pid::from_child(&child);
    let (end, ended) = mpsc::channel();
    thread::spawn(move || end.send(child.wait_with_output()));
    let (output, hung) = match ended.recv_timeout(TIMEOUT) {
        Ok(output) => (output.unwrap(), false),
        Err(_) => {
            // The process may have just exited.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
            clean_up(scene);
            (ended.recv_timeout(TIMEOUT).unwrap().unwrap(), true)
        }
    };
    let said = [output.stdout, output.stderr].concat();
    Run { said: String::from_utf8_lossy(&said).into_owned(), hung }
}

/// Returns the processes whose arguments contain the scene's name, except the scene's own processes.
pub(crate) fn left_over(scene: &Scene) -> Vec<(u32, String)> {
    let own = scene.victim.as_ref().map(crate::victim::Victim::pid);
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| Some(*pid) != own)
        .map(|pid| (pid, command_line(pid)))
        .filter(|(_, line)| line.contains(scene.base()))
        .collect()
}

/// Returns a process's arguments, or an empty string if the process has exited or belongs to the kernel.
fn command_line(pid: u32) -> String {
    let mut line = Vec::new();
    eventually(|| {
        line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        !line.is_empty() || !is_between_programs(pid)
    });
    String::from_utf8_lossy(&line).replace('\0', " ")
}

/// Returns `true` if a process is inside `execve` and has neither its old nor its new arguments. The kernel reports
/// this only for processes of the same user.
fn is_between_programs(pid: u32) -> bool {
    /// Index of `arg_end` among the fields after the program name, counted from 0 (proc_pid_stat(5)).
    const ARG_END: usize = 46;
    let is_own = |about: fs::Metadata| is_root() || about.uid() == rustix::process::getuid().as_raw();
    let place = format!("/proc/{pid}");
    let stat = fs::read_to_string(format!("{place}/stat")).unwrap_or_default();
    let has_memory = fs::read_to_string(format!("{place}/status")).is_ok_and(|told| told.contains("VmSize:"));
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    let has_none = fields.split(' ').nth(ARG_END) == Some("0");
    has_none && has_memory && fs::metadata(place).is_ok_and(is_own)
}

/// Kills the processes left behind by an attack that ran without a sandbox.
pub(crate) fn clean_up(scene: &Scene) {
    for (pid, _) in left_over(scene) {
        let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
        // The process may have exited.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Waits until a condition is true. Returns `false` on timeout.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + TIMEOUT / 4;
    while !is_so() {
        if Instant::now() > deadline {
            return false;
        }
        // Gives the awaited processes time to run.
        thread::sleep(Duration::from_millis(1));
    }
    true
}
