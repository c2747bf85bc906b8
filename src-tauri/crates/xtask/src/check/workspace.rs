//! Lists the packages of the workspace, as Cargo reports them.

use super::tree::Tree;
use crate::{cargo, process};
use anyhow::Context;
use serde_json::Value;
use std::path::PathBuf;

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Names of the packages that are compiled into this package's library and programs.
    pub(crate) dependencies: Vec<String>,
    /// Name and root file of the library and of each program in the package.
    roots: Vec<(String, PathBuf)>,
}

/// Returns the packages that Cargo reports.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    let mut command = cargo::command(&["metadata", "--no-deps", "--format-version", "1"]);
    let answer = process::answer(&mut command).context("`cargo metadata` failed")?;
    let metadata: Value = serde_json::from_str(&answer)?;
    let packages = list(&metadata, "packages").map(package).collect::<Option<Vec<_>>>();
    packages.context("unexpected output of `cargo metadata`")
}

/// Parses the source of all libraries and programs.
pub(crate) fn trees(packages: &[Package]) -> anyhow::Result<Vec<Tree>> {
    let roots = packages.iter().flat_map(|package| &package.roots);
    roots.map(|(name, root)| Tree::read(name, root)).collect()
}

fn package(said: &Value) -> Option<Package> {
    let text = |value: &Value, key: &str| Some(value.get(key)?.as_str()?.to_owned());
    // Only the dependencies of tests and build scripts have a kind.
    let compiled = list(said, "dependencies").filter(|other| other.get("kind").is_some_and(Value::is_null));
    let program = |target: &&Value| list(target, "kind").any(|kind| kind == "lib" || kind == "bin");
    let targets = list(said, "targets").filter(program);
    Some(Package {
        name: text(said, "name")?,
        dependencies: compiled.map(|other| text(other, "name")).collect::<Option<_>>()?,
        roots: targets
            .map(|t| Some((text(t, "name")?, text(t, "src_path")?.into())))
            .collect::<Option<_>>()?,
    })
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}
