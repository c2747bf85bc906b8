//! A profile for one run: its paths resolved, and checked against what is protected.
//!
//! - INVARIANT: no path of a plan is protected, contains a protected path or belongs to IronCurtain, except for the agent's own
//!   logins.

use super::arguments::with_added;
use super::profile::expanded;
use super::{ProgramFile, RunProfile};
use crate::home::Home;
use crate::places;
use ironcurtain_paths::{CanonicalPath, PathKind, Resolution, Resolver};
use ironcurtain_policy::{GrantKind, ProtectedPaths, ReadOnlyReason};
use std::path::Path;

/// Endings of temporary files, locks and copies that programs put beside a settings file.
const BESIDE: [&str; 3] = [".lock", ".tmp", ".backup"];

/// Everything that a plan depends on, besides the profile.
#[derive(Debug, Clone, Copy)]
pub struct PlanContext<'a> {
    /// IronCurtain's own folders.
    pub ours: &'a Home,
    /// Home of the user.
    pub home: &'a CanonicalPath,
    /// Paths that are protected at this moment.
    pub protected: &'a ProtectedPaths,
    /// Working folder.
    pub cwd: &'a Path,
    /// Search path of the run.
    pub path: &'a str,
    /// Program and arguments.
    pub argv: &'a [String],
}

/// What a run gets from its profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlan {
    /// The profile.
    pub profile: RunProfile,
    /// Command, with the profile's arguments.
    pub argv: Vec<String>,
    /// Programs, to mount read-only.
    pub programs: Vec<CanonicalPath>,
    /// Folders that the run changes. They may not exist yet.
    pub folders: Vec<CanonicalPath>,
    /// Files that the run changes. They may not exist yet.
    pub files: Vec<CanonicalPath>,
    /// Existing files and folders that the run reads.
    pub read: Vec<(CanonicalPath, GrantKind)>,
    /// The agent's logins, with the links that lead to them.
    pub logins: Vec<CanonicalPath>,
}

/// Error for a path of a profile that cannot be opened to a run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run profile `{profile}`, `{field}`: `{path}` {problem}")]
pub struct RunPlanError {
    /// Name of the profile.
    pub profile: String,
    /// Field of the profile.
    pub field: &'static str,
    /// The path as written.
    pub path: String,
    /// Problem, in words.
    pub problem: String,
}

impl RunPlan {
    /// Resolves and checks a profile. Blocking.
    ///
    /// # Errors
    /// [`RunPlanError`], which names the profile, the field and the path.
    pub fn new(profile: RunProfile, context: PlanContext<'_>) -> Result<Self, RunPlanError> {
        let maker = Maker { profile: &profile, context };
        let mut logins = Vec::new();
        for login in &profile.logins {
            let found = maker.resolve("logins", login)?;
            let spelled = CanonicalPath::assume_canonical(&expanded(login, context.home)).ok();
            logins.extend(places(found).into_iter().chain(spelled));
        }
        let opened = context.protected.opened_for(&logins, &[]);
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in &profile.settings {
            let found = maker.opened("settings", path, &opened, true)?;
            let is_folder = path.ends_with('/');
            let problem = match (is_folder, found.target) {
                (true, PathKind::File { .. }) => "is not a folder",
                (false, PathKind::Folder) => "is a folder; end it with `/`",
                (_, PathKind::Special) => "is neither a file nor a folder",
                (true, PathKind::Folder | PathKind::Missing)
                | (false, PathKind::File { .. } | PathKind::Missing) => "",
            };
            if !problem.is_empty() {
                return Err(maker.error("settings", path, problem.to_owned()));
            }
            if is_folder { folders.push(found.path) } else { files.push(found.path) }
        }
        let mut read = Vec::new();
        for path in &profile.read {
            let found = maker.opened("read", path, &opened, false)?;
            match found.target {
                PathKind::File { .. } => read.push((found.path, GrantKind::File)),
                PathKind::Folder => read.push((found.path, GrantKind::Tree)),
                PathKind::Missing | PathKind::Special => {}
            }
        }
        // Mounted, or already among the settings.
        let has = |folders: &[CanonicalPath], path: &CanonicalPath| {
            folders.iter().any(|folder| folder.contains(path)) || path.as_path().starts_with(context.cwd)
        };
        read.retain(|(path, _)| !has(&folders, path) && !files.contains(path));
        let mut programs = maker.install_tree(&opened);
        for path in &profile.programs {
            let found = maker.opened("programs", path, &opened, false)?;
            if matches!(found.target, PathKind::File { .. } | PathKind::Folder) {
                programs.push(found.path);
            }
        }
        programs.retain(|path| !has(&[], path));
        let is_its = |program: &ProgramFile| profile.program.names.contains(&program.name);
        let argv = match maker.program() {
            Some(program) if is_its(&program) => {
                with_added(context.argv, &profile.args, context.home, context.cwd)
            }
            Some(_) | None => context.argv.to_vec(),
        };
        Ok(Self { argv, programs, folders, files, read, logins, profile })
    }

    /// Returns the protected paths without those that the profile opens to its agent.
    #[must_use]
    pub fn protection(&self, protected: &ProtectedPaths) -> ProtectedPaths {
        let settings: Vec<CanonicalPath> = self.folders.iter().chain(&self.files).cloned().collect();
        protected.opened_for(&self.logins, &settings)
    }

    /// Returns the settings file that a path is, or that the program keeps a lock, a copy or a new version of there.
    #[must_use]
    pub fn settings_file(&self, path: &str) -> Option<&CanonicalPath> {
        self.files.iter().find(|file| path == file.as_str() || is_beside(file.as_str(), path))
    }
}

/// Returns whether a path is a lock, a copy or a new version of a file, by its name.
pub(super) fn is_beside(file: &str, path: &str) -> bool {
    let more = path.strip_prefix(file).filter(|more| !more.contains('/'));
    more.is_some_and(|more| BESIDE.iter().any(|ending| more.starts_with(ending)))
}

struct Maker<'a> {
    profile: &'a RunProfile,
    context: PlanContext<'a>,
}

impl Maker<'_> {
    fn error(&self, field: &'static str, path: &str, problem: String) -> RunPlanError {
        RunPlanError { profile: self.profile.name.clone(), field, path: path.to_owned(), problem }
    }

    fn resolve(&self, field: &'static str, path: &str) -> Result<Resolution, RunPlanError> {
        let home = self.context.home;
        let resolver = Resolver::new(home.clone(), home.clone());
        let resolved = resolver.resolve(&expanded(path, home));
        resolved.map_err(|error| self.error(field, path, format!("cannot be resolved: {error}")))
    }

    /// Resolves a path and checks that it may be opened.
    fn opened(
        &self,
        field: &'static str,
        path: &str,
        protected: &ProtectedPaths,
        is_written: bool,
    ) -> Result<Resolution, RunPlanError> {
        let found = self.resolve(field, path)?;
        match self.problem(&found.path, protected, is_written) {
            Some(problem) => Err(self.error(field, path, problem)),
            None => Ok(found),
        }
    }

    fn problem(&self, path: &CanonicalPath, protected: &ProtectedPaths, is_written: bool) -> Option<String> {
        if path.contains(self.context.home) {
            return Some("contains your home".to_owned());
        }
        if let Some(inside) = protected.paths().iter().find(|inside| inside.contains(path)) {
            return Some(format!("is protected, because of `{inside}`"));
        }
        if let Some(inside) = protected.paths().iter().find(|inside| path.contains(inside)) {
            return Some(format!("contains the protected `{inside}`"));
        }
        let touches = |other: &Path| other.starts_with(path.as_path()) || path.as_path().starts_with(other);
        let data = self.context.ours.data.canonicalize();
        let is_program = |is: ReadOnlyReason| is_written && is == ReadOnlyReason::OurPrograms;
        let mut programs = protected.read_only().iter().filter(|kept| is_program(kept.is));
        let is_ours =
            programs.any(|kept| touches(kept.path.as_path())) || data.is_ok_and(|data| touches(&data));
        is_ours.then(|| "contains files of IronCurtain".to_owned())
    }

    fn program(&self) -> Option<ProgramFile> {
        ProgramFile::find(self.context.argv.first()?, self.context.path, self.context.cwd)
    }

    /// Returns where the agent is installed: the program of the run, or the one that the profile names, for a run of a script
    /// that starts it. A place with something protected is not opened.
    fn install_tree(&self, protected: &ProtectedPaths) -> Vec<CanonicalPath> {
        let PlanContext { home, cwd, path, .. } = self.context;
        let pattern = &self.profile.program;
        let named = pattern.names.iter().filter_map(|name| ProgramFile::find(name, path, cwd));
        let all = self.program().into_iter().chain(named);
        let its = all.filter(|program| program.is_recognized(pattern, home, cwd));
        let tree = its.flat_map(|program| program.install_tree(pattern, path, home));
        let started = self.program().map(|program| program.started_files()).unwrap_or_default();
        let tree = tree.chain(started);
        let tree = tree.filter_map(|path| CanonicalPath::assume_canonical(path.to_str()?).ok());
        let mut tree: Vec<CanonicalPath> =
            tree.filter(|path| self.problem(path, protected, false).is_none()).collect();
        tree.sort();
        tree.dedup();
        let all = tree.clone();
        tree.retain(|path| !all.iter().any(|other| other.strictly_contains(path)));
        tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protection;

    struct Scene {
        _dir: tempfile::TempDir,
        ours: Home,
        home: CanonicalPath,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let base = dir.path().canonicalize().unwrap();
            std::fs::create_dir_all(base.join("person/project")).unwrap();
            let ours = Home::under(&base.join("person/.ic"), &base.join("person"));
            ours.prepare().unwrap();
            let home = CanonicalPath::assume_canonical(base.join("person").to_str().unwrap()).unwrap();
            Self { _dir: dir, ours, home }
        }

        fn plan(&self, profile: RunProfile) -> Result<RunPlan, String> {
            let context = PlanContext {
                ours: &self.ours,
                home: &self.home,
                protected: &protection(&self.ours, &self.home).unwrap(),
                cwd: &self.home.as_path().join("project"),
                path: "",
                argv: &["x".to_owned()],
            };
            RunPlan::new(profile, context).map_err(|error| error.to_string())
        }

        fn at(&self, below: &str) -> CanonicalPath {
            self.home.join(below).unwrap()
        }
    }

    fn profile(settings: &[&str], read: &[&str]) -> RunProfile {
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        RunProfile { name: "x".into(), settings: owned(settings), read: owned(read), ..RunProfile::default() }
    }

    #[test]
    fn protected_paths_and_our_own_are_refused() {
        let scene = Scene::new();
        std::os::unix::fs::symlink(scene.at(".ssh").as_path(), scene.at("keys").as_path()).unwrap();
        std::fs::create_dir_all(&scene.ours.data).unwrap();
        for (settings, problem) in [
            ("~/.ssh/", "is protected, because of"),
            ("~/.ssh/config", "is protected, because of"),
            ("~/keys/", "is protected, because of"),
            ("~/.config/", "contains the protected"),
            ("~/.claude/", "contains the protected"),
            ("~/.claude.json", "is protected, because of"),
            ("~/.ic/config/", "is protected, because of"),
            ("~/.ic/data/servers/", "contains files of IronCurtain"),
            ("/tmp/", "contains your home"),
        ] {
            for profile in [profile(&[settings], &[]), profile(&[], &[settings])] {
                let refused = scene.plan(profile).unwrap_err();
                assert!(refused.starts_with("run profile `x`, `"), "{refused}");
                assert!(
                    refused.contains(&format!("`{settings}` ")) && refused.contains(problem),
                    "{refused}"
                );
            }
        }
        let plan = scene.plan(profile(&["~/.x/", "~/.x.json"], &["~/absent"])).unwrap();
        assert_eq!((plan.folders, plan.files), (vec![scene.at(".x")], vec![scene.at(".x.json")]));
        assert_eq!(plan.read, []);
    }

    #[test]
    fn logins_open_only_themselves_through_links_too() {
        let scene = Scene::new();
        std::fs::create_dir_all(scene.at("dotfiles").as_path()).unwrap();
        std::fs::write(scene.at("dotfiles/claude.json").as_path(), "{}").unwrap();
        std::os::unix::fs::symlink(
            scene.at("dotfiles/claude.json").as_path(),
            scene.at(".claude.json").as_path(),
        )
        .unwrap();
        let logins =
            ["~/.claude/.credentials.json", "~/.claude/config.json", "~/.claude.json"].map(str::to_owned);
        let plan = RunProfile { logins: logins.into(), ..profile(&["~/.claude/", "~/.claude.json"], &[]) };
        let plan = scene.plan(plan).unwrap();
        assert_eq!(plan.files, [scene.at("dotfiles/claude.json")]);
        let before = protection(&scene.ours, &scene.home).unwrap();
        let opened = plan.protection(&before);
        for path in [".claude/.credentials.json", ".claude.json", "dotfiles/claude.json"] {
            assert!(before.covers(&scene.at(path)) && !opened.covers(&scene.at(path)), "{path}");
        }
        let is_kept = |protected: &ProtectedPaths, path: &str| {
            protected.read_only().iter().any(|kept| kept.path == scene.at(path))
        };
        assert!(is_kept(&before, ".claude/settings.json") && !is_kept(&opened, ".claude/settings.json"));
        assert!(is_kept(&opened, ".codex/config.toml") && opened.covers(&scene.at(".codex/auth.json")));
        // A login that leads to keys opens nothing.
        std::os::unix::fs::symlink(scene.at(".ssh/id").as_path(), scene.at(".x").as_path()).unwrap();
        let to_keys = RunProfile { logins: vec!["~/.x".into()], ..profile(&["~/.x"], &[]) };
        assert!(scene.plan(to_keys).unwrap_err().contains("is protected, because of"));
    }

    #[test]
    fn files_beside_a_settings_file_belong_to_it() {
        for path in ["/h/.a.json.lock", "/h/.a.json.tmp.7.8", "/h/.a.json.backup", "/h/.a.json.backup.3"] {
            assert!(is_beside("/h/.a.json", path), "{path}");
        }
        for path in ["/h/.a.json", "/h/.a.jsonc", "/h/.a.json.d/x", "/h/.a.json.tmp/x", "/h/x.lock"] {
            assert!(!is_beside("/h/.a.json", path), "{path}");
        }
    }
}
