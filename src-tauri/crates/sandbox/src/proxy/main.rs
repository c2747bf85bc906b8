//! The proxy of a single command: `ironcurtain-sandbox-proxy DESCRIPTOR`, started by `ironcurtain-sandbox`.
//!
//! - Its orders come on standard input. Through the descriptor comes the listener that is in the sandbox; where it does
//!   not come, there is nothing to do.
//! - Nobody can be asked, so what its rules do not know is refused.
//! - It ends with whoever started it.

mod resolver;
mod stderr_log;

use std::{
    io::{self, Read, Write},
    net::TcpListener,
    process::ExitCode,
    sync::Arc,
};

use ironcurtain_egress::{Connections, HostRules, Proxy, ProxyLimits, SystemResolver, serve};
use ironcurtain_sandbox::{ProxyConfig, receive_listener};
use tokio::{runtime, sync::watch};

use crate::{resolver::FilteredResolver, stderr_log::StderrLog};

fn main() -> ExitCode {
    let error = match run() {
        Ok(error) => error.to_string(),
        Err(error) => error.to_string(),
    };
    // If nobody listens, the exit status still says it.
    let _ = writeln!(io::stderr(), "ironcurtain-sandbox: the way to the network ended: {error}");
    ExitCode::FAILURE
}

/// Serves until that is no longer possible; the result says why.
fn run() -> Result<io::Error, Box<dyn std::error::Error>> {
    let descriptor = std::env::args().nth(1).ok_or("started without a descriptor")?;
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let orders: ProxyConfig = serde_json::from_str(&text)?;
    let rules = HostRules::new(&orders.allowed, &orders.denied, false)?;
    let listener: TcpListener = match receive_listener(&descriptor) {
        Ok(listener) => listener,
        // The sandbox was not made, which is told by whoever was to make it.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => std::process::exit(0),
        Err(error) => return Err(error.into()),
    };
    let (_changing, rules) = watch::channel(Arc::new(rules));
    let proxy = Proxy {
        server: "command".to_owned(),
        rules,
        ask: None,
        record: Arc::new(StderrLog { tells: orders.debug }),
        resolve: Arc::new(FilteredResolver { denied: orders.denied_addresses, resolver: SystemResolver }),
        limits: ProxyLimits::default(),
        connections: Connections::default(),
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(serve(listener, proxy)))
}
