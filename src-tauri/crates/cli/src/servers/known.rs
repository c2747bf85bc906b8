//! KnownServer servers: what there is, and adding one.

use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::Context;
use clap::Args;
use ironcurtain_admin::catalog::{AddRequest, AddedServer, Catalog, KnownServer, Source, add};
use ironcurtain_daemon::Home;
use serde_json::json;
use std::collections::BTreeMap;
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
pub fn catalog(screen: Screen) -> anyhow::Result<ExitCode> {
    let catalog = Catalog::shipped()?;
    let mut text = Sheet::default();
    catalog.iter().for_each(|known| described(&mut text, known));
    screen.show(&text, &json!({ "servers": catalog.iter().collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

/// Adds a known server to the configuration.
pub fn perform(home: &Home, options: &AddOptions, screen: Screen) -> anyhow::Result<ExitCode> {
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
    let adding =
        AddRequest { known, name, from: from.as_deref(), settings: &settings, replace: options.replace };
    let added = add(home, adding)?;
    let written = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let json = json!({
        "name": name,
        "servers": added.servers.display().to_string(),
        "annotations": written(&added.annotations),
        "data": written(&added.data),
    });
    screen.show(&told(known, name, &added, from.is_some()), &json)?;
    Ok(ExitCode::SUCCESS)
}

/// A text that sets nothing.
#[derive(Debug, thiserror::Error)]
#[error("write it as `NAME=VALUE`")]
struct NotASetting;

fn setting(text: &str) -> Result<(String, String), NotASetting> {
    let (name, value) = text.split_once('=').ok_or(NotASetting)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn described(text: &mut Sheet, known: &KnownServer) {
    let from = match &known.source {
        Source::Own { .. } => "comes with IronCurtain".to_owned(),
        Source::Npm { package, version, .. } => format!("npm package {package} {version}"),
        Source::Pypi { package, version, .. } => format!("PyPI package {package} {version}"),
        Source::Elsewhere { from, .. } => from.clone(),
    };
    text.line(format_args!("{} ({})", known.id, known.title));
    text.line(format_args!("  {}", known.about));
    text.line(format_args!("  {}", known.why));
    text.line(format_args!("  From: {from}."));
    if let Some(needs) = &known.needs {
        text.line(format_args!("  Needs {needs}."));
    }
    for (name, about) in &known.settings {
        text.line(format_args!("  --set {name}=...: {about}"));
    }
    text.line("");
}

fn told(known: &KnownServer, name: &str, added: &AddedServer, installed: bool) -> Sheet {
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
    lines.into_iter().collect()
}
