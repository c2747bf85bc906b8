//! Handles events of a process's served files.

use super::served::{FilesEvent, execute_order};
use super::{Actor, Running};

impl Actor {
    /// Waits until the process no longer uses grants older than this version. Returns `false` if the process must be
    /// stopped to ensure that.
    pub(super) async fn enforce_file_grants(&mut self, version: u64) -> bool {
        let Some(Running { guard, files: Some(served), .. }) = &mut self.running else { return true };
        served.wait_until_enforced(version, guard).await
    }

    /// Handles an event. Stops the process if it kept using revoked access.
    pub(super) async fn files_event(&mut self, event: FilesEvent) {
        match event {
            FilesEvent::Order(order) => {
                if let Some(running) = &mut self.running {
                    execute_order(&mut running.guard, order).await;
                }
            }
            FilesEvent::Stop(why) => {
                self.restarts += 1;
                self.restart(&why).await;
                self.reconcile().await;
            }
        }
    }
}
