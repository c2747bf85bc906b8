//! Resolves a name to addresses, once.
//!
//! Uses the system resolver: the user's other programs see its hosts file, search order, VPN split view and cache, and a
//! second resolver could give different answers.

use crate::BoxFuture;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Resolves names to addresses.
pub trait Resolve: Send + Sync + 'static {
    /// Returns all addresses, in the order in which to try them.
    ///
    /// # Errors
    /// The name has no address, or the lookup failed.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// System resolver (`getaddrinfo`).
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
