//! Servers: which there are, and what their tools' arguments mean. Needs no trusted process.
//!
//! - Nothing is written before the whole proposal was shown and a person said yes, or `--yes` said it for them.
//! - Whatever a server says is shown with its hidden characters made visible.

mod install;
mod known;
mod show;

use anyhow::{Context, bail};
use clap::Subcommand;
use ironcurtain_daemon::annotating::{AnnotationsFile, Draft};
use ironcurtain_daemon::installs::Installs;
use ironcurtain_daemon::{Home, Inspection, Sandbox, Servers, inspect};
use serde_json::{Value, json};
use std::io::{self, BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// What to do with servers.
#[derive(Debug, Subcommand)]
pub enum ServersAction {
    /// List the configured servers, and how many of their tools are annotated.
    List,
    /// Show the servers that IronCurtain knows, each with a sandbox that fits it.
    Catalog,
    /// Add a known server.
    Add(known::AddOptions),
    /// Install the package of a server that is started by `npx` or `uvx`, so that it needs no network to start.
    Install(install::InstallOptions),
    /// Look for another version of an installed package, show how its tools differ, and take it after a yes.
    Update(install::UpdateOptions),
    /// Start a server in its sandbox, propose what its tools' arguments mean, and write that down after a yes.
    Annotate {
        /// The server.
        name: String,
        /// Write without asking.
        #[arg(long)]
        yes: bool,
        /// How many seconds the server may take.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
        timeout: u64,
        /// Make the sandbox although this is root. For containers.
        #[arg(long)]
        allow_root: bool,
    },
}

/// Does it.
pub fn perform(action: &ServersAction, json: bool) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    match action {
        ServersAction::List => list(&home, json),
        ServersAction::Catalog => known::catalog(json),
        ServersAction::Add(options) => known::perform(&home, options, json),
        ServersAction::Install(options) => install::install(home, options, json),
        ServersAction::Update(options) => install::update(home, options, json),
        ServersAction::Annotate { name, yes, timeout, allow_root } => {
            let inspection = Inspection {
                programs: programs()?,
                home,
                allow_root: *allow_root,
                patience: Duration::from_secs(*timeout),
            };
            annotate(&inspection, name, *yes, json)
        }
    }
}

fn annotate(inspection: &Inspection, name: &str, yes: bool, json: bool) -> anyhow::Result<ExitCode> {
    let file = AnnotationsFile::open(&inspection.home)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let draft = Draft::new(name, runtime.block_on(inspect(inspection, name))?);
    // What cannot be written is not asked about.
    let changes = file.compare(&draft)?;
    let mut out = io::stdout().lock();
    if json {
        print_json(&mut out, &show::json(&file, &draft, &changes))?;
    } else {
        write!(out, "{}", show::text(&draft, &changes))?;
    }
    if changes.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && json {
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Write this to `{}`?", file.path().display());
    if !yes && !confirmed(&mut out, &question)? {
        writeln!(out, "Nothing was written.")?;
        return Ok(ExitCode::FAILURE);
    }
    file.write(&draft)?;
    if !json {
        writeln!(out, "Written to `{}`.", file.path().display())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn confirmed(out: &mut impl Write, question: &str) -> anyhow::Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("nothing was written: there is no terminal to confirm at; `--yes` does what is shown");
    }
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn list(home: &Home, json: bool) -> anyhow::Result<ExitCode> {
    let servers = Servers::load(home)?;
    let annotated = AnnotationsFile::open(home)?;
    let installs = Installs::of(home);
    let mut out = io::stdout().lock();
    let rows: Vec<Value> = servers
        .iter()
        .map(|server| {
            json!({
                "name": server.name,
                "command": server.command,
                "args": server.args,
                "sandboxed": server.sandbox != Sandbox::OptedOut,
                "annotatedTools": annotated.tools(&server.name),
                "package": install::state_json(&installs.state(server)),
            })
        })
        .collect();
    if json {
        print_json(&mut out, &json!({ "servers": rows }))?;
    } else {
        write!(out, "{}", show::list(&servers, &annotated, &installs))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print_json(out: &mut impl Write, value: &Value) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    Ok(writeln!(out)?)
}

/// The directory of our own programs: this one's.
fn programs() -> anyhow::Result<std::path::PathBuf> {
    Ok(std::env::current_exe()?.parent().context("this program has no directory")?.to_path_buf())
}
