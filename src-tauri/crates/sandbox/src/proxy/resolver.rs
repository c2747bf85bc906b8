//! Resolver that omits the addresses denied by the settings.

use std::{io, net::IpAddr};

use ironcurtain_egress::{BoxFuture, Resolve, SystemResolver};
use ironcurtain_sandbox::AddressRange;

/// System resolver that removes denied addresses from its results.
pub(crate) struct FilteredResolver {
    pub(crate) denied: Vec<AddressRange>,
    pub(crate) resolver: SystemResolver,
}

impl Resolve for FilteredResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut found = self.resolver.resolve(name).await?;
            let had_addresses = !found.is_empty();
            found.retain(|address| !self.denied.iter().any(|range| range.contains(*address)));
            if had_addresses && found.is_empty() {
                let reason = "it resolves only to addresses in `deniedResolvedAddresses`";
                return Err(io::Error::other(reason));
            }
            Ok(found)
        })
    }
}
