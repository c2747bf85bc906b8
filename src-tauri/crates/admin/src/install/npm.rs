//! Installs npm packages without running their code.
//!
//! - Install scripts never run, neither during the installation nor later (`--ignore-scripts`).
//! - Only a Node.js script in the package itself is started.

use super::build_error::{BuildError, utf8};
use super::build_sandbox::BuildSandbox;
use super::registry;
use ironcurtain_containment::find_program;
use ironcurtain_packages::{EntryPoint, PackageRecord, RequestedPackage, Runtime};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Component, Path};

/// Maximum number of bytes in a script's first line.
const MAX_SHEBANG_LEN: u64 = 300;

/// Installs a package into the sandbox's folder.
pub(super) async fn build(
    sandbox: &BuildSandbox,
    requested: &RequestedPackage,
    version: Option<&str>,
) -> Result<PackageRecord, BuildError> {
    let (node, npm) = programs()?;
    let npm = [node.as_os_str(), npm.as_os_str()];
    let config = registry::npm(&npm).await?;
    let lines: String = config.settings.iter().map(|(name, value)| format!("{name}={value}\n")).collect();
    write(&sandbox.path("npmrc"), &lines)?;
    let version = version.unwrap_or("latest");
    let project = json!({ "private": true, "dependencies": { &requested.package: version } });
    write(&sandbox.tree.join("package.json"), &project.to_string())?;
    let install = [
        "install",
        "--ignore-scripts",
        "--omit=dev",
        "--no-audit",
        "--no-fund",
        "--no-update-notifier",
        "--no-progress",
        // Log files would be deleted with the sandbox anyway.
        "--logs-max=0",
        "--loglevel=error",
    ];
    let argv: Vec<&OsStr> = npm.into_iter().chain(install.map(OsStr::new)).collect();
    let env = BTreeMap::from([
        ("npm_config_userconfig".to_owned(), utf8(&sandbox.path("npmrc"))?),
        ("npm_config_globalconfig".to_owned(), utf8(&sandbox.path("none"))?),
    ]);
    sandbox.run(&argv, env, &config.rules).await?;
    let lock_entry = lock_entry(&sandbox.tree, &requested.package)?;
    let program = program(&sandbox.tree, requested)?;
    let entry_point = EntryPoint { runtime: Runtime::Node, program };
    Ok(PackageRecord::new(requested.clone(), lock_entry.version, lock_entry.integrity, entry_point))
}

/// Returns the paths of `node` and `npm`.
fn programs() -> Result<(std::path::PathBuf, std::path::PathBuf), BuildError> {
    let project = Path::new("/nonexistent");
    Ok((find_program("node", project)?, find_program("npm", project)?))
}

/// Entry of a package in npm's lockfile.
#[derive(Deserialize)]
struct LockEntry {
    version: String,
    integrity: Option<String>,
}

fn lock_entry(tree: &Path, package: &str) -> Result<LockEntry, BuildError> {
    #[derive(Deserialize)]
    struct Lock {
        packages: BTreeMap<String, serde_json::Value>,
    }
    let mut lock: Lock = read(&tree.join("package-lock.json"))?;
    let key = format!("node_modules/{package}");
    let found = lock.packages.remove(&key).ok_or_else(|| BuildError::NotInstalled(package.to_owned()))?;
    serde_json::from_value(found).map_err(|e| {
        let source = std::io::Error::other(format!("`{key}`: {e}"));
        BuildError::Read { path: "package-lock.json".into(), source }
    })
}

/// Returns the script to start, relative to the installed tree.
fn program(tree: &Path, requested: &RequestedPackage) -> Result<String, BuildError> {
    #[derive(Deserialize)]
    struct Package {
        bin: Option<Bin>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Bin {
        One(String),
        Many(BTreeMap<String, String>),
    }
    let folder = format!("node_modules/{}", requested.package);
    let manifest: Package = read(&tree.join(&folder).join("package.json"))?;
    let default_name = requested.package.rsplit('/').next().unwrap_or_default();
    let script = match (manifest.bin, requested.program.as_deref()) {
        (None, _) => return Err(BuildError::NoProgram(format!("`{}` has no program", requested.package))),
        (Some(Bin::One(script)), None) => script,
        (Some(Bin::One(script)), Some(name)) if name == default_name => script,
        (Some(Bin::One(_)), Some(name)) => {
            let problem = format!("`{}` has no program `{name}`", requested.package);
            return Err(BuildError::NoProgram(problem));
        }
        (Some(Bin::Many(scripts)), name) => choose_script(scripts, name, default_name, &requested.package)?,
    };
    let script = script.strip_prefix("./").unwrap_or(&script);
    if !Path::new(script).components().all(|part| matches!(part, Component::Normal(_))) {
        let problem = format!("the program of `{}` is outside the package: `{script}`", requested.package);
        return Err(BuildError::NoProgram(problem));
    }
    let script = format!("{folder}/{script}");
    check_node_script(&tree.join(&script))?;
    Ok(script)
}

/// Selects a script as `npx` does: the requested script, the only script, or the script with the package's name.
fn choose_script(
    scripts: BTreeMap<String, String>,
    name: Option<&str>,
    default_name: &str,
    package: &str,
) -> Result<String, BuildError> {
    let names = scripts.keys().map(String::as_str).collect::<Vec<_>>().join("`, `");
    let only_script = || {
        let mut all = scripts.values();
        all.next().filter(|first| all.all(|other| other == *first))
    };
    let found = match name {
        Some(name) => scripts.get(name),
        None => only_script().or_else(|| scripts.get(default_name)),
    };
    found.cloned().ok_or_else(|| {
        BuildError::NoProgram(match name {
            Some(name) => format!("`{package}` has no program `{name}`; it has `{names}`"),
            None => {
                format!("`{package}` has several programs, `{names}`; name one with `npx -p {package} NAME`")
            }
        })
    })
}

/// Returns an error if the file is not a Node.js script.
fn check_node_script(script: &Path) -> Result<(), BuildError> {
    let error = |problem: String| BuildError::NotRunnable { path: script.to_path_buf(), problem };
    let file = std::fs::File::open(script).map_err(|e| error(e.to_string()))?;
    let mut line = Vec::new();
    let read = BufReader::new(file).take(MAX_SHEBANG_LEN).read_until(b'\n', &mut line);
    read.map_err(|e| error(e.to_string()))?;
    let line = String::from_utf8_lossy(&line);
    let names_node = || line.split([' ', '/']).any(|word| word.trim() == "node");
    if line.starts_with("#!") && names_node() {
        Ok(())
    } else {
        Err(error("it is not a script for node".to_owned()))
    }
}

fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, BuildError> {
    let error = |source| BuildError::Read { path: path.to_path_buf(), source };
    let text = std::fs::read_to_string(path).map_err(error)?;
    serde_json::from_str(&text).map_err(|e| error(e.into()))
}

fn write(path: &Path, text: &str) -> Result<(), BuildError> {
    std::fs::write(path, text).map_err(|source| BuildError::Write { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_packages::Registry;
    use serde_json::Value;

    fn found(bin: Value, program: Option<&str>, first_line: &str) -> Result<String, String> {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("node_modules/@a/b");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("package.json"), json!({ "bin": bin }).to_string()).unwrap();
        std::fs::write(folder.join("x.js"), first_line).unwrap();
        let program = program.map(str::to_owned);
        let requested = RequestedPackage {
            registry: Registry::Npm,
            package: "@a/b".into(),
            version: None,
            program,
            with: vec![],
        };
        super::program(dir.path(), &requested)
            .map_err(|e| e.to_string().replace(&*dir.path().to_string_lossy(), ""))
    }

    #[test]
    fn the_program_is_the_one_that_npx_would_run() {
        let node = "#!/usr/bin/env node\n";
        let path = Ok("node_modules/@a/b/x.js".to_owned());
        for (bin, name) in [
            (json!("./x.js"), None),
            (json!("x.js"), Some("b")),
            (json!({ "other": "x.js" }), None),
            (json!({ "other": "y.js", "b": "x.js" }), None),
            (json!({ "other": "x.js", "b": "y.js" }), Some("other")),
        ] {
            assert_eq!(found(bin.clone(), name, node), path, "{bin}");
        }
        for (bin, name, line, problem) in [
            (Value::Null, None, node, "`@a/b` has no program"),
            (json!("x.js"), Some("c"), node, "`@a/b` has no program `c`"),
            (
                json!({ "c": "x.js", "d": "y.js" }),
                None,
                node,
                "`@a/b` has several programs, `c`, `d`; name one",
            ),
            (json!({ "c": "x.js" }), Some("e"), node, "`@a/b` has no program `e`; it has `c`"),
            (json!("../x.js"), None, node, "the program of `@a/b` is outside the package: `../x.js`"),
            (json!("/bin/sh"), None, node, "the program of `@a/b` is outside the package: `/bin/sh`"),
            (
                json!("x.js"),
                None,
                "#!/bin/sh\n",
                "`/node_modules/@a/b/x.js` cannot be run: it is not a script for node",
            ),
            (json!("y.js"), None, node, "`/node_modules/@a/b/y.js` cannot be run: No such file"),
        ] {
            let error = found(bin, name, line).unwrap_err();
            assert!(error.starts_with(problem), "{error}");
        }
    }
}
