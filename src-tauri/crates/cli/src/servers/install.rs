//! Installing and updating the packages that servers come from.
//!
//! - Another version is taken only after what it changes was shown and a person said yes, or `--yes` said it for them.

use super::programs;
use crate::screen::Screen;
use crate::sheet::Sheet;
use clap::Args;
use ironcurtain_admin::install::{
    Installed, Installer, ToolChange, Update, Updated, install as install_package, look_for_update,
};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::packages::PackageState;
use ironcurtain_secrets::SecretStore;
use ironcurtain_visible as visible;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// The time that a package manager may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// The characters of a description that are shown.
const DESCRIPTION: usize = 300;

/// Options of `servers install`.
#[derive(Debug, Args)]
pub struct InstallOptions {
    /// The server.
    name: String,
    /// Make the sandbox although this is root. For containers.
    #[arg(long)]
    allow_root: bool,
}

/// Options of `servers update`.
#[derive(Debug, Args)]
pub struct UpdateOptions {
    /// The server.
    name: String,
    /// The version to take, instead of the newest.
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// Take it without asking.
    #[arg(long)]
    yes: bool,
    /// Make the sandboxes although this is root. For containers.
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

/// Looks for another version of a server's package, and takes it after a yes.
pub fn update(home: Home, options: &UpdateOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let installer = installer(home, options.allow_root, crate::secrets::store()?)?;
    let found = runtime()?.block_on(look_for_update(&installer, &options.name, options.to.as_deref()))?;
    let update = match found {
        Updated::Found(update) => update,
        Updated::Newest(version) => {
            let text = format!("`{}` is at version {version} already.", options.name);
            let json = json!({ "server": options.name, "from": version, "to": version });
            screen.show(&[text].into_iter().collect(), &json)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    screen.show(&update_text(&options.name, &update), &update_json(&options.name, &update, options.yes))?;
    if !options.yes && screen.is_for_programs() {
        return Ok(ExitCode::SUCCESS);
    }
    if !options.yes && !screen.confirmed("Take this version?")? {
        screen.note("Nothing was changed.")?;
        return Ok(ExitCode::FAILURE);
    }
    update.switch()?;
    screen.note(&format!("Taken. Sessions that run go on with version {}.", update.from))?;
    Ok(ExitCode::SUCCESS)
}

/// The state of a server's package, for programs.
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
    let waiting = Some(waiting as fn(&str));
    Ok(Installer { secrets, home, programs: programs()?, allow_root, patience: PATIENCE, waiting })
}

/// Says whose installation is waited for.
pub(super) fn waiting(other: &str) {
    // Nobody misses it.
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
        "already": installed.already,
    })
}

fn installed_text(installed: &Installed) -> Sheet {
    let record = &installed.record;
    let package = record.spelled();
    let mut text = Sheet::default();
    text.line(if installed.already {
        format!("`{package}` is installed already, and is what it was.")
    } else {
        format!("`{package}` is installed. Nothing of it was run.")
    });
    let integrity = record.integrity.as_deref().unwrap_or("not told");
    text.line(format_args!("  The registry's hash: {integrity}"));
    text.line(format_args!("  What is started: {}", record.hash));
    text.line(format_args!("  In: {}", installed.folder.display()));
    text
}

fn update_json(server: &str, update: &Update, taken: bool) -> Value {
    let tools = update.tools.iter().map(|change| match change {
        ToolChange::New { name, description } => {
            json!({ "name": name, "change": "new", "description": description })
        }
        ToolChange::Gone { name } => json!({ "name": name, "change": "gone" }),
        ToolChange::Other { name, description, arguments, hints } => json!({
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
        "taken": taken,
    })
}

fn update_text(server: &str, update: &Update) -> Sheet {
    let mut lines = Sheet::default();
    lines.line(format_args!("{server}: from version {} to {}", update.from, update.to));
    let short = |text: &str| visible::head(text, DESCRIPTION);
    if let Some(problem) = &update.not_compared {
        lines.quoting(format_args!("  NOT COMPARED, so look at each of its tools: {problem}"));
    }
    for change in &update.tools {
        match change {
            ToolChange::New { name, description } if update.not_compared.is_some() => {
                lines.line(format_args!("  {name}: {}", short(description)));
            }
            ToolChange::New { name, description } => {
                lines.line(format_args!(
                    "  {name}: NEW, refused until it is annotated: {}",
                    short(description)
                ));
            }
            ToolChange::Gone { name } => lines.line(format_args!("  {name}: gone")),
            ToolChange::Other { name, description, arguments, hints } => {
                if let Some((before, after)) = description {
                    lines.line(format_args!("  {name}: said to be: {}", short(before)));
                    lines.line(format_args!("  {name}: is now said to be: {}", short(after)));
                }
                if *arguments {
                    lines.line(format_args!("  {name}: CHANGED, the shape of its arguments"));
                }
                if *hints {
                    lines.line(format_args!("  {name}: changed, what it says that it changes or destroys"));
                }
            }
        }
    }
    if update.tools.is_empty() && update.not_compared.is_none() {
        lines.line("  Its tools are the same, word for word.");
    } else {
        lines.line(format_args!(
            "  Annotate what changed afterwards: `ironcurtain servers annotate {server}`"
        ));
    }
    if update.changes_entry() {
        lines.line("  The entry in `mcp-servers.json` names the version, and will name the new one.");
    }
    lines
}
