//! Starts a server process with its mounts.

use super::running::{Handshake, Running};
use super::served::{ServedProcess, SessionParts};
use super::stderr_tail::StderrTail;
use super::{Actor, DownReason, MIN_UPTIME, ServerState};
use crate::network::ServesNetwork;
use crate::server::mounted::MountRecord;
use crate::server::process::{
    self, FileApprovalConnections, Process, ProcessGuard, RemoteTransport, StartOptions, WatchOptions,
};
use crate::server::roots::LatestRoots;
use crate::server::start_error::ServerStartError;
use ironcurtain_autostart::WatchedServer;
use ironcurtain_grants::mounts::{MountRequest, merge_requests};
use ironcurtain_mcp::server::{ConnectionOptions, ServerConnection};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::time::Instant;

impl Actor {
    /// Starts the process with all its mounts, and forwards the client's `initialize` if the client has sent one.
    pub(super) async fn start_server(&mut self) {
        if self.is_closing {
            return self.not_running(DownReason::Exited(Arc::default()));
        }
        if let Some(reason) = self.recreating.down_reason() {
            return self.not_running(reason);
        }
        if self.early_exits >= 3 && self.started.elapsed() < MIN_UPTIME * self.early_exits.min(15) {
            return self.not_running(DownReason::ExitsTooSoon(self.early_exits));
        }
        // Increment once for all attempts, because the number identifies the process that answers the handshake.
        let before = self.starts.fetch_add(1, Ordering::Relaxed);
        if before > 0 {
            self.options.metrics.count_restart();
        }
        self.state.send_replace(ServerState::Starting(before + 1));
        self.started = Instant::now();
        self.update_view();
        self.must_hide_more = false;
        let mounts = merge_requests(self.roots.borrow().mounts.clone());
        let mounted = mounts.iter().cloned().map(MountRecord::before_mounting).collect();
        match self.start_process(&mounts).await {
            Ok(process) => self.process_started(process, mounted).await,
            // If a grant cannot be mounted, the server must start without it. Start without grants, then mount them one
            // by one.
            Err(_) if !mounts.is_empty() => match self.start_process(&[]).await {
                Ok(process) => self.process_started(process, Vec::new()).await,
                Err(problem) => self.set_down(problem.into()).await,
            },
            Err(problem) => self.set_down(problem.into()).await,
        }
    }

    async fn start_process(&mut self, mounts: &[MountRequest]) -> Result<Process, ServerStartError> {
        let before = self.start_attempts;
        self.start_attempts += 1;
        let o = &self.options;
        let containment = o.containment.as_ref().map_err(Clone::clone)?;
        let network = o.network.as_deref().map(|network| -> &dyn ServesNetwork { network });
        let watched =
            WatchedServer { session: &o.session, server: &o.server.name, earlier_processes: before };
        let watch = Some(WatchOptions { autostart: &o.autostart, watched, named: &self.approved_files });
        let start = StartOptions {
            server: &o.server,
            programs: &o.programs,
            refuses_program: &*o.refuses_program,
            sandbox_context: &o.sandbox_context,
            network,
            mounts,
            watch,
            transport: o.network.as_ref().map(|network| RemoteTransport {
                dialer: network.dialer(),
                dial: network.dial(),
                notify: network.notifier(),
                memory: o.memory.clone(),
                shutdown_token: Some(o.shutdown_token.clone()),
            }),
            read_only: BTreeMap::new(),
            gate: Some(&o.gate),
        };
        process::start(containment, start).await
    }

    /// Starts serving a process's files if the server's entry has `"access": "ask"`.
    fn serve_files(
        &self,
        pid: Option<u32>,
        asking: Option<FileApprovalConnections>,
    ) -> io::Result<Option<Box<ServedProcess>>> {
        let o = &self.options;
        let Some(((options, connections), pid)) = o.asking.as_ref().zip(asking).zip(pid) else {
            return Ok(None);
        };
        let Ok(containment) = &o.containment else { return Ok(None) };
        let of_session = SessionParts {
            session: &o.session,
            resolver: &o.resolver,
            mounted: containment.always_writable(&o.sandbox_context),
            closed: containment.hidden_paths(&o.sandbox_context),
            log: o.log.clone(),
        };
        ServedProcess::start(options, of_session, o.network.as_deref(), (pid, connections))
            .map(Box::new)
            .map(Some)
    }

    async fn process_started(&mut self, process: Process, mounted: Vec<MountRecord>) {
        let Process { pid, stdin, stdout, stderr, guard, mut read_only, asking } = process;
        let files = match self.serve_files(pid, asking) {
            Ok(files) => files,
            Err(problem) => return self.set_down(ServerStartError::from(problem).into()).await,
        };
        let stderr_tail = StderrTail::new(stderr, self.options.log.clone());
        let log = self.options.log.clone();
        let from_server = ConnectionOptions {
            stdout,
            client: self.options.client.clone(),
            memory: self.options.memory.clone(),
            roots: Arc::new(LatestRoots(self.roots.subscribe())),
            client_supports: self.options.client_takes.clone(),
            sampling: self.options.sampling.clone(),
            log_invalid: Arc::new(move |line| log.write(line)),
        };
        let (connection, reading) = ServerConnection::start(stdin, from_server);
        (self.confirmed_version, self.announced_version) = (0, 0);
        self.mounted = match guard {
            ProcessGuard::Native { .. } | ProcessGuard::Srt { .. } => {
                let with_read_only = |m: MountRecord| {
                    let closed = read_only.remove(&m.need.path).unwrap_or_default();
                    m.with_read_only(closed)
                };
                mounted.into_iter().map(with_read_only).collect()
            }
            ProcessGuard::Plain { .. } | ProcessGuard::Remote(_) => Vec::new(),
        };
        let mut running = Running {
            connection,
            files,
            guard,
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
