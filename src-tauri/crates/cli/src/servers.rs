//! `servers`: lists, adds, changes and removes servers, and annotates their tools.
//!
//! - Shows each change in full. Writes it only after the user's confirmation or with `--yes`.

mod add;
mod catalog;
mod change;
mod diff;
mod identity;
mod install;
mod limits;
mod login;
mod show;

pub use add::{command_words, given_secret};

use crate::screen::Screen;
use anyhow::Context;
use clap::Subcommand;
use ironcurtain_admin::annotate::{AnnotationsFile, Draft};
use ironcurtain_admin::inspect::{Inspection, RefusedAccess, inspect};
use ironcurtain_admin::login::LoginStates;
use ironcurtain_admin::server_summary::UnannotatedCalls;
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicyFiles, Sandbox, Servers};
use ironcurtain_packages::Packages;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub enum ServersAction {
    /// List the configured servers and the number of their annotated tools.
    List,
    /// List the known servers, which come with a sandbox configuration.
    Catalog,
    /// Add a server: try it in its sandbox, show its tools and what it wants to reach, then ask whether to add it.
    Add(add::AddOptions),
    /// Remove a server. IronCurtain saves its entry, so that you can restore it.
    Remove(change::RemoveOptions),
    /// Restore a removed server with its old entry.
    Restore {
        /// Name of the server.
        name: String,
    },
    /// Permanently allow a server to access a host or folder.
    Open(change::OpeningOptions),
    /// Remove a server's permanent access to a host or folder.
    Close(change::OpeningOptions),
    /// Show or change the resource limits of a server.
    Limits(limits::LimitsOptions),
    /// Log in to a remote server through your browser.
    Login(login::LoginArguments),
    /// Delete the login at a remote server.
    Logout {
        /// Name of the server.
        name: String,
    },
    /// Show the grants and data that are suspended because a server name now starts a different program: keep them,
    /// or start afresh.
    Identity(identity::IdentityOptions),
    /// Show the tools that a server changed; update them, keep their old definitions, or remove them.
    Diff(diff::DiffOptions),
    /// Install the package of a server that is started by `npx` or `uvx`, so that it starts without network.
    Install(install::InstallOptions),
    /// Check for another version of an installed package, show how its tools differ, and ask whether to install it.
    Update(install::UpdateOptions),
    /// Start a server in its sandbox, propose annotations for its tools' arguments, and ask whether to save them.
    Annotate {
        /// Name of the server.
        name: String,
        /// Write without asking.
        #[arg(long)]
        yes: bool,
        /// With `--yes`, annotate arguments of unknown meaning as plain text that no rule checks.
        /// Without this option, tools with such arguments are omitted.
        #[arg(long, requires = "yes")]
        unknown_as_text: bool,
        /// Drop the annotations of tools that the server no longer lists. Without this option, they
        /// are kept unless you confirm dropping them on the terminal.
        #[arg(long)]
        drop_unseen: bool,
        /// Maximum time for the server to start and list its tools, in seconds.
        #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600))]
        timeout: u64,
        /// Create the sandbox even when running as root, for example in a container.
        #[arg(long)]
        allow_root: bool,
    },
}

/// Runs the subcommand.
pub fn perform(action: &ServersAction, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    match action {
        ServersAction::List => list(&home, screen),
        ServersAction::Catalog => catalog::perform(screen),
        ServersAction::Add(options) => add::perform(&home, options, screen),
        ServersAction::Remove(options) => change::remove(&home, options, screen),
        ServersAction::Restore { name } => change::restore(&home, name, screen),
        ServersAction::Open(options) => change::open(&home, options, screen),
        ServersAction::Close(options) => change::close(&home, options, screen),
        ServersAction::Identity(options) => identity::perform(&home, options, screen),
        ServersAction::Diff(options) => diff::perform(&home, options, screen),
        ServersAction::Login(arguments) => login::login(&home, arguments, screen),
        ServersAction::Logout { name } => login::logout(&home, name, screen),
        ServersAction::Limits(options) => limits::perform(&home, options, screen),
        ServersAction::Install(options) => install::install(home, options, screen),
        ServersAction::Update(options) => install::update(home, options, screen),
        ServersAction::Annotate { name, yes, unknown_as_text, drop_unseen, timeout, allow_root } => {
            let secrets = crate::secrets::store_for(Servers::load(&home)?.find(Some(name)))?;
            let inspection = Inspection {
                programs: programs()?,
                secrets,
                home,
                allow_root: *allow_root,
                timeout: Duration::from_secs(*timeout),
            };
            let unconfirmed = match (yes, unknown_as_text) {
                (false, _) => Unconfirmed::Nothing,
                (true, false) => Unconfirmed::Known,
                (true, true) => Unconfirmed::All,
            };
            annotate(&inspection, name, (unconfirmed, *drop_unseen), screen)
        }
    }
}

/// Annotations to write without the user's confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unconfirmed {
    /// No annotations, because the user is asked.
    Nothing,
    /// Annotations of tools whose arguments all have a known or guessed meaning.
    Known,
    /// All annotations, even if the meaning of arguments is unknown.
    All,
}

fn annotate(
    inspection: &Inspection,
    name: &str,
    (unconfirmed, drop_unseen): (Unconfirmed, bool),
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let yes = unconfirmed != Unconfirmed::Nothing;
    let file = AnnotationsFile::open(&inspection.home)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(inspect(inspection, name))?;
    print_refused_access(&result.refused_access, &inspection.home, screen)?;
    let mut draft = Draft::new(name, result.listed?);
    if !drop_unseen {
        file.keep_unlisted(&mut draft);
    }
    // Compares first so that the user is not asked about a change that cannot be written.
    let mut changes = file.compare(&draft)?;
    if unconfirmed == Unconfirmed::Known {
        draft.omit_unclear_tools(&changes);
        changes = file.compare(&draft)?;
    }
    let trial =
        PolicyTrial::open(inspection.home.clone(), &PolicyFiles::default(), &inspection.home.user_home)?;
    let describe_calls = |tool: &str| UnannotatedCalls::judge(&trial, name, tool);
    screen.show(&show::text(&draft, &changes, &describe_calls), &show::json(&file, &draft, &changes))?;
    if !yes && !screen.is_json() && screen.has_terminal() && !changes.unlisted_kept.is_empty() {
        let listed_names = changes.unlisted_kept.join("`, `");
        let question = format!("Drop the annotations of `{listed_names}`, which the server no longer lists?");
        if screen.confirmed(&question)? {
            draft.drop_unlisted();
            changes = file.compare(&draft)?;
        }
    }
    if changes.is_empty() || (!yes && screen.is_json()) {
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

/// Prints the hosts and files to which the sandbox refused access.
fn print_refused_access(wants: &RefusedAccess, home: &Home, screen: Screen) -> anyhow::Result<()> {
    wants
        .describe(&home.user_home)
        .iter()
        .try_for_each(|words| screen.note(&format!("During the trial, {words}.")))
}

fn list(home: &Home, screen: Screen) -> anyhow::Result<ExitCode> {
    let servers = Servers::load(home)?;
    let annotated = AnnotationsFile::open(home)?;
    let (packages, logins) = (Packages::in_home(home), LoginStates::load(home));
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
                "login": logins.state_of(server),
            })
        })
        .collect();
    screen.show(&show::list(&servers, &annotated, (&packages, &logins)), &json!({ "servers": rows }))?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the directory that contains this program and IronCurtain's other programs.
pub fn programs() -> anyhow::Result<std::path::PathBuf> {
    Ok(std::env::current_exe()?.parent().context("this program has no directory")?.to_path_buf())
}
