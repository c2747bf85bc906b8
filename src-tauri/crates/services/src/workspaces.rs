//! Workspaces that the user declined for an agent. They are not proposed again until the user revokes the denial.

use ironcurtain_audit::clock::now_ms;
use ironcurtain_paths::{CanonicalPath, atomic_file, bounded_read, random_name};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of declined workspaces to remember. The oldest denials are dropped first, and those workspaces may be
/// proposed again.
const MAX_COUNT: usize = 1000;

/// Workspace that the user declined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclinedWorkspace {
    /// Random identifier for revoking the denial.
    pub id: String,
    /// Path of the client's executable.
    pub client: String,
    /// Name of the client for display.
    pub client_name: String,
    /// Name of the server.
    pub server: String,
    /// Canonical path of the folder.
    pub folder: String,
    /// Time of the denial, in milliseconds since the epoch.
    pub at_ms: u64,
}

/// All declined workspaces, and the file that stores them.
#[derive(Debug, Clone)]
pub struct Workspaces(Arc<WorkspaceFile>);

#[derive(Debug)]
struct WorkspaceFile {
    file: PathBuf,
    declined: Mutex<Vec<DeclinedWorkspace>>,
}

impl Workspaces {
    /// Reads the file, if it exists. An invalid file counts as empty and is replaced at the next change.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be read.
    pub fn open(file: PathBuf) -> io::Result<Self> {
        let text = bounded_read::read_text(&file)?;
        let declined = text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
        Ok(Self(Arc::new(WorkspaceFile { file, declined: Mutex::new(declined) })))
    }

    /// Returns all declined workspaces.
    pub fn declined(&self) -> Vec<DeclinedWorkspace> {
        self.all().clone()
    }

    /// Returns `true` if the user declined this folder, or one that contains it, for this client and server.
    pub fn is_declined(&self, client: &str, server: &str, folder: &CanonicalPath) -> bool {
        let is_in = |workspace: &DeclinedWorkspace| {
            CanonicalPath::assume_canonical(&workspace.folder).is_ok_and(|declined| declined.contains(folder))
        };
        self.all().iter().any(|it| (&*it.client, &*it.server) == (client, server) && is_in(it))
    }

    /// Adds a declined workspace and writes the file.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be written.
    pub fn decline(
        &self,
        (client, client_name): (&str, &str),
        server: &str,
        folder: &CanonicalPath,
    ) -> io::Result<()> {
        if self.is_declined(client, server, folder) {
            return Ok(());
        }
        let id = random_name()?;
        let owned = [client, client_name, server, folder.as_str()];
        let [client, client_name, server, folder] = owned.map(str::to_owned);
        let mut all = self.all();
        all.push(DeclinedWorkspace { id, client, client_name, server, folder, at_ms: now_ms() });
        if all.len() > MAX_COUNT {
            all.remove(0);
        }
        self.write(&all)
    }

    /// Removes a declined workspace so that it may be proposed again. Returns `None` if no workspace has this id.
    ///
    /// # Errors
    /// Returns the operating system's error if the file cannot be written.
    pub fn revoke(&self, id: &str) -> io::Result<Option<DeclinedWorkspace>> {
        let mut all = self.all();
        let Some(at) = all.iter().position(|workspace| workspace.id == id) else { return Ok(None) };
        let removed = all.remove(at);
        self.write(&all)?;
        Ok(Some(removed))
    }

    fn write(&self, all: &[DeclinedWorkspace]) -> io::Result<()> {
        atomic_file::replace(&self.0.file, &serde_json::to_string(all)?)
    }

    fn all(&self) -> MutexGuard<'_, Vec<DeclinedWorkspace>> {
        self.0.declined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declined_workspace_is_remembered_until_it_is_revoked() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Workspaces::open(dir.path().join("workspaces.json")).unwrap();
        let workspaces = open();
        let at = |path: &str| CanonicalPath::assume_canonical(path).unwrap();
        workspaces.decline(("/bin/c", "c"), "files", &at("/home/u/app")).unwrap();
        workspaces.decline(("/bin/c", "c"), "files", &at("/home/u/app")).unwrap();
        let again = open();
        for folder in ["/home/u/app", "/home/u/app/lib"] {
            assert!(again.is_declined("/bin/c", "files", &at(folder)), "{folder}");
        }
        for (client, server, folder) in [
            ("/bin/d", "files", "/home/u/app"),
            ("/bin/c", "git", "/home/u/app"),
            ("/bin/c", "files", "/home/u"),
            ("/bin/c", "files", "/home/u/app2"),
        ] {
            assert!(!again.is_declined(client, server, &at(folder)), "{client} {server} {folder}");
        }
        let [one] = again.declined().try_into().unwrap();
        assert_eq!(again.revoke(&one.id).unwrap(), Some(one.clone()));
        assert_eq!((again.revoke(&one.id).unwrap(), open().declined()), (None, vec![]));
    }
}
