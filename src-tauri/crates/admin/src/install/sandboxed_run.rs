//! One run of a package manager: in a sandbox that may write to one folder and reach one registry.
//!
//! - The proxy is served here, for as long as the run takes, and by nobody else.
//! - When this returns, nothing of the run is left.

use super::build_error::{BuildError, text};
use ironcurtain_config::{FileView, LimitSettings};
use ironcurtain_daemon::containment::Surroundings;
use ironcurtain_daemon::containment::{Profile, limits};
use ironcurtain_daemon::server::control::SupervisorControl;
use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, ConnectionVerdict, Connections, HostRules, Proxy, ProxyLimits, Record,
    RecordError, SystemResolver, serve,
};
use ironcurtain_mcp::wire::Input;
use ironcurtain_sandbox::{KillHandle, LaunchedSandbox, NetworkAccess, Spec, UnixSockets, launch};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};

/// The part of what it says that is kept.
const KEPT: usize = 4000;

/// The time that the end of a sandbox may take.
const END: Duration = Duration::from_secs(10);

/// A program to run.
pub(super) struct SandboxedProgram<'a> {
    /// The program, as a whole path, and its arguments.
    pub(super) argv: Vec<String>,
    /// Its whole environment.
    pub(super) env: BTreeMap<String, String>,
    /// The directory it starts in.
    pub(super) cwd: &'a Path,
    /// The hosts that it may reach.
    pub(super) rules: &'a HostRules,
    /// The time that it may take.
    pub(super) patience: Duration,
}

/// The sandbox for a run.
pub(super) struct RunSandbox<'a> {
    /// The directory that has `ironcurtain-sandbox`.
    pub(super) programs: &'a Path,
    /// A sandbox may be made by uid 0.
    pub(super) allow_root: bool,
    /// The surroundings of the sandbox; the session's folder is the one that may be written.
    pub(super) around: &'a Surroundings,
}

/// The outcome.
#[derive(Debug)]
pub(super) struct RunOutput {
    /// Its exit status.
    pub(super) status: i32,
    /// The last of what it said, both streams.
    pub(super) said: String,
    /// The connections it was refused, each with the reason.
    pub(super) refused: BTreeSet<String>,
}

/// Runs it to its end.
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
            // Nobody waits for it after an error.
            let _ = tell.send(());
        })
    });
    let launched = launched.await??;
    let kill = launched.kill.clone();
    let done = tokio::time::timeout(patience, attend(launched, rules)).await;
    // The control conversation is over, so the sandbox ends by itself; and if it does not, it is ended.
    let end = tokio::time::timeout(END, ended).await;
    if end.is_err() {
        KillHandle::kill(&kill);
    }
    done.unwrap_or(Err(BuildError::Slow(patience)))
}

impl RunSandbox<'_> {
    /// The whole sandbox as a plain value.
    fn spec(&self, program: &SandboxedProgram<'_>) -> Result<Spec, BuildError> {
        let executable = program.argv.first().map(String::as_str).unwrap_or_default();
        Ok(Spec {
            argv: program.argv.clone(),
            env: program.env.clone(),
            cwd: Some(text(program.cwd)?),
            view: self.around.view(&Profile::default(), FileView::HostRead, executable)?,
            mounts: vec![],
            network: if program.rules.is_closed() { NetworkAccess::None } else { NetworkAccess::Proxied },
            unix_sockets: UnixSockets::None,
            // What lies in a package is in no folder of the person's.
            closed: vec![],
            kept: vec![],
            limits: limits(&LimitSettings::default()),
            state_dir: self.around.sandboxes.as_str().to_owned(),
            allow_root: self.allow_root,
        })
    }
}

/// From the start of the sandbox to the end of what runs in it.
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
            let listener = tokio::task::spawn_blocking(|| egress.listener()).await;
            let listener = listener??;
            let (_rules, watched) = watch::channel(Arc::new(rules));
            let proxy = Proxy {
                server: "installation".to_owned(),
                rules: watched,
                ask: None,
                record: seen.clone(),
                resolve: Arc::new(SystemResolver),
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

/// Reads to the end and keeps the last of it.
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

/// The connections refused so far.
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
