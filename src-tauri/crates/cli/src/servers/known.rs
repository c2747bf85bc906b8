//! Known servers: what there is, and adding one.

use super::print_json;
use anyhow::Context;
use clap::Args;
use ironcurtain_daemon::Home;
use ironcurtain_daemon::catalog::{Added, Adding, Catalog, Known, Source, add};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// What to add, and how.
#[derive(Debug, Args)]
pub struct AddOptions {
    /// Which known server: an id of `servers catalog`.
    id: String,
    /// What to call it, instead of its id.
    #[arg(long)]
    name: Option<String>,
    /// The folder its package is installed in, instead of having it installed.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// What it must be told.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Replace a server of this name.
    #[arg(long)]
    replace: bool,
}

/// Shows the catalog.
pub fn catalog(json: bool) -> anyhow::Result<ExitCode> {
    let catalog = Catalog::shipped()?;
    let mut out = io::stdout().lock();
    if json {
        print_json(&mut out, &json!({ "servers": catalog.iter().collect::<Vec<_>>() }))?;
    } else {
        catalog.iter().try_for_each(|known| write!(out, "{}", described(known)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Adds a known server to the configuration.
pub fn perform(home: &Home, options: &AddOptions, json: bool) -> anyhow::Result<ExitCode> {
    let catalog = Catalog::shipped()?;
    let ids = || catalog.iter().map(|known| known.id.as_str()).collect::<Vec<_>>().join("`, `");
    let known = catalog
        .find(&options.id)
        .with_context(|| format!("the catalog has no `{}`; it has `{}`", options.id, ids()))?;
    let name = options.name.as_deref().unwrap_or(&known.id);
    let from = options
        .from
        .as_ref()
        .map(|dir| dir.canonicalize().with_context(|| format!("`{}` cannot be used", dir.display())));
    let from = from.transpose()?;
    let settings: BTreeMap<_, _> = options.settings.iter().cloned().collect();
    let adding = Adding { known, name, from: from.as_deref(), settings: &settings, replace: options.replace };
    let added = add(home, adding)?;
    let mut out = io::stdout().lock();
    if json {
        let (servers, annotations, data) = (&added.servers, &added.annotations, &added.data);
        let told = json!({ "name": name, "servers": servers, "annotations": annotations, "data": data });
        print_json(&mut out, &told)?;
    } else {
        write!(out, "{}", told(known, name, &added, from.is_some()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as `NAME=VALUE`")?;
    Ok((name.to_owned(), value.to_owned()))
}

fn described(known: &Known) -> String {
    let from = match &known.source {
        Source::Own { .. } => "comes with IronCurtain".to_owned(),
        Source::Npm { package, version, .. } => format!("npm package {package} {version}"),
        Source::Pypi { package, version, .. } => format!("PyPI package {package} {version}"),
        Source::Elsewhere { from, .. } => from.clone(),
    };
    let needs = known.needs.as_ref().map(|needs| format!("  Needs {needs}.\n")).unwrap_or_default();
    let settings = known.settings.iter().map(|(name, about)| format!("  --set {name}=...: {about}\n"));
    let settings: String = settings.collect();
    format!(
        "{} ({})\n  {}\n  {}\n  From: {from}.\n{needs}{settings}\n",
        known.id, known.title, known.about, known.why
    )
}

fn told(known: &Known, name: &str, added: &Added, installed: bool) -> String {
    let mut lines = vec![format!("`{name}` is in `{}`.", added.servers.display())];
    match &added.annotations {
        Some(file) => lines.push(format!("What its tools mean is in `{}`.", file.display())),
        None => lines.push(format!(
            "Nobody has looked at its tools yet, so none can be called: `ironcurtain servers annotate {name}`."
        )),
    }
    if let Some(data) = &added.data {
        lines.push(format!("It keeps its data in `{}`.", data.display()));
    }
    if let Some(needs) = &known.needs {
        lines.push(format!("It needs {needs}."));
    }
    if !installed && matches!(known.source, Source::Npm { .. } | Source::Pypi { .. }) {
        lines.push(format!("Its package is to be installed: `ironcurtain servers install {name}`."));
    }
    lines.join("\n") + "\n"
}
