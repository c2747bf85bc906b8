//! Options of `servers add`, and the server that they describe.

use crate::screen::Screen;
use anyhow::{Context, bail};
use clap::Args;
use ironcurtain_admin::catalog::{Addition, AdditionChoices, AdditionError, Bundle, BundleAnswers};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{SecretName, SecretNameError};
use std::io::Read;
use std::path::{Path, PathBuf};

/// Maximum size of a settings snippet in bytes.
const MAX_SNIPPET_LEN: u64 = 64 * 1024;

/// Package runners whose packages IronCurtain installs itself.
pub(super) const RUNNERS: [&str; 2] = ["npx", "uvx"];

/// Help text about the ways to specify a server.
const FORMS: &str = "\
Servers can be named as:
  memory                        an id from `ironcurtain servers catalog`
  npm:NAME, pypi:NAME, NAME     a package; for NAME alone, you are asked which registry
  https://mcp.example.com/mcp   a remote server
  npx -y NAME --flag            the command in the server's documentation, also in quotes
  FILE.json, -                  client settings from the documentation; `-` reads standard input
  FILE.mcpb                     a bundle";

/// Server to add, and its settings.
#[derive(Debug, Args)]
#[command(after_help = FORMS)]
pub struct AddOptions {
    /// Server to add, in any of the forms below.
    #[arg(required = true)]
    what: Vec<String>,
    /// Name for the server. Default: its own name.
    #[arg(long)]
    name: Option<String>,
    /// Folder where its package is already installed.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Value of a setting that the server requires.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Pass a stored secret as this variable or header.
    #[arg(long = "secret", value_name = "KEY=NAME", value_parser = given_secret)]
    secrets: Vec<(String, SecretName)>,
    /// Type a token for an address; it is stored as a secret and sent as `Authorization: Bearer ...`.
    #[arg(long)]
    pub(super) token: bool,
    /// Leave out an optional secret of a bundle.
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// Replace an existing server of this name.
    #[arg(long)]
    pub(super) replace: bool,
    /// Add it without asking, and allow only what its entry allows.
    #[arg(long)]
    pub(super) yes: bool,
    /// Only write its entry, without downloading, starting or connecting to anything.
    #[arg(long, conflicts_with = "yes")]
    pub(super) later: bool,
    /// Create the sandboxes even when running as root, for example in a container.
    #[arg(long)]
    pub(super) allow_root: bool,
}

impl AddOptions {
    /// Returns the path of the bundle, if the user named one.
    pub(super) fn bundle_file(&self) -> Option<&Path> {
        let [only] = self.what.as_slice() else { return None };
        Some(Path::new(only)).filter(|file| Bundle::has_bundle_extension(file))
    }

    /// Returns `true` if the user named a folder with the installed package.
    pub(super) fn is_installed(&self) -> bool {
        self.from.is_some()
    }

    /// Returns `true` if the server is described by client settings on standard input.
    pub(super) fn reads_stdin(&self) -> bool {
        self.what == ["-"]
    }

    /// Returns the server to add. If the package registry is ambiguous, asks the user.
    pub(super) fn addition(
        &self,
        home: &Home,
        bundle: Option<&Bundle>,
        screen: Screen,
    ) -> anyhow::Result<Addition> {
        if let Some(bundle) = bundle {
            return self.addition_from_bundle(home, bundle);
        }
        let choices = self.choices()?;
        let only = if let [only] = self.what.as_slice() { Some(only.as_str()) } else { None };
        if self.token && !only.is_some_and(|what| what.contains("://")) {
            bail!("`--token` requires a server at an address; for other servers, use `--secret KEY=NAME`");
        }
        if let Some(file) = only.filter(|what| is_file(what)) {
            return Ok(Addition::from_snippet(home, &snippet(file)?, &choices)?);
        }
        match Addition::from_documentation(home, &self.what, &choices) {
            Err(AdditionError::Ambiguous(name))
                if !self.yes && screen.has_terminal() && !screen.is_json() =>
            {
                let registry = ask_registry(&name, screen)?;
                Ok(Addition::from_spec(home, &format!("{registry}:{name}"), &choices)?)
            }
            added => Ok(added?),
        }
    }

    fn addition_from_bundle(&self, home: &Home, bundle: &Bundle) -> anyhow::Result<Addition> {
        let without = self.without.iter().cloned().collect();
        let mut answers = BundleAnswers { omitted_secrets: without, ..BundleAnswers::default() };
        for (key, value) in self.settings.iter().cloned() {
            answers.values.entry(key).or_default().push(value);
        }
        let mut added = bundle.addition(home, self.name.as_deref(), &answers)?;
        self.secrets.iter().for_each(|(key, secret)| added.set_secret(key, secret));
        Ok(added)
    }

    fn choices(&self) -> anyhow::Result<AdditionChoices> {
        let from = self.from.as_ref();
        let from = from.map(|dir| {
            dir.canonicalize().with_context(|| format!("failed to open the folder `{}`", dir.display()))
        });
        Ok(AdditionChoices {
            name: self.name.clone(),
            from: from.transpose()?,
            settings: self.settings.iter().cloned().collect(),
            secrets: self.secrets.iter().cloned().collect(),
        })
    }
}

/// Returns `true` if the word is the path of a file with client settings, or `-` for standard input.
fn is_file(what: &str) -> bool {
    // A scoped npm package name looks like a path. It is a path only if the file exists.
    let is_package = what.starts_with('@') && !Path::new(what).exists();
    let is_path =
        !what.contains("://") && what.ends_with(".json") || what.contains('/') && !what.contains(':');
    let is_text = what.trim_start().starts_with(['{', '"', '`']) || what.contains(char::is_whitespace);
    what == "-" || is_path && !is_package && (!is_text || Path::new(what).exists())
}

/// Asks the user for a package's registry.
fn ask_registry(name: &str, screen: Screen) -> anyhow::Result<&'static str> {
    let question = format!("`{name}` is not in the catalog. Is it a package of npm (n) or PyPI (p)? [n/p]");
    match screen.answer(&question)?.to_lowercase().as_str() {
        "n" | "npm" => Ok("npm"),
        "p" | "pypi" => Ok("pypi"),
        _ => bail!("nothing was added: no registry was chosen; write `npm:{name}` or `pypi:{name}`"),
    }
}

/// Reads the settings snippet from a file, or from standard input if `file` is `-`.
fn snippet(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().lock().take(MAX_SNIPPET_LEN).read_to_string(&mut text)?;
        return Ok(text);
    }
    let failed = || {
        let package = if file.starts_with('.') || file.starts_with('/') {
            ""
        } else {
            "; if you mean a package, write `npm:NAME` or `pypi:NAME`"
        };
        format!("failed to read `{file}`{package}")
    };
    let opened = std::fs::File::open(file).with_context(failed)?;
    opened.take(MAX_SNIPPET_LEN).read_to_string(&mut text).with_context(failed)?;
    Ok(text)
}

/// Option value that is not `NAME=VALUE`.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSetting {
    #[error("expected `NAME=VALUE`")]
    NoValue,
    #[error(transparent)]
    Secret(#[from] SecretNameError),
}

fn setting(text: &str) -> Result<(String, String), InvalidSetting> {
    let (name, value) = text.split_once('=').ok_or(InvalidSetting::NoValue)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses `KEY=NAME`: a variable or header, and the name of the secret to pass in it.
pub fn given_secret(text: &str) -> Result<(String, SecretName), InvalidSetting> {
    let (key, name) = setting(text)?;
    Ok((key, SecretName::try_from(name.as_str())?))
}
