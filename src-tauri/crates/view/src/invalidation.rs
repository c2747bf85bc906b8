//! Has the kernel drop cached pages, attributes and names, from a thread of its own.
//!
//! - INVARIANT: pages are never dropped from a serving thread: the kernel may wait for a page that a request holds.

use std::{
    ffi::OsString,
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

/// Something that the kernel should drop.
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

    /// Drops the node's pages soon.
    pub(crate) fn drop_pages(&self, node: u64) {
        self.send(Invalidation::Pages { node, done: None });
    }

    /// Drops the pages of these nodes, and returns whether that was completed in time.
    pub(crate) fn drop_pages_now(&self, nodes: impl Iterator<Item = u64>) -> bool {
        let (done, is_done) = mpsc::channel();
        let sent =
            nodes.map(|node| self.send(Invalidation::Pages { node, done: Some(done.clone()) })).count();
        drop(done);
        (0..sent).all(|_| is_done.recv_timeout(PATIENCE).is_ok())
    }

    /// Drops names soon.
    pub(crate) fn drop_names(&self, names: Vec<(u64, OsString)>) {
        names.into_iter().for_each(|(parent, name)| self.send(Invalidation::Name { parent, name }));
    }

    fn send(&self, invalidation: Invalidation) {
        // Fails only once the view has ended.
        let _ = self.0.lock().unwrap_or_else(PoisonError::into_inner).send(invalidation);
    }
}

/// Sends invalidations to the kernel until their sender is gone.
pub(crate) fn run(device: &Arc<dyn Device>, invalidations: &Receiver<Invalidation>) {
    for invalidation in invalidations {
        match invalidation {
            Invalidation::Pages { node, done } => {
                drop_pages(&**device, node);
                if let Some(done) = done {
                    // Fails if the sender has timed out.
                    let _ = done.send(());
                }
            }
            // Fails if the kernel does not know the name any more.
            Invalidation::Name { parent, name } => _ = device.write(&[&wire::forget_name(parent, &name)]),
        }
    }
}

/// Drops a node's pages and attributes. Not for serving threads.
pub(crate) fn drop_pages(device: &dyn Device, node: u64) {
    // Fails if the kernel does not know the node any more.
    let _ = device.write(&[&wire::invalidate(node, false)]);
}

/// Drops a node's attributes. Takes no page lock, so a serving thread may call it.
pub(crate) fn drop_attributes(device: &dyn Device, node: u64) {
    // As above.
    let _ = device.write(&[&wire::invalidate(node, true)]);
}
