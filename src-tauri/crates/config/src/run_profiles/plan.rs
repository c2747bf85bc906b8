//! Resolves the paths of a profile for one run and checks them against the protected paths.
//!
//! - INVARIANT: except for the agent's own credentials, no path in a plan is protected, contains a protected path or
//!   belongs to IronCurtain.

use super::arguments::with_added;
use super::plan_context::PlanContext;
use super::profile::expanded;
use super::{FoundProgram, RunProfile};
use crate::resolved_paths;
use ironcurtain_paths::{CanonicalPath, PathKind, Resolution, Resolver};
use ironcurtain_policy::{GrantKind, ProtectedPaths, ReadOnlyPath, ReadOnlyReason};
use std::path::Path;

/// Suffixes of temporary files, locks and backups that programs create next to a settings file.
const SIDECAR_SUFFIXES: [&str; 3] = [".lock", ".tmp", ".backup"];

/// Paths and arguments that a run gets from its profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPlan {
    /// Profile from which the plan was made.
    pub profile: RunProfile,
    /// Command of the run, with the profile's arguments.
    pub argv: Vec<String>,
    /// Files and folders of programs, mounted read-only.
    pub programs: Vec<CanonicalPath>,
    /// Folders that the run may change. Some may not exist yet.
    pub folders: Vec<CanonicalPath>,
    /// Files that the run may change. Some may not exist yet.
    pub files: Vec<CanonicalPath>,
    /// Existing files and folders that the run may read.
    pub read: Vec<(CanonicalPath, GrantKind)>,
    /// Credentials of the agent, and the symlinks that lead to them.
    pub logins: Vec<CanonicalPath>,
}

/// Error about a profile path that a run must not access.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("run profile `{profile}`, `{field}`: `{path}` {problem}")]
pub struct RunPlanError {
    /// Name of the profile.
    pub profile: String,
    /// Field of the profile that contains the path.
    pub field: &'static str,
    /// Path as written in the profile.
    pub path: String,
    /// Description of the problem.
    pub problem: String,
}

impl RunPlan {
    /// Resolves the profile's paths and checks them. Blocking.
    ///
    /// # Errors
    /// Returns a [`RunPlanError`] that names the profile, the field and the path.
    pub fn new(profile: RunProfile, context: PlanContext<'_>) -> Result<Self, RunPlanError> {
        let builder = PlanBuilder { profile: &profile, context };
        let mut logins = Vec::new();
        for login in &profile.logins {
            let found = builder.resolve("logins", login)?;
            let as_written = CanonicalPath::assume_canonical(&expanded(login, context.home)).ok();
            logins.extend(resolved_paths(found).into_iter().chain(as_written));
        }
        let protected = context.protected.without_client_files(&logins, &[]);
        let (mut folders, mut files) = (Vec::new(), Vec::new());
        for path in &profile.settings {
            let found = builder.resolve_allowed("settings", path, &protected, true)?;
            let is_folder = path.ends_with('/');
            let problem = match (is_folder, found.target) {
                (true, PathKind::File { .. }) => "is not a folder",
                (false, PathKind::Folder) => "is a folder; end it with `/`",
                (_, PathKind::Special) => "is neither a file nor a folder",
                (true, PathKind::Folder | PathKind::Missing)
                | (false, PathKind::File { .. } | PathKind::Missing) => "",
            };
            if !problem.is_empty() {
                return Err(builder.error("settings", path, problem.to_owned()));
            }
            if is_folder { folders.push(found.path) } else { files.push(found.path) }
        }
        let mut read = Vec::new();
        for path in &profile.read {
            let found = builder.resolve_allowed("read", path, &protected, false)?;
            match found.target {
                PathKind::File { .. } => read.push((found.path, GrantKind::File)),
                PathKind::Folder => read.push((found.path, GrantKind::Tree)),
                PathKind::Missing | PathKind::Special => {}
            }
        }
        // Omits settings, and paths that are already mounted for a different reason.
        let is_covered = |folders: &[CanonicalPath], path: &CanonicalPath| {
            folders.iter().any(|folder| folder.contains(path)) || path.as_path().starts_with(context.cwd)
        };
        read.retain(|(path, _)| !is_covered(&folders, path) && !files.contains(path));
        let mut programs = builder.install_tree(&protected);
        for path in &profile.programs {
            let found = builder.resolve_allowed("programs", path, &protected, false)?;
            if matches!(found.target, PathKind::File { .. } | PathKind::Folder) {
                programs.push(found.path);
            }
        }
        programs.retain(|path| !is_covered(&[], path));
        let is_profile_program = |program: &FoundProgram| profile.program.names.contains(&program.name);
        let argv = match builder.program() {
            Some(program) if is_profile_program(&program) => with_added(&profile.args, context),
            Some(_) | None => context.argv.to_vec(),
        };
        Ok(Self { argv, programs, folders, files, read, logins, profile })
    }

    /// Returns the protected paths for this run, except those that the profile lets its agent access.
    #[must_use]
    pub fn protection(&self, protected: &ProtectedPaths) -> ProtectedPaths {
        let settings: Vec<CanonicalPath> = self.folders.iter().chain(&self.files).cloned().collect();
        protected.without_client_files(&self.logins, &settings)
    }

    /// Returns the settings file to which the path belongs: the file itself, or its lock, backup or temporary file.
    #[must_use]
    pub fn settings_file(&self, path: &str) -> Option<&CanonicalPath> {
        self.files.iter().find(|file| path == file.as_str() || is_sidecar(file.as_str(), path))
    }
}

/// Returns `true` if `path` has the name of a lock, backup or temporary file of `file`.
pub(super) fn is_sidecar(file: &str, path: &str) -> bool {
    let more = path.strip_prefix(file).filter(|more| !more.contains('/'));
    more.is_some_and(|more| SIDECAR_SUFFIXES.iter().any(|ending| more.starts_with(ending)))
}

struct PlanBuilder<'a> {
    profile: &'a RunProfile,
    context: PlanContext<'a>,
}

impl PlanBuilder<'_> {
    fn error(&self, field: &'static str, path: &str, problem: String) -> RunPlanError {
        RunPlanError { profile: self.profile.name.clone(), field, path: path.to_owned(), problem }
    }

    fn resolve(&self, field: &'static str, path: &str) -> Result<Resolution, RunPlanError> {
        let home = self.context.home;
        let resolver = Resolver::new(home.clone(), home.clone());
        let resolved = resolver.resolve(&expanded(path, home));
        resolved.map_err(|error| self.error(field, path, format!("cannot be resolved: {error}")))
    }

    /// Resolves a path and checks that the run may access it.
    fn resolve_allowed(
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
        let denied = |read_only: &&ReadOnlyPath| {
            read_only.reason == ReadOnlyReason::Organization && read_only.path.overlaps(path)
        };
        if let Some(read_only) = protected.read_only().iter().filter(|_| is_written).find(denied) {
            return Some(format!(
                "cannot be writable: your organization's rules deny changes to `{}`",
                read_only.path
            ));
        }
        let is_program = |is: ReadOnlyReason| is_written && is == ReadOnlyReason::OurPrograms;
        let mut programs = protected.read_only().iter().filter(|read_only| is_program(read_only.reason));
        let is_own = programs.any(|read_only| touches(read_only.path.as_path()))
            || data.is_ok_and(|data| touches(&data));
        is_own.then(|| "contains files of IronCurtain".to_owned())
    }

    fn program(&self) -> Option<FoundProgram> {
        FoundProgram::find(self.context.argv.first()?, self.context.path, self.context.cwd)
    }

    /// Returns the agent's installation folders: those of the run's program, and those of the program that the profile
    /// names, because a script may start that program. Folders that contain a protected path are omitted.
    fn install_tree(&self, protected: &ProtectedPaths) -> Vec<CanonicalPath> {
        let PlanContext { home, cwd, path, .. } = self.context;
        let pattern = &self.profile.program;
        let from_profile = pattern.names.iter().filter_map(|name| FoundProgram::find(name, path, cwd));
        let all = self.program().into_iter().chain(from_profile);
        let recognized = all.filter(|program| program.is_recognized(pattern, home, cwd));
        let tree = recognized.flat_map(|program| program.install_tree(pattern, path, home));
        let started_files = self.program().map(|program| program.started_files()).unwrap_or_default();
        let tree = tree.chain(started_files);
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
    use crate::home::Home;
    use crate::protection::protection;

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
                shim: Path::new("/opt/shim"),
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
        let settings_view = plan.protection(&before);
        for path in [".claude/.credentials.json", ".claude.json", "dotfiles/claude.json"] {
            assert!(before.covers(&scene.at(path)) && !settings_view.covers(&scene.at(path)), "{path}");
        }
        let is_kept = |protected: &ProtectedPaths, path: &str| {
            protected.read_only().iter().any(|read_only| read_only.path == scene.at(path))
        };
        assert!(
            is_kept(&before, ".claude/settings.json") && !is_kept(&settings_view, ".claude/settings.json")
        );
        assert!(
            is_kept(&settings_view, ".codex/config.toml")
                && settings_view.covers(&scene.at(".codex/auth.json"))
        );
        // A symlink to a protected key gives no access.
        std::os::unix::fs::symlink(scene.at(".ssh/id").as_path(), scene.at(".x").as_path()).unwrap();
        let to_keys = RunProfile { logins: vec!["~/.x".into()], ..profile(&["~/.x"], &[]) };
        assert!(scene.plan(to_keys).unwrap_err().contains("is protected, because of"));
    }

    #[test]
    fn files_beside_a_settings_file_belong_to_it() {
        for path in ["/h/.a.json.lock", "/h/.a.json.tmp.7.8", "/h/.a.json.backup", "/h/.a.json.backup.3"] {
            assert!(is_sidecar("/h/.a.json", path), "{path}");
        }
        for path in ["/h/.a.json", "/h/.a.jsonc", "/h/.a.json.d/x", "/h/.a.json.tmp/x", "/h/x.lock"] {
            assert!(!is_sidecar("/h/.a.json", path), "{path}");
        }
    }
}
