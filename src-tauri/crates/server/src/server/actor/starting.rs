//! Starts a server process with its mounts.

use super::running::{Handshake, Running};
use super::served::ServedProcess;
use super::stderr_tail::StderrTail;
use super::{Actor, DownReason, STEADY, ServerState};
use crate::network::ServesNetwork;
use crate::server::mounted::Mounted;
use crate::server::process::{self, AskingConnections, Process, ProcessHold, RemoteTransport, Start, Watch};
use crate::server::roots::ViewedRoots;
use crate::server::start_error::ServerStartError;
use ironcurtain_autostart::WatchedServer;
use ironcurtain_grants::mounts::{Need, united};
use ironcurtain_mcp::server::{ConnectionOptions, ServerConnection};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

impl Actor {
    /// Starts the process with all its mounts, and forwards the client's `initialize` if the client has sent one.
    pub(super) async fn start_server(&mut self) {
        if let Some(reason) = self.recreating.ended() {
            return self.not_running(reason);
        }
        if self.quick_ends >= 3 && self.started.elapsed() < STEADY * self.quick_ends.min(15) {
            return self.not_running(DownReason::EndsTooSoon(self.quick_ends));
        }
        // Increment once for all attempts, because the number identifies the process that answers the handshake.
        let before = self.starts.fetch_add(1, Ordering::Relaxed);
        if before > 0 {
            self.options.metrics.restarted();
        }
        self.state.send_replace(ServerState::Starting(before + 1));
        self.started = Instant::now();
        self.project();
        self.hides_too_little = false;
        let needs = united(self.roots.borrow().needs.clone());
        let mounted = needs.iter().cloned().map(Mounted::about_to_be).collect();
        match self.start_process(&needs).await {
            Ok(process) => self.process_started(process, mounted).await,
            // If a grant cannot be mounted, the server must start without it. Start without grants, then mount them one
            // by one.
            Err(_) if !needs.is_empty() => match self.start_process(&[]).await {
                Ok(process) => self.process_started(process, Vec::new()).await,
                Err(problem) => self.down(problem.into()).await,
            },
            Err(problem) => self.down(problem.into()).await,
        }
    }

    async fn start_process(&mut self, needs: &[Need]) -> Result<Process, ServerStartError> {
        let before = self.tries;
        self.tries += 1;
        let o = &self.options;
        let containment = o.containment.as_ref().map_err(Clone::clone)?;
        let network = o.network.as_deref().map(|network| -> &dyn ServesNetwork { network });
        let watched = WatchedServer { session: &o.session, server: &o.server.name, before };
        let watch = Some(Watch { autostart: &o.autostart, watched, named: &self.named });
        let start = Start {
            server: &o.server,
            programs: &o.programs,
            refuses_program: &*o.refuses_program,
            around: &o.around,
            network,
            needs,
            watch,
            transport: o.network.as_ref().map(|network| RemoteTransport {
                dialer: network.dialer(),
                dial: network.dial(),
                notify: network.notifier(),
                memory: o.memory.clone(),
                waited_for: Some(o.waited_for.clone()),
            }),
            closed: BTreeMap::new(),
            gate: Some(&o.gate),
        };
        process::start(containment, start).await
    }

    /// Starts serving a process's files if the server's entry has `"access": "ask"`.
    fn serve_files(
        &self,
        pid: Option<u32>,
        asking: Option<AskingConnections>,
    ) -> io::Result<Option<Box<ServedProcess>>> {
        let o = &self.options;
        let Some(((options, connections), pid)) = o.asking.as_ref().zip(asking).zip(pid) else {
            return Ok(None);
        };
        let mounted = o.containment.as_ref().map(|containment| containment.standing(&o.around));
        let of_session = (o.session.as_str(), &o.resolver, &*mounted.unwrap_or_default(), o.log.clone());
        ServedProcess::start(options, of_session, o.network.as_deref(), (pid, connections))
            .map(Box::new)
            .map(Some)
    }

    async fn process_started(&mut self, process: Process, mounted: Vec<Mounted>) {
        let Process { pid, stdin, stdout, stderr, hold, mut closed, asking } = process;
        let files = match self.serve_files(pid, asking) {
            Ok(files) => files,
            Err(problem) => return self.down(ServerStartError::from(problem).into()).await,
        };
        let stderr_tail = StderrTail::of(stderr, self.options.log.clone());
        let log = self.options.log.clone();
        let from_server = ConnectionOptions {
            stdout,
            client: self.options.client.clone(),
            memory: self.options.memory.clone(),
            roots: Arc::new(ViewedRoots(self.roots.subscribe())),
            client_takes: self.options.client_takes.clone(),
            sampling: self.options.sampling.clone(),
            noise: Arc::new(move |line| log.write(line)),
        };
        let (connection, reading) = ServerConnection::start(stdin, from_server);
        (self.confirmed_version, self.announced) = (0, 0);
        self.mounted = match hold {
            ProcessHold::Live { .. } | ProcessHold::Fixed { .. } => {
                let closing = |m: Mounted| {
                    let closed = closed.remove(&m.need.path).unwrap_or_default();
                    m.closing(closed)
                };
                mounted.into_iter().map(closing).collect()
            }
            ProcessHold::Plain { .. } | ProcessHold::Remote(_) => Vec::new(),
        };
        let mut running = Running {
            connection,
            files,
            hold,
            reading,
            stderr_tail,
            pid,
            handshake: Handshake::None,
            initialize_number: None,
        };
        self.record(format!("the server {} started", self.options.server.name)).await;
        self.initialize(&mut running);
        if let Handshake::None = running.handshake {
            let connection = running.connection.clone();
            self.state.send_replace(ServerState::Up { connection, pid, ready: false });
        }
        self.running = Some(running);
    }
}
