//! Handles events of a process's served files.

use super::served::{FilesEvent, obey};
use super::{Actor, Running};

impl Actor {
    /// Waits until the process no longer uses grants older than this version. Returns `false` if the process must be
    /// stopped to ensure that.
    pub(super) async fn files_are_within(&mut self, version: u64) -> bool {
        let Some(Running { hold, files: Some(served), .. }) = &mut self.running else { return true };
        served.is_within(version, hold).await
    }

    /// Handles an event. Stops the process if it kept using revoked access.
    pub(super) async fn files_event(&mut self, event: FilesEvent) {
        match event {
            FilesEvent::Order(order) => {
                if let Some(running) = &mut self.running {
                    obey(&mut running.hold, order).await;
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
