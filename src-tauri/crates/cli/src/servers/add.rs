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
use crate::lines::TextLines;
use crate::screen::Screen;
use ironcurtain_admin::UnknownServer;
use ironcurtain_admin::annotate::{AnnotationsFile, Draft};
use ironcurtain_admin::catalog::{Addition, Bundle, add_server, candidates};
use ironcurtain_admin::inspect::{
    InspectError, Inspection, InspectionResult, ListedTool, inspect_without_secrets,
};
use ironcurtain_admin::install::{Installer, install_among, is_packaged, sweep};
use ironcurtain_admin::introduction::{TrialNotice, UnannotatedCalls, reach};
use ironcurtain_admin::trial::PolicyTrial;
use ironcurtain_config::home::Home;
use ironcurtain_config::{PolicyFiles, Server, Servers};
use ironcurtain_consent::definition::hints;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use token::Token;

/// Timeout for the package manager.
const INSTALLING: Duration = Duration::from_secs(600);
/// Timeout for the server to list its tools.
const LOOKING: Duration = Duration::from_secs(60);

/// Adds a server to the configuration.
pub fn perform(home: &Home, options: &AddOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let screen = if options.reads_stdin() { screen.with_data_on_stdin() } else { screen };
    let file = options.bundle_file();
    let bundle = file.map(|file| Bundle::open(home, file)).transpose()?;
    let mut wanted = Wanted {
        home,
        options,
        screen,
        adding: options.addition(home, bundle.as_ref(), screen)?,
        replace: options.replace,
        kept: Value::Null,
        needs_login: false,
    };
    wanted.kept = super::identity::note_kept(home, &wanted.adding.name, screen)?;
    let may_ask = screen.has_terminal() && !screen.is_json();
    if !options.later && !options.yes && !may_ask {
        anyhow::bail!(
            "nothing was added: no terminal to confirm on; pass `--yes` to add it with only what its entry allows, or `--later` to \
             only write its entry"
        );
    }
    let token = if options.token { Some(wanted.token()?) } else { None };
    let done = if options.later { wanted.written(token, None)? } else { wanted.tried(token)? };
    if done == ExitCode::SUCCESS {
        bundle.into_iter().for_each(Bundle::keep);
        if wanted.needs_login && may_ask && !options.yes {
            // The server has been added, so a failed login is not an error of this command.
            if let Err(problem) = login::login(home, &LoginArguments::at(&wanted.adding.name), screen) {
                screen.note(&format!("You are not logged in: {problem:#}"))?;
            }
        }
    }
    Ok(done)
}

/// Server that the user wants to add, and the options for adding it.
struct Wanted<'a> {
    home: &'a Home,
    options: &'a AddOptions,
    screen: Screen,
    adding: Addition,
    replace: bool,
    /// State stored under the server's name, as JSON.
    kept: Value,
    /// `true` if the server refused the trial because the user must log in.
    needs_login: bool,
}

/// Result of a trial that the user accepted.
struct Accepted {
    /// Annotations to write, or `None` if the tools are already annotated or could not be listed.
    draft: Option<Draft>,
}

impl Wanted<'_> {
    /// Prompts for a token for the server's address.
    fn token(&mut self) -> anyhow::Result<Token> {
        if let Some(there) = Addition::at_address(self.home, &self.adding)? {
            (self.adding, self.replace) = (there, true);
        }
        Token::typed(self.home, &mut self.adding, self.screen)
    }

    /// Returns all configured servers including the new server, and the new server itself.
    fn among(&self) -> anyhow::Result<(Servers, Server)> {
        let servers = candidates(self.home, &self.adding, self.replace)?;
        let server = servers.find(Some(&self.adding.name)).cloned();
        let server = server.ok_or_else(|| UnknownServer::among(&servers, &self.adding.name))?;
        Ok((servers, server))
    }

    /// Tries the server, then adds it. Asks for confirmation before each step.
    fn tried(&mut self, token: Option<Token>) -> anyhow::Result<ExitCode> {
        let (servers, server) = self.among()?;
        if token.is_none() {
            crate::secrets::must_have(&server)?;
        }
        if !self.may_start(&server)? {
            self.screen.note("Nothing was started or added.")?;
            return Ok(ExitCode::FAILURE);
        }
        let installer = Installer {
            home: self.home.clone(),
            programs: programs()?,
            allow_root: self.options.allow_root,
            patience: INSTALLING,
            secrets: crate::secrets::store()?,
            waiting: Some(super::install::waiting),
        };
        let packaged = is_packaged(&servers, &self.adding.name);
        let looked = self.looked(&installer, packaged);
        let accepted = looked.and_then(|look| self.accepted(look));
        match accepted {
            Ok(Some(accepted)) => self.written(token, Some(accepted)),
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
        if !self.adding.ignored.is_empty() {
            text.line(format_args!("Ignored: {}", self.adding.ignored.join(", ")));
        }
        if !self.screen.is_json() {
            self.screen.show(&text, &Value::Null)?;
        }
        Ok(self.options.yes || self.screen.confirmed(&notice.question)?)
    }

    /// Installs the server's package, if it has one, and tries the server. Retries after the user has allowed hosts
    /// that the server needs to start.
    fn looked(&mut self, installer: &Installer, packaged: bool) -> anyhow::Result<InspectionResult> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        if packaged {
            self.screen.note("Downloading its package; none of its code runs during installation ...")?;
            let installed =
                runtime.block_on(install_among(installer, &self.among()?.0, &self.adding.name))?;
            self.screen.note(&format!("Installed `{}`.", installed.record.spelled()))?;
        }
        if let Some(data) = &self.adding.data {
            ironcurtain_config::home::private_dir(data)?;
        }
        let inspection = Inspection {
            home: installer.home.clone(),
            programs: installer.programs.clone(),
            allow_root: installer.allow_root,
            patience: LOOKING,
            secrets: installer.secrets.clone(),
        };
        loop {
            let (servers, server) = self.among()?;
            self.screen.note(&TrialNotice::new(&server).progress)?;
            let look = runtime.block_on(inspect_without_secrets(&inspection, &servers, &self.adding.name))?;
            if look.listed.is_ok() || !self.opens(&look)? {
                return Ok(look);
            }
        }
    }

    /// Asks the user to allow the hosts that the server needs to start.
    fn opens(&mut self, look: &InspectionResult) -> anyhow::Result<bool> {
        let hosts: Vec<&str> = look.wants.hosts.iter().map(String::as_str).collect();
        if hosts.is_empty() || self.options.yes {
            return Ok(false);
        }
        let (name, all) = (&self.adding.name, hosts.join("`, `"));
        let opens = self.screen.confirmed(&format!(
            "{name} could not start without `{all}`. Let it reach that, and try again?"
        ))?;
        if opens {
            hosts.iter().for_each(|host| self.adding.allow_host(host));
        }
        Ok(opens)
    }

    /// Shows the server's tools and requested access, and asks for confirmation to add the server.
    fn accepted(&mut self, look: InspectionResult) -> anyhow::Result<Option<Accepted>> {
        super::print_wants(&look.wants, self.home, self.screen)?;
        let draft = match look.listed {
            Ok(tools) => self.shown(tools)?,
            Err(problem) => {
                self.excused(problem)?;
                None
            }
        };
        if !self.options.yes {
            for host in &look.wants.hosts {
                if self.screen.confirmed(&format!("Let it reach `{host}`?"))? {
                    self.adding.allow_host(host);
                }
            }
        }
        let text: TextLines = reach(&self.among()?.1).into_iter().collect();
        if !self.screen.is_json() {
            self.screen.show(&text, &Value::Null)?;
        }
        let accepts =
            self.options.yes || self.screen.confirmed(&format!("Add it as `{}`?", self.adding.name))?;
        Ok(accepts.then_some(Accepted { draft }))
    }

    /// Ignores the error if the server needs a secret or a login, because the trial provides neither. Returns any other
    /// error.
    fn excused(&mut self, problem: InspectError) -> anyhow::Result<()> {
        if let InspectError::NeedsLogin(why) = &problem {
            self.needs_login = true;
            return self.screen.note(&format!("Its tools can be listed once you are logged in: {why}"));
        }
        if self.among()?.1.secret_names().is_empty() {
            return Err(problem.into());
        }
        self.screen.note(&format!("It could not list its tools without its secrets: {problem}"))
    }

    /// Shows the server's tools and returns the annotations to write.
    fn shown(&self, tools: Vec<ListedTool>) -> anyhow::Result<Option<Draft>> {
        let name = &self.adding.name;
        self.show_hints(&tools)?;
        let (servers, _) = self.among()?;
        let trial =
            PolicyTrial::among(self.home.clone(), servers, &PolicyFiles::default(), &self.home.person)?;
        let fate = |tool: &str| UnannotatedCalls::judged(&trial, name, tool);
        if let Some(known) = &self.adding.annotations {
            let known: BTreeSet<&str> = known["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| tool["toolName"].as_str())
                .collect();
            let mut text = TextLines::default();
            text.line(format_args!(
                "It has {}, already annotated.",
                crate::lines::counted(tools.len(), "tool")
            ));
            for tool in tools.iter().filter(|tool| !known.contains(tool.name.as_str())) {
                text.line(format_args!("Except `{}`: {}.", tool.name, fate(&tool.name)));
            }
            if !self.screen.is_json() {
                self.screen.show(&text, &Value::Null)?;
            }
            return Ok(None);
        }
        let file = AnnotationsFile::open(self.home)?;
        let mut draft = Draft::new(name, tools);
        draft.leave_out_unknown(&file.compare(&draft)?);
        let changes = file.compare(&draft)?;
        if !self.screen.is_json() {
            self.screen.show(&show::text(&draft, &changes, &fate), &Value::Null)?;
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
    fn written(&self, token: Option<Token>, accepted: Option<Accepted>) -> anyhow::Result<ExitCode> {
        // Stores the token first, so that the server never starts without it.
        token.map(Token::keep).transpose()?;
        let added = add_server(self.home, &self.adding, self.replace)?;
        let tried = accepted.is_some();
        let mut annotations = added.annotations.clone();
        if let Some(draft) = accepted.and_then(|accepted| accepted.draft) {
            let file = AnnotationsFile::open(self.home)?;
            file.write(&draft)?;
            annotations = Some(file.path().to_path_buf());
        }
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        let json = json!({
            "name": self.adding.name,
            "servers": added.servers.display().to_string(),
            "annotations": path(&annotations),
            "data": path(&added.data),
            "entry": self.adding.entry,
            "kept": self.kept,
        });
        let servers = Servers::load(self.home)?;
        let server = servers
            .find(Some(&self.adding.name))
            .ok_or_else(|| UnknownServer::among(&servers, &self.adding.name))?;
        let told = report::AddedReport {
            home: self.home,
            options: self.options,
            adding: &self.adding,
            server,
            added: &added,
            annotations: annotations.as_deref(),
            tried,
        };
        self.screen.show(&told.text()?, &json)?;
        Ok(ExitCode::SUCCESS)
    }
}
