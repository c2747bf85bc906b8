//! Handles events of the files about which the user is asked.

use super::served::{FilesEvent, obey};
use super::{Actor, Running};

impl Actor {
    /// Waits until the process uses no grants that are older than this version. Returns `false` if only stopping the
    /// process ensures that.
    pub(super) async fn files_are_within(&mut self, version: u64) -> bool {
        let Some(Running { hold, files: Some(served), .. }) = &mut self.running else { return true };
        served.is_within(version, hold).await
    }

    /// Carries out what the files require. The process is stopped if it kept using revoked access.
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
