//! `ironcurtain-filesystem`: the built-in MCP filesystem server.
//!
//! Offers the 14 tools of the npm reference server, with the same arguments and results, over standard input and
//! output. In IronCurtain's sandbox, the kernel restricts the server's access. Outside the sandbox, the server itself
//! enforces its allowed directories.
//!
//! - Nothing outside the allowed directories is accessed, even through symlinks or races.
//! - No file or directory stays open between calls, so mounts can be removed immediately.
//! - A failure never widens access. An empty list of roots allows nothing.
//! - Standard output contains only protocol messages.

mod allowed_directories;
mod error;
mod files;
mod paths;
mod resolved_path;
mod root_uri;
mod roots;
mod server;
mod stdio;
mod tools;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use rmcp::ServiceExt as _;
use rmcp::service::ServerInitializeError;

use crate::roots::Roots;
use crate::server::Server;

const USAGE: &str = "usage: ironcurtain-filesystem [ALLOWED-DIRECTORY...]\n\
    An MCP filesystem server on standard input and output.\n\
    Allowed directories come from the command line, from the client's MCP roots, or both.";

fn main() -> ExitCode {
    match run(std::env::args_os().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Writes a line to the server's log on standard error.
pub(crate) fn log(text: &str) {
    // INVARIANT: the server keeps running if standard error is closed.
    let _ = writeln!(std::io::stderr(), "ironcurtain-filesystem: {text}");
}

fn run(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<()> {
    let Some(directories) = parse(arguments)? else {
        return Ok(());
    };
    let roots = Arc::new(Roots::from_command_line(&directories)?);
    // A working directory inside a granted folder would keep its mount busy.
    #[cfg(unix)]
    std::env::set_current_dir("/")?;

    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().max_blocking_threads(8).build()?;
    let outcome = runtime.block_on(serve(roots));
    runtime.shutdown_background();
    outcome
}

fn parse(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<Option<Vec<PathBuf>>> {
    let mut directories = Vec::new();
    let mut options = true;
    for argument in arguments {
        match argument.to_str() {
            Some("--") if options => options = false,
            Some("--help" | "-h") if options => {
                writeln!(std::io::stdout(), "{USAGE}")?;
                return Ok(None);
            }
            Some("--version" | "-V") if options => {
                let version = env!("CARGO_PKG_VERSION");
                writeln!(std::io::stdout(), "ironcurtain-filesystem {version}")?;
                return Ok(None);
            }
            Some(text) if options && text.starts_with('-') => {
                anyhow::bail!("unknown option `{text}`\n{USAGE}")
            }
            _ => directories.push(PathBuf::from(argument)),
        }
    }
    Ok(Some(directories))
}

async fn serve(roots: Arc<Roots>) -> anyhow::Result<()> {
    let transport = stdio::Stdio::start(Arc::clone(&roots))?;
    match Server::new(roots).serve(transport).await {
        Ok(service) => {
            service.waiting().await?;
            Ok(())
        }
        // A client is allowed to disconnect before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
