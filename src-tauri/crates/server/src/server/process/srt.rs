//! Starts a server in an `srt` sandbox. The sandbox's settings contain the grants, so each new grant requires a new
//! sandbox.

use super::{Process, ProcessGuard, StartOptions, spawn};
use crate::server::start_error::ServerStartError;
use ironcurtain_config::PassEnv;
use ironcurtain_config::home::private_dir;
use ironcurtain_containment::{
    Launch, Profile, SandboxContext, ServerFiles, SrtSettings, environment, launch,
};
use ironcurtain_grants::mounts::MountRequest;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Environment variable that contains the socket path of the user's SSH agent.
const AGENT_VARIABLE: &str = "SSH_AUTH_SOCK";

pub(super) async fn start(
    profile: &Profile,
    dir: &Path,
    start: StartOptions<'_>,
) -> Result<Process, ServerStartError> {
    let words = |path: PathBuf| path.to_string_lossy().into_owned();
    let program = Launch { command: words(start.program()?), args: start.server.args.clone() };
    let srt = words(start.find("srt")?);
    private_dir(dir)?;
    let files = ServerFiles::of(&start.server.name, dir)?;
    let mut env = environment(start.server, start.sandbox_context.home.as_path(), None, std::env::vars_os());
    // `srt` is a script that needs `PATH`, and it creates its own temporary folder.
    env.extend(std::env::var("PATH").ok().map(|path| ("PATH".to_owned(), path)));
    env.remove("TMPDIR");
    let agent = match &start.server.pass_env {
        PassEnv::Named(names) if names.iter().any(|name| name == AGENT_VARIABLE) => {
            env.get(AGENT_VARIABLE).map(PathBuf::from)
        }
        PassEnv::Named(_) | PassEnv::All => None,
    };
    let settings = settings(profile, start.sandbox_context, start.mounts, &files, agent.as_deref());
    settings.write(&files)?;
    let line = launch(&srt, &program, &files)?;
    let mut command = Command::new(line.command);
    command.args(line.args).env_clear().envs(env).current_dir(files.cwd);
    spawn(command, |hold| ProcessGuard::Srt { _hold: hold, package: None }).await
}

/// Builds the `srt` settings. Lists readable paths inside denied folders explicitly, including the sandbox's own
/// folders.
fn settings(
    profile: &Profile,
    sandbox_context: &SandboxContext,
    mounts: &[MountRequest],
    files: &ServerFiles,
    agent: Option<&Path>,
) -> SrtSettings {
    // Omit paths that do not exist: denying them has no effect, and each one slows `srt` down.
    let exists = |path: &String| Path::new(path).exists();
    let denied = sandbox_context.denied(profile).into_iter().filter(exists).collect();
    let profile = &Profile { deny_write: sandbox_context.read_only_paths(profile), ..profile.clone() };
    let mut settings = SrtSettings::new(profile, denied, &files.cwd, agent);
    let path = |need: &MountRequest| need.path.as_str().to_owned();
    let writable: Vec<String> = mounts.iter().filter(|need| need.writable).map(path).collect();
    let own = [sandbox_context.session_dir.as_str().to_owned(), files.cwd.display().to_string()];
    let readable: Vec<String> = own.into_iter().chain(mounts.iter().map(path)).collect();
    settings.extend(&readable, &writable);
    settings
}
