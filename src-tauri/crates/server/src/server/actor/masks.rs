//! Restores a sandbox's masks after programs outside it replaced or moved masked files.

use super::{Actor, Running};
use crate::server::control::LostMask;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_sandbox::{ControlAnswer, ControlOp};

impl Actor {
    /// Asks the supervisor to verify that every mask is in place. Restarts the server if the supervisor does not
    /// confirm this.
    pub(super) async fn check(&mut self) {
        self.apply_countermeasures().await;
        let Some(control) = self.running.as_mut().and_then(Running::control) else { return };
        match control.ask(ControlOp::Check).await {
            Ok(ControlAnswer::Checked) => {
                if let Some(watch) = control.watch() {
                    watch.masks_restored();
                }
                let lost = control.lost_masks();
                self.report_lost_masks(lost).await;
            }
            // Without confirmation, masks may be missing.
            Ok(_) | Err(_) => {
                self.restart("its supervisor did not confirm that all hidden paths are still hidden").await
            }
        }
    }

    pub(super) async fn report_lost_masks(&self, lost: Vec<LostMask>) {
        for LostMask { path, hidden } in lost {
            let (is, again) = if hidden { ("hidden from", "hidden") } else { ("closed to", "closed") };
            let server = &self.options.server.name;
            let summary = format!(
                "a program outside replaced or moved `{path}`, which is {is} the server {server}; it was \
                 {again} again immediately"
            );
            let mut entry = Entry::new(Event::BoundaryViolation, summary);
            entry.path = Some(path);
            entry.roots = self.roots.borrow().roots.iter().map(|root| root.path.clone()).collect();
            self.options.metrics.count_violation();
            entry.sandboxed = Some(true);
            self.record_entry(entry).await;
        }
    }
}
