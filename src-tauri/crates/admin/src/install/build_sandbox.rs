//! Sandbox in which a package is built. Its only writable folder is next to the installed packages, and is always
//! removed afterwards.

use super::build_error::{BuildError, text};
use super::sandboxed_run::{RunOutput, RunSandbox, SandboxedProgram, run};
use super::{InstallError, Installer, registry};
use ironcurtain_config::ManagedPolicy;
use ironcurtain_config::home::{canonical_home, private_dir};
use ironcurtain_containment::Surroundings;
use ironcurtain_egress::HostRules;
use ironcurtain_packages::{Packages, tree};
use ironcurtain_paths::{CanonicalPath, random_name};
use ironcurtain_visible as visible;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Prefix of build folder names. The prefix cannot occur in a registry's folder name.
pub(super) const STAGING: &str = ".staging-";

/// Folder in which a package is built. Dropping it removes the folder.
pub(super) struct BuildSandbox {
    all: PathBuf,
    /// Subfolder that becomes the installed package.
    pub(super) tree: PathBuf,
    programs: PathBuf,
    allow_root: bool,
    patience: Duration,
    around: Surroundings,
}

impl BuildSandbox {
    pub(super) fn new(installer: &Installer, packages: &Packages) -> Result<Self, InstallError> {
        private_dir(&packages.files)?;
        let folder = |source| InstallError::Folder { path: packages.files.clone(), source };
        let files = packages.files.canonicalize().map_err(folder)?;
        let all = files.join(format!("{STAGING}{}", random_name().map_err(folder)?));
        let session_dir = all.to_str().and_then(|text| CanonicalPath::assume_canonical(text).ok());
        let session_dir =
            session_dir.ok_or_else(|| folder(std::io::Error::other("the path is not valid UTF-8")))?;
        let person = canonical_home(&installer.home)?;
        let protected = Arc::new(ManagedPolicy::protection(&installer.home, &person)?);
        let around = Surroundings::new(&installer.home, &person, &protected, &session_dir).map_err(folder)?;
        let sandbox = Self {
            tree: all.join("tree"),
            all,
            programs: installer.programs.clone(),
            allow_root: installer.allow_root,
            patience: installer.patience,
            around,
        };
        for dir in [&sandbox.all, &sandbox.tree, &sandbox.path("home")] {
            private_dir(dir)?;
        }
        Ok(sandbox)
    }

    /// Returns the path of a temporary file outside the package.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.all.join(name)
    }

    /// Runs a program in the sandbox. `env` is added to the common environment variables.
    pub(super) async fn run(
        &self,
        argv: &[&OsStr],
        env: BTreeMap<String, String>,
        rules: &HostRules,
    ) -> Result<RunOutput, BuildError> {
        let argv = argv.iter().map(|word| text(Path::new(word))).collect::<Result<Vec<_>, _>>()?;
        let program = SandboxedProgram {
            env: self.environment(&argv, env)?,
            argv,
            cwd: &self.tree,
            rules,
            patience: self.patience,
        };
        let sandbox =
            RunSandbox { programs: &self.programs, allow_root: self.allow_root, around: &self.around };
        let finished = run(&sandbox, program).await?;
        if finished.status == 0 { Ok(finished) } else { Err(complaint(&finished)) }
    }

    fn environment(
        &self,
        argv: &[String],
        more: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, BuildError> {
        let beside = argv.first().and_then(|program| Path::new(program).parent()?.to_str());
        let path: Vec<&str> = beside.into_iter().chain(["/usr/local/bin", "/usr/bin", "/bin"]).collect();
        let mut env = ironcurtain_egress::environment(ironcurtain_egress::PORT, None);
        env.extend(registry::trust());
        env.extend([
            ("PATH".to_owned(), path.join(":")),
            ("HOME".to_owned(), text(&self.path("home"))?),
            ("TMPDIR".to_owned(), "/tmp".to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        env.extend(more);
        Ok(env)
    }
}

impl Drop for BuildSandbox {
    fn drop(&mut self) {
        if let Err(problem) = tree::remove(&self.all) {
            tracing::warn!(%problem, "failed to remove `{}`", self.all.display());
        }
    }
}

/// Separator between lines of a program's output in an error message.
pub(super) const SEPARATOR: &str = " / ";

/// Maximum length of a program's output in an error message, in bytes.
const MAX_MESSAGE_LEN: usize = 2000;

/// Returns the error for a failed run, with the last lines of its output and the refused connections.
fn complaint(finished: &RunOutput) -> BuildError {
    let refused: String = finished.refused.iter().map(|why| format!("; refused connection: {why}")).collect();
    let lines = finished.said.lines().map(str::trim).filter(|line| !line.is_empty());
    // The last lines contain the reason for the failure.
    let mut said: Vec<&str> = Vec::new();
    for line in lines.rev() {
        if !said.is_empty()
            && said.iter().map(|line| line.len()).sum::<usize>() + line.len() > MAX_MESSAGE_LEN
        {
            break;
        }
        said.insert(0, line);
    }
    let said = visible::head(&visible::line(&said.join(SEPARATOR)), MAX_MESSAGE_LEN);
    let said = if said.is_empty() { "no output".to_owned() } else { format!("it said: {said}") };
    BuildError::Ended { status: finished.status, refused, said }
}
