//! Invalidates pages, attributes and names in the kernel's caches from a separate thread.
//!
//! - INVARIANT: serving threads never invalidate pages, because the kernel could wait for a page that a request has
//!   locked.

use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use crate::{device::Device, wire};

/// Maximum time to wait for an invalidation. An invalidation includes writing back dirty pages.
const INVALIDATION_TIMEOUT: Duration = Duration::from_secs(5);

/// Queue of invalidations for the thread that carries them out.
#[derive(Debug)]
pub(crate) struct Invalidations(Mutex<Sender<Invalidation>>);

/// Cache entry that the kernel must invalidate.
#[derive(Debug)]
pub(crate) enum Invalidation {
    Pages { node: u64, done: Option<Sender<()>> },
    Name { parent: u64, name: OsString },
}

impl Invalidations {
    pub(crate) fn new() -> (Self, Receiver<Invalidation>) {
        let (sender, receiver) = mpsc::channel();
        (Self(Mutex::new(sender)), receiver)
    }

    /// Invalidates a node's pages without waiting.
    pub(crate) fn drop_pages(&self, node: u64) {
        self.send(Invalidation::Pages { node, done: None });
    }

    /// Invalidates these nodes' pages and waits for completion. Returns `false` if one invalidation takes longer than
    /// [`INVALIDATION_TIMEOUT`].
    pub(crate) fn drop_pages_and_wait(&self, nodes: impl Iterator<Item = u64>) -> bool {
        let (done, completed) = mpsc::channel();
        let sent =
            nodes.map(|node| self.send(Invalidation::Pages { node, done: Some(done.clone()) })).count();
        drop(done);
        (0..sent).all(|_| completed.recv_timeout(INVALIDATION_TIMEOUT).is_ok())
    }

    /// Invalidates names without waiting.
    pub(crate) fn drop_names(&self, names: Vec<(u64, OsString)>) {
        names.into_iter().for_each(|(parent, name)| self.send(Invalidation::Name { parent, name }));
    }

    fn send(&self, invalidation: Invalidation) {
        // Ignores the error: the view has closed.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(invalidation);
    }
}

/// Carries out queued invalidations until the queue is dropped.
pub(crate) fn run(device: &Arc<dyn Device>, invalidations: &Receiver<Invalidation>) {
    for invalidation in invalidations {
        match invalidation {
            Invalidation::Pages { node, done } => {
                drop_pages(&**device, node);
                if let Some(done) = done {
                    // Ignores the error: the caller has timed out.
                    let _ = done.send(());
                }
            }
            // Ignores the error: the kernel no longer caches the name.
            Invalidation::Name { parent, name } => _ = device.write(&[&wire::invalidate_name(parent, &name)]),
        }
    }
}

/// Invalidates a node's pages and attributes. Must not be called from a serving thread.
pub(crate) fn drop_pages(device: &dyn Device, node: u64) {
    // Ignores the error: the kernel has forgotten the node.
    let _ = device.write(&[&wire::invalidate(node, false)]);
}

/// Invalidates a node's attributes. Safe to call from serving threads, because it takes no page lock.
pub(crate) fn drop_attributes(device: &dyn Device, node: u64) {
    // Ignores the error: the kernel has forgotten the node.
    let _ = device.write(&[&wire::invalidate(node, true)]);
}
