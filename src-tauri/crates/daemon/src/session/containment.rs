//! The containment of a session's server: by its entry, where this machine can make it.

use crate::config::{FileView, Sandbox, SandboxBackend, Server};
use crate::containment::{Resolved, Surroundings, default_git_config, resolve};
use crate::server::{Containment, ContainmentError};
use crate::services::Services;

/// The containment of a server in a session.
pub(super) async fn of(
    services: &Services,
    server: &Server,
    around: &Surroundings,
    session: &str,
) -> Result<Containment, ContainmentError> {
    let Sandbox::Sandboxed(settings) = &server.sandbox else { return Ok(Containment::Plain) };
    let found = services.machine.look().await;
    let (dir, home) = (around.session_dir.as_path(), around.home.as_path());
    let resolved = resolve(&server.sandbox, dir, &found, services.machine.policy(), home);
    Ok(match (resolved?, services.machine.backend()) {
        (Resolved::Unsandboxed(_), _) => Containment::Plain,
        (Resolved::Sandboxed(mut profile), SandboxBackend::Native) => {
            let default = || default_git_config(&server.name, &services.snapshot().annotations);
            profile.git_config = profile.git_config.or_else(|| Some(default()));
            Containment::Native(profile, settings.view.unwrap_or(FileView::Roots))
        }
        (Resolved::Sandboxed(profile), SandboxBackend::Srt) => {
            Containment::Srt(profile, services.home.srt().join(session))
        }
    })
}
