//! Runs a package manager in a sandbox that can write only to one folder and reach only one registry.
//!
//! - Runs the sandbox's proxy for the duration of the run.
//! - When a run returns, all of its processes have exited.

use super::build_error::{BuildError, text};
use ironcurtain_config::{FileView, LimitSettings};
use ironcurtain_containment::{Profile, Surroundings, limits};
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
const KEPT: usize = 4000;

/// Maximum time for the sandbox to exit after the run.
const END: Duration = Duration::from_secs(10);

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
    pub(super) patience: Duration,
}

/// The sandbox of a run.
pub(super) struct RunSandbox<'a> {
    /// Directory that contains `ironcurtain-sandbox`.
    pub(super) programs: &'a Path,
    /// `true` to create the sandbox even as root.
    pub(super) allow_root: bool,
    /// Paths for building the sandbox. Only its session folder is writable.
    pub(super) around: &'a Surroundings,
}

/// Result of a run.
#[derive(Debug)]
pub(super) struct RunOutput {
    /// Exit status.
    pub(super) status: i32,
    /// Last lines of standard output and standard error.
    pub(super) said: String,
    /// Error messages about refused and failed connections.
    pub(super) refused: BTreeSet<String>,
}

/// Runs the program and waits until it exits.
pub(super) async fn run(
    sandbox: &RunSandbox<'_>,
    program: SandboxedProgram<'_>,
) -> Result<RunOutput, BuildError> {
    let patience = program.patience;
    let (spec, rules) = (sandbox.spec(&program)?, program.rules.clone());
    let supervisor = sandbox.programs.join("ironcurtain-sandbox");
    let (tell, ended) = oneshot::channel();
    let launched = tokio::task::spawn_blocking(move || {
        launch(&spec, &supervisor, move |_| {
            // Fails only if the receiver was dropped after an error.
            let _ = tell.send(());
        })
    });
    let launched = launched.await??;
    let kill = launched.kill.clone();
    let done = tokio::time::timeout(patience, attend(launched, rules)).await;
    // The sandbox exits when its control connection closes, and is killed if it does not exit in time.
    let end = tokio::time::timeout(END, ended).await;
    if end.is_err() {
        KillHandle::kill(&kill);
    }
    done.unwrap_or(Err(BuildError::Slow(patience)))
}

impl RunSandbox<'_> {
    /// Returns the sandbox specification for a program.
    fn spec(&self, program: &SandboxedProgram<'_>) -> Result<Spec, BuildError> {
        let executable = program.argv.first().map(String::as_str).unwrap_or_default();
        Ok(Spec {
            argv: program.argv.clone(),
            env: program.env.clone(),
            cwd: Some(text(program.cwd)?),
            home: None,
            view: self.around.view(&Profile::default(), FileView::HostRead, executable)?,
            mounts: vec![],
            network: if program.rules.is_closed() { NetworkAccess::None } else { NetworkAccess::Proxied },
            unix_sockets: UnixSockets::None,
            // Nothing needs to be hidden, because the package folder is not inside any of the user's folders.
            closed: vec![],
            kept: vec![],
            hidden: vec![],
            limits: limits(&LimitSettings::default()),
            state_dir: self.around.sandboxes.as_str().to_owned(),
            allow_root: self.allow_root,
        })
    }
}

/// Serves the sandbox until the program exits.
async fn attend(launched: LaunchedSandbox, rules: HostRules) -> Result<RunOutput, BuildError> {
    let LaunchedSandbox { stdin, stdout, stderr, control, egress, .. } = launched;
    drop(stdin);
    let said =
        [stdout, stderr].map(|stream| Input::new(stream).map(|input| tokio::spawn(output_tail(input))));
    let mut control = SupervisorControl::unwatched(control)?;
    control.started().await?;
    let seen = Arc::new(Seen::default());
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
                record: seen.clone(),
                resolve: Arc::new(SystemResolver::default()),
                limits: ProxyLimits::default(),
                connections: Connections::default(),
            };
            tokio::select! {
                status = control.exit() => status,
                problem = serve(listener, proxy) => return Err(BuildError::ProxyEnded(problem)),
            }
        }
    };
    let status = status.ok_or(BuildError::NoStatus)?;
    let mut words = String::new();
    for said in said {
        words += &said?.await?;
    }
    let refused = std::mem::take(&mut *seen.0.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(RunOutput { status, said: words, refused })
}

/// Reads until EOF and returns the last [`KEPT`] bytes.
async fn output_tail(mut stream: Input) -> String {
    let mut kept = Vec::new();
    let mut piece = vec![0; 8192];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        kept.extend_from_slice(piece.get(..length).unwrap_or_default());
        let too_much = kept.len().saturating_sub(KEPT);
        kept.drain(..too_much);
    }
    String::from_utf8_lossy(&kept).into_owned()
}

/// Error messages about refused and failed connections.
#[derive(Default)]
struct Seen(Mutex<BTreeSet<String>>);

impl Record for Seen {
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
