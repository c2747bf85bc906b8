//! Invalidates pages, attributes and names in the kernel's caches, on a separate thread.
//!
//! - INVARIANT: serving threads never invalidate pages, because the kernel may then wait for a page that a request
//!   holds.

use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use crate::{device::Device, wire};

/// Maximum time to wait until pages are invalidated. This includes writing back changed pages.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sends invalidations to the thread that executes them.
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

    /// Invalidates the node's pages without waiting.
    pub(crate) fn drop_pages(&self, node: u64) {
        self.send(Invalidation::Pages { node, done: None });
    }

    /// Invalidates the pages of these nodes. Returns `false` if that takes longer than [`PATIENCE`] for a node.
    pub(crate) fn drop_pages_now(&self, nodes: impl Iterator<Item = u64>) -> bool {
        let (done, is_done) = mpsc::channel();
        let sent =
            nodes.map(|node| self.send(Invalidation::Pages { node, done: Some(done.clone()) })).count();
        drop(done);
        (0..sent).all(|_| is_done.recv_timeout(PATIENCE).is_ok())
    }

    /// Invalidates names without waiting.
    pub(crate) fn drop_names(&self, names: Vec<(u64, OsString)>) {
        names.into_iter().for_each(|(parent, name)| self.send(Invalidation::Name { parent, name }));
    }

    fn send(&self, invalidation: Invalidation) {
        // Ignore the error, which occurs only if the view has closed.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(invalidation);
    }
}

/// Sends invalidations to the kernel until their sender is dropped.
pub(crate) fn run(device: &Arc<dyn Device>, invalidations: &Receiver<Invalidation>) {
    for invalidation in invalidations {
        match invalidation {
            Invalidation::Pages { node, done } => {
                drop_pages(&**device, node);
                if let Some(done) = done {
                    // Ignore the error, which occurs if the caller has timed out.
                    let _ = done.send(());
                }
            }
            // Ignore the error, which occurs if the kernel no longer caches the name.
            Invalidation::Name { parent, name } => _ = device.write(&[&wire::forget_name(parent, &name)]),
        }
    }
}

/// Invalidates a node's pages and attributes. Must not be called by serving threads.
pub(crate) fn drop_pages(device: &dyn Device, node: u64) {
    // Ignore the error, which occurs if the kernel has forgotten the node.
    let _ = device.write(&[&wire::invalidate(node, false)]);
}

/// Invalidates a node's attributes. Takes no page lock, so serving threads may call it.
pub(crate) fn drop_attributes(device: &dyn Device, node: u64) {
    // Ignore the error, which occurs if the kernel has forgotten the node.
    let _ = device.write(&[&wire::invalidate(node, true)]);
}
