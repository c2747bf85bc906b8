//! `servers install` and `servers update`: install and update servers' packages.
//!
//! - Shows how a new version differs. Switches to it only after the user's confirmation or with `--yes`.

use super::programs;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use clap::Args;
use ironcurtain_admin::install::{
    Installed, Installer, ToolChange, Update, UpdateCheck, check_for_update, install as install_package,
};
use ironcurtain_config::home::Home;
use ironcurtain_packages::PackageState;
use ironcurtain_secrets::SecretStore;
use ironcurtain_visible as visible;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Timeout for the package manager.
const TIMEOUT: Duration = Duration::from_secs(600);

/// Maximum length of a displayed description in characters.
const MAX_DESCRIPTION_LEN: usize = 300;

/// Options of `servers install`.
#[derive(Debug, Args)]
pub struct InstallOptions {
    /// Name of the server.
    name: String,
    /// Create the sandbox even when running as root, for example in a container.
    #[arg(long)]
    allow_root: bool,
}

/// Options of `servers update`.
#[derive(Debug, Args)]
pub struct UpdateOptions {
    /// Name of the server.
    name: String,
    /// Version to install. Default: the newest.
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Install without asking.
    #[arg(long)]
    yes: bool,
    /// Create the sandboxes even when running as root, for example in a container.
    #[arg(long)]
    allow_root: bool,
}

/// Installs a server's package.
pub fn install(home: Home, options: &InstallOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let installer = installer(home, options.allow_root, crate::secrets::store()?)?;
    let installed = runtime()?.block_on(install_package(&installer, &options.name))?;
    screen.show(&installed_text(&installed), &installed_json(&installed))?;
    Ok(ExitCode::SUCCESS)
}

/// Finds a different version of a server's package and asks for confirmation to switch to it.
pub fn update(home: Home, options: &UpdateOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let installer = installer(home, options.allow_root, crate::secrets::store()?)?;
    let check = runtime()?.block_on(check_for_update(&installer, &options.name, options.to.as_deref()))?;
    let update = match check {
        UpdateCheck::Found(update) => update,
        UpdateCheck::UpToDate(version) => {
            let text = format!("`{}` is already at version {version}.", options.name);
            let json = json!({ "server": options.name, "from": version, "to": version });
            screen.show(&[text].into_iter().collect(), &json)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    screen.show(&update_text(&options.name, &update), &update_json(&options.name, &update, options.yes))?;
    if !options.yes && screen.is_json() {
        return Ok(ExitCode::SUCCESS);
    }
    if !options.yes && !screen.confirmed("Update to this version?")? {
        screen.note("Nothing was changed.")?;
        return Ok(ExitCode::FAILURE);
    }
    update.switch()?;
    screen.note(&format!("Updated. Running sessions continue with version {}.", update.from))?;
    Ok(ExitCode::SUCCESS)
}

/// Converts a package's state to JSON.
pub fn state_json(state: &PackageState) -> Value {
    match state {
        PackageState::NoPackage => Value::Null,
        PackageState::Installed { version, hash } => {
            json!({ "state": "installed", "version": version, "hash": hash })
        }
        PackageState::NotReady(problem) => json!({ "state": "not-ready", "problem": problem.to_string() }),
    }
}

fn installer(home: Home, allow_root: bool, secrets: SecretStore) -> anyhow::Result<Installer> {
    let on_wait = Some(announce_wait as fn(&str));
    Ok(Installer { secrets, home, programs: programs()?, allow_root, timeout: TIMEOUT, on_wait })
}

/// Prints that this installation is waiting for another server's installation.
pub(super) fn announce_wait(other: &str) {
    // Ignores the error: showing progress is optional.
    let _ =
        writeln!(io::stderr(), "Waiting for another installation ({}) to finish ...", visible::line(other));
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn installed_json(installed: &Installed) -> Value {
    let record = &installed.record;
    json!({
        "server": installed.server,
        "package": record.requested.package,
        "version": record.version,
        "integrity": record.integrity,
        "hash": record.hash,
        "folder": installed.folder.display().to_string(),
        "already": installed.was_installed,
    })
}

fn installed_text(installed: &Installed) -> TextLines {
    let record = &installed.record;
    let package = record.package_spec();
    let mut text = TextLines::default();
    text.line(if installed.was_installed {
        format!("`{package}` is already installed and unchanged.")
    } else {
        format!("Installed `{package}` without running any of its code.")
    });
    let integrity = record.integrity.as_deref().unwrap_or("not published");
    text.line(format_args!("  Registry hash: {integrity}"));
    text.line(format_args!("  Installed files: {}", record.hash));
    text.line(format_args!("  Folder: {}", installed.folder.display()));
    text
}

fn update_json(server: &str, update: &Update, is_switched: bool) -> Value {
    let tools = update.tools.iter().map(|change| match change {
        ToolChange::Added { name, description } => {
            json!({ "name": name, "change": "new", "description": description })
        }
        ToolChange::Removed { name } => json!({ "name": name, "change": "gone" }),
        ToolChange::Changed { name, description, arguments, hints } => json!({
            "name": name,
            "change": "other",
            "description": description.as_ref().map(|(before, after)| json!({ "before": before, "after": after })),
            "arguments": arguments,
            "hints": hints,
        }),
    });
    json!({
        "server": server,
        "from": update.from,
        "to": update.to,
        "notCompared": update.not_compared.as_ref().map(ToString::to_string),
        "tools": tools.collect::<Vec<_>>(),
        "changesEntry": update.changes_entry(),
        "taken": is_switched,
    })
}

fn update_text(server: &str, update: &Update) -> TextLines {
    let mut lines = TextLines::default();
    lines.line(format_args!("{server}: from version {} to {}", update.from, update.to));
    let short = |text: &str| visible::head(text, MAX_DESCRIPTION_LEN);
    if let Some(problem) = &update.not_compared {
        lines.quoting(format_args!("  NOT COMPARED, so review each of its tools: {problem}"));
    }
    for change in &update.tools {
        match change {
            ToolChange::Added { name, description } if update.not_compared.is_some() => {
                lines.line(format_args!("  {name}: {}", short(description)));
            }
            ToolChange::Added { name, description } => {
                lines.line(format_args!(
                    "  {name}: NEW, refused until it is annotated: {}",
                    short(description)
                ));
            }
            ToolChange::Removed { name } => lines.line(format_args!("  {name}: removed")),
            ToolChange::Changed { name, description, arguments, hints } => {
                if let Some((before, after)) = description {
                    lines.line(format_args!("  {name}: old description: {}", short(before)));
                    lines.line(format_args!("  {name}: new description: {}", short(after)));
                }
                if *arguments {
                    lines.line(format_args!("  {name}: CHANGED ARGUMENT SCHEMA"));
                }
                if *hints {
                    lines.line(format_args!("  {name}: changed hints about what it changes or destroys"));
                }
            }
        }
    }
    if update.tools.is_empty() && update.not_compared.is_none() {
        lines.line("  Its tools are identical.");
    } else {
        lines.line(format_args!(
            "  After updating, annotate what changed: ironcurtain servers annotate {server}"
        ));
    }
    if update.changes_entry() {
        lines.line("  The version in its `mcp-servers.json` entry will be updated.");
    }
    lines
}
