//! Installs `PyPI` packages into a virtual environment, from wheels only.
//!
//! - Builds nothing from source (`--only-binary :all:`), so none of a package's code runs.
//! - The environment uses the system's Python, which is available in every sandbox. If no version of the package
//!   supports that Python, the environment uses a different installed Python.

use super::build_error::{BuildError, utf8};
use super::build_sandbox::{BuildSandbox, SEPARATOR};
use super::registry;
use ironcurtain_egress::HostRules;
use ironcurtain_packages::{
    EntryPoint, PackageRecord, RequestedPackage, Runtime, installed_pythons, system_python,
};
use ironcurtain_visible as visible;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

/// Installs a package into the sandbox's folder.
pub(super) async fn build(
    sandbox: &BuildSandbox,
    requested: &RequestedPackage,
    version: Option<&str>,
) -> Result<PackageRecord, BuildError> {
    let system = system_python()?;
    let mut problem = match build_with(sandbox, &system, requested, version).await {
        Err(problem @ BuildError::OldPython { .. }) => problem,
        done => return done,
    };
    for other in installed_pythons().into_iter().filter(|other| *other != system) {
        let venv = sandbox.tree.join("venv");
        std::fs::remove_dir_all(&venv).map_err(|source| BuildError::Write { path: venv, source })?;
        problem = match build_with(sandbox, &other, requested, version).await {
            Err(BuildError::OldPython { .. }) => problem,
            done => return done,
        };
    }
    Err(problem)
}

/// Installs a package for this version of Python.
async fn build_with(
    sandbox: &BuildSandbox,
    runtime: &Path,
    requested: &RequestedPackage,
    version: Option<&str>,
) -> Result<PackageRecord, BuildError> {
    // The system Python's pip can also install for other Python versions.
    let system = system_python()?;
    let python = system.as_os_str();
    let config = registry::pip(&[python]).await?;
    let venv = sandbox.tree.join("venv");
    let arguments = ["-I", "-m", "venv", "--without-pip"].map(OsStr::new);
    let arguments: Vec<&OsStr> =
        [runtime.as_os_str()].into_iter().chain(arguments).chain([venv.as_os_str()]).collect();
    sandbox.run(&arguments, BTreeMap::new(), &HostRules::default()).await?;
    let (requested_name, report) = (venv.join("bin/python"), sandbox.path("report.json"));
    let package = requested.package_spec(version);
    let mut argv = vec![
        python,
        OsStr::new("-m"),
        OsStr::new("pip"),
        OsStr::new("--python"),
        requested_name.as_os_str(),
        OsStr::new("install"),
        OsStr::new("--only-binary=:all:"),
        OsStr::new("--no-input"),
        OsStr::new("--no-cache-dir"),
        OsStr::new("--disable-pip-version-check"),
        OsStr::new("--progress-bar=off"),
        OsStr::new("--report"),
        report.as_os_str(),
        OsStr::new("--"),
        OsStr::new(&package),
    ];
    argv.extend(requested.with.iter().map(OsStr::new));
    let mut env = config.settings;
    // Other configuration files are ignored.
    env.insert("PIP_CONFIG_FILE".to_owned(), "/dev/null".to_owned());
    let python = std::fs::read_dir(venv.join("lib")).into_iter().flatten().flatten().next();
    let python_version =
        python.and_then(|python| Some(python.file_name().to_str()?.strip_prefix("python")?.to_owned()));
    let finished = sandbox.run(&argv, env, &config.rules).await;
    finished
        .map_err(|problem| simplify_error(problem, python_version.as_deref().unwrap_or("another version")))?;
    let installed = installed(&report, &requested.package)?;
    let program = program(&sandbox.tree, requested)?;
    let entry_point = EntryPoint { runtime: Runtime::Python(runtime.to_path_buf()), program };
    Ok(PackageRecord::new(requested.clone(), installed.version, installed.integrity, entry_point))
}

/// Converts an error to a more specific error if pip's output is recognized.
fn simplify_error(problem: BuildError, installed: &str) -> BuildError {
    let BuildError::Failed { status, refused, output } = problem else { return problem };
    // Skips progress messages, which pip prints to the same output.
    let errors: Vec<&str> = output.split(SEPARATOR).filter(|line| line.starts_with("ERROR")).collect();
    let errors =
        if errors.is_empty() { output.clone() } else { format!("it said: {}", errors.join(SEPARATOR)) };
    if let Some(missing) = package_without_wheel(&output) {
        return BuildError::NoWheel(visible::line(missing));
    }
    let problem = BuildError::Failed { status, refused, output: errors };
    let after = |mark: &str| output.split(mark).nth(1).and_then(|rest| rest.split_whitespace().next());
    let Some(missing) = after("No matching distribution found for ") else { return problem };
    let versions = output.split("Requires-Python").skip(1).filter_map(|rest| {
        let needed = rest.trim_start().strip_prefix(">=")?;
        let end = needed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(needed.len());
        let version = needed.get(..end)?;
        let parts = version.split('.').map(str::parse).collect::<Result<Vec<u32>, _>>().ok()?;
        Some((parts, version.to_owned()))
    });
    match versions.min() {
        Some((_, needed)) => BuildError::OldPython { needed, installed: installed.to_owned() },
        None => BuildError::NoWheel(visible::line(missing)),
    }
}

/// Returns the dependency that prevents the installation because none of its versions has a wheel. In this case, pip
/// reports a conflict with that dependency only.
fn package_without_wheel(output: &str) -> Option<&str> {
    let conflicts = output.split(SEPARATOR).filter_map(|line| line.trim().split_once(" depends on "));
    let name = |text: &'_ str| text.find(|c: char| !(c.is_alphanumeric() || "-_.".contains(c)));
    let mut parts = conflicts.map(|(package, part)| {
        let end = name(part).unwrap_or(part.len());
        (package.split(' ').next().unwrap_or_default(), part.get(..end).unwrap_or_default())
    });
    let first = parts.next().filter(|_| output.contains("ResolutionImpossible"))?;
    parts.all(|other| other == first).then_some(first.1)
}

struct Installed {
    version: String,
    integrity: Option<String>,
}

/// Finds the requested package in pip's installation report.
fn installed(report: &Path, package: &str) -> Result<Installed, BuildError> {
    #[derive(Deserialize)]
    struct Report {
        install: Vec<Item>,
    }
    #[derive(Deserialize)]
    struct Item {
        requested: bool,
        metadata: Metadata,
        download_info: Download,
    }
    #[derive(Deserialize)]
    struct Metadata {
        name: String,
        version: String,
    }
    #[derive(Deserialize)]
    struct Download {
        archive_info: Option<Archive>,
    }
    #[derive(Deserialize)]
    struct Archive {
        #[serde(default)]
        hashes: BTreeMap<String, String>,
    }
    let error = |problem: String| BuildError::Report { manager: "pip", problem };
    let report = std::fs::read_to_string(report).map_err(|e| error(e.to_string()))?;
    let report: Report = serde_json::from_str(&report).map_err(|e| error(e.to_string()))?;
    let requested_name = normalize_name(package.split('[').next().unwrap_or_default());
    let is_requested = |item: &Item| item.requested && normalize_name(&item.metadata.name) == requested_name;
    let item = report.install.into_iter().find(is_requested);
    let item = item.ok_or_else(|| error("the requested package is missing".to_owned()))?;
    let hashes = item.download_info.archive_info.map(|archive| archive.hashes).unwrap_or_default();
    let integrity = hashes.into_iter().next().map(|(kind, hash)| format!("{kind}:{hash}"));
    Ok(Installed { version: item.metadata.version, integrity })
}

/// Normalizes a package name as `PyPI` does.
fn normalize_name(name: &str) -> String {
    let mut words = name.split(['-', '_', '.']).filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    words.fold(first, |name, word| name + "-" + &word.to_ascii_lowercase())
}

/// Returns the script to start, relative to the installed tree: the script named in the entry, or the script with the
/// package's name.
fn program(tree: &Path, requested: &RequestedPackage) -> Result<String, BuildError> {
    let package = requested.package.split('[').next().unwrap_or_default();
    let name = requested.program.as_deref().unwrap_or(package);
    let script = format!("venv/bin/{name}");
    if tree.join(&script).is_file() {
        return utf8(Path::new(&script));
    }
    Err(BuildError::NoProgram(format!(
        "`{package}` has no program `{name}`; name one with `uvx --from {package} NAME`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pip_output_is_converted_to_errors() {
        let simplified = |output: &str| {
            let ended = BuildError::Failed { status: 1, refused: String::new(), output: output.to_owned() };
            simplify_error(ended, "3.11").to_string()
        };
        let old = "ERROR: Ignored the following versions that require a different python version: 0.2.0 Requires-Python >=3.13; 0.1.0 \
            Requires-Python >=3.12\nERROR: No matching distribution found for mcp-server-docker";
        assert_eq!(simplified(old), "it needs Python 3.12 or newer; this computer has 3.11");
        let config = "ERROR: Could not find a version that satisfies the requirement pandoc (from mcp-pandoc) (from versions: none)\n\
            ERROR: No matching distribution found for pandoc\n";
        assert!(simplified(config).starts_with("pip found no wheels for `pandoc`"), "{}", simplified(config));
        let conflict = "Collecting mcp-pandoc / The conflict is caused by: / mcp-pandoc 0.9.1 depends on pandoc>=2.4 / \
            mcp-pandoc 0.9.0 depends on pandoc>=2.4 / ERROR: ResolutionImpossible: for help visit https://pip.pypa.io";
        assert!(
            simplified(conflict).starts_with("pip found no wheels for `pandoc`"),
            "{}",
            simplified(conflict)
        );
        let real = conflict.replace("mcp-pandoc 0.9.0", "other 1.0");
        assert_eq!(
            simplified(&real),
            "it exited with status 1; it said: ERROR: ResolutionImpossible: for help visit https://pip.pypa.io"
        );
        assert_eq!(simplified("disk full"), "it exited with status 1; disk full");
    }
}
