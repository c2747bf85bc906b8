//! `servers catalog`: lists the servers in IronCurtain's catalog.

use crate::screen::Screen;
use crate::text_lines::TextLines;
use ironcurtain_admin::catalog::{Catalog, KnownServer, Source};
use serde_json::json;
use std::process::ExitCode;

/// Prints the catalog.
pub fn perform(screen: Screen) -> anyhow::Result<ExitCode> {
    let catalog = Catalog::shipped()?;
    let mut text = TextLines::default();
    catalog.iter().for_each(|known| described(&mut text, known));
    screen.show(&text, &json!({ "servers": catalog.iter().collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn described(text: &mut TextLines, known: &KnownServer) {
    let from = match &known.source {
        Source::Own { .. } => "included in IronCurtain".to_owned(),
        Source::Npm { package, version, .. } => format!("npm package {package} {version}"),
        Source::Pypi { package, version, .. } => format!("PyPI package {package} {version}"),
    };
    text.line(format_args!("{} ({})", known.id, known.title));
    text.line(format_args!("  {}", known.about));
    text.line(format_args!("  {}", known.why));
    text.line(format_args!("  Source: {from}."));
    if let Some(needs) = &known.needs {
        text.line(format_args!("  Needs {needs}."));
    }
    for (name, about) in &known.settings {
        text.line(format_args!("  --set {name}=...: {about}"));
    }
    text.line("");
}
