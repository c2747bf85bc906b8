//! Computes a server's mounts and roots from grants and leases. Roots only reflect access; they never
//! grant it.

use ironcurtain_config::{FileView, SandboxSettings};
use ironcurtain_containment::{absolute, expand_home, view_of};
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_grants::{Files, StandingGrant};
use ironcurtain_mcp::server::{Root, RootList, RootsSource};
use ironcurtain_paths::{CanonicalPath, PathError, PathKind, Resolver};
use ironcurtain_policy::{GrantKind, OpenFolder, ProtectedPaths};
use ironcurtain_protocol::RootView;
use std::path::Path;
use tokio::sync::watch;

/// Mounts and roots that a server should have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerView {
    /// Counter that increases whenever `roots` changes.
    pub version: u64,
    /// Paths to mount in addition to the session folder.
    pub mounts: Vec<MountRequest>,
    /// Roots, with the session folder first. Empty only until the server is started.
    pub roots: Vec<RootView>,
}

impl ServerView {
    /// Converts the roots to an MCP `roots/list` result.
    fn root_list(&self) -> RootList {
        let canonical =
            self.roots.iter().filter_map(|r| CanonicalPath::assume_canonical(&r.path).ok().zip(Some(r)));
        let root = |(path, root): (CanonicalPath, &RootView)| Root {
            uri: path.file_uri(),
            name: root.source.clone(),
        };
        RootList { version: self.version, roots: canonical.map(root).collect() }
    }

    /// Returns `true` if `directories` contains every root.
    pub(super) fn is_covered_by_directories(&self, directories: &[&str]) -> bool {
        self.roots.iter().all(|r| directories.contains(&r.path.as_str()))
    }
}

/// Source of roots that always returns the newest roots.
#[derive(Debug)]
pub(super) struct LatestRoots(pub(super) watch::Receiver<ServerView>);

impl RootsSource for LatestRoots {
    fn roots(&self) -> RootList {
        self.0.borrow().root_list()
    }
}

/// Computes the mounts and roots. Omits a grant if its path was removed, became a symlink, or would now expose a
/// protected path. In-flight calls keep their own mounts.
#[must_use]
pub fn compute_view(
    sandbox: &CanonicalPath,
    opened: &[OpenFolder],
    grants: &[StandingGrant],
    leases: &[MountRequest],
    (resolver, protected): (&Resolver, &ProtectedPaths),
) -> ServerView {
    let mut mounts = Vec::new();
    let sandbox_root = RootView {
        path: sandbox.as_str().to_owned(),
        source: "the session's own folder".to_owned(),
        grant: None,
        access: access_words([true; 3]),
    };
    let mut roots = vec![sandbox_root];
    let mut add_root = |path: Option<CanonicalPath>, source: String, grant: Option<String>, access| {
        let Some(path) = path else { return };
        let access = access_words(access);
        match roots.iter_mut().find(|root| root.path == path.as_str()) {
            Some(RootView { access: known, .. }) => {
                for word in access {
                    if !known.contains(&word) {
                        known.push(word);
                    }
                }
            }
            None => roots.push(RootView { path: path.as_str().to_owned(), source, grant, access }),
        }
    };
    for folder in opened {
        // A folder that was removed or has become a symlink is not opened.
        if resolver
            .resolve(folder.path.as_str())
            .is_ok_and(|f| f.path == folder.path && f.target == PathKind::Folder)
        {
            mounts.push(MountRequest::new(folder.path.clone(), folder.writable));
            add_root(
                Some(folder.path.clone()),
                format!("rule {}", folder.rule),
                None,
                [true, folder.writable, folder.writable],
            );
        }
    }
    for (grant, files) in grants.iter().filter_map(|grant| Some((grant, grant.files()?))) {
        let Ok(target) = check_unchanged(files, resolver) else { continue };
        let need = MountRequest {
            path: files.path.clone(),
            writable: files.access.write || files.access.delete,
            is_file_only: files.kind == GrantKind::File,
            is_approved_by_name: false,
        };
        if protected.exposed_by(&need.path, need.writable).is_some() {
            continue;
        }
        match (target, files.kind) {
            (PathKind::Missing, _) | (PathKind::Folder, GrantKind::File) => continue,
            (PathKind::Folder, GrantKind::Tree) => mounts.push(need),
            // Deleting a file needs its folder, which is mounted only during the call, so a delete-only grant mounts nothing.
            (PathKind::File { .. } | PathKind::Special, _) if files.access.read || files.access.write => {
                mounts.push(need)
            }
            (PathKind::File { .. } | PathKind::Special, _) => continue,
        }
        add_root(
            folder_of(&files.path, target),
            format!("granted by you for {}", grant.lifetime.label()),
            Some(grant.id.clone()),
            // A grant for a file does not cover the rest of its folder.
            [files.access.read, files.access.write, files.access.delete]
                .map(|may| may && files.kind == GrantKind::Tree),
        );
    }
    for lease in leases.iter().filter(|l| !sandbox.contains(&l.path)) {
        mounts.push(lease.clone());
        let target = resolver.resolve(lease.path.as_str()).map_or(PathKind::Missing, |found| found.target);
        add_root(folder_of(&lease.path, target), "a call in flight".to_owned(), None, [false; 3]);
    }
    ServerView { version: 0, mounts, roots }
}

/// Returns the paths that a server's entry always permits, outside the session folder.
#[must_use]
pub fn entry_paths(settings: &SandboxSettings, home: &Path, session: &CanonicalPath) -> Vec<RootView> {
    let whole = match view_of(settings) {
        FileView::HostRead => Some("/".to_owned()),
        FileView::Roots => None,
    };
    let read = settings.filesystem.allow_read.iter().map(|path| expand_home(path, home)).chain(whole);
    let written = settings.filesystem.allow_write.iter();
    let written = written.map(|path| absolute(&expand_home(path, home), session.as_path()));
    let outside = |path: &String| !Path::new(path).starts_with(session.as_path());
    written
        .filter(outside)
        .map(|path| always_accessible(path, "the server's settings", true))
        .chain(read.map(|path| always_accessible(path, "the server's settings", false)))
        .collect()
}

/// Returns a path that is accessible without any grant.
#[must_use]
pub fn always_accessible(path: String, source: &str, writable: bool) -> RootView {
    let access = access_words([true, writable, writable]);
    RootView { path, source: source.to_owned(), grant: None, access }
}

fn access_words(may: [bool; 3]) -> Vec<String> {
    let words = may.into_iter().zip(["read", "write", "delete"]);
    words.filter(|(may, _)| *may).map(|(_, word)| word.to_owned()).collect()
}

/// Reason a grant currently has no effect.
#[derive(Debug, thiserror::Error)]
pub enum InactiveReason {
    /// The granted path cannot be resolved.
    #[error(transparent)]
    Unresolved(#[from] PathError),
    /// The granted path is or contains a symlink.
    #[error("`{path}` is now a symlink to `{to}`")]
    Link {
        /// Path that was granted.
        path: CanonicalPath,
        /// Path that the symlink leads to.
        to: CanonicalPath,
    },
    /// The granted path does not exist.
    #[error("`{0}` does not exist")]
    Missing(CanonicalPath),
}

/// Checks that a granted path contains no symlink. Returns the kind of the file or folder.
pub fn check_unchanged(files: &Files, resolver: &Resolver) -> Result<PathKind, InactiveReason> {
    let found = resolver.resolve(files.path.as_str())?;
    if found.path != files.path {
        return Err(InactiveReason::Link { path: files.path.clone(), to: found.path });
    }
    match (found.target, files.kind) {
        (PathKind::Missing, GrantKind::Tree) => Err(InactiveReason::Missing(files.path.clone())),
        (target, _) => Ok(target),
    }
}

fn folder_of(path: &CanonicalPath, target: PathKind) -> Option<CanonicalPath> {
    match target {
        PathKind::Folder => Some(path.clone()),
        PathKind::File { .. } | PathKind::Special | PathKind::Missing => path.parent(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::FilesystemSettings;
    use ironcurtain_consent::Lifetime;
    use ironcurtain_grants::{GrantSubject, Granted};
    use ironcurtain_policy::{AccessSet, ReadOnlyPath, ReadOnlyReason};

    fn grant(path: &CanonicalPath, kind: GrantKind, access: AccessSet) -> StandingGrant {
        let subject = GrantSubject {
            client: String::new(),
            client_name: String::new(),
            server: String::new(),
            session: None,
        };
        StandingGrant {
            id: "g".into(),
            subject,
            what: Granted::Files(Files { path: path.clone(), kind, access }),
            lifetime: Lifetime::Always,
            expires_ms: None,
            created_ms: 0,
            last_used_ms: None,
            uses: 0,
            provenance: String::new(),
        }
    }

    #[test]
    fn grants_become_mounts_and_roots_unless_their_path_was_removed() {
        let dir = tempfile::tempdir().unwrap();
        let base =
            CanonicalPath::assume_canonical(dir.path().canonicalize().unwrap().to_str().unwrap()).unwrap();
        let at = |name: &str| base.join(name).unwrap();
        std::fs::create_dir(at("tree").as_path()).unwrap();
        std::fs::write(at("file").as_path(), "x").unwrap();
        std::os::unix::fs::symlink(at("tree").as_path(), at("link").as_path()).unwrap();
        let resolver = Resolver::new(base.clone(), base.clone());
        let (read, write) = (
            AccessSet { read: true, ..AccessSet::default() },
            AccessSet { write: true, ..AccessSet::default() },
        );
        let delete = AccessSet { delete: true, ..AccessSet::default() };
        let grants = [
            grant(&at("tree"), GrantKind::Tree, read),
            grant(&at("file"), GrantKind::File, write),
            grant(&at("gone"), GrantKind::Tree, read),
            grant(&at("gone"), GrantKind::File, write),
            grant(&at("link"), GrantKind::Tree, read),
            grant(&at("file"), GrantKind::File, delete),
        ];
        let sandbox = CanonicalPath::assume_canonical("/s").unwrap();
        let got = compute_view(
            &sandbox,
            &[],
            &grants,
            &[MountRequest::new(at("tree/new"), true)],
            (&resolver, ProtectedPaths::NOTHING),
        );
        let need = |name: &str, writable| MountRequest::new(at(name), writable);
        assert_eq!(got.mounts, [need("tree", false), need("file", true).file_only(), need("tree/new", true)]);
        let roots: Vec<&str> = got.roots.iter().map(|r| r.path.as_str()).collect();
        assert_eq!(roots, ["/s", at("tree").as_str(), base.as_str()]);
        let problem = |grant: &StandingGrant| {
            check_unchanged(grant.files().unwrap(), &resolver).unwrap_err().to_string()
        };
        assert!(problem(&grants[4]).contains("is now a symlink"));
        assert!(problem(&grants[2]).contains("does not exist"));
    }

    #[test]
    fn policy_folders_are_mounted_while_they_exist() {
        let dir = tempfile::tempdir().unwrap();
        let base =
            CanonicalPath::assume_canonical(dir.path().canonicalize().unwrap().to_str().unwrap()).unwrap();
        std::fs::create_dir(base.join("open").unwrap().as_path()).unwrap();
        let folder =
            |name: &str| OpenFolder { path: base.join(name).unwrap(), writable: false, rule: "r".into() };
        let sandbox = CanonicalPath::assume_canonical("/s").unwrap();
        let resolver = Resolver::new(base.clone(), base.clone());
        let got = compute_view(
            &sandbox,
            &[folder("open"), folder("gone")],
            &[],
            &[],
            (&resolver, ProtectedPaths::NOTHING),
        );
        assert_eq!(got.mounts, [MountRequest::new(base.join("open").unwrap(), false)]);
        let roots: Vec<_> = got.roots.iter().map(|r| (r.path.as_str(), r.source.as_str())).collect();
        assert_eq!(
            roots,
            [("/s", "the session's own folder"), (base.join("open").unwrap().as_str(), "rule r")]
        );
        let access: Vec<_> = got.roots.iter().map(|root| root.access.join(" ")).collect();
        assert_eq!(access, ["read write delete", "read"]);
    }

    #[test]
    fn a_granted_file_opens_nothing_else_in_its_folder() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| CanonicalPath::assume_canonical(base.join(name).to_str().unwrap()).unwrap();
        std::fs::create_dir(at("tree").as_path()).unwrap();
        std::fs::write(at("tree/file").as_path(), "").unwrap();
        let access = AccessSet { read: true, write: true, delete: false };
        let file = grant(&at("tree/file"), GrantKind::File, access);
        let folder = grant(&at("tree"), GrantKind::Tree, access);
        let access = |grants: &[StandingGrant]| {
            let resolver = Resolver::new(at("s"), at("s"));
            let shown = compute_view(&at("s"), &[], grants, &[], (&resolver, ProtectedPaths::NOTHING));
            shown.roots.into_iter().skip(1).map(|root| (root.path, root.access.join(" "))).collect::<Vec<_>>()
        };
        let path = at("tree").to_string();
        assert_eq!(access(std::slice::from_ref(&file)), [(path.clone(), String::new())]);
        assert_eq!(access(&[file, folder]), [(path, "read write".to_owned())]);
    }

    #[test]
    fn a_grant_around_a_newly_protected_path_is_not_mounted() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |name: &str| CanonicalPath::assume_canonical(base.join(name).to_str().unwrap()).unwrap();
        std::fs::create_dir_all(at("tree/keys").as_path()).unwrap();
        std::fs::create_dir(at("other").as_path()).unwrap();
        let access = AccessSet { read: true, write: true, delete: false };
        let grants =
            [grant(&at("tree"), GrantKind::Tree, access), grant(&at("other"), GrantKind::Tree, access)];
        let resolver = Resolver::new(at("other"), at("other"));
        let mounts = |protected: &ProtectedPaths| {
            let shown = compute_view(&at("s"), &[], &grants, &[], (&resolver, protected));
            shown.mounts.into_iter().map(|need| need.path).collect::<Vec<_>>()
        };
        assert_eq!(mounts(ProtectedPaths::NOTHING), [at("tree"), at("other")]);
        assert_eq!(mounts(&[at("tree/keys")].into_iter().collect()), [at("other")]);
        let keeping = |reason| {
            mounts(
                &ProtectedPaths::default()
                    .with_read_only(vec![ReadOnlyPath { path: at("tree/keys"), reason }]),
            )
        };
        assert_eq!(keeping(ReadOnlyReason::ClientConfiguration), [at("other")]);
        // The sandbox masks these paths.
        assert_eq!(keeping(ReadOnlyReason::OurPrograms), [at("tree"), at("other")]);
    }

    #[test]
    fn the_sandbox_is_always_a_root() {
        let sandbox = CanonicalPath::assume_canonical("/s").unwrap();
        let resolver = Resolver::new(sandbox.clone(), sandbox.clone());
        let inside = MountRequest::new(sandbox.join("x").unwrap(), true);
        let got = compute_view(&sandbox, &[], &[], &[inside], (&resolver, ProtectedPaths::NOTHING));
        assert_eq!((got.mounts.len(), got.roots.len()), (0, 1));
        assert_eq!(got.root_list().roots[0].uri, "file:///s");
    }

    #[test]
    fn paths_of_the_entry_are_always_open() {
        let paths = |filesystem: FilesystemSettings, view| {
            let settings = SandboxSettings { filesystem, view, ..SandboxSettings::default() };
            let session = CanonicalPath::assume_canonical("/s").unwrap();
            let found = entry_paths(&settings, Path::new("/home/u"), &session);
            found.into_iter().map(|root| (root.path, root.access.join(" "))).collect::<Vec<_>>()
        };
        let texts = |all: &[&str]| all.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>();
        let files = FilesystemSettings {
            allow_write: texts(&["cache", "~/notes"]),
            allow_read: texts(&["~/lib"]),
            ..FilesystemSettings::default()
        };
        let own = [("/home/u/notes", "read write delete"), ("/home/u/lib", "read")];
        let own = own.map(|(path, access)| (path.to_owned(), access.to_owned()));
        assert_eq!(paths(files, None), own, "not the scratch folder");
        let whole = paths(FilesystemSettings::default(), Some(FileView::HostRead));
        assert_eq!(whole, [("/".to_owned(), "read".to_owned())]);
        assert_eq!(paths(FilesystemSettings::default(), Some(FileView::Roots)), []);
    }
}
