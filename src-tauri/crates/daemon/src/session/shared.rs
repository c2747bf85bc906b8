//! What all sessions have in common: settings, the law in force, the log, the grants, the person.

use crate::autostart::Autostart;
use crate::config::{Config, FileView, Sandbox, SandboxBackend, Server as ServerConfig};
use crate::consent::Broker;
use crate::containment::{Machine, Resolved, Surroundings, default_git_config, resolve};
use crate::grants::Grants;
use crate::home::Home;
use crate::last_words::LastWords;
use crate::law::Law;
use crate::server::{Containment, ServerPrograms};
use crate::troubles::Troubles;
use ironcurtain_audit::Audit;
use std::sync::Arc;
use tokio::sync::watch;

/// What all sessions share.
#[derive(Clone)]
pub struct Shared {
    /// Our directories.
    pub home: Home,
    /// Settings.
    pub config: Config,
    /// What calls are judged by; see [`Shared::law`].
    pub laws: watch::Receiver<Arc<Law>>,
    /// The audit log.
    pub audit: Audit,
    /// The grants.
    pub grants: Grants,
    /// The questions.
    pub broker: Broker,
    /// Our helper programs.
    pub programs: ServerPrograms,
    /// What can be sandboxed here.
    pub machine: Machine,
    /// What is wrong.
    pub troubles: Troubles,
    /// Who watches for files that run later.
    pub(crate) autostart: Autostart,
    /// What the trusted process waits for when it ends.
    pub(crate) last_words: LastWords,
    /// Moves whenever something that people are shown has changed.
    pub changes: watch::Sender<u64>,
}

impl Shared {
    /// Tells whoever shows things to look again.
    pub fn changed(&self) {
        self.changes.send_modify(|n| *n += 1);
    }

    /// What calls are judged by right now.
    #[must_use]
    pub fn law(&self) -> Arc<Law> {
        self.laws.borrow().clone()
    }

    /// How a server is to run in a session; the error is a sentence for people.
    pub(super) async fn containment(
        &self,
        server: &ServerConfig,
        around: &Surroundings,
        session: &str,
    ) -> Result<Containment, String> {
        let Sandbox::Sandboxed(settings) = &server.sandbox else { return Ok(Containment::Plain) };
        let found = self.machine.look().await;
        let (dir, home) = (around.session_dir.as_path(), around.home.as_path());
        let resolved = resolve(&server.sandbox, dir, &found, self.machine.policy(), home);
        Ok(match (resolved.map_err(|e| e.to_string())?, self.machine.backend()) {
            (Resolved::Unsandboxed(_), _) => Containment::Plain,
            (Resolved::Sandboxed(mut profile), SandboxBackend::Native) => {
                let default = || default_git_config(&server.name, &self.law().annotations);
                profile.git_config = profile.git_config.or_else(|| Some(default()));
                Containment::Native(profile, settings.view.unwrap_or(FileView::Roots))
            }
            (Resolved::Sandboxed(profile), SandboxBackend::Srt) => {
                Containment::Srt(profile, self.home.srt().join(session))
            }
        })
    }
}
