//! Installs a server's package.

use super::build_error::BuildError;
use super::build_sandbox::BuildSandbox;
use super::store::PackageStore;
use super::{InstallError, Installer, npm, pypi};
use crate::identity;
use crate::named_server::named_server;
use ironcurtain_config::{Server, Servers};
use ironcurtain_packages::{PackageRecord, Registry, RequestedPackage, RunnerCommand};
use ironcurtain_server_identity::{Digests, ServerIdentity};
use std::path::PathBuf;

/// An installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// Name of the server.
    pub server: String,
    /// Record of the package.
    pub record: PackageRecord,
    /// Folder of the package.
    pub folder: PathBuf,
    /// `true` if the same package was already installed.
    pub was_installed: bool,
}

/// Installs a server's package, unless it is already installed. Uses the version in the server's entry, or the newest
/// version if the entry names none.
///
/// # Errors
/// Returns an [`InstallError`] on failure, in which case a previous version stays installed.
pub async fn install(installer: &Installer, name: &str) -> Result<Installed, InstallError> {
    install_from(installer, &Servers::load(&installer.home)?, name).await
}

/// Installs the package of one of `servers`. The server need not be configured yet.
///
/// # Errors
/// Returns an error in the same cases as [`install`].
pub async fn install_from(
    installer: &Installer,
    servers: &Servers,
    name: &str,
) -> Result<Installed, InstallError> {
    installer.home.prepare()?;
    let (server, command) = find(servers, name)?;
    let store = PackageStore::lock(installer, name).await?;
    let installed = |record: PackageRecord, was_installed| {
        let folder = store.packages.folder(&record);
        Installed { server: name.to_owned(), record, folder, was_installed }
    };
    if let (Ok(Some(_)), Ok(Some(record))) = (store.packages.verify(server), store.packages.record(name)) {
        return Ok(installed(record, true));
    }
    store.sweep(servers)?;
    let requested = &command.requested;
    let record = fetch(installer, &store, requested, requested.version.as_deref()).await?;
    let before = store.packages.record(name).ok().flatten();
    store.write(name, &record)?;
    if let Some(before) = before.filter(|before| is_same_archive(before, &record)) {
        let identity_of = |record: &PackageRecord| {
            ServerIdentity::of(server, Some(&record.identity()), &installer.programs, &Digests::default())
        };
        identity::replace_owner(
            &installer.home,
            &identity_of(&before)?.identity,
            &identity_of(&record)?.identity,
        )?;
    }
    // Removes the previous version, which is no longer used.
    store.sweep(servers)?;
    Ok(installed(record, false))
}

/// Returns `true` if both records are for the same archive. The hashes of the installed files may differ, because
/// these files contain paths.
fn is_same_archive(before: &PackageRecord, now: &PackageRecord) -> bool {
    let archive = |record: &PackageRecord| {
        let RequestedPackage { registry, package, .. } = record.requested.clone();
        Some((registry.name(), package, record.version.clone(), record.integrity.clone()?))
    };
    archive(before).is_some() && archive(before) == archive(now)
}

/// Removes packages that no server uses, such as the package of a server that was tried but not added. Does nothing
/// while another installation is running, because that installation removes them itself.
///
/// # Errors
/// Returns an [`InstallError`] if a package folder, a record or the configuration cannot be read or written.
pub fn sweep(installer: &Installer) -> Result<(), InstallError> {
    match PackageStore::try_lock(&installer.home, "")? {
        Ok(store) => store.sweep(&Servers::load(&installer.home)?),
        Err(_) => Ok(()),
    }
}

/// Returns `true` if the server's entry starts a package runner.
#[must_use]
pub fn is_packaged(servers: &Servers, name: &str) -> bool {
    servers.find(Some(name)).is_some_and(|server| !matches!(RunnerCommand::parse(server), Ok(None)))
}

/// Returns the server with this name and the package in its entry.
pub(super) fn find<'a>(
    servers: &'a Servers,
    name: &str,
) -> Result<(&'a Server, RunnerCommand), InstallError> {
    let server = named_server(servers, name)?;
    let error = |problem: String| InstallError::InvalidEntry { server: name.to_owned(), problem };
    if let Some(reason) = &server.refused {
        return Err(error(reason.clone()));
    }
    let command = RunnerCommand::parse(server).map_err(|e| error(e.to_string()))?;
    Ok((server, command.ok_or_else(|| InstallError::NoPackage(name.to_owned()))?))
}

/// Builds a package and moves it to the packages folder. Writes no record.
pub(super) async fn fetch(
    installer: &Installer,
    store: &PackageStore,
    requested: &RequestedPackage,
    version: Option<&str>,
) -> Result<PackageRecord, InstallError> {
    let error =
        |problem: BuildError| InstallError::Failed { package: requested.package_spec(version), problem };
    let sandbox = BuildSandbox::new(installer, &store.packages)?;
    let built = match requested.registry {
        Registry::Npm => npm::build(&sandbox, requested, version).await,
        Registry::Pypi => pypi::build(&sandbox, requested, version).await,
    };
    store.install_built(&sandbox, built.map_err(error)?).map_err(|e| error(e.into()))
}
