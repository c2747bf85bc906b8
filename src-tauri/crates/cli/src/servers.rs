//! Servers: which there are, and what their tools' arguments mean.
//!
//! - Nothing is written before the whole proposal was shown and a person said yes, or `--yes` said it for them.

mod add;
mod change;
mod identity;
mod install;
mod known;
mod limits;
mod show;

pub use add::{command_words, given_secret};

use crate::screen::Screen;
use anyhow::Context;
use clap::Subcommand;
use ironcurtain_admin::annotate::{AnnotationsFile, Draft};
use ironcurtain_admin::inspect::{Inspection, Wants, inspect};
use ironcurtain_admin::introduction::UnannotatedCalls;
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::Sandbox;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_daemon::PolicyFiles;
use ironcurtain_daemon::packages::Packages;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

/// The actions on servers.
#[derive(Debug, Subcommand)]
pub enum ServersAction {
    /// List the configured servers, and how many of their tools are annotated.
    List,
    /// Show the servers that IronCurtain knows, each with a sandbox that fits it.
    Catalog,
    /// Add a server: after a yes, try it in its sandbox and show what it has and wants; add it after another yes.
    Add(add::AddOptions),
    /// Take a server out. Its entry is kept.
    Remove(change::RemoveOptions),
    /// Put back a server that was taken out, as it was.
    Restore {
        /// The server.
        name: String,
    },
    /// Open a host or a folder to a server for good, after a yes.
    Open(change::OpeningOptions),
    /// Close a host or a folder that is open to a server for good.
    Close(change::OpeningOptions),
    /// Show the limits of a server's resources, or change them after a yes.
    Limits(limits::LimitsOptions),
    /// Show what is suspended because a server is another program now, and keep it or start afresh after a yes.
    Identity(identity::IdentityOptions),
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
        /// With `--yes`, write arguments about which nothing tells anything as plain text that is not judged. Without it,
        /// their tools are left out.
        #[arg(long, requires = "yes")]
        unknown_as_text: bool,
        /// Drop the annotations of tools that the server does not list this time. Without it, they are kept unless you say
        /// otherwise at the terminal.
        #[arg(long)]
        drop_unseen: bool,
        /// The seconds that the server may take.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
        timeout: u64,
        /// Make the sandbox although this is root. For containers.
        #[arg(long)]
        allow_root: bool,
    },
}

/// Does it.
pub fn perform(action: &ServersAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    match action {
        ServersAction::List => list(&home, screen),
        ServersAction::Catalog => known::catalog(screen),
        ServersAction::Add(options) => add::perform(&home, options, screen),
        ServersAction::Remove(options) => change::remove(&home, options, screen),
        ServersAction::Restore { name } => change::restore(&home, name, screen),
        ServersAction::Open(options) => change::open(&home, options, screen),
        ServersAction::Close(options) => change::close(&home, options, screen),
        ServersAction::Identity(options) => identity::perform(&home, options, screen),
        ServersAction::Limits(options) => limits::perform(&home, options, screen),
        ServersAction::Install(options) => install::install(home, options, screen),
        ServersAction::Update(options) => install::update(home, options, screen),
        ServersAction::Annotate { name, yes, unknown_as_text, drop_unseen, timeout, allow_root } => {
            let secrets = crate::secrets::opened_for(Servers::load(&home)?.find(Some(name)))?;
            let inspection = Inspection {
                programs: programs()?,
                secrets,
                home,
                allow_root: *allow_root,
                patience: Duration::from_secs(*timeout),
            };
            let unseen = match (yes, unknown_as_text) {
                (false, _) => Unseen::Asked,
                (true, false) => Unseen::Known,
                (true, true) => Unseen::All,
            };
            annotate(&inspection, name, (unseen, *drop_unseen), screen)
        }
    }
}

/// Changes that are written without a person's look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unseen {
    /// Nothing: a person is asked.
    Asked,
    /// Tools whose arguments are known, if only by a guess.
    Known,
    /// Everything.
    All,
}

fn annotate(
    inspection: &Inspection,
    name: &str,
    (unseen, drop_unseen): (Unseen, bool),
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let yes = unseen != Unseen::Asked;
    let file = AnnotationsFile::open(&inspection.home)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let look = runtime.block_on(inspect(inspection, name))?;
    tell_wants(&look.wants, &inspection.home, screen)?;
    let mut draft = Draft::new(name, look.listed?);
    if !drop_unseen {
        file.keep_unseen(&mut draft);
    }
    // What cannot be written is not asked about.
    let mut changes = file.compare(&draft)?;
    if unseen == Unseen::Known {
        draft.leave_out_unknown(&changes);
        changes = file.compare(&draft)?;
    }
    let trial = PolicyTrial::open(inspection.home.clone(), &PolicyFiles::default(), &inspection.home.person)?;
    let fate = |tool: &str| UnannotatedCalls::judged(&trial, name, tool);
    screen.show(&show::text(&draft, &changes, &fate), &show::json(&file, &draft, &changes))?;
    if !yes && !screen.is_for_programs() && screen.has_terminal() && !changes.unseen.is_empty() {
        let unlisted = changes.unseen.join("`, `");
        let question =
            format!("Drop what is written of `{unlisted}`, which the server does not list this time?");
        if screen.confirmed(&question)? {
            draft.drop_unseen();
            changes = file.compare(&draft)?;
        }
    }
    if changes.is_empty() || (!yes && screen.is_for_programs()) {
        return Ok(ExitCode::SUCCESS);
    }
    let question = format!("Write this to `{}`?", file.path().display());
    if !yes && !screen.confirmed(&question)? {
        screen.note("Nothing was written.")?;
        return Ok(ExitCode::FAILURE);
    }
    file.write(&draft)?;
    screen.note(&format!("Written to `{}`.", file.path().display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Tells what a server reached for and did not get.
fn tell_wants(wants: &Wants, home: &Home, screen: Screen) -> anyhow::Result<()> {
    wants
        .in_words(&home.person)
        .iter()
        .try_for_each(|words| screen.note(&format!("While it was looked at, {words}.")))
}

fn list(home: &Home, screen: Screen) -> anyhow::Result<ExitCode> {
    let servers = Servers::load(home)?;
    let annotated = AnnotationsFile::open(home)?;
    let packages = Packages::of(home);
    let rows: Vec<Value> = servers
        .iter()
        .map(|server| {
            json!({
                "name": server.name,
                "command": server.command,
                "args": server.args,
                "url": server.remote.as_ref().map(ToString::to_string),
                "sandboxed": server.sandbox != Sandbox::OptedOut,
                "annotatedTools": annotated.tools(&server.name),
                "package": install::state_json(&packages.state(server)),
            })
        })
        .collect();
    screen.show(&show::list(&servers, &annotated, &packages), &json!({ "servers": rows }))?;
    Ok(ExitCode::SUCCESS)
}

/// The directory of our own programs: this one's.
pub fn programs() -> anyhow::Result<std::path::PathBuf> {
    Ok(std::env::current_exe()?.parent().context("this program has no directory")?.to_path_buf())
}
