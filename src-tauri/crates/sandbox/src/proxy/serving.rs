//! Reads the configuration, receives the listener, and serves connections.

use std::{
    io::{self, Read},
    net::TcpListener,
    sync::Arc,
};

use ironcurtain_egress::{Connections, HostRules, Proxy, ProxyLimits, SystemResolver, serve};
use ironcurtain_sandbox::{ProxyConfig, receive_listener};
use tokio::{runtime, sync::watch};

use crate::{resolver::FilteredResolver, stderr_log::StderrLog};

/// Serves connections until the listener fails and returns the reason.
pub(crate) fn run() -> Result<io::Error, Box<dyn std::error::Error>> {
    let descriptor = std::env::args().nth(1).ok_or("started without a descriptor")?;
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let config: ProxyConfig = serde_json::from_str(&text)?;
    let rules = HostRules::new(&config.allowed, &config.denied, false)?;
    let listener: TcpListener = match receive_listener(&descriptor) {
        Ok(listener) => listener,
        // The sandbox was not created, and the parent process reports why.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => std::process::exit(0),
        Err(error) => return Err(error.into()),
    };
    let (_changing, rules) = watch::channel(Arc::new(rules));
    let proxy = Proxy {
        server: "command".to_owned(),
        rules,
        ask: None,
        record: Arc::new(StderrLog { is_enabled: config.debug }),
        resolve: Arc::new(FilteredResolver {
            denied: config.denied_addresses,
            resolver: SystemResolver::default(),
        }),
        limits: ProxyLimits::default(),
        connections: Connections::default(),
    };
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(serve(listener, proxy)))
}
