//! Starts a server in IronCurtain's own sandbox.

use super::{
    FileApprovalConnections, Killer, Process, ProcessGuard, StartOptions, WatchOptions, mount_for, process,
};
use crate::server::control::SupervisorControl;
use crate::server::start_error::ServerStartError;
use ironcurtain_autostart::{SandboxWatch, autostart_rules};
use ironcurtain_config::FileView;
use ironcurtain_containment::{Profile, environment, limits};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{
    Mount, NetworkAccess, PROXY_PORT, Spec, UnixSockets, describe_missing_tun, launch,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Starts the server. If `view` is `None`, the sandbox serves the user's files and asks about each access.
pub(super) async fn start(
    profile: &Profile,
    view: Option<FileView>,
    start: StartOptions<'_>,
) -> Result<Process, ServerStartError> {
    let autostart_watch = match start.watch {
        Some(watch) => Some(begin(profile, view, watch, &start).await?),
        None => None,
    };
    let closed = closed(autostart_watch.as_ref(), profile, view, &start).await?;
    let spec = spec(profile, view, &start, &closed)?;
    let supervisor = start.programs.dir.join("ironcurtain-sandbox");
    let launched = tokio::task::spawn_blocking(move || launch(&spec, &supervisor, |_| ())).await;
    let launched = launched??;
    let killer = Killer(launched.kill);
    let mut control = SupervisorControl::new(launched.control, autostart_watch)?;
    control.started().await?;
    if let Some(reason) = control.tun_error() {
        tracing::warn!(server = start.server.name, "{}", describe_missing_tun(reason));
    }
    let serving = match start.network.zip(launched.egress) {
        Some((network, egress)) => {
            // The listener is ready, so this does not block.
            let listener = tokio::task::spawn_blocking(move || egress.listener()).await;
            Some(network.serve(listener??))
        }
        None => None,
    };
    let streams = [launched.stdin, launched.stdout, launched.stderr];
    let guard = ProcessGuard::Native {
        control: Box::new(control),
        _serving: serving,
        _killer: killer,
        package: None,
    };
    let asking = launched.view.map(|view| FileApprovalConnections { view, services: launched.services });
    Ok(Process { read_only: closed, asking, ..process(launched.pid, streams, guard)? })
}

async fn begin(
    profile: &Profile,
    view: Option<FileView>,
    watch: WatchOptions<'_>,
    start: &StartOptions<'_>,
) -> Result<SandboxWatch, ServerStartError> {
    let rules = autostart_rules(profile, start.sandbox_context);
    let autostart_watch = watch.autostart.watch(watch.watched, rules).await?;
    watch.named.iter().for_each(|path| autostart_watch.add_approved(path.as_str()));
    if view == Some(FileView::HostRead) {
        autostart_watch.set_hidden(start.sandbox_context.denied(profile));
    }
    Ok(autostart_watch)
}

/// Returns the read-only paths in each folder that the server can write to from the start.
async fn closed(
    autostart_watch: Option<&SandboxWatch>,
    profile: &Profile,
    view: Option<FileView>,
    start: &StartOptions<'_>,
) -> Result<BTreeMap<CanonicalPath, Vec<String>>, ServerStartError> {
    let mut closed = BTreeMap::new();
    let Some(autostart_watch) = autostart_watch else { return Ok(start.read_only.clone()) };
    let granted = start.mounts.iter().filter(|need| need.writable).map(|need| need.path.clone());
    for root in start.sandbox_context.writable(profile, granted_view(view)).into_iter().chain(granted) {
        let paths = autostart_watch.open(root.as_str()).await?;
        closed.insert(root, paths);
    }
    Ok(closed)
}

/// Builds the specification of the sandbox.
fn spec(
    profile: &Profile,
    view: Option<FileView>,
    start: &StartOptions<'_>,
    closed: &BTreeMap<CanonicalPath, Vec<String>>,
) -> Result<Spec, ServerStartError> {
    let program = text(&start.program()?)?;
    let own = start.sandbox_context.writable(profile, granted_view(view));
    let mut shown = match view {
        Some(view) => start.sandbox_context.view(profile, view, &program)?,
        None => start.sandbox_context.asking_view(profile, &program)?,
    };
    let connector = text(&start.programs.dir.join("ironcurtain-sandbox"))?;
    if start.network.is_some() {
        shown.show_program(&connector);
    }
    let proxy = start.network.map(|_| ironcurtain_egress::environment(PROXY_PORT, Some(&connector)));
    let argv = std::iter::once(program).chain(start.server.args.iter().cloned()).collect();
    let in_mount = |path| closed.get(path).cloned().unwrap_or_default();
    let kept = |path| start.sandbox_context.masked_paths_in(path);
    let mounts = start.mounts.iter();
    let mounts: Vec<Mount> =
        mounts.map(|need| mount_for(need, in_mount(&need.path)).with_pinned(kept(&need.path))).collect();
    Ok(Spec {
        argv,
        env: environment(start.server, start.sandbox_context.home.as_path(), proxy, std::env::vars_os()),
        cwd: None,
        home: Some(start.sandbox_context.home.as_str().to_owned()),
        view: shown,
        mounts,
        read_only: own.iter().flat_map(in_mount).collect(),
        pinned: own.iter().flat_map(kept).collect(),
        hidden: if view == Some(FileView::HostRead) {
            vec![]
        } else {
            start.sandbox_context.hidden_paths(profile).hidden
        },
        network: match (start.network, view) {
            (None, _) => NetworkAccess::None,
            (Some(_), Some(_)) => NetworkAccess::Proxied,
            (Some(_), None) => NetworkAccess::ProxiedWithServices,
        },
        unix_sockets: if profile.unix_sockets || view.is_none() {
            UnixSockets::Own
        } else {
            UnixSockets::None
        },
        limits: limits(&profile.limits),
        state_dir: start.sandbox_context.sandboxes.as_str().to_owned(),
        allow_root: start.programs.allow_root,
    })
}

/// Returns the view that decides which paths are writable from the start.
fn granted_view(view: Option<FileView>) -> FileView {
    view.unwrap_or(FileView::Roots)
}

fn text(path: &Path) -> Result<String, ServerStartError> {
    path.to_str().map(str::to_owned).ok_or_else(|| ServerStartError::NotUtf8(path.to_path_buf()))
}
