//! Tests whether this machine can create sandboxes. Runs at startup, and again on demand after a failure so that a
//! user who installs a missing program does not have to restart the daemon.

use crate::health::{Health, HealthComponent};
use ironcurtain_config::{SandboxBackend, SandboxPolicy};
use ironcurtain_containment::check_srt;
use ironcurtain_sandbox::Availability;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::watch;

/// Shared test result. Clones refer to the same result.
#[derive(Debug, Clone)]
pub struct SandboxProbe(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    options: watch::Sender<SandboxProbeOptions>,
    result: watch::Sender<Option<Availability>>,
    health: Health,
}

/// Settings for the sandbox test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxProbeOptions {
    /// Program that creates the sandboxes.
    pub backend: SandboxBackend,
    /// Policy for servers if no sandbox can be created.
    pub policy: SandboxPolicy,
    /// Directory that contains `ironcurtain-sandbox`.
    pub programs: PathBuf,
    /// Directory for files that all sandboxes share.
    pub sandboxes: PathBuf,
    /// Private directory for testing `srt`.
    pub srt_test_dir: PathBuf,
    /// Permits root to create sandboxes.
    pub allow_root: bool,
}

impl SandboxProbe {
    /// Creates the handle and starts the first test.
    #[must_use]
    pub fn new(options: SandboxProbeOptions, health: Health) -> Self {
        let machine = Self(Arc::new(Inner {
            options: watch::Sender::new(options),
            result: watch::Sender::new(None),
            health,
        }));
        tokio::spawn(machine.clone().recheck());
        machine
    }

    /// Returns the program that creates the sandboxes.
    #[must_use]
    pub fn backend(&self) -> SandboxBackend {
        self.0.options.borrow().backend
    }

    /// Returns the policy for servers if no sandbox can be created.
    #[must_use]
    pub fn policy(&self) -> SandboxPolicy {
        self.0.options.borrow().policy
    }

    /// Sets the backend and the policy. Tests again if either of them changed.
    pub fn set_backend(&self, backend: SandboxBackend, policy: SandboxPolicy) {
        let changed = self.0.options.send_if_modified(|options| {
            let changed = (options.backend, options.policy) != (backend, policy);
            (options.backend, options.policy) = (backend, policy);
            changed
        });
        if changed {
            self.0.result.send_replace(None);
            tokio::spawn(self.clone().recheck());
        }
    }

    /// Returns the test result. Tests again if the last test failed.
    pub async fn check(&self) -> Availability {
        let mut result = self.0.result.subscribe();
        // `self` holds the sender, so the channel cannot close.
        let first = result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
        match first {
            Some(result) if result.usable => result,
            Some(_) | None => self.clone().recheck().await,
        }
    }

    async fn recheck(self) -> Availability {
        loop {
            let options = self.0.options.borrow().clone();
            let result = options.run_check().await;
            // Tests again if the options changed during the test.
            if *self.0.options.borrow() == options {
                self.0.health.set(HealthComponent::Sandbox, trouble(&result, options.policy));
                self.0.result.send_replace(Some(result.clone()));
                return result;
            }
        }
    }
}

impl SandboxProbeOptions {
    async fn run_check(&self) -> Availability {
        let (supervisor, allow_root) = (self.programs.join("ironcurtain-sandbox"), self.allow_root);
        let result = match self.backend {
            SandboxBackend::Srt => return check_srt(&self.programs, &self.srt_test_dir).await,
            SandboxBackend::Native => {
                let state = self.sandboxes.display().to_string();
                let srt_test_dir = move || {
                    // Must happen before the first launch, which uses the control groups that exist at that time.
                    ironcurtain_sandbox::prepare_control_groups();
                    ironcurtain_sandbox::check(&supervisor, &state, allow_root)
                };
                tokio::task::spawn_blocking(srt_test_dir).await
            }
        };
        result.unwrap_or_else(|problem| Availability {
            usable: false,
            missing: vec![format!("the check failed: {problem}")],
            fix_command: None,
            warnings: vec![],
        })
    }
}

/// Returns a message about the problem, or `None` if sandboxes can be created.
fn trouble(result: &Availability, policy: SandboxPolicy) -> Option<String> {
    if result.usable {
        return None;
    }
    let missing = result.missing.join("; ");
    let fix = result.fix_command.as_ref().map(|command| format!(" Run: {command}")).unwrap_or_default();
    Some(match policy {
        SandboxPolicy::Enforce => {
            format!("This machine cannot sandbox servers, so none is started: {missing}.{fix}")
        }
        SandboxPolicy::Warn => format!(
            "Servers run WITHOUT a sandbox, because this machine cannot create one and `sandboxPolicy` is `warn`: {missing}.{fix}"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn broken(policy: SandboxPolicy) -> (Availability, Vec<String>) {
        let state = tempfile::tempdir().unwrap();
        let options = SandboxProbeOptions {
            backend: SandboxBackend::Native,
            policy,
            programs: "/nonexistent".into(),
            sandboxes: state.path().join("sandboxes"),
            srt_test_dir: "/nonexistent".into(),
            allow_root: true,
        };
        let health = Health::default();
        let result = SandboxProbe::new(options, health.clone()).check().await;
        (result, health.all())
    }

    #[tokio::test]
    async fn a_machine_that_cannot_sandbox_is_a_problem() {
        let (result, all) = broken(SandboxPolicy::Enforce).await;
        assert!(!result.usable);
        assert!(all.len() == 1 && all[0].starts_with("This machine cannot sandbox servers"), "{all:?}");
    }

    #[tokio::test]
    async fn running_without_a_sandbox_is_a_problem_too() {
        let (result, all) = broken(SandboxPolicy::Warn).await;
        assert!(!result.usable);
        assert!(all.len() == 1 && all[0].starts_with("Servers run WITHOUT a sandbox"), "{all:?}");
    }
}
