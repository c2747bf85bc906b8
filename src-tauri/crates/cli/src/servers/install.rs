//! Installing and updating the packages that servers come from.
//!
//! - Another version is taken only after what it changes was shown and a person said yes, or `--yes` said it for them.

use super::{confirmed, print_json, programs};
use clap::Args;
use ironcurtain_daemon::Home;
use ironcurtain_daemon::consent::visible;
use ironcurtain_daemon::installs::{
    Installed, Installer, State, ToolChange, Update, Updated, install as install_package, look_for_update,
};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How long a package manager may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How much of a description is shown.
const DESCRIPTION: usize = 300;

/// What to install.
#[derive(Debug, Args)]
pub struct InstallOptions {
    /// The server.
    name: String,
    /// Make the sandbox although this is root. For containers.
    #[arg(long)]
    allow_root: bool,
}

/// What to update.
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
pub fn install(home: Home, options: &InstallOptions, json: bool) -> anyhow::Result<ExitCode> {
    let installer = installer(home, options.allow_root)?;
    let installed = runtime()?.block_on(install_package(&installer, &options.name))?;
    let mut out = io::stdout().lock();
    if json {
        print_json(&mut out, &installed_json(&installed))?;
    } else {
        write!(out, "{}", installed_text(&installed))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Looks for another version of a server's package, and takes it after a yes.
pub fn update(home: Home, options: &UpdateOptions, json: bool) -> anyhow::Result<ExitCode> {
    let installer = installer(home, options.allow_root)?;
    let found = runtime()?.block_on(look_for_update(&installer, &options.name, options.to.as_deref()))?;
    let mut out = io::stdout().lock();
    let update = match found {
        Updated::Found(update) => update,
        Updated::Newest(version) => {
            if json {
                print_json(&mut out, &json!({ "server": options.name, "from": version, "to": version }))?;
            } else {
                writeln!(
                    out,
                    "{}",
                    visible::line(&format!("`{}` is at version {version} already.", options.name))
                )?;
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    if json {
        print_json(&mut out, &update_json(&options.name, &update, options.yes))?;
    } else {
        write!(out, "{}", update_text(&options.name, &update))?;
    }
    if !options.yes && json {
        return Ok(ExitCode::SUCCESS);
    }
    if !options.yes && !confirmed(&mut out, "Take this version?")? {
        writeln!(out, "Nothing was changed.")?;
        return Ok(ExitCode::FAILURE);
    }
    update.switch()?;
    if !json {
        writeln!(out, "Taken. Sessions that run go on with version {}.", visible::line(&update.from))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How it stands with a server's package, for programs.
pub fn state_json(state: &State) -> Value {
    match state {
        State::NoPackage => Value::Null,
        State::Installed { version, hash } => {
            json!({ "state": "installed", "version": version, "hash": hash })
        }
        State::NotReady(problem) => json!({ "state": "not-ready", "problem": problem.to_string() }),
    }
}

fn installer(home: Home, allow_root: bool) -> anyhow::Result<Installer> {
    Ok(Installer { home, programs: programs()?, allow_root, patience: PATIENCE })
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

fn installed_json(installed: &Installed) -> Value {
    let record = &installed.record;
    json!({
        "server": installed.server,
        "package": record.wanted.package,
        "version": record.version,
        "integrity": record.integrity,
        "hash": record.hash,
        "folder": installed.folder,
        "already": installed.already,
    })
}

fn installed_text(installed: &Installed) -> String {
    let record = &installed.record;
    let package = record.wanted.spelled(Some(&record.version));
    let mut text = visible::line(&if installed.already {
        format!("`{package}` is installed already, and is what it was.")
    } else {
        format!("`{package}` is installed. Nothing of it was run.")
    });
    let integrity = record.integrity.as_deref().unwrap_or("not told");
    for (what, value) in [("The registry's hash", integrity), ("What is started", &record.hash)] {
        let _ = write!(text, "\n  {what}: {}", visible::line(value));
    }
    let _ = writeln!(text, "\n  In: {}", visible::line(&installed.folder.display().to_string()));
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

fn update_text(server: &str, update: &Update) -> String {
    let mut lines = vec![format!("{server}: from version {} to {}", update.from, update.to)];
    let short = |text: &str| visible::head(text, DESCRIPTION);
    if let Some(problem) = &update.not_compared {
        lines.push(format!("  NOT COMPARED, so look at each of its tools: {problem}"));
    }
    for change in &update.tools {
        match change {
            ToolChange::New { name, description } if update.not_compared.is_some() => {
                lines.push(format!("  {name}: {}", short(description)));
            }
            ToolChange::New { name, description } => {
                lines.push(format!("  {name}: NEW, refused until it is annotated: {}", short(description)));
            }
            ToolChange::Gone { name } => lines.push(format!("  {name}: gone")),
            ToolChange::Other { name, description, arguments, hints } => {
                if let Some((before, after)) = description {
                    lines.push(format!("  {name}: said to be: {}", short(before)));
                    lines.push(format!("  {name}: is now said to be: {}", short(after)));
                }
                if *arguments {
                    lines.push(format!("  {name}: CHANGED, the shape of its arguments"));
                }
                if *hints {
                    lines.push(format!("  {name}: changed, what it says that it changes or destroys"));
                }
            }
        }
    }
    if update.tools.is_empty() {
        lines.push("  Its tools are the same, word for word.".to_owned());
    } else {
        lines.push(format!("  Annotate what changed afterwards: `ironcurtain servers annotate {server}`"));
    }
    if update.changes_entry() {
        lines.push(
            "  The entry in `mcp-servers.json` names the version, and will name the new one.".to_owned(),
        );
    }
    // Much of it comes from the server.
    lines.iter().map(|line| visible::line(line) + "\n").collect()
}
