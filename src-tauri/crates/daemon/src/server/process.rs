//! Starting a server's process: sandboxed, or, where the person opted out, plain.

use super::control::Control;
use crate::config::{FileView, LimitSettings, PassEnv, Sandbox, SandboxSettings, Server};
use crate::mounts::Need;
use crate::wire::{Input, Output};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{Access, KillHandle, Limits, Mount, Network, Persistence, Spec, View, launch};
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use tokio::process::{Child, Command};

/// Where our own helper programs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerPrograms {
    /// The directory that has `ironcurtain-sandbox` and `ironcurtain-filesystem`.
    pub dir: PathBuf,
    /// Whether sandboxes may be made by uid 0.
    pub allow_root: bool,
}

/// A running server. Dropped, it is killed with everything it started.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) pid: u32,
    pub(super) stdin: Output,
    pub(super) stdout: Input,
    pub(super) stderr: Input,
    pub(super) hold: Hold,
}

/// What keeps a process alive.
#[derive(Debug)]
pub(super) enum Hold {
    /// The supervisor's control conversation; its end is the sandbox's end.
    Sandbox(Box<Control>, Killer),
    /// A plain child with everything it started, killed on drop.
    Plain(Group),
}

/// A plain child, the leader of its process group.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Pid>,
    /// Killed on drop too, and reaped by the runtime.
    _child: Box<Child>,
}

impl Drop for Group {
    fn drop(&mut self) {
        // The leader is not reaped before this, so the number is still its own; what has ended needs no killing.
        let _ = self.leader.map(|leader| kill_process_group(leader, Signal::KILL));
    }
}

/// Kills the supervisor when dropped, so that nobody has to wait for its next read of the control stream.
#[derive(Debug)]
pub(super) struct Killer(KillHandle);

impl Drop for Killer {
    fn drop(&mut self) {
        self.0.kill();
    }
}

/// Starts the server; the error is a sentence for people.
pub(super) async fn start(
    server: &Server,
    programs: &ServerPrograms,
    sandbox_dir: &CanonicalPath,
    needs: &[Need],
    home: &Path,
) -> Result<Process, String> {
    match &server.sandbox {
        Sandbox::Sandboxed(settings) => {
            let spec = spec(server, settings, programs, sandbox_dir, needs, home)?;
            sandboxed(spec, programs.dir.join("ironcurtain-sandbox")).await
        }
        Sandbox::OptedOut => plain(server, programs, sandbox_dir),
    }
}

async fn sandboxed(spec: Spec, supervisor: PathBuf) -> Result<Process, String> {
    let launched = tokio::task::spawn_blocking(move || launch(&spec, &supervisor, |_| ()))
        .await
        .map_err(|e| e.to_string())?
        .map_err(|e| e.to_string())?;
    let own = |e: std::io::Error| e.to_string();
    let killer = Killer(launched.kill);
    let mut control = Control::new(launched.control).map_err(|e| e.to_string())?;
    control.started().await?;
    Ok(Process {
        pid: launched.pid,
        stdin: Output::new(launched.stdin).map_err(own)?,
        stdout: Input::new(launched.stdout).map_err(own)?,
        stderr: Input::new(launched.stderr).map_err(own)?,
        hold: Hold::Sandbox(Box::new(control), killer),
    })
}

/// A server the person trusts with everything: the whole environment and `env`.
fn plain(server: &Server, programs: &ServerPrograms, sandbox_dir: &CanonicalPath) -> Result<Process, String> {
    let program = find_program(&server.command, programs)?;
    let piped = std::process::Stdio::piped;
    let mut child = Command::new(&program)
        .args(&server.args)
        .envs(&server.env)
        .current_dir(sandbox_dir.as_path())
        .process_group(0)
        .kill_on_drop(true)
        .stdin(piped())
        .stdout(piped())
        .stderr(piped())
        .spawn()
        .map_err(|e| format!("`{}` cannot be started: {e}", program.display()))?;
    let pid = child.id().unwrap_or_default();
    let lost = || "its standard streams are missing".to_owned();
    let own = |e: std::io::Error| e.to_string();
    let stdin: OwnedFd = child.stdin.take().ok_or_else(lost)?.into_owned_fd().map_err(own)?;
    let stdout: OwnedFd = child.stdout.take().ok_or_else(lost)?.into_owned_fd().map_err(own)?;
    let stderr: OwnedFd = child.stderr.take().ok_or_else(lost)?.into_owned_fd().map_err(own)?;
    Ok(Process {
        pid,
        stdin: Output::new(stdin).map_err(own)?,
        stdout: Input::new(stdout).map_err(own)?,
        stderr: Input::new(stderr).map_err(own)?,
        hold: Hold::Plain(Group {
            leader: i32::try_from(pid).ok().and_then(Pid::from_raw),
            _child: Box::new(child),
        }),
    })
}

/// The whole sandbox as a plain value.
fn spec(
    server: &Server,
    settings: &SandboxSettings,
    programs: &ServerPrograms,
    sandbox_dir: &CanonicalPath,
    needs: &[Need],
    home: &Path,
) -> Result<Spec, String> {
    let program = find_program(&server.command, programs)?;
    let text = |path: &Path| {
        path.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", path.display()))
    };
    if settings.view == Some(FileView::HostRead) || settings.network.is_some() {
        return Err(
            "`sandbox.view` `host-read` and `sandbox.network` are not there in this version".to_owned()
        );
    }
    let files = &settings.filesystem;
    if !(files.allow_write.is_empty() && files.deny_write.is_empty() && files.deny_read.is_none()) {
        return Err("of `sandbox.filesystem`, only `allowRead` is there in this version".to_owned());
    }
    let person = text(home)?;
    let mut shown: Vec<String> = files
        .allow_read
        .iter()
        .map(|path| path.strip_prefix('~').map_or_else(|| path.clone(), |rest| format!("{person}{rest}")))
        .collect();
    if !program.starts_with("/usr") {
        shown.push(text(&program)?);
    }
    let mut argv = vec![text(&program)?];
    argv.extend(server.args.iter().cloned());
    let session_dir = sandbox_dir.as_str().to_owned();
    Ok(Spec {
        argv,
        env: environment(server, home, std::env::vars_os()),
        cwd: None,
        view: View::Roots { session_dir, programs: shown },
        mounts: needs.iter().map(mount).collect(),
        network: Network::None,
        persistence: Persistence::default(),
        limits: limits(&settings.limits),
        state_dir: None,
        allow_root: programs.allow_root,
    })
}

fn limits(wanted: &LimitSettings) -> Limits {
    const MIB: u64 = 1 << 20;
    let default = Limits::default();
    let bytes = |mib: Option<u64>| mib.map(|mib| mib.saturating_mul(MIB));
    Limits {
        processes: wanted.processes.or(default.processes),
        open_files: wanted.open_files.or(default.open_files),
        file_size: bytes(wanted.file_size_mib).or(default.file_size),
        tmp_size: bytes(wanted.tmp_size_mib).or(default.tmp_size),
        ..default
    }
}

/// As the sandbox wants it.
pub(super) fn mount(need: &Need) -> Mount {
    let access = if need.writable { Access::ReadWrite } else { Access::ReadOnly };
    Mount::new(need.path.as_str(), access)
}

/// An allow-list: what a program needs to run at all, what the entry passes on by name, and what it sets.
fn environment(
    server: &Server,
    home: &Path,
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    const PASSED: [&str; 4] = ["LANG", "TERM", "USER", "LC_ALL"];
    let passed = |name: &str| match &server.pass_env {
        // Its own `/tmp` is another one than ours.
        PassEnv::All => name != "TMPDIR",
        PassEnv::Named(names) => PASSED.contains(&name) || names.iter().any(|n| n == name),
    };
    let fixed =
        [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", &*home.to_string_lossy()), ("TMPDIR", "/tmp")];
    let mut env = BTreeMap::from(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // What is not text cannot be put into the JSON by which a sandbox is made.
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    env.extend(ours.into_iter().filter_map(text).filter(|(name, _)| passed(name)));
    env.extend(server.env.clone());
    env
}

/// The program's real file: an absolute path, one of ours, or the first on the path.
fn find_program(command: &str, programs: &ServerPrograms) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if command.starts_with('/') {
        Some(PathBuf::from(command))
    } else if command.contains('/') {
        return Err(format!("`{command}` is a relative path; write the whole path or a name"));
    } else {
        let dirs = std::iter::once(programs.dir.clone()).chain(std::env::split_paths(&path));
        dirs.map(|dir| dir.join(command)).find(|p| p.is_file())
    };
    let found = found.ok_or_else(|| format!("the program `{command}` is nowhere on the path"))?;
    found.canonicalize().map_err(|e| format!("the program `{}` cannot be used: {e}", found.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::FileWrites;

    fn server() -> Server {
        Server {
            name: "x".into(),
            command: "/bin/sh".into(),
            args: vec!["-c".into(), "true".into()],
            env: BTreeMap::from([("A".into(), "1".into())]),
            description: None,
            pass_env: PassEnv::Named(vec!["KEPT".into()]),
            sandbox: Sandbox::default(),
            file_writes: FileWrites::InPlace,
        }
    }

    #[test]
    fn the_environment_is_an_allow_list() {
        let ours = [("LANG", "C"), ("KEPT", "yes"), ("SECRET", "no"), ("PATH", "/evil"), ("TMPDIR", "/evil")];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let got: Vec<_> = environment(&server(), Path::new("/home/u"), ours.clone()).into_iter().collect();
        let expected = [
            ("A", "1"),
            ("HOME", "/home/u"),
            ("KEPT", "yes"),
            ("LANG", "C"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TMPDIR", "/tmp"),
        ];
        assert_eq!(got, expected.map(|(n, v)| (n.to_owned(), v.to_owned())));
        let all = Server { pass_env: PassEnv::All, ..server() };
        let got = environment(&all, Path::new("/home/u"), ours);
        assert_eq!(got.get("SECRET").map(String::as_str), Some("no"));
        assert_eq!(got.get("PATH").map(String::as_str), Some("/evil"));
        assert_eq!(got.get("TMPDIR").map(String::as_str), Some("/tmp"));
    }

    #[test]
    fn a_program_that_is_nowhere_is_named() {
        let programs = ServerPrograms { dir: "/nonexistent".into(), allow_root: false };
        let problem = find_program("no-such-program", &programs);
        assert_eq!(problem, Err("the program `no-such-program` is nowhere on the path".into()));
        assert!(find_program("./x", &programs).unwrap_err().contains("relative path"));
    }
}
