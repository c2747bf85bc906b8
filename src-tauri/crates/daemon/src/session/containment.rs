//! Selects a server's containment based on its entry and the sandboxes that this machine supports.

use ironcurtain_config::{FileView, Sandbox, SandboxBackend, Server, ServerAccess};
use ironcurtain_containment::{Resolved, SandboxContext, default_git_config, resolve, view_of};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_server::{Containment, ContainmentError};
use ironcurtain_services::Services;
use std::path::Path;

/// Returns the session folder and data folder of a server that can access nothing else when it starts. Returns `None`
/// if the server can access anything else.
pub(super) fn own_folders(
    containment: &Containment,
    around: &SandboxContext,
    data: &Path,
) -> Option<Vec<CanonicalPath>> {
    let Containment::Native(profile, FileView::Roots) = containment else { return None };
    if !profile.opens_nothing(around.session_dir.as_path(), data) {
        return None;
    }
    let data = data.canonicalize().ok().and_then(|data| CanonicalPath::assume_canonical(data.to_str()?).ok());
    Some(std::iter::once(around.session_dir.clone()).chain(data).collect())
}

/// Returns the containment for a session's server.
pub(super) async fn select(
    services: &Services,
    server: &Server,
    around: &SandboxContext,
    session: &str,
) -> Result<Containment, ContainmentError> {
    if let Some(reason) = &server.refused {
        return Err(ContainmentError::Managed(reason.clone()));
    }
    if let Some(reason) = services.refusal_without_export() {
        return Err(ContainmentError::Managed(reason));
    }
    if server.remote.is_some() {
        return Ok(Containment::Remote);
    }
    let Sandbox::Sandboxed(settings) = &server.sandbox else { return Ok(Containment::Plain) };
    let found = services.sandbox_probe.check().await;
    let (dir, home) = (around.session_dir.as_path(), around.home.as_path());
    let resolved = resolve(&server.sandbox, dir, &found, services.sandbox_probe.policy(), home)
        .map_err(|problem| problem.required_by(services.organization_enforcing_sandbox()));
    let is_asking = server.access == ServerAccess::Ask;
    Ok(match (resolved?, services.sandbox_probe.backend()) {
        (Resolved::Unsandboxed(_), _) if is_asking => return Err(ContainmentError::AsksUncontained),
        (Resolved::Sandboxed(_), SandboxBackend::Srt) if is_asking => {
            return Err(ContainmentError::AsksInSrt);
        }
        (Resolved::Unsandboxed(_), _) => Containment::Plain,
        (Resolved::Sandboxed(mut profile), SandboxBackend::Native) => {
            let default = || default_git_config(&server.name, &services.snapshot().annotations);
            profile.git_config = profile.git_config.or_else(|| Some(default()));
            if is_asking {
                Containment::Asking(profile)
            } else {
                Containment::Native(profile, view_of(settings))
            }
        }
        (Resolved::Sandboxed(profile), SandboxBackend::Srt) => {
            Containment::Srt(profile, services.home.srt().join(session))
        }
    })
}
