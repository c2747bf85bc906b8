//! Starts a server in IronCurtain's own sandbox.

use super::{AskingConnections, Killer, Process, ProcessHold, Start, Watch, mount, process};
use crate::server::control::SupervisorControl;
use crate::server::start_error::ServerStartError;
use ironcurtain_autostart::{SandboxWatch, rules};
use ironcurtain_config::FileView;
use ironcurtain_containment::{Profile, environment, limits};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_sandbox::{Mount, NetworkAccess, PROXY_PORT, Spec, UnixSockets, launch, without_tun};
use std::collections::BTreeMap;
use std::path::Path;

/// Starts the server. If `view` is `None`, the sandbox serves the user's files and asks about each access.
pub(super) async fn start(
    profile: &Profile,
    view: Option<FileView>,
    start: Start<'_>,
) -> Result<Process, ServerStartError> {
    let look = match start.watch {
        Some(watch) => Some(begin(profile, view, watch, &start).await?),
        None => None,
    };
    let closed = closed(look.as_ref(), profile, view, &start).await?;
    let spec = spec(profile, view, &start, &closed)?;
    let supervisor = start.programs.dir.join("ironcurtain-sandbox");
    let launched = tokio::task::spawn_blocking(move || launch(&spec, &supervisor, |_| ())).await;
    let launched = launched??;
    let killer = Killer(launched.kill);
    let mut control = SupervisorControl::new(launched.control, look)?;
    control.started().await?;
    if let Some(reason) = control.no_tun() {
        tracing::warn!(server = start.server.name, "{}", without_tun(reason));
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
    let hold =
        ProcessHold::Live { control: Box::new(control), _serving: serving, _killer: killer, package: None };
    let asking = launched.view.map(|view| AskingConnections { view, services: launched.services });
    Ok(Process { closed, asking, ..process(launched.pid, streams, hold)? })
}

async fn begin(
    profile: &Profile,
    view: Option<FileView>,
    watch: Watch<'_>,
    start: &Start<'_>,
) -> Result<SandboxWatch, ServerStartError> {
    let rules = rules(profile, start.around);
    let look = watch.autostart.watch(watch.watched, rules).await?;
    watch.named.iter().for_each(|path| look.named(path.as_str()));
    if view == Some(FileView::HostRead) {
        look.hidden(start.around.denied(profile));
    }
    Ok(look)
}

/// Returns the read-only paths in each folder that the server can write to from the start.
async fn closed(
    look: Option<&SandboxWatch>,
    profile: &Profile,
    view: Option<FileView>,
    start: &Start<'_>,
) -> Result<BTreeMap<CanonicalPath, Vec<String>>, ServerStartError> {
    let mut closed = BTreeMap::new();
    let Some(look) = look else { return Ok(start.closed.clone()) };
    let granted = start.needs.iter().filter(|need| need.writable).map(|need| need.path.clone());
    for root in start.around.writable(profile, granted_view(view)).into_iter().chain(granted) {
        let paths = look.open(root.as_str()).await?;
        closed.insert(root, paths);
    }
    Ok(closed)
}

/// Builds the specification of the sandbox.
fn spec(
    profile: &Profile,
    view: Option<FileView>,
    start: &Start<'_>,
    closed: &BTreeMap<CanonicalPath, Vec<String>>,
) -> Result<Spec, ServerStartError> {
    let program = text(&start.program()?)?;
    let own = start.around.writable(profile, granted_view(view));
    let mut shown = match view {
        Some(view) => start.around.view(profile, view, &program)?,
        None => start.around.asking_view(profile, &program)?,
    };
    let connector = text(&start.programs.dir.join("ironcurtain-sandbox"))?;
    if start.network.is_some() {
        shown.show_program(&connector);
    }
    let proxy = start.network.map(|_| ironcurtain_egress::environment(PROXY_PORT, Some(&connector)));
    let argv = std::iter::once(program).chain(start.server.args.iter().cloned()).collect();
    let in_mount = |path| closed.get(path).cloned().unwrap_or_default();
    let kept = |path| start.around.kept_in(path);
    let mounts = start.needs.iter();
    let mounts: Vec<Mount> =
        mounts.map(|need| mount(need, in_mount(&need.path)).keeping(kept(&need.path))).collect();
    Ok(Spec {
        argv,
        env: environment(start.server, start.around.home.as_path(), proxy, std::env::vars_os()),
        cwd: None,
        home: Some(start.around.home.as_str().to_owned()),
        view: shown,
        mounts,
        closed: own.iter().flat_map(in_mount).collect(),
        kept: own.iter().flat_map(kept).collect(),
        hidden: if view == Some(FileView::HostRead) { vec![] } else { start.around.closed(profile).hidden },
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
        state_dir: start.around.sandboxes.as_str().to_owned(),
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
