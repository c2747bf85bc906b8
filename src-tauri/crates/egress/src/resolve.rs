//! Resolves host names to addresses.
//!
//! Uses the system resolver, so names resolve as in the user's other programs (hosts file, search domains, VPN split
//! DNS, cache).

use crate::BoxFuture;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, ToSocketAddrs};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Resolves names to addresses.
pub trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of a name, in the order in which to try them.
    ///
    /// # Errors
    /// Returns an error if the name has no address or the lookup fails.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Maximum number of concurrent lookups per resolver. A lookup blocks a thread for as long as the name server takes,
/// even if the caller has given up.
const MAX_LOOKUPS: usize = 32;

/// Operating system resolver (`getaddrinfo`).
#[derive(Debug, Clone)]
pub struct SystemResolver(Arc<Semaphore>);

impl Default for SystemResolver {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LOOKUPS)))
    }
}

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let permit = self.0.clone().acquire_owned().await.map_err(io::Error::other)?;
            let name = name.to_owned();
            let look_up = move || {
                let _permit = permit;
                (name.as_str(), 0).to_socket_addrs()
            };
            let found = tokio::task::spawn_blocking(look_up).await??;
            let mut seen = BTreeSet::new();
            Ok(found.map(|address| address.ip()).filter(|ip| seen.insert(*ip)).collect())
        })
    }
}
