//! Has the kernel drop cached pages and attributes, from a thread of its own.
//!
//! - INVARIANT: pages are never dropped from a serving thread: the kernel may wait for a page that a request holds.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, Sender},
    },
    time::Duration,
};

use crate::{device::Device, wire};

/// Time limit for dropping pages, which writes changed ones back.
const PATIENCE: Duration = Duration::from_secs(5);

/// Sender of invalidations.
#[derive(Debug)]
pub(crate) struct Invalidations(Mutex<Sender<Invalidation>>);

/// One node to invalidate.
#[derive(Debug)]
pub(crate) struct Invalidation {
    node: u64,
    done: Option<Sender<()>>,
}

impl Invalidations {
    pub(crate) fn new() -> (Self, Receiver<Invalidation>) {
        let (sender, receiver) = mpsc::channel();
        (Self(Mutex::new(sender)), receiver)
    }

    /// Drops the node's pages soon.
    pub(crate) fn drop_pages(&self, node: u64) {
        self.send(Invalidation { node, done: None });
    }

    /// Drops the pages of these nodes, and returns whether that was completed in time.
    pub(crate) fn drop_pages_now(&self, nodes: impl Iterator<Item = u64>) -> bool {
        let (done, is_done) = mpsc::channel();
        let sent = nodes.map(|node| self.send(Invalidation { node, done: Some(done.clone()) })).count();
        drop(done);
        (0..sent).all(|_| is_done.recv_timeout(PATIENCE).is_ok())
    }

    fn send(&self, invalidation: Invalidation) {
        // Fails only once the view has ended.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(invalidation);
    }
}

/// Sends invalidations to the kernel until their sender is gone.
pub(crate) fn run(device: &Arc<dyn Device>, invalidations: &Receiver<Invalidation>) {
    for Invalidation { node, done } in invalidations {
        // Fails if the kernel does not know the node any more.
        let _ = device.write(&[&wire::invalidate(node, false)]);
        if let Some(done) = done {
            // Fails if the sender has timed out.
            let _ = done.send(());
        }
    }
}

/// Drops a node's attributes. Takes no page lock, so a serving thread may call it.
pub(crate) fn drop_attributes(device: &dyn Device, node: u64) {
    // As above.
    let _ = device.write(&[&wire::invalidate(node, true)]);
}
