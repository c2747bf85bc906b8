//! Sandbox in which a package is built. Its only writable folder is next to the installed packages, and is always
//! removed afterwards.

use super::build_error::{BuildError, utf8};
use super::sandboxed_run::{RunOutput, RunSandbox, SandboxedProgram, run};
use super::{InstallError, Installer, registry};
use ironcurtain_config::ManagedPolicy;
use ironcurtain_config::home::{canonical_home, private_dir};
use ironcurtain_containment::SandboxContext;
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
    root: PathBuf,
    /// Subfolder that becomes the installed package.
    pub(super) tree: PathBuf,
    programs: PathBuf,
    allow_root: bool,
    timeout: Duration,
    sandbox_paths: SandboxContext,
}

impl BuildSandbox {
    pub(super) fn new(installer: &Installer, packages: &Packages) -> Result<Self, InstallError> {
        private_dir(&packages.files)?;
        let folder_error = |source| InstallError::Folder { path: packages.files.clone(), source };
        let files = packages.files.canonicalize().map_err(folder_error)?;
        let root = files.join(format!("{STAGING}{}", random_name().map_err(folder_error)?));
        let session_dir = root.to_str().and_then(|text| CanonicalPath::assume_canonical(text).ok());
        let session_dir =
            session_dir.ok_or_else(|| folder_error(std::io::Error::other("the path is not valid UTF-8")))?;
        let user_home = canonical_home(&installer.home)?;
        let protected = Arc::new(ManagedPolicy::protection(&installer.home, &user_home)?);
        let sandbox_paths = SandboxContext::new(&installer.home, &user_home, &protected, &session_dir)
            .map_err(folder_error)?;
        let sandbox = Self {
            tree: root.join("tree"),
            root,
            programs: installer.programs.clone(),
            allow_root: installer.allow_root,
            timeout: installer.timeout,
            sandbox_paths,
        };
        for dir in [&sandbox.root, &sandbox.tree, &sandbox.path("home")] {
            private_dir(dir)?;
        }
        Ok(sandbox)
    }

    /// Returns the path of a temporary file outside the package.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Runs a program in the sandbox. `env` is added to the common environment variables.
    pub(super) async fn run(
        &self,
        argv: &[&OsStr],
        env: BTreeMap<String, String>,
        rules: &HostRules,
    ) -> Result<RunOutput, BuildError> {
        let argv = argv.iter().map(|word| utf8(Path::new(word))).collect::<Result<Vec<_>, _>>()?;
        let program = SandboxedProgram {
            env: self.environment(&argv, env)?,
            argv,
            cwd: &self.tree,
            rules,
            timeout: self.timeout,
        };
        let sandbox =
            RunSandbox { programs: &self.programs, allow_root: self.allow_root, paths: &self.sandbox_paths };
        let finished = run(&sandbox, program).await?;
        if finished.status == 0 { Ok(finished) } else { Err(run_error(&finished)) }
    }

    fn environment(
        &self,
        argv: &[String],
        extra: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, BuildError> {
        let program_folder = argv.first().and_then(|program| Path::new(program).parent()?.to_str());
        let path: Vec<&str> =
            program_folder.into_iter().chain(["/usr/local/bin", "/usr/bin", "/bin"]).collect();
        let mut env = ironcurtain_egress::environment(ironcurtain_egress::PORT, None);
        env.extend(registry::certificate_variables());
        env.extend([
            ("PATH".to_owned(), path.join(":")),
            ("HOME".to_owned(), utf8(&self.path("home"))?),
            ("TMPDIR".to_owned(), "/tmp".to_owned()),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        env.extend(extra);
        Ok(env)
    }
}

impl Drop for BuildSandbox {
    fn drop(&mut self) {
        if let Err(problem) = tree::remove(&self.root) {
            tracing::warn!(%problem, "failed to remove `{}`", self.root.display());
        }
    }
}

/// Separator between lines of a program's output in an error message.
pub(super) const SEPARATOR: &str = " / ";

/// Maximum length of a program's output in an error message, in bytes.
const MAX_MESSAGE_LEN: usize = 2000;

/// Returns the error for a failed run, with the last lines of its output and the refused connections.
fn run_error(finished: &RunOutput) -> BuildError {
    let refused: String = finished.refused.iter().map(|why| format!("; refused connection: {why}")).collect();
    let lines = finished.output.lines().map(str::trim).filter(|line| !line.is_empty());
    // The last lines contain the reason for the failure.
    let mut output: Vec<&str> = Vec::new();
    for line in lines.rev() {
        if !output.is_empty()
            && output.iter().map(|line| line.len()).sum::<usize>() + line.len() > MAX_MESSAGE_LEN
        {
            break;
        }
        output.insert(0, line);
    }
    let output = visible::head(&visible::line(&output.join(SEPARATOR)), MAX_MESSAGE_LEN);
    let output = if output.is_empty() { "no output".to_owned() } else { format!("it said: {output}") };
    BuildError::Failed { status: finished.status, refused, output }
}
