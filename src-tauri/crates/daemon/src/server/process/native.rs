//! A server in a sandbox of ours.

use super::{Hold, Killer, Process, Start, mount, process};
use crate::config::FileView;
use crate::containment::{Profile, environment, find_program, limits};
use crate::server::control::Control;
use crate::server::telling::Telling;
use ironcurtain_sandbox::{Network, PROXY_PORT, Persistence, Spec, launch, launch_recorded};
use std::path::Path;

pub(super) async fn start(profile: &Profile, view: FileView, start: Start<'_>) -> Result<Process, String> {
    let spec = spec(profile, view, &start)?;
    let supervisor = start.programs.dir.join("ironcurtain-sandbox");
    let is_recorded = start.report.is_some();
    let launched = tokio::task::spawn_blocking(move || {
        if is_recorded {
            launch_recorded(&spec, &supervisor, |_| ()).map(|(launched, record)| (launched, Some(record)))
        } else {
            launch(&spec, &supervisor, |_| ()).map(|launched| (launched, None))
        }
    });
    let (launched, record) = launched.await.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?;
    let telling = start.report.clone().zip(record).map(|(report, record)| Telling::new(report, record));
    let killer = Killer(launched.kill);
    let mut control = Control::new(launched.control, telling).map_err(|e| e.to_string())?;
    control.started().await?;
    let serving = match start.network.zip(launched.egress) {
        Some((network, egress)) => {
            // It is there by now, so that this does not wait.
            let listener = tokio::task::spawn_blocking(move || egress.listener()).await;
            Some(network.serve(listener.map_err(|e| e.to_string())?.map_err(|e| e.to_string())?))
        }
        None => None,
    };
    let streams = [launched.stdin, launched.stdout, launched.stderr];
    process(
        launched.pid,
        streams,
        Hold::Live { control: Box::new(control), _serving: serving, _killer: killer, package: None },
    )
}

/// The whole sandbox as a plain value.
fn spec(profile: &Profile, view: FileView, start: &Start<'_>) -> Result<Spec, String> {
    let program = text(&find_program(&start.server.command, &start.programs.dir)?)?;
    let mut view = start.around.view(profile, view, &program)?;
    let connector = text(&start.programs.dir.join("ironcurtain-sandbox"))?;
    if start.network.is_some() {
        view.show_program(&connector);
    }
    let proxy = start.network.map(|_| ironcurtain_egress::environment(PROXY_PORT, Some(&connector)));
    let argv = std::iter::once(program).chain(start.server.args.iter().cloned()).collect();
    Ok(Spec {
        argv,
        env: environment(start.server, start.around.home.as_path(), proxy, std::env::vars_os()),
        cwd: None,
        view,
        mounts: start.needs.iter().map(mount).collect(),
        network: if start.network.is_some() { Network::Proxied } else { Network::None },
        unix_sockets: false,
        persistence: Persistence { allow: profile.allow_persistence.clone() },
        limits: limits(&profile.limits),
        state_dir: start.around.sandboxes.as_str().to_owned(),
        allow_root: start.programs.allow_root,
    })
}

fn text(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", path.display()))
}
