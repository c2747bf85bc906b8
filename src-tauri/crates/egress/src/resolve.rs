//! From a name to addresses, once.
//!
//! The system's own resolver is used: its hosts file, its search order, its VPN's split view and its cache are what the
//! person's other programs see, and a second resolver would see something else.

use crate::BoxFuture;
use std::collections::BTreeSet;
use std::io;
use std::net::IpAddr;

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses, in the order they are to be tried.
    ///
    /// # Errors
    /// The name has none, or could not be asked for.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// The resolver of this machine (`getaddrinfo`).
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
