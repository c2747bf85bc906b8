//! The options of `servers add`, and the server that they name.

use anyhow::{Context, bail};
use clap::Args;
use ironcurtain_admin::catalog::{Addition, AdditionChoices, Bundle, BundleAnswers};
use ironcurtain_config::home::Home;
use ironcurtain_secrets::{SecretName, SecretNameError};
use std::io::Read;
use std::path::{Path, PathBuf};

/// The longest snippet.
const LONGEST_SNIPPET: u64 = 64 * 1024;

/// Package runners, which makers tell people to type.
pub(super) const RUNNERS: [&str; 2] = ["npx", "uvx"];

/// The server to add, and its settings.
#[derive(Debug, Args)]
pub struct AddOptions {
    /// The server: an id of `servers catalog`, a package (`npm:NAME`, `pypi:NAME`), an `https://` address, a bundle (`FILE.mcpb`), a
    /// file with what its makers print for agent clients, or `-` to read that from standard input (then with `--yes` or `--later`).
    /// What follows `npx` or `uvx` is the server's command.
    #[arg(required = true)]
    what: Vec<String>,
    /// Name to give it, instead of its own.
    #[arg(long)]
    name: Option<String>,
    /// Folder its package is installed in, instead of having it installed.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Values that it must be told.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Give it a secret of yours as this variable or header.
    #[arg(long = "secret", value_name = "KEY=NAME", value_parser = given_secret)]
    secrets: Vec<(String, SecretName)>,
    /// Type a token for an address: it is kept as a secret, and sent as `Authorization: Bearer ...`.
    #[arg(long)]
    pub(super) token: bool,
    /// Secrets of a bundle that it may do without, and is to.
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// Replace a server of this name.
    #[arg(long)]
    pub(super) replace: bool,
    /// Add it without asking, and give it nothing that it wants beyond what its entry opens.
    #[arg(long)]
    pub(super) yes: bool,
    /// Only write its entry: nothing is downloaded, started or connected to.
    #[arg(long, conflicts_with = "yes")]
    pub(super) later: bool,
    /// Make the sandboxes although this is root. For containers.
    #[arg(long)]
    pub(super) allow_root: bool,
}

impl AddOptions {
    /// The file of a bundle, where one is named.
    pub(super) fn bundle_file(&self) -> Option<&Path> {
        let [only] = self.what.as_slice() else { return None };
        Some(Path::new(only)).filter(|file| Bundle::is_named_so(file))
    }

    /// Returns `true` if its package is in a folder that the user named.
    pub(super) fn is_installed(&self) -> bool {
        self.from.is_some()
    }

    /// The server that is named.
    pub(super) fn addition(&self, home: &Home, bundle: Option<&Bundle>) -> anyhow::Result<Addition> {
        if let Some(bundle) = bundle {
            return self.of_bundle(home, bundle);
        }
        let choices = self.choices()?;
        let what = match self.what.as_slice() {
            [only] => only.as_str(),
            [runner, ..] if RUNNERS.contains(&runner.as_str()) => {
                return Ok(Addition::command(home, &self.what, &choices)?);
            }
            [_, unexpected, ..] => bail!("unexpected argument `{unexpected}`; name one server at a time"),
            [] => bail!("no server is named"),
        };
        if self.token && !what.contains("://") {
            bail!(
                "`--token` is for a server at an address; give any other one a secret with `--secret KEY=NAME`"
            );
        }
        let is_file = what == "-" || what.ends_with(".json") || what.contains('/') && !what.contains(':');
        // The name of a package of npm looks like a path, and is none unless there is one.
        let is_package = what.starts_with('@') && !Path::new(what).exists();
        if is_file && !is_package {
            return Ok(Addition::snippet(home, &snippet(what)?, &choices)?);
        }
        Ok(Addition::named(home, what, &choices)?)
    }

    fn of_bundle(&self, home: &Home, bundle: &Bundle) -> anyhow::Result<Addition> {
        let without = self.without.iter().cloned().collect();
        let mut answers = BundleAnswers { without, ..BundleAnswers::default() };
        for (key, value) in self.settings.iter().cloned() {
            answers.values.entry(key).or_default().push(value);
        }
        let mut added = bundle.addition(home, self.name.as_deref(), &answers)?;
        self.secrets.iter().for_each(|(key, secret)| added.give(key, secret));
        Ok(added)
    }

    fn choices(&self) -> anyhow::Result<AdditionChoices> {
        let from = self.from.as_ref();
        let from =
            from.map(|dir| dir.canonicalize().with_context(|| format!("`{}` cannot be used", dir.display())));
        Ok(AdditionChoices {
            name: self.name.clone(),
            from: from.transpose()?,
            settings: self.settings.iter().cloned().collect(),
            secrets: self.secrets.iter().cloned().collect(),
        })
    }
}

/// The text of a file, or of standard input.
fn snippet(file: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    if file == "-" {
        std::io::stdin().lock().take(LONGEST_SNIPPET).read_to_string(&mut text)?;
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
    opened.take(LONGEST_SNIPPET).read_to_string(&mut text).with_context(failed)?;
    Ok(text)
}

/// A text that sets nothing.
#[derive(Debug, thiserror::Error)]
pub enum NotASetting {
    #[error("write it as `NAME=VALUE`")]
    NoValue,
    #[error(transparent)]
    Secret(#[from] SecretNameError),
}

fn setting(text: &str) -> Result<(String, String), NotASetting> {
    let (name, value) = text.split_once('=').ok_or(NotASetting::NoValue)?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Parses the variable or header of a given secret, and the secret's name.
pub fn given_secret(text: &str) -> Result<(String, SecretName), NotASetting> {
    let (key, name) = setting(text)?;
    Ok((key, SecretName::try_from(name.as_str())?))
}
