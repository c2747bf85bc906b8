//! Resolves host names to addresses.
//!
//! Uses the system resolver, so names resolve as in the user's other programs (hosts file, search domains, VPN split
//! DNS, cache).

use crate::BoxFuture;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Resolves names to addresses.
pub trait Resolve: Send + Sync + 'static {
    /// Returns the addresses of a name, in the order in which to try them.
    ///
    /// # Errors
    /// Fails if the name has no address or the lookup fails.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Resolver of the operating system (`getaddrinfo`).
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            let mut seen = BTreeSet::new();
            Ok(found.map(|address| address.ip()).filter(|ip| seen.insert(*ip)).collect())
        })
    }
}
