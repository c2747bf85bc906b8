//! Detects configuration files and programs that a server can write to, and that an agent may therefore have
//! manipulated.
//!
//! - Checks the real path of a file and every symlink that leads to it.

use ironcurtain_config::home::Home;
use ironcurtain_config::{ExposedFile, Exposure, Server, Servers, WritableBy, resolved_paths};
use ironcurtain_containment::{ProgramError, absolute, expand_home};
use ironcurtain_grants::GrantTable;
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::ProtectedPaths;
use std::path::Path;

/// Paths that servers can write to.
pub struct WritablePaths<'a> {
    home: &'a Home,
    servers: &'a Servers,
    grants: &'a GrantTable,
    resolver: Resolver,
    /// IronCurtain's own folders, which no server can write to.
    own: Vec<CanonicalPath>,
}

impl<'a> WritablePaths<'a> {
    /// Determines the paths that servers can write to because of their entries and these grants.
    pub fn new(home: &'a Home, person: &CanonicalPath, servers: &'a Servers, grants: &'a GrantTable) -> Self {
        let resolver = Resolver::new(person.clone(), person.clone());
        let own =
            home.private_dirs().into_iter().filter_map(|own| resolver.locate(own.to_str()?).ok()).collect();
        Self { home, servers, grants, resolver, own }
    }

    /// Refuses a file that a server can write to.
    pub(super) fn refuse(&self, file: &Path) -> Result<(), ExposedFile> {
        let exposure = self.exposure(file, self.paths_to(file), None);
        exposure.map_or(Ok(()), |exposure| Err(ExposedFile(exposure)))
    }

    /// Refuses a server's program if another server can modify it. A protected path counts as safe even in a writable
    /// folder.
    ///
    /// # Errors
    /// Returns [`ProgramError::Exposed`] with the server that can modify the program.
    pub fn refuse_program(
        &self,
        program: &Path,
        server: &str,
        protected: &ProtectedPaths,
    ) -> Result<(), ProgramError> {
        let kept = protected.read_only().iter().map(|kept| &kept.path);
        let protected_paths: Vec<&CanonicalPath> = protected.paths().iter().chain(kept).collect();
        let mut paths = self.paths_to(program);
        paths.retain(|path| !protected_paths.iter().any(|closed| closed.contains(path)));
        let exposure = self.exposure(program, paths, Some(server));
        exposure.map_or(Ok(()), |exposure| Err(ProgramError::Exposed(exposure)))
    }

    /// Returns the first of `paths` that a server other than `except` can write to.
    fn exposure(&self, file: &Path, paths: Vec<CanonicalPath>, except: Option<&str>) -> Option<Exposure> {
        let writable = paths.into_iter().find_map(|path| Some((self.writer(&path, except)?, path)));
        writable.map(|(by, path)| Exposure { file: file.to_path_buf(), path, by })
    }

    /// Returns a file's real path and all symlinks that lead to it. Returns no paths if the path cannot be resolved,
    /// because opening the file then fails with a better error.
    fn paths_to(&self, file: &Path) -> Vec<CanonicalPath> {
        file.to_str()
            .and_then(|text| self.resolver.resolve(text).ok())
            .map(resolved_paths)
            .unwrap_or_default()
    }

    /// Returns the grant, session or server entry that makes a path writable. Ignores the `except` server.
    fn writer(&self, path: &CanonicalPath, except: Option<&str>) -> Option<WritableBy> {
        let grant_writer = || self.grant_writer(path, except);
        grant_writer()
            .or_else(|| self.private_folder_writer(path))
            .or_else(|| self.entry_writer(path, except))
    }

    fn grant_writer(&self, path: &CanonicalPath, except: Option<&str>) -> Option<WritableBy> {
        let others = self.grants.grants.iter().filter(|grant| except != Some(&*grant.subject.server));
        others.into_iter().find_map(|grant| {
            let files = grant.files()?;
            let writes = files.access.write || files.access.delete;
            (writes && files.path.contains(path)).then(|| WritableBy::Granted {
                server: grant.subject.server.clone(),
                path: files.path.clone(),
            })
        })
    }

    /// Returns [`WritableBy::Session`] if a session's or server's private folder contains the path.
    fn private_folder_writer(&self, path: &CanonicalPath) -> Option<WritableBy> {
        let private_dirs = [self.home.sessions(), self.home.data.join("servers")];
        let contains = |dir: &std::path::PathBuf| {
            dir.to_str().and_then(|dir| self.resolver.locate(dir).ok()).is_some_and(|dir| dir.contains(path))
        };
        private_dirs.iter().any(contains).then_some(WritableBy::Session)
    }

    /// Returns the server entry whose `allowWrite` setting includes the path. Such a setting never includes
    /// IronCurtain's own folders.
    fn entry_writer(&self, path: &CanonicalPath, except: Option<&str>) -> Option<WritableBy> {
        if self.own.iter().any(|own| own.contains(path)) {
            return None;
        }
        let opens = |written: &String| {
            let allowed = absolute(&expand_home(written, &self.home.user_home), &self.home.user_home);
            self.resolver.locate(&allowed).is_ok_and(|open| open.contains(path))
        };
        let opened = |server: &Server| {
            let open = server.sandbox.settings()?.filesystem.allow_write.iter().find(|open| opens(open))?;
            Some(WritableBy::Configured { server: server.name.clone(), entry: open.clone() })
        };
        self.servers.iter().filter(|server| except != Some(&*server.name)).find_map(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_consent::Lifetime;
    use ironcurtain_grants::{Files, GrantSubject, Granted, StandingGrant};
    use ironcurtain_policy::{AccessSet, GrantKind};
    use std::fs::{create_dir_all, write};
    use std::os::unix::fs::symlink;

    fn grant(path: &str, writes: bool) -> StandingGrant {
        StandingGrant {
            id: "g".into(),
            subject: GrantSubject {
                client: "c".into(),
                client_name: "c".into(),
                server: "files".into(),
                session: Some("s".into()),
            },
            what: Granted::Files(Files {
                path: CanonicalPath::assume_canonical(path).unwrap(),
                kind: GrantKind::Tree,
                access: AccessSet { read: true, write: writes, delete: false },
            }),
            lifetime: Lifetime::Session,
            expires_ms: None,
            created_ms: 0,
            last_used_ms: None,
            uses: 0,
            provenance: "question q".into(),
        }
    }

    #[test]
    fn a_program_is_refused_if_another_server_may_write_it_or_a_link_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |below: &str| base.join(below);
        for folder in ["person/bin", "person/tools"] {
            create_dir_all(at(folder)).unwrap();
        }
        let home = Home::under(&at("ic"), &at("person"));
        home.prepare().unwrap();
        let canonical = |below: &str| CanonicalPath::assume_canonical(at(below).to_str().unwrap()).unwrap();
        let person = canonical("person");
        write(at("person/tools/run"), "").unwrap();
        symlink(at("person/tools/run"), at("person/bin/npx")).unwrap();
        let servers = Servers::parse("{}", Path::new("f"), &home.user_home).unwrap();
        let check = |program: &str, folder: &str, server: &str, protected: &ProtectedPaths| {
            let grants = vec![grant(at(folder).to_str().unwrap(), true)];
            let table = GrantTable::of(grants);
            let writable = WritablePaths::new(&home, &person, &servers, &table);
            writable.refuse_program(&at(program), server, protected).map_err(|e| e.to_string())
        };
        let none = ProtectedPaths::default();
        let refused = check("person/tools/run", "person/tools", "other", &none).unwrap_err();
        let why = "tools/run`: the server `files`, through your grant for `";
        assert!(refused.starts_with("refused to start `") && refused.contains(why), "{refused}");
        assert!(refused.contains("person/tools`, can write to `"), "{refused}");
        // Only the symlink is writable, but the server could make it point elsewhere.
        let refused = check("person/bin/npx", "person/bin", "other", &none).unwrap_err();
        assert!(refused.contains("the server `files`") && refused.contains("bin/npx`; move it"), "{refused}");
        assert_eq!(check("person/tools/run", "person/bin", "other", &none), Ok(()));
        // A server may modify its own program.
        assert_eq!(check("person/tools/run", "person/tools", "files", &none), Ok(()));
        // A protected program is safe even inside a granted folder.
        let kept = ProtectedPaths::from_iter([canonical("person/tools/run")]);
        assert_eq!(check("person/tools/run", "person/tools", "other", &kept), Ok(()));
    }

    #[test]
    fn a_file_is_refused_if_a_server_may_write_it_or_a_link_to_it() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let at = |below: &str| base.join(below);
        create_dir_all(at("person/dotfiles")).unwrap();
        create_dir_all(at("person/safe")).unwrap();
        let home = Home::under(&at("ic"), &at("person"));
        home.prepare().unwrap();
        let person = CanonicalPath::assume_canonical(at("person").to_str().unwrap()).unwrap();
        let file = home.policy().join("compiled-policy.json");
        let servers = |text: &str| Servers::parse(text, Path::new("f"), &home.user_home).unwrap();
        let none = servers("{}");
        let check = |servers: &Servers, grants: Vec<StandingGrant>| {
            let table = GrantTable::of(grants);
            WritablePaths::new(&home, &person, servers, &table).refuse(&file).map_err(|e| e.to_string())
        };
        let dotfiles = at("person/dotfiles").to_str().unwrap().to_owned();
        let all = servers(
            r#"{ "edit": { "command": "c", "sandbox": { "filesystem": { "allowWrite": ["~"] } } } }"#,
        );
        // No server can write to IronCurtain's own folder.
        write(&file, "{}").unwrap();
        assert_eq!(check(&all, vec![grant(&dotfiles, true)]), Ok(()));
        // The file is a symlink that leads through a writable folder.
        std::fs::remove_file(&file).unwrap();
        write(at("person/safe/p.json"), "{}").unwrap();
        symlink(at("person/safe/p.json"), at("person/dotfiles/p.json")).unwrap();
        symlink(at("person/dotfiles/p.json"), &file).unwrap();
        let refused = check(&none, vec![grant(&dotfiles, true)]).unwrap_err();
        assert!(
            refused.contains("dotfiles/p.json`, where the server `files`, through your grant for `"),
            "{refused}"
        );
        assert_eq!(check(&none, vec![grant(&dotfiles, false)]), Ok(()));
        let refused = check(&all, vec![]).unwrap_err();
        assert!(
            refused.contains("the server `edit`, through `~` in its `allowWrite`, may write"),
            "{refused}"
        );
        // The file is a symlink into a session folder.
        std::fs::remove_file(&file).unwrap();
        create_dir_all(home.sessions().join("s/sandbox")).unwrap();
        symlink(home.sessions().join("s/sandbox/p.json"), &file).unwrap();
        assert!(check(&none, vec![]).unwrap_err().contains("where a server of a session may write"));
    }
}
