//! Computes the protected paths: those that no call may access, those that are read-only and those that require
//! approval.
//!
//! - Only this module computes the protected paths, from the lists in `paths` and from IronCurtain's own folders. The
//!   policy engine and the sandboxes both use the result.
//! - A protected symlink also protects its target and every symlink in between, because replacing one of these symlinks
//!   would redirect the path.
//! - Symlinks in IronCurtain's folders and in folders with secrets are followed breadth-first, in at most
//!   [`MAX_FOLDERS`] folders and through at most [`MAX_NAMES`] names in each.
//! - A symlink never causes the home directory, one of its ancestors or installed software to be protected.

mod exposure;

pub use exposure::{Exposure, WritableBy};

use crate::home::{Home, UnresolvedPath};
use ironcurtain_paths::protected::{IN_PROJECT, clients, logins, secrets};
use ironcurtain_paths::{CanonicalPath, PathKind, Resolution, Resolver};
use ironcurtain_policy::{ProtectedPaths, ReadOnlyPath, ReadOnlyReason};
use std::collections::{BTreeSet, VecDeque};
use std::fs::read_dir;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Maximum number of folders that are scanned for symlinks, starting from one protected folder.
const MAX_FOLDERS: usize = 64;

/// Maximum number of directory entries that are read in one folder.
const MAX_NAMES: usize = 1024;

/// Maximum depth of scanned folders below a protected folder.
const MAX_DEPTH: usize = 3;

/// Folders for installed software. A path inside them counts as software only if only root can write to it.
const SOFTWARE: [&str; 6] = ["/usr", "/bin", "/lib", "/opt", "/nix", "/snap"];

/// Returns the currently protected paths. Blocking.
///
/// # Errors
/// Returns an error if one of IronCurtain's folders cannot be resolved.
pub fn protection(home: &Home, user_home: &CanonicalPath) -> Result<ProtectedPaths, UnresolvedPath> {
    let mut follower = LinkFollower::new(user_home);
    // A server can access the package that it runs from, but no call may access packages.
    for own in home.private_dirs().into_iter().chain([home.installs()]) {
        follower.protect(&resolve_own_folder(&own, &follower.resolver)?);
    }
    follower.follow_links(&resolve_own_folder(&home.config, &follower.resolver)?, MAX_DEPTH);
    // Servers control the session folders below these folders, so symlinks there are not followed.
    for folder in [home.state.clone(), home.audit()] {
        follower.follow_links(&resolve_own_folder(&folder, &follower.resolver)?, 0);
    }
    for secret in secrets(user_home) {
        follower.protect(&secret);
        if user_home.contains(&secret) {
            follower.follow_links(&secret, MAX_DEPTH);
        }
    }
    let read_only_paths = read_only_paths(home, user_home, &follower.resolver);
    Ok(follower
        .protected
        .into_iter()
        .collect::<ProtectedPaths>()
        .with_read_only(read_only_paths)
        .with_autostart_files(IN_PROJECT))
}

/// Returns the folders with secrets that the caller should watch for new symlinks. Their contents rarely
/// change. Blocking.
pub fn folders_to_watch(user_home: &CanonicalPath) -> Vec<PathBuf> {
    let mut follower = LinkFollower::new(user_home);
    for login in logins(user_home) {
        follower.follow_links(&login, MAX_DEPTH);
    }
    follower.scanned.into_iter().map(|folder| folder.as_path().to_path_buf()).collect()
}

/// Returns the read-only paths: IronCurtain's programs and agent clients' settings.
fn read_only_paths(home: &Home, user_home: &CanonicalPath, resolver: &Resolver) -> Vec<ReadOnlyPath> {
    let programs = home.programs.iter().filter_map(|dir| resolver.resolve(dir.to_str()?).ok());
    let programs =
        programs.map(|found| ReadOnlyPath { path: found.path, reason: ReadOnlyReason::OurPrograms });
    let clients = clients(user_home).into_iter().flat_map(|client| {
        let found = resolver.resolve(client.as_str()).ok().map(resolved_paths).unwrap_or_default();
        let all: BTreeSet<CanonicalPath> = found.into_iter().chain([client]).collect();
        all.into_iter().map(|path| ReadOnlyPath { path, reason: ReadOnlyReason::ClientConfiguration })
    });
    programs.chain(clients).collect()
}

fn resolve_own_folder(path: &std::path::Path, resolver: &Resolver) -> Result<CanonicalPath, UnresolvedPath> {
    let text = path.to_string_lossy().into_owned();
    let found = resolver.resolve(&text).map_err(|e| UnresolvedPath { path: text, problem: e.to_string() })?;
    Ok(found.path)
}

/// Returns a resolved path and the symlinks that lead to it.
pub fn resolved_paths(found: Resolution) -> Vec<CanonicalPath> {
    found.links.into_iter().map(|link| link.path).chain([found.path]).collect()
}

/// Collects protected paths and follows the symlinks in protected folders.
struct LinkFollower<'a> {
    user_home: &'a CanonicalPath,
    resolver: Resolver,
    protected: Vec<CanonicalPath>,
    /// Folders that have been scanned.
    scanned: BTreeSet<CanonicalPath>,
}

impl<'a> LinkFollower<'a> {
    fn new(user_home: &'a CanonicalPath) -> Self {
        let resolver = Resolver::new(user_home.clone(), user_home.clone());
        Self { user_home, resolver, protected: Vec::new(), scanned: BTreeSet::new() }
    }

    /// Protects a path and, if it can be resolved, its target and the symlinks in between.
    fn protect(&mut self, path: &CanonicalPath) {
        self.protected.push(path.clone());
        if let Ok(found) = self.resolver.resolve(path.as_str()) {
            self.protect_resolved(found);
        }
    }

    fn protect_resolved(&mut self, found: Resolution) {
        for path in resolved_paths(found) {
            let is_covered = self.protected.iter().any(|protected| protected.contains(&path));
            if !is_covered && !path.contains(self.user_home) && !is_software(&path) {
                self.protected.push(path);
            }
        }
    }

    /// Protects the targets of a folder's symlinks and scans target folders in turn.
    fn follow_links(&mut self, folder: &CanonicalPath, depth: usize) {
        let Ok(found) = self.resolver.resolve(folder.as_str()) else { return };
        let mut queue = VecDeque::from([(found, depth)]);
        let mut remaining = MAX_FOLDERS;
        while let Some((found, depth)) = queue.pop_front().filter(|_| remaining > 0) {
            let is_new = found.target == PathKind::Folder
                && !found.path.contains(self.user_home)
                && !is_software(&found.path)
                && self.scanned.insert(found.path.clone());
            if !is_new {
                continue;
            }
            remaining -= 1;
            let Ok(names) = read_dir(found.path.as_path()) else { continue };
            for entry in names.take(MAX_NAMES).flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                let is_followed = kind.is_symlink() || (kind.is_dir() && depth > 0);
                if !is_followed {
                    continue;
                }
                let Some(inner) = entry.path().to_str().and_then(|at| self.resolver.resolve(at).ok()) else {
                    continue;
                };
                if kind.is_symlink() {
                    self.protect_resolved(inner.clone());
                }
                if depth > 0 {
                    queue.push_back((inner, depth - 1));
                }
            }
        }
    }
}

fn is_software(path: &CanonicalPath) -> bool {
    const OTHERS_WRITE: u32 = 0o022;
    let is_owned_by_root = |about: std::fs::Metadata| about.uid() == 0 && about.mode() & OTHERS_WRITE == 0;
    let is_in_software_folder = SOFTWARE.iter().any(|software| path.as_path().starts_with(software));
    is_in_software_folder && path.as_path().metadata().is_ok_and(is_owned_by_root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    struct Scene {
        home: Home,
        base: PathBuf,
        _dir: tempfile::TempDir,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            create_dir_all(base.join("person")).unwrap();
            let home = Home::under(&base.join("ic"), &base.join("person"));
            home.prepare().unwrap();
            Self { home, base, _dir: dir }
        }

        fn at(&self, below: &str) -> CanonicalPath {
            CanonicalPath::assume_canonical(self.base.join(below).to_str().unwrap()).unwrap()
        }

        fn put(&self, below: &str) {
            let path = self.base.join(below);
            create_dir_all(path.parent().unwrap()).unwrap();
            write(path, "content").unwrap();
        }

        fn link(&self, to: &str, from: &str) {
            let from = self.base.join(from);
            create_dir_all(from.parent().unwrap()).unwrap();
            symlink(self.base.join(to), from).unwrap();
        }

        fn protection(&self) -> ProtectedPaths {
            protection(&self.home, &self.at("person")).unwrap()
        }

        fn protects(&self, below: &str) -> bool {
            self.protection().paths().iter().any(|protected| protected.contains(&self.at(below)))
        }
    }

    #[test]
    fn links_in_protected_folders_protect_their_targets_and_every_link_in_between() {
        let scene = Scene::new();
        scene.put("person/work/keys/id");
        scene.put("person/work/cluster");
        scene.put("person/vault/deep/key");
        scene.link("person/work/keys/id", "person/work/hop");
        scene.link("person/work/hop", "person/.ssh/id_ed25519");
        scene.link("person/work/cluster", "person/.kube/config");
        scene.link("person/vault", "person/.aws");
        scene.link("person/work/new", "person/vault/deep/link");
        scene.link("person/work/missing", "person/.gnupg/a/b/later");
        for protected in
            ["work/keys/id", "work/hop", "work/cluster", "vault/deep/key", "work/new", "work/missing"]
        {
            assert!(scene.protects(&format!("person/{protected}")), "{protected}");
        }
        for open in ["work", "work/keys", "work/keys/other", "work/other", "vaults"] {
            assert!(!scene.protects(&format!("person/{open}")), "{open}");
        }
    }

    #[test]
    fn links_in_our_folders_protect_their_targets_but_links_of_sessions_do_not() {
        let scene = Scene::new();
        scene.put("person/dotfiles/policy.json");
        scene.link("person/dotfiles/policy.json", "ic/config/policy/compiled-policy.json");
        scene.put("person/records/old.jsonl");
        scene.put("person/grants.bak");
        scene.link("person/records/old.jsonl", "ic/state/audit/old.jsonl");
        scene.link("person/grants.bak", "ic/state/state.db.bak");
        scene.link("person/photos", "ic/state/sessions/s/sandbox/link");
        for protected in ["dotfiles/policy.json", "records/old.jsonl", "grants.bak"] {
            assert!(scene.protects(&format!("person/{protected}")), "{protected}");
        }
        assert!(!scene.protects("person/dotfiles/other") && !scene.protects("person/photos"));
    }

    #[test]
    fn a_link_protects_neither_the_home_nor_software_and_loops_terminate() {
        let scene = Scene::new();
        scene.link("person", "person/.docker/home");
        scene.link("person/.docker", "person/.docker/self");
        scene.link("person/.docker/loop", "person/.docker/loop");
        symlink("/", scene.base.join("person/.docker/all")).unwrap();
        symlink("/usr/bin/true", scene.base.join("person/.docker/program")).unwrap();
        let protected = scene.protection();
        for open in ["/", "/usr/bin/true", scene.at("person").as_str(), scene.at("person/x").as_str()] {
            let open = CanonicalPath::assume_canonical(open).unwrap();
            assert!(!protected.paths().iter().any(|protected| protected.contains(&open)), "{open}");
        }
        assert!(scene.protects("person/.docker/config.json"));
    }

    #[test]
    fn links_are_searched_to_a_maximum_depth_and_number_of_names() {
        let scene = Scene::new();
        for name in 0..MAX_NAMES * 2 {
            scene.put(&format!("person/.azure/many/{name}"));
        }
        scene.link("person/at", "person/.kube/1/2/3/link");
        scene.link("person/beyond", "person/.kube/1/2/3/4/link");
        assert!(scene.protects("person/at") && !scene.protects("person/beyond"));
    }

    #[test]
    fn our_programs_and_client_configuration_are_read_only_through_links_too() {
        let mut scene = Scene::new();
        scene.put("person/checkout/target/debug/ironcurtain-sandbox");
        scene.put("person/dotfiles/cursor.json");
        scene.link("person/dotfiles/cursor.json", "person/.cursor/mcp.json");
        scene.link("person/checkout/target", "person/built");
        scene.home.programs = Some(scene.base.join("person/built/debug"));
        let protection = scene.protection();
        let read_only_paths = |below: &str| {
            protection
                .read_only()
                .iter()
                .find(|read_only_paths| read_only_paths.path == scene.at(below))
                .map(|read_only_paths| read_only_paths.reason)
        };
        assert_eq!(read_only_paths("person/checkout/target/debug"), Some(ReadOnlyReason::OurPrograms));
        assert_eq!(read_only_paths("person/.cursor/mcp.json"), Some(ReadOnlyReason::ClientConfiguration));
        assert_eq!(read_only_paths("person/dotfiles/cursor.json"), Some(ReadOnlyReason::ClientConfiguration));
        assert_eq!(read_only_paths("person/checkout"), None);
    }
}
