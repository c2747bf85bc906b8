//! `servers add`: adds a server specified by a catalog id, a package, an address, a bundle or a snippet of client
//! settings.
//!
//! - Nothing is downloaded, started or contacted before the user has confirmed the program or address.
//! - The server is tried without the user's secrets. Its tools and the access that it requested are shown before the
//!   user decides.
//! - Offers the login right after adding a server that requires one.
//! - Without a terminal, `--yes` (which allows only the access shown) or `--later` is required.

mod options;
mod report;
mod token;

pub use options::{AddOptions, given_secret};
pub use report::command_words;

use super::login::{self, LoginArguments};
use super::{programs, show};
use crate::screen::Screen;
use crate::text_lines::TextLines;
use ironcurtain_admin::UnknownServer;
use ironcurtain_admin::annotate::{AnnotationsFile, Draft};
use ironcurtain_admin::catalog::{Addition, Bundle, add_server, servers_with_addition};
use ironcurtain_admin::inspect::{
    InspectError, Inspection, InspectionResult, ListedTool, inspect_without_secrets,
};
use ironcurtain_admin::install::{Installer, install_from, is_packaged, sweep};
use ironcurtain_admin::server_summary::{TrialNotice, UnannotatedCalls, reach};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicyFiles, RemoteServer, Server, Servers};
use ironcurtain_consent::definition::hints;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use token::Token;

/// Timeout for the package manager.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(600);
/// Timeout for the server to list its tools.
const INSPECT_TIMEOUT: Duration = Duration::from_secs(60);

/// Adds a server to the configuration.
pub fn perform(home: &Home, options: &AddOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let screen = if options.reads_stdin() { screen.with_data_on_stdin() } else { screen };
    let file = options.bundle_file();
    let bundle = file.map(|file| Bundle::open(home, file)).transpose()?;
    let mut command = AddCommand {
        home,
        options,
        screen,
        addition: options.addition(home, bundle.as_ref(), screen)?,
        replace: options.replace,
        previous_state: Value::Null,
        needs_login: false,
    };
    command.previous_state = super::identity::show_stored_state(home, &command.addition.name, screen)?;
    let may_ask = screen.has_terminal() && !screen.is_json();
    if !options.later && !options.yes && !may_ask {
        anyhow::bail!(
            "nothing was added: no terminal to confirm on; pass `--yes` to add it with only what its entry allows, or `--later` to \
             only write its entry"
        );
    }
    let token = if options.token { Some(command.token()?) } else { None };
    let outcome = if options.later { command.write(token, None)? } else { command.try_server(token)? };
    if outcome == ExitCode::SUCCESS {
        bundle.into_iter().for_each(Bundle::persist);
        if command.needs_login && may_ask && !options.yes {
            // The server has been added, so a failed login is not an error of this command.
            if let Err(problem) =
                login::login(home, &LoginArguments::for_server(&command.addition.name), screen)
            {
                screen.note(&format!("You are not logged in: {problem:#}"))?;
            }
        }
    }
    Ok(outcome)
}

/// Server that the user wants to add, and the options for adding it.
struct AddCommand<'a> {
    home: &'a Home,
    options: &'a AddOptions,
    screen: Screen,
    addition: Addition,
    replace: bool,
    /// State stored under the server's name, as JSON.
    previous_state: Value,
    /// `true` if the server refused the trial because the user must log in.
    needs_login: bool,
}

/// Result of a trial that the user accepted.
struct Accepted {
    /// Annotations to write, or `None` if the tools are already annotated or could not be listed.
    draft: Option<Draft>,
}

impl AddCommand<'_> {
    /// Prompts for a token for the server's address.
    fn token(&mut self) -> anyhow::Result<Token> {
        if let Some(existing) = Addition::existing_with_same_url(self.home, &self.addition)? {
            (self.addition, self.replace) = (existing, true);
        }
        Token::read(self.home, &mut self.addition, self.screen)
    }

    /// Returns all configured servers including the new server, and the new server itself.
    fn servers_and_server(&self) -> anyhow::Result<(Servers, Server)> {
        let servers = servers_with_addition(self.home, &self.addition, self.replace)?;
        let server = servers.find(Some(&self.addition.name)).cloned();
        let server = server.ok_or_else(|| UnknownServer::new(&servers, &self.addition.name))?;
        Ok((servers, server))
    }

    /// Tries the server, then adds it. Asks for confirmation before each step.
    fn try_server(&mut self, token: Option<Token>) -> anyhow::Result<ExitCode> {
        let (servers, server) = self.servers_and_server()?;
        if token.is_none() {
            crate::secrets::require_secrets(&server)?;
        }
        if !self.may_start(&server)? {
            self.screen.note("Nothing was started or added.")?;
            return Ok(ExitCode::FAILURE);
        }
        let installer = Installer {
            home: self.home.clone(),
            programs: programs()?,
            allow_root: self.options.allow_root,
            timeout: INSTALL_TIMEOUT,
            secrets: crate::secrets::store()?,
            on_wait: Some(super::install::announce_wait),
        };
        let packaged = is_packaged(&servers, &self.addition.name);
        let inspected = self.inspect(&installer, packaged);
        let accepted = inspected.and_then(|inspection_result| self.confirm(inspection_result));
        match accepted {
            Ok(Some(accepted)) => self.write(token, Some(accepted)),
            other => {
                // The server was not added, so no entry uses the installed package.
                if packaged {
                    sweep(&installer)?;
                }
                other?;
                self.screen.note("Nothing was added.")?;
                Ok(ExitCode::FAILURE)
            }
        }
    }

    /// Shows what will be downloaded, started or contacted. Returns `true` if the user confirms.
    fn may_start(&self, server: &Server) -> anyhow::Result<bool> {
        let notice = TrialNotice::new(server);
        let mut text: TextLines = notice.lines.iter().chain(&reach(server)).collect();
        if !self.addition.ignored.is_empty() {
            text.line(format_args!("Ignored: {}", self.addition.ignored.join(", ")));
        }
        if !self.screen.is_json() {
            self.screen.show(&text, &Value::Null)?;
        }
        Ok(self.options.yes || self.screen.confirmed(&notice.question)?)
    }

    /// Installs the server's package, if it has one, and tries the server. Retries after the user has allowed hosts
    /// that the server needs to start.
    fn inspect(&mut self, installer: &Installer, packaged: bool) -> anyhow::Result<InspectionResult> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        if packaged {
            self.screen.note("Downloading its package; none of its code runs during installation ...")?;
            let installed = runtime.block_on(install_from(
                installer,
                &self.servers_and_server()?.0,
                &self.addition.name,
            ))?;
            self.screen.note(&format!("Installed `{}`.", installed.record.package_spec()))?;
        }
        if let Some(data) = &self.addition.data {
            ironcurtain_config::home::private_dir(data)?;
        }
        let inspection = Inspection {
            home: installer.home.clone(),
            programs: installer.programs.clone(),
            allow_root: installer.allow_root,
            timeout: INSPECT_TIMEOUT,
            secrets: installer.secrets.clone(),
        };
        loop {
            let (servers, server) = self.servers_and_server()?;
            self.screen.note(&TrialNotice::new(&server).progress)?;
            let inspection_result =
                runtime.block_on(inspect_without_secrets(&inspection, &servers, &self.addition.name))?;
            if inspection_result.listed.is_ok() || !self.offer_hosts(&inspection_result)? {
                return Ok(inspection_result);
            }
        }
    }

    /// Asks the user to allow the hosts that the server needs to start.
    fn offer_hosts(&mut self, inspection_result: &InspectionResult) -> anyhow::Result<bool> {
        let hosts: Vec<&str> = inspection_result.refused_access.hosts.iter().map(String::as_str).collect();
        if hosts.is_empty() || self.options.yes {
            return Ok(false);
        }
        let (name, all) = (&self.addition.name, hosts.join("`, `"));
        let is_allowed = self.screen.confirmed(&format!(
            "{name} could not start without `{all}`. Let it reach that, and try again?"
        ))?;
        if is_allowed {
            hosts.iter().for_each(|host| self.addition.allow_host(host));
        }
        Ok(is_allowed)
    }

    /// Shows the server's tools and requested access and asks for confirmation to add the server.
    fn confirm(&mut self, inspection_result: InspectionResult) -> anyhow::Result<Option<Accepted>> {
        super::print_refused_access(&inspection_result.refused_access, self.home, self.screen)?;
        let draft = match inspection_result.listed {
            Ok(tools) => self.show_tools(tools)?,
            Err(problem) => {
                self.check_failure(problem)?;
                None
            }
        };
        if !self.options.yes {
            for host in &inspection_result.refused_access.hosts {
                if self.screen.confirmed(&format!("Let it reach `{host}`?"))? {
                    self.addition.allow_host(host);
                }
            }
        }
        let text: TextLines = reach(&self.servers_and_server()?.1).into_iter().collect();
        if !self.screen.is_json() {
            self.screen.show(&text, &Value::Null)?;
        }
        let accepts =
            self.options.yes || self.screen.confirmed(&format!("Add it as `{}`?", self.addition.name))?;
        Ok(accepts.then_some(Accepted { draft }))
    }

    /// Ignores the error if the server needs a secret or a login, because the trial provides neither. Returns any other
    /// error.
    fn check_failure(&mut self, problem: InspectError) -> anyhow::Result<()> {
        let server = self.servers_and_server()?.1;
        let has_secrets = !server.secret_names().is_empty();
        let uses_login = server.remote.as_ref().is_some_and(RemoteServer::uses_login);
        if let InspectError::NeedsLogin(why) = &problem
            && (has_secrets || uses_login)
        {
            if has_secrets {
                return self.screen.note(
                    "Its tools can be listed when an agent uses it, because this trial does not send its secrets.",
                );
            }
            self.needs_login = true;
            return self.screen.note(&format!("Its tools can be listed once you are logged in: {why}"));
        }
        if !has_secrets {
            return Err(problem.into());
        }
        self.screen.note(&format!("It could not list its tools without its secrets: {problem}"))
    }

    /// Shows the server's tools and returns the annotations to write.
    fn show_tools(&self, tools: Vec<ListedTool>) -> anyhow::Result<Option<Draft>> {
        let name = &self.addition.name;
        self.show_hints(&tools)?;
        let (servers, _) = self.servers_and_server()?;
        let trial = PolicyTrial::with_servers(
            self.home.clone(),
            servers,
            &PolicyFiles::default(),
            &self.home.user_home,
        )?;
        let describe_calls = |tool: &str| UnannotatedCalls::judge(&trial, name, tool);
        if let Some(known) = &self.addition.annotations {
            let known: BTreeSet<&str> = known["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| tool["toolName"].as_str())
                .collect();
            let mut text = TextLines::default();
            text.line(format_args!(
                "It has {}, already annotated.",
                crate::text_lines::counted(tools.len(), "tool")
            ));
            for tool in tools.iter().filter(|tool| !known.contains(tool.name.as_str())) {
                text.line(format_args!("Except `{}`: {}.", tool.name, describe_calls(&tool.name)));
            }
            if !self.screen.is_json() {
                self.screen.show(&text, &Value::Null)?;
            }
            return Ok(None);
        }
        let file = AnnotationsFile::open(self.home)?;
        let mut draft = Draft::new(name, tools);
        draft.omit_unclear_tools(&file.compare(&draft)?);
        let changes = file.compare(&draft)?;
        if !self.screen.is_json() {
            self.screen.show(&show::text(&draft, &changes, &describe_calls), &Value::Null)?;
        }
        Ok(Some(draft))
    }

    /// Prints hints about text in tool definitions that a model reads but a user may overlook.
    fn show_hints(&self, tools: &[ListedTool]) -> anyhow::Result<()> {
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        for tool in tools {
            for hint in hints(&tool.name, &tool.description, &names) {
                self.screen.note(&format!("Hint about `{}`: {hint}.", tool.name))?;
            }
        }
        Ok(())
    }

    /// Writes the server's entry, token and annotations.
    fn write(&self, token: Option<Token>, accepted: Option<Accepted>) -> anyhow::Result<ExitCode> {
        // Stores the token first so that the server never starts without it.
        token.map(Token::save).transpose()?;
        let added = add_server(self.home, &self.addition, self.replace)?;
        let was_tried = accepted.is_some();
        let mut annotations = added.annotations.clone();
        if let Some(draft) = accepted.and_then(|accepted| accepted.draft) {
            let file = AnnotationsFile::open(self.home)?;
            file.write(&draft)?;
            annotations = Some(file.path().to_path_buf());
        }
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let json = json!({
            "name": self.addition.name,
            "servers": added.servers.display().to_string(),
            "annotations": path(&annotations),
            "data": path(&added.data),
            "entry": self.addition.entry,
            "kept": self.previous_state,
        });
        let servers = Servers::load(self.home)?;
        let server = servers
            .find(Some(&self.addition.name))
            .ok_or_else(|| UnknownServer::new(&servers, &self.addition.name))?;
        let added_report = report::AddedReport {
            home: self.home,
            options: self.options,
            addition: &self.addition,
            server,
            added: &added,
            annotations: annotations.as_deref(),
            tried: was_tried,
        };
        self.screen.show(&added_report.text()?, &json)?;
        Ok(ExitCode::SUCCESS)
    }
}
