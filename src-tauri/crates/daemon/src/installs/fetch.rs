//! Installing a server's package.

use super::place::Alone;
use super::record::Record;
use super::wanted::Registry;
use super::workshop::Workshop;
use super::{Asked, InstallError, Installer, Installs, Wanted, npm, pypi};
use crate::config::{Server, Servers};
use crate::consent::visible;
use std::path::PathBuf;

/// A package that is there now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The server.
    pub server: String,
    /// What is known of its package.
    pub record: Record,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether it was there already, and is still what it was.
    pub already: bool,
}

/// Installs the package of a server, unless it is there; the version that its entry names, or else the newest.
///
/// # Errors
/// [`InstallError`]. What was there before is there as it was.
pub async fn install(installer: &Installer, name: &str) -> Result<Installed, InstallError> {
    installer.home.prepare()?;
    let servers = Servers::load(&installer.home)?;
    let (server, asked) = find(&servers, name)?;
    let installs = Installs::of(&installer.home);
    let alone = installs.alone()?;
    let installed = |record: Record, already| {
        let folder = installs.folder(&record);
        Installed { server: name.to_owned(), record, folder, already }
    };
    if let (Ok(Some(_)), Ok(Some(record))) = (installs.ready(server), installs.record(name)) {
        return Ok(installed(record, true));
    }
    sweep(&installs, &alone, &servers)?;
    let record = fetch(installer, &installs, &alone, &asked.wanted, asked.wanted.version.as_deref()).await?;
    installs.write(name, &record).map_err(InstallError::Record)?;
    // What was installed before it is of no use any more.
    sweep(&installs, &alone, &servers)?;
    Ok(installed(record, false))
}

/// A server, and the package that its entry names.
pub(super) fn find<'a>(servers: &'a Servers, name: &str) -> Result<(&'a Server, Asked), InstallError> {
    let server = servers.find(Some(name)).ok_or_else(|| InstallError::Unknown {
        name: visible::line(name),
        known: servers.names().collect::<Vec<_>>().join("`, `"),
    })?;
    let not_understood = |problem| InstallError::NotUnderstood { server: name.to_owned(), problem };
    let asked = Asked::of(server).map_err(not_understood)?;
    Ok((server, asked.ok_or_else(|| InstallError::NoPackage(name.to_owned()))?))
}

pub(super) fn sweep(installs: &Installs, alone: &Alone, servers: &Servers) -> Result<(), InstallError> {
    let swept = installs.sweep(alone, servers);
    swept.map_err(|source| InstallError::Folder { path: installs.files.clone(), source })
}

/// Makes a package and puts it in its place, unrecorded.
pub(super) async fn fetch(
    installer: &Installer,
    installs: &Installs,
    alone: &Alone,
    wanted: &Wanted,
    version: Option<&str>,
) -> Result<Record, InstallError> {
    let failed = |problem: String| InstallError::Failed { package: wanted.spelled(version), problem };
    let shop = Workshop::new(installer, installs)?;
    let made = match wanted.registry {
        Registry::Npm => npm::fetch(&shop, wanted, version).await,
        Registry::Pypi => pypi::fetch(&shop, wanted, version).await,
    };
    installs.settle(alone, &shop, made.map_err(failed)?).map_err(|e| failed(e.to_string()))
}
