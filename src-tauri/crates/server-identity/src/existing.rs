//! Binds server names in an older version's state to identities when this version first starts.
//!
//! - A configured server becomes the owner of the state under its name, without a question. A name that is not
//!   configured gets an unknown owner.

use super::{Digests, IdentityError, ProgramIdentity, ServerIdentity};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_config::home::Home;
use ironcurtain_config::{Server, Servers};
use ironcurtain_grants::{Bindings, StandingGrant, StoreError};
use ironcurtain_packages::Packages;
use std::collections::BTreeMap;
use std::path::Path;

/// Binds the names in an older version's database, unless that has already been done. Blocking.
///
/// # Errors
/// Returns a [`StoreError`] if the names could not be bound. In that case, no name is bound.
pub fn bind_existing(
    home: &Home,
    ours: &Path,
    servers: &Servers,
    grants: &[StandingGrant],
) -> Result<(), StoreError> {
    let bindings = Bindings::of(&home.database());
    if !bindings.needs_migration()? {
        return Ok(());
    }
    let folders = std::fs::read_dir(home.server_data("")).into_iter().flatten().flatten();
    let folders = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let names = grants.iter().map(|grant| grant.subject.server.clone()).chain(folders);
    // A disabled server is bound when it is first started.
    let names = names.filter(|name| !servers.is_disabled(name));
    let mut owners: BTreeMap<String, Option<String>> = names.map(|name| (name, None)).collect();
    let packages = Packages::in_home(home);
    for server in servers.iter() {
        owners.insert(server.name.clone(), Some(current_identity(server, &packages, ours).to_json()));
    }
    bindings.bind_existing(&owners.into_iter().collect::<Vec<_>>(), now_ms())
}

/// Returns a server's current identity. If its program cannot be identified, the identity matches any program.
fn current_identity(server: &Server, packages: &Packages, ours: &Path) -> ServerIdentity {
    let identity = |server: &Server| -> Result<ServerIdentity, IdentityError> {
        let package = packages.verify(server).ok().flatten().map(|ready| ready.identity);
        Ok(ServerIdentity::of(server, package.as_ref(), ours, &Digests::default())?.identity)
    };
    identity(server).unwrap_or_else(|problem| {
        tracing::warn!(%problem, server = server.name, "failed to identify a server's program");
        ServerIdentity::entry(server, ProgramIdentity::Unseen)
    })
}
