//! Starts a command's proxy as a separate, unsandboxed process, if any hosts are allowed.
//!
//! - INVARIANT: the proxy starts before this process enters any namespace, and dies with this process.
//! - The proxy inherits only the socket for the sandbox's listener, its configuration and standard error.

use std::{
    io::{self, Write},
    os::{
        fd::{AsFd, AsRawFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    path::Path,
    process::Stdio,
};

use ironcurtain_paths::OwnProgram;

use crate::{
    proxy_config::{PROXY_PROGRAM, ProxyConfig},
    sys,
};

/// Failure to start the proxy.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProxyError {
    #[error("failed to start the proxy `{program}`, which is required for the allowed hosts: {source}")]
    Start { program: String, source: io::Error },
    #[error("failed to configure the proxy: {0}")]
    Configure(#[from] io::Error),
}

/// Starts the proxy. Returns the socket over which to send the sandbox's listener to the proxy.
pub(super) fn start(config: &ProxyConfig, own_program: &str) -> Result<OwnedFd, ProxyError> {
    let program = Path::new(own_program).with_file_name(PROXY_PROGRAM);
    let (ours, theirs) = UnixStream::pair()?;
    let failed = |source| ProxyError::Start { program: program.display().to_string(), source };
    let mut command = OwnProgram::open(&program).map_err(failed)?.into_command();
    command
        .arg(theirs.as_raw_fd().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        // Signals from the terminal are meant for the command, not for the proxy.
        .process_group(0);
    sys::process::die_with_parent(&mut command);
    sys::process::inherit(&mut command, &[theirs.as_fd()]);
    sys::process::prepare(&mut command, sys::signals::unblock);
    let started = command.spawn();
    let mut proxy = started.map_err(failed)?;
    let config = serde_json::to_vec(config).map_err(io::Error::from)?;
    proxy.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&config))?;
    Ok(ours.into())
}
