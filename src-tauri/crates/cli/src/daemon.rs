//! `daemon`: runs the trusted process in this process.

use crate::daemon_arguments::{Ask, DaemonArguments};
use crate::{agent_start, background};
use anyhow::Context;
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Consent, NoFrontEnd, Terminal};
use ironcurtain_daemon::{DaemonOptions, EventLog, start};
use ironcurtain_protocol::Request;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Maximum time for background tasks to finish after the daemon has stopped.
const LAST_WORK: Duration = Duration::from_secs(2);

/// Runs the daemon until a signal or a request stops it.
pub fn daemon(options: &DaemonArguments) -> anyhow::Result<()> {
    if options.detach {
        return background::start_for_user(options);
    }
    if options.background {
        // Ignores the error: `setsid` fails only if this process is already a process group leader.
        let _ = rustix::process::setsid();
    }
    let filter =
        tracing_subscriber::EnvFilter::try_from_env("IRONCURTAIN_LOG").unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .with_writer(|| EventLog::new(io::stderr()))
        .init();
    let programs = std::env::current_exe()?.parent().context("this program has no directory")?.to_path_buf();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    if options.ask == Ask::Desktop {
        return Ok(runtime.block_on(agent_start::perform(&programs, options))?);
    }
    let consent: Arc<dyn Consent> = match options.ask {
        Ask::Deny | Ask::Desktop => Arc::new(NoFrontEnd),
        Ask::Terminal => Arc::new(Terminal::new(
            io::stdin().as_fd().try_clone_to_owned()?,
            io::stdout().as_fd().try_clone_to_owned()?,
        )?),
    };
    let background = options.background;
    let options = DaemonOptions { home: Home::from_env()?, programs, allow_root: options.allow_root };
    let ended = runtime.block_on(serve(options, consent, background));
    runtime.shutdown_timeout(LAST_WORK);
    ended
}

async fn serve(options: DaemonOptions, consent: Arc<dyn Consent>, background: bool) -> anyhow::Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let daemon = start(options, consent).await?;
    if background {
        // The parent process reads startup errors from standard error. From now on, it may close that pipe.
        rustix::stdio::dup2_stderr(File::open("/dev/null")?)?;
    }
    tokio::select! {
        () = daemon.ended() => return Ok(()),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    daemon.request(Request::Shutdown).await;
    tokio::select! {
        () = daemon.ended() => {}
        // A second signal stops waiting. Unfinished scans are reported at the next start.
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
