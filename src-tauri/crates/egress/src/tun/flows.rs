//! The sandbox's connections, and those for which the proxy has not decided yet.
//!
//! - A connection without a response of the proxy consists of its SYN. A repeated SYN makes no second request.
//! - At the limit, a SYN is dropped. The kernel repeats it later, as if the backlog of a server were full.

use super::connection::TcpConnection;
use super::device::TunDevice;
use super::packet::{self, Flow};
use super::proxy;
use super::relay::Relay;
use crate::host::HostPort;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::task::{AbortHandle, spawn_local};

/// Maximum number of connections, including those for which the proxy has not decided yet. Equals the limit of the
/// proxy.
const MAX_FLOWS: usize = 256;
/// Maximum length in bytes of a SYN without data.
const MAX_SYN_LEN: usize = 120;

/// State of a connection.
#[derive(Clone)]
pub(super) enum FlowState {
    /// The proxy has not decided yet.
    Pending(Rc<PendingFlow>),
    /// The connection is accepted.
    Open(Rc<Relay>),
}

/// Connection for which the proxy has not decided yet.
#[derive(Debug)]
pub(super) struct PendingFlow {
    /// Newest SYN, which is answered after the decision.
    syn: RefCell<Vec<u8>>,
    task: RefCell<Option<AbortHandle>>,
}

/// Connections by address and ports.
#[derive(Clone, Default)]
pub(super) struct Flows(Rc<RefCell<HashMap<Flow, FlowState>>>);

impl PendingFlow {
    pub(super) fn replace_syn(&self, syn: &[u8]) {
        if syn.len() <= MAX_SYN_LEN {
            self.syn.replace(syn.to_owned());
        }
    }
}

impl Flows {
    pub(super) fn get(&self, flow: Flow) -> Option<FlowState> {
        self.0.borrow().get(&flow).cloned()
    }

    /// Requests a connection from the proxy, and answers the SYN after the proxy's response.
    pub(super) fn open(
        &self,
        flow: Flow,
        syn: &[u8],
        (target, proxy): (HostPort, SocketAddr),
        device: &Rc<TunDevice>,
    ) {
        let mut flows = self.0.borrow_mut();
        if flows.len() >= MAX_FLOWS || syn.len() > MAX_SYN_LEN {
            return;
        }
        let pending = Rc::new(PendingFlow { syn: RefCell::new(syn.to_owned()), task: RefCell::default() });
        flows.insert(flow, FlowState::Pending(pending.clone()));
        let entry = FlowEntry { flows: self.clone(), flow };
        let (request, device) = (pending.clone(), device.clone());
        let task = spawn_local(async move {
            let opened = proxy::connect(proxy, &target).await;
            let syn = request.syn.take();
            let connection =
                opened.and_then(|upstream| Some((TcpConnection::accept(flow, &syn, &device)?, upstream)));
            match connection {
                Some((connection, upstream)) => {
                    let relay = Rc::new(Relay::new(connection));
                    entry.flows.0.borrow_mut().insert(flow, FlowState::Open(relay.clone()));
                    relay.run(upstream, &device).await;
                }
                None => packet::reset(&syn).into_iter().for_each(|reset| device.write(&reset)),
            }
            drop(entry);
        });
        pending.task.replace(Some(task.abort_handle()));
    }

    /// Ends the requests for which no program waits. `waits` is called only if there are requests.
    pub(super) fn cancel_abandoned(&self, find_waiting: impl FnOnce() -> Option<HashSet<Flow>>) {
        let pending: Vec<(Flow, Rc<PendingFlow>)> = self
            .0
            .borrow()
            .iter()
            .filter_map(|(flow, state)| match state {
                FlowState::Pending(pending) => Some((*flow, pending.clone())),
                FlowState::Open(_) => None,
            })
            .collect();
        if pending.is_empty() {
            return;
        }
        let Some(waiting) = find_waiting() else { return };
        for (_, pending) in pending.iter().filter(|(flow, _)| !waiting.contains(flow)) {
            pending.task.borrow().iter().for_each(AbortHandle::abort);
        }
    }
}

/// Removes a connection when its task ends.
struct FlowEntry {
    flows: Flows,
    flow: Flow,
}

impl Drop for FlowEntry {
    fn drop(&mut self) {
        self.flows.0.borrow_mut().remove(&self.flow);
    }
}
