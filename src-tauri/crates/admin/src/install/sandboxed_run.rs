//! Runs a package manager in a sandbox that can write only to one folder and reach only one registry.
//!
//! - Runs the sandbox's proxy for the duration of the run.
//! - When a run returns, all of its processes have exited.

use super::build_error::{BuildError, utf8};
use ironcurtain_config::{FileView, LimitSettings};
use ironcurtain_containment::{Profile, SandboxContext, limits};
use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, ConnectionVerdict, Connections, HostRules, Proxy, ProxyLimits, Record,
    RecordError, SystemResolver, serve,
};
use ironcurtain_mcp::wire::Input;
use ironcurtain_sandbox::{KillHandle, LaunchedSandbox, NetworkAccess, Spec, UnixSockets, launch};
use ironcurtain_server::control::SupervisorControl;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};

/// Maximum number of bytes to keep of each output stream.
const MAX_OUTPUT_LEN: usize = 4000;

/// Maximum time for the sandbox to exit after the run.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A program to run in a sandbox.
pub(super) struct SandboxedProgram<'a> {
    /// Absolute path of the program, followed by its arguments.
    pub(super) argv: Vec<String>,
    /// Complete environment of the program.
    pub(super) env: BTreeMap<String, String>,
    /// Working directory.
    pub(super) cwd: &'a Path,
    /// Hosts that the program is allowed to reach.
    pub(super) rules: &'a HostRules,
    /// Maximum time for the run.
    pub(super) timeout: Duration,
}

/// The sandbox of a run.
pub(super) struct RunSandbox<'a> {
    /// Directory that contains `ironcurtain-sandbox`.
    pub(super) programs: &'a Path,
    /// `true` to create the sandbox even as root.
    pub(super) allow_root: bool,
    /// Paths for building the sandbox. Only its session folder is writable.
    pub(super) paths: &'a SandboxContext,
}

/// Result of a run.
#[derive(Debug)]
pub(super) struct RunOutput {
    /// Exit status.
    pub(super) status: i32,
    /// Last lines of standard output and standard error.
    pub(super) output: String,
    /// Error messages about refused and failed connections.
    pub(super) refused: BTreeSet<String>,
}

/// Runs the program and waits until it exits.
pub(super) async fn run(
    sandbox: &RunSandbox<'_>,
    program: SandboxedProgram<'_>,
) -> Result<RunOutput, BuildError> {
    let timeout = program.timeout;
    let (spec, rules) = (sandbox.spec(&program)?, program.rules.clone());
    let supervisor = sandbox.programs.join("ironcurtain-sandbox");
    let (exit_sender, exited) = oneshot::channel();
    let launched = tokio::task::spawn_blocking(move || {
        launch(&spec, &supervisor, move |_| {
            // Fails only if the receiver was dropped after an error.
            let _ = exit_sender.send(());
        })
    });
    let launched = launched.await??;
    let kill = launched.kill.clone();
    let result = tokio::time::timeout(timeout, serve_until_exit(launched, rules)).await;
    // The sandbox exits when its control connection closes, and is killed if it does not exit in time.
    let exit = tokio::time::timeout(EXIT_TIMEOUT, exited).await;
    if exit.is_err() {
        KillHandle::kill(&kill);
    }
    result.unwrap_or(Err(BuildError::Timeout(timeout)))
}

impl RunSandbox<'_> {
    /// Returns the sandbox specification for a program.
    fn spec(&self, program: &SandboxedProgram<'_>) -> Result<Spec, BuildError> {
        let executable = program.argv.first().map(String::as_str).unwrap_or_default();
        Ok(Spec {
            argv: program.argv.clone(),
            env: program.env.clone(),
            cwd: Some(utf8(program.cwd)?),
            home: None,
            view: self.paths.view(&Profile::default(), FileView::HostRead, executable)?,
            mounts: vec![],
            network: if program.rules.is_closed() { NetworkAccess::None } else { NetworkAccess::Proxied },
            unix_sockets: UnixSockets::None,
            // Nothing needs to be hidden, because the package folder is not inside any of the user's folders.
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            limits: limits(&LimitSettings::default()),
            state_dir: self.paths.sandboxes.as_str().to_owned(),
            allow_root: self.allow_root,
        })
    }
}

/// Serves the sandbox until the program exits.
async fn serve_until_exit(launched: LaunchedSandbox, rules: HostRules) -> Result<RunOutput, BuildError> {
    let LaunchedSandbox { stdin, stdout, stderr, control, egress, .. } = launched;
    drop(stdin);
    let streams =
        [stdout, stderr].map(|stream| Input::new(stream).map(|input| tokio::spawn(output_tail(input))));
    let mut control = SupervisorControl::without_watch(control)?;
    control.started().await?;
    let refusals = Arc::new(RefusedConnections::default());
    let status = match egress {
        None => control.exit().await,
        Some(egress) => {
            let listener = tokio::task::spawn_blocking(move || egress.listener()).await;
            let listener = listener??;
            let (_rules, watched) = watch::channel(Arc::new(rules));
            let proxy = Proxy {
                server: "installation".to_owned(),
                rules: watched,
                ask: None,
                record: refusals.clone(),
                resolve: Arc::new(SystemResolver::default()),
                limits: ProxyLimits::default(),
                connections: Connections::default(),
            };
            tokio::select! {
                status = control.exit() => status,
                problem = serve(listener, proxy) => return Err(BuildError::ProxyStopped(problem)),
            }
        }
    };
    let status = status.ok_or(BuildError::NoStatus)?;
    let mut output = String::new();
    for stream in streams {
        output += &stream?.await?;
    }
    let refused = std::mem::take(&mut *refusals.0.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(RunOutput { status, output, refused })
}

/// Reads until EOF and returns the last [`MAX_OUTPUT_LEN`] bytes.
async fn output_tail(mut stream: Input) -> String {
    let mut tail = Vec::new();
    let mut chunk = vec![0; 8192];
    while let Ok(length @ 1..) = stream.read(&mut chunk).await {
        tail.extend_from_slice(chunk.get(..length).unwrap_or_default());
        let excess = tail.len().saturating_sub(MAX_OUTPUT_LEN);
        tail.drain(..excess);
    }
    String::from_utf8_lossy(&tail).into_owned()
}

/// Error messages about refused and failed connections.
#[derive(Default)]
struct RefusedConnections(Mutex<BTreeSet<String>>);

impl Record for RefusedConnections {
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        match event.verdict {
            ConnectionVerdict::Refused { reason, .. } | ConnectionVerdict::Failed { reason, .. } => {
                self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(reason);
            }
            ConnectionVerdict::Allowed(by) => {
                tracing::info!(host = event.host, port = event.port, ?by, "reached")
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}
