//! Profile of a run: the access that the run has from the start, as grants for the session.
//!
//! - Settings folders are mounted, because programs map their databases into memory. Individual files are served by the
//!   file view.
//! - INVARIANT: the run can access the agent's logins only while all grants for its settings are active.

use super::ServedFiles;
use super::judge::is_unrestricted;
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Entry, Event};
use ironcurtain_config::{
    FoundProgram, PlanContext, PolicySnapshot, RunPlan, RunPlanError, RunProfileError, RunProfiles,
};
use ironcurtain_consent::{Lifetime, Principal};
use ironcurtain_grants::{Files, GrantTable, Granted, StandingGrant};
use ironcurtain_paths::{CanonicalPath, Resolver, random_name};
use ironcurtain_policy::{AccessSet, FileOperation, GrantKind, PathGrant};
use ironcurtain_protocol::{RunHello, UsedFile};
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use ironcurtain_sandbox::{Mount, MountAccess};
use ironcurtain_services::Services;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Operations that a writable mount permits on everything in it.
pub const EVERYTHING: [FileOperation; 2] = [FileOperation::Change, FileOperation::Delete];

/// Maximum number of files to remember for proposing a profile.
const MAX_LEARNED: usize = 10_000;

/// Maximum total length of the remembered files' paths, in bytes: 1 MiB. The paths are sent in one message.
const MAX_LEARNED_LEN: usize = 1 << 20;

/// Error returned when a profile cannot be used for a run.
#[derive(Debug, thiserror::Error)]
pub enum ProfileGrantsError {
    /// The profile does not exist or is invalid.
    #[error(transparent)]
    Profile(#[from] RunProfileError),
    /// The profile contains a path that must not be opened.
    #[error(transparent)]
    Plan(#[from] RunPlanError),
    /// A settings folder cannot be created.
    #[error("failed to create `{folder}`: {source}")]
    Folder {
        /// Path of the folder.
        folder: CanonicalPath,
        /// Operating system error.
        source: io::Error,
    },
}

/// Grants and mounts that a run's profile adds.
#[derive(Default)]
pub struct ProfileGrants {
    /// Access that the profile adds.
    pub plan: RunPlan,
    /// Paths of all grants, by grant id, with `true` for writable paths.
    granted: BTreeMap<String, (CanonicalPath, bool)>,
    /// Ids of the grants for settings files and folders.
    settings: Vec<String>,
    /// Mounted folders, by the id of their grant.
    mounted: Mutex<BTreeMap<String, CanonicalPath>>,
    /// Mounted folders of programs.
    programs: Mutex<BTreeSet<CanonicalPath>>,
    /// Cached policy without the protections that the profile removes, preceded by the policy from which it was
    /// derived.
    opened: Mutex<Option<(Arc<PolicySnapshot>, Arc<PolicySnapshot>)>>,
    /// Files that the run used, or `None` if the process that started the run did not request this list.
    learned: Option<Mutex<LearnedFiles>>,
}

/// Files that a run has used.
#[derive(Default)]
struct LearnedFiles {
    /// Paths, with `true` for files that were changed.
    files: BTreeMap<String, bool>,
    /// Total length of the paths, in bytes.
    len: usize,
}

/// Plans a run's access, and creates missing settings folders. Blocks on file access.
///
/// # Errors
/// Returns [`ProfileGrantsError`] if the profile is invalid or a folder cannot be created.
pub fn plan(
    services: &Services,
    request: &RunHello,
    cwd: &CanonicalPath,
    snapshot: &PolicySnapshot,
) -> Result<RunPlan, ProfileGrantsError> {
    let path = request.env.get("PATH").map(String::as_str).unwrap_or_default();
    let program = request.argv.first().and_then(|program| FoundProgram::find(program, path, cwd.as_path()));
    let profiles = RunProfiles::load(&services.home)?;
    let chosen =
        profiles.choose(request.profile.as_ref(), program.as_ref(), &snapshot.home, cwd.as_path())?;
    let plan = RunPlan::new(
        chosen,
        PlanContext {
            ours: &services.home,
            home: &snapshot.home,
            protected: &snapshot.protected,
            cwd: cwd.as_path(),
            path,
            argv: &request.argv,
            shim: &services.programs.dir.join("ironcurtain-shim"),
        },
    )?;
    for folder in &plan.folders {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(folder.as_path());
        created.map_err(|source| ProfileGrantsError::Folder { folder: folder.clone(), source })?;
    }
    Ok(plan)
}

/// Returns the folders in a plan that are not mounted because rules of the user's organization restrict them. Blocks
/// while the paths are resolved.
pub fn restricted(
    plan: &RunPlan,
    snapshot: &Arc<PolicySnapshot>,
    run: (&str, &Resolver),
) -> BTreeSet<CanonicalPath> {
    let is_restricted = |operations: &'static [FileOperation]| {
        move |path: &&CanonicalPath| !is_unrestricted(snapshot, run, path, operations)
    };
    let programs = plan.programs.iter().filter(is_restricted(&[FileOperation::Read]));
    programs.chain(plan.folders.iter().filter(is_restricted(&EVERYTHING))).cloned().collect()
}

/// Converts a plan to its mounts, except those of `restricted` folders.
pub fn mounts(plan: &RunPlan, restricted: &BTreeSet<CanonicalPath>) -> Vec<Mount> {
    let mount = |access| move |path: &CanonicalPath| Mount::new(path.as_str(), access);
    let is_mounted = |path: &&CanonicalPath| !restricted.contains(*path);
    let programs = plan.programs.iter().filter(is_mounted).map(mount(MountAccess::ReadOnly));
    programs.chain(plan.folders.iter().filter(is_mounted).map(mount(MountAccess::ReadWrite))).collect()
}

impl ProfileGrants {
    /// Creates a plan's grants, each with its audit entry.
    ///
    /// # Errors
    /// Returns the operating system's error if no random id can be generated.
    pub fn new(
        plan: RunPlan,
        principal: &Principal,
        (restricted, learns): (&BTreeSet<CanonicalPath>, bool),
    ) -> io::Result<(Self, Vec<(StandingGrant, Entry)>)> {
        let all = AccessSet { read: true, write: true, delete: true };
        let read = AccessSet { read: true, ..AccessSet::default() };
        let folders = plan.folders.iter().map(|path| (path.clone(), GrantKind::Tree, all));
        let files = plan.files.iter().map(|path| (path.clone(), GrantKind::File, all));
        let readable = plan.read.iter().map(|(path, kind)| (path.clone(), *kind, read));
        let provenance = format!("the run profile `{}`", plan.profile.name);
        let (mut given, mut settings, mut mounted) = (Vec::new(), Vec::new(), BTreeMap::new());
        let programs = plan.programs.iter().filter(|path| !restricted.contains(*path)).cloned().collect();
        let mut granted = BTreeMap::new();
        for (path, kind, access) in folders.chain(files).chain(readable) {
            let files = Files { path: path.clone(), kind, access };
            let grant = grant(principal, files, provenance.clone())?;
            if access.write {
                settings.push(grant.id.clone());
                if kind == GrantKind::Tree && !restricted.contains(&path) {
                    mounted.insert(grant.id.clone(), path.clone());
                }
            }
            granted.insert(grant.id.clone(), (path, access.write));
            let entry = entry_of(&grant, principal);
            given.push((grant, entry));
        }
        let own = Self {
            plan,
            granted,
            settings,
            mounted: Mutex::new(mounted),
            programs: Mutex::new(programs),
            opened: Mutex::default(),
            learned: learns.then(Mutex::default),
        };
        Ok((own, given))
    }

    /// Returns the policy by which the run's accesses are judged.
    pub(super) fn snapshot(&self, current: &Arc<PolicySnapshot>, grants: &GrantTable) -> Arc<PolicySnapshot> {
        if !self.is_in_force(grants) {
            return current.clone();
        }
        let mut opened = lock(&self.opened);
        match &*opened {
            Some((of, opened)) if Arc::ptr_eq(of, current) => opened.clone(),
            Some(_) | None => {
                let new = Arc::new(current.with_protection(self.plan.protection(&current.protected)));
                *opened = Some((current.clone(), new.clone()));
                new
            }
        }
    }

    /// Sets the creation time of a grant to 0 if the profile created the grant, so that it does not count as an approval
    /// given after a managed rule.
    pub(super) fn without_approval_time(&self, grant: PathGrant) -> PathGrant {
        let created_ms = if self.granted.contains_key(&grant.id) { 0 } else { grant.created_ms };
        PathGrant { created_ms, ..grant }
    }

    /// Returns the settings file at `path`, or the settings file whose lock or temporary file is at `path`. Returns
    /// `None` for other paths.
    pub(super) fn settings_file(&self, path: &str, grants: &GrantTable) -> Option<&CanonicalPath> {
        self.plan.settings_file(path).filter(|_| self.is_in_force(grants))
    }

    /// Returns the accesses that are permitted from the start, so that the file view does not ask about them.
    pub(super) fn permitted(&self) -> impl Iterator<Item = PermittedAccess> {
        // A lock is a folder. The view creates virtual folders without asking, but real folders only if they are
        // permitted.
        let lock = |file: &CanonicalPath| PermittedAccess {
            path: format!("{file}.lock"),
            access: FileAccess::Write,
        };
        self.plan.files.iter().map(lock)
    }

    /// Remembers an allowed access if the process that started the run requested the list of used files.
    pub(super) fn note(&self, access: &PermittedAccess) {
        let Some(learned) = &self.learned else { return };
        let mut learned = lock(learned);
        let is_changed = access.access != FileAccess::Read;
        if let Some(changed) = learned.files.get_mut(&access.path) {
            *changed |= is_changed;
            return;
        }
        let len = learned.len + access.path.len();
        if learned.files.len() < MAX_LEARNED && len <= MAX_LEARNED_LEN {
            learned.len = len;
            learned.files.insert(access.path.clone(), is_changed);
        }
    }

    /// Returns the files that the run has used.
    pub fn learned(&self) -> Vec<UsedFile> {
        let all = self.learned.as_ref().map(|learned| lock(learned).files.clone()).unwrap_or_default();
        all.into_iter().map(|(path, changed)| UsedFile { path, changed }).collect()
    }

    fn is_in_force(&self, grants: &GrantTable) -> bool {
        let ids: BTreeSet<&str> = grants.grants.iter().map(|grant| grant.id.as_str()).collect();
        !self.settings.is_empty() && self.settings.iter().all(|id| ids.contains(id.as_str()))
    }

    /// Returns the paths that are currently accessible, with `true` for writable paths.
    #[must_use]
    pub fn open(&self, grants: &GrantTable) -> Vec<(CanonicalPath, bool)> {
        let granted = grants.grants.iter().filter_map(|grant| self.granted.get(&grant.id)).cloned();
        granted.chain(lock(&self.programs).iter().map(|path| (path.clone(), false))).collect()
    }

    /// Returns the writable mounted folders.
    pub(super) fn mounted(&self) -> Vec<String> {
        lock(&self.mounted).values().map(|path| path.as_str().to_owned()).collect()
    }

    /// Removes and returns the mounted folders whose grants have ended or that must not stay mounted.
    fn take_revoked(
        &self,
        grants: &GrantTable,
        is_restricted: impl Fn(&CanonicalPath, &[FileOperation]) -> bool,
    ) -> Vec<CanonicalPath> {
        let ids: BTreeSet<&str> = grants.grants.iter().map(|grant| grant.id.as_str()).collect();
        // `is_restricted` accesses the disk, so it is not called while a lock is held.
        let (mounted, programs) = (lock(&self.mounted).clone(), lock(&self.programs).clone());
        let has_ended = |(id, path): &(String, CanonicalPath)| {
            !ids.contains(id.as_str()) || is_restricted(path, &EVERYTHING)
        };
        let mounted =
            mounted.into_iter().filter(has_ended).filter_map(|(id, _)| lock(&self.mounted).remove(&id));
        let programs = programs.into_iter().filter(|path| is_restricted(path, &[FileOperation::Read]));
        mounted.chain(programs.filter(|path| lock(&self.programs).remove(path))).collect()
    }
}

impl ServedFiles {
    /// Unmounts folders whose grants have ended, and folders that rules of the user's organization now restrict.
    /// Terminates the sandbox if a program still uses such a folder. Returns `true` if a folder was unmounted.
    pub(super) async fn unmount_revoked(self: &Arc<Self>) -> bool {
        let files = self.clone();
        let find = move || {
            let snapshot = files.services.snapshot();
            let run = (files.principal.server.as_str(), &files.resolver);
            let is_restricted = |path: &CanonicalPath, operations: &[FileOperation]| {
                !is_unrestricted(&snapshot, run, path, operations)
            };
            let working = files.working_folder().filter(|folder| is_restricted(folder, &EVERYTHING));
            let working = working.and_then(|_| lock(&files.working_folder).take());
            let revoked = files.profile.take_revoked(&files.services.grants.now(), is_restricted);
            working.into_iter().chain(revoked).collect::<Vec<_>>()
        };
        // Fails only while the daemon is exiting, which terminates the sandbox.
        let revoked = tokio::task::spawn_blocking(find).await.unwrap_or_default();
        for path in &revoked {
            if let Err(holders) = self.unmount(path).await {
                self.end_for_holders(path, &holders).await;
            }
        }
        !revoked.is_empty()
    }
}

fn grant(principal: &Principal, files: Files, provenance: String) -> io::Result<StandingGrant> {
    Ok(StandingGrant {
        id: random_name()?,
        subject: principal.subject(),
        what: Granted::Files(files),
        lifetime: Lifetime::Session,
        expires_ms: None,
        created_ms: now_ms(),
        last_used_ms: None,
        uses: 0,
        provenance,
    })
}

fn entry_of(grant: &StandingGrant, principal: &Principal) -> Entry {
    let mut entry =
        principal.entry(Event::Grant, format!("{}, {}", grant.provenance, grant.lifetime.label()));
    entry.grant_id = Some(grant.id.clone());
    grant.what.add_to_entry(&mut entry);
    entry
}

pub(super) fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_judged_without_holding_a_lock() {
        let path = |text: &str| CanonicalPath::assume_canonical(text).unwrap();
        let grants = ProfileGrants {
            mounted: Mutex::new([("g".to_owned(), path("/settings"))].into()),
            programs: Mutex::new([path("/program"), path("/other")].into()),
            ..ProfileGrants::default()
        };
        let is_restricted = |folder: &CanonicalPath, _: &[FileOperation]| {
            assert!(grants.mounted.try_lock().is_ok() && grants.programs.try_lock().is_ok());
            *folder == path("/program")
        };
        // The table has no grants, so the settings folder's grant has ended.
        let revoked = grants.take_revoked(&GrantTable::default(), is_restricted);
        assert_eq!(revoked, [path("/settings"), path("/program")]);
        assert_eq!((grants.mounted(), lock(&grants.programs).clone()), (vec![], [path("/other")].into()));
    }
}
