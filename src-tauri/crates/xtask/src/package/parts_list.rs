//! Creates the software bill of materials (CycloneDX 1.5) from Cargo's metadata.

use super::NAME;
use super::tree::PROGRAMS;
use crate::{cargo, parts, process};
use anyhow::Context;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the version of the packages.
pub(super) fn version() -> anyhow::Result<String> {
    let metadata = metadata(&["--no-deps"])?;
    let app = list(&metadata, "packages").find(|package| string(package, "name") == parts::APP);
    Ok(string(app.context("the app is not a package of the workspace")?, "version").to_owned())
}

/// Returns the bill of materials of this checkout.
pub(super) fn text(version: &str, moment: &str) -> anyhow::Result<String> {
    let metadata = metadata(&["--locked", "--filter-platform", "x86_64-unknown-linux-gnu"])?;
    let components = components(&metadata);
    anyhow::ensure!(components.len() > PROGRAMS.len(), "`cargo metadata` lists no dependencies");
    let program = json!({ "type": "application", "name": NAME, "version": version });
    let moment = json!([{ "name": "SOURCE_DATE_EPOCH", "value": moment }]);
    let list = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": program, "properties": moment },
        "components": components,
    });
    Ok(serde_json::to_string_pretty(&list)? + "\n")
}

fn metadata(arguments: &[&str]) -> anyhow::Result<Value> {
    let mut command = cargo::command(&["metadata", "--format-version", "1"]);
    let answer = process::answer(command.args(arguments)).context("`cargo metadata` failed")?;
    Ok(serde_json::from_str(&answer)?)
}

/// Returns all packages compiled into the programs, in a fixed order.
fn components(metadata: &Value) -> Vec<Value> {
    let by_id = |of: &'static str| -> BTreeMap<&str, &Value> {
        let resolve = metadata.get("resolve").unwrap_or(&Value::Null);
        let all = if of == "nodes" { resolve } else { metadata };
        list(all, of).map(|one| (string(one, "id"), one)).collect()
    };
    let (packages, nodes) = (by_id("packages"), by_id("nodes"));
    let is_ours = |package: &&&Value| {
        let is_program = |target: &Value| {
            list(target, "kind").any(|kind| kind == "bin") && PROGRAMS.contains(&string(target, "name"))
        };
        package.get("source").is_none_or(Value::is_null) && list(package, "targets").any(is_program)
    };
    let mut left: Vec<&str> =
        packages.values().filter(is_ours).map(|package| string(package, "id")).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = left.pop() {
        if seen.insert(id) {
            left.extend(nodes.get(id).into_iter().flat_map(|node| compiled_in(node)));
        }
    }
    seen.iter().filter_map(|id| packages.get(id)).map(|package| component(package)).collect()
}

/// Returns a package's dependencies, except those of its tests and build scripts.
fn compiled_in(node: &Value) -> impl Iterator<Item = &str> {
    let is_compiled = |dependency: &&Value| {
        list(dependency, "dep_kinds").any(|kind| kind.get("kind").is_some_and(Value::is_null))
    };
    list(node, "deps").filter(is_compiled).map(|dependency| string(dependency, "pkg"))
}

fn component(package: &Value) -> Value {
    let (name, version) = (string(package, "name"), string(package, "version"));
    let address = format!("pkg:cargo/{name}@{version}");
    let mut facts = json!({
        "type": "library", "bom-ref": address, "name": name, "version": version, "purl": address,
    });
    if let (Some(fields), Some(license)) =
        (facts.as_object_mut(), package.get("license").and_then(Value::as_str))
    {
        // `/` is a deprecated separator in licence expressions.
        let license = license.replace('/', " OR ");
        fields.insert("licenses".to_owned(), json!([{ "expression": license }]));
    }
    facts
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn string<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
