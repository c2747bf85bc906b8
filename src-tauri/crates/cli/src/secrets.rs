//! Secrets of servers: in the desktop's keyring, or in an encrypted file where the user chose one. Only locking and unlocking that
//! file for servers needs the trusted process.
//!
//! - A secret comes from the terminal, where it is not shown, or from standard input; never from an argument, which every program
//!   can read. It is never printed. The same is true of a passphrase.

mod typed;

use crate::connection::Connection;
use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::bail;
use clap::Subcommand;
use ironcurtain_admin::plain_secrets::{self, PlainSecret, SecretMove};
use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{Passphrase, Request, SecretsFileView};
use ironcurtain_secrets::{
    Secret, SecretError, SecretFileError, SecretName, SecretPlace, SecretStore, in_time,
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// The prompt for the passphrase of the encrypted file.
const PASSPHRASE: &str = "The passphrase of your secrets";

/// The actions on secrets.
#[derive(Debug, Subcommand)]
pub enum SecretsAction {
    /// Keep a secret: typed at the terminal, where it is not shown, or read from standard input.
    Set {
        /// Its name, which entries of servers write as `keyring:NAME`.
        name: String,
        /// Make the encrypted file without asking, where there is no keyring. Standard input has the passphrase as its second line.
        #[arg(long)]
        make_file: bool,
    },
    /// List the names of the secrets that are kept.
    List,
    /// Move secrets that stand in `mcp-servers.json` as they are to the keyring.
    Move {
        /// Only those of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Move without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Unlock the encrypted file for servers, until IronCurtain ends.
    Unlock {
        /// Read the passphrase from standard input.
        #[arg(long)]
        stdin: bool,
    },
    /// Lock it again. Servers that run keep what they were started with.
    Lock,
    /// Forget a secret.
    Remove {
        /// Its name.
        name: String,
    },
}

/// Does it.
pub fn perform(action: &SecretsAction, screen: Screen) -> anyhow::Result<ExitCode> {
    match action {
        SecretsAction::Set { name, make_file } => return set(name, *make_file, screen),
        SecretsAction::List => {
            let store = opened()?;
            let place = place_words(&store)?;
            let names = ask(move || store.list())?;
            let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
            let sheet: Sheet = match names.as_slice() {
                [] => [format!("{place} has no secret of IronCurtain's.").as_str()].into_iter().collect(),
                names => names.iter().copied().collect(),
            };
            screen.show(&sheet, &json!({ "secrets": names }))?;
        }
        SecretsAction::Move { server, yes } => return moved(server.as_deref(), *yes, screen),
        SecretsAction::Unlock { stdin } => {
            if store()?.file_is_locked()?.is_none() {
                bail!("there is nothing to unlock: secrets are in the keyring here, or nowhere yet");
            }
            let mut connection = Connection::open()?;
            let typed = if *stdin { typed::piped() } else { typed::line(PASSPHRASE) };
            let passphrase = Passphrase::new(typed?.reveal().to_owned());
            connection.ask(Request::UnlockSecrets { passphrase })?;
            let text = "Unlocked until IronCurtain ends. Servers that did not start do so when their client connects again.";
            screen.show(&[text].into_iter().collect(), &json!({ "locked": false }))?;
        }
        SecretsAction::Lock => {
            Connection::open()?.ask(Request::LockSecrets)?;
            let text = "Locked. Servers that run keep what they were started with.";
            screen.show(&[text].into_iter().collect(), &json!({ "locked": true }))?;
        }
        SecretsAction::Remove { name } => {
            let name = SecretName::try_from(name.as_str())?;
            let (store, gone) = (opened()?, name.clone());
            let text = format!("{} has no `{name}` any more.", place_words(&store)?);
            ask(move || store.remove(&gone))?;
            screen.show(&[text.as_str()].into_iter().collect(), &json!({ "removed": name.as_str() }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn set(name: &str, make_file: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let name = SecretName::try_from(name)?;
    let Some(typed) = TypedSecret::ask(&format!("The secret `{name}`"), make_file, screen)? else {
        screen.note("Nothing was kept.")?;
        return Ok(ExitCode::FAILURE);
    };
    let text = format!(
        "{} has `{name}`. Write `keyring:{name}` where a server needs it.",
        place_words(&typed.store)?
    );
    typed.keep(&name)?;
    screen.show(&[text.as_str()].into_iter().collect(), &json!({ "set": name.as_str() }))?;
    Ok(ExitCode::SUCCESS)
}

/// A secret that was typed, and the open store that it is for.
pub struct TypedSecret {
    store: SecretStore,
    secret: Secret,
}

impl TypedSecret {
    /// Asks for a secret, and opens the store, or makes it; nothing where the user does not want one.
    pub fn ask(prompt: &str, make_file: bool, screen: Screen) -> anyhow::Result<Option<Self>> {
        let store = store()?;
        let looked = store.clone();
        let secret = match ask(move || looked.place())? {
            SecretPlace::Keyring if make_file => {
                bail!("a keyring keeps the secrets here: leave `--make-file` out")
            }
            SecretPlace::Keyring => typed::secret(prompt)?,
            SecretPlace::File { .. } => {
                let secret = typed::line(prompt)?;
                open(&store)?;
                secret
            }
            SecretPlace::Nowhere(why) => {
                let question = format!(
                    "There is no keyring here. Keep secrets in an encrypted file, `{}`? You type its passphrase whenever IronCurtain \
                     has started.",
                    store.path().display()
                );
                if !make_file && !screen.has_terminal() {
                    return Err(why.into());
                }
                if !make_file && !screen.confirmed(&question)? {
                    return Ok(None);
                }
                let secret = typed::line(prompt)?;
                make(&store, screen)?;
                secret
            }
        };
        Ok(Some(Self { store, secret }))
    }

    /// Keeps it under a name.
    pub fn keep(self, name: &SecretName) -> anyhow::Result<()> {
        let name = name.clone();
        ask(move || self.store.set(&name, &self.secret))
    }
}

/// Makes the encrypted file. Where somebody types, they type its passphrase twice: nobody can help who forgets it.
fn make(store: &SecretStore, screen: Screen) -> anyhow::Result<()> {
    let passphrase = typed::line("A new passphrase for your secrets, at least four words")?;
    if screen.has_terminal() && typed::line("The same again")? != passphrase {
        bail!("nothing was kept: the two passphrases are not the same");
    }
    Home::from_env()?.prepare()?;
    let store = store.clone();
    ask(move || store.make(passphrase))
}

/// The store, unlocked here where the encrypted file is it.
pub fn opened() -> anyhow::Result<SecretStore> {
    let store = store()?;
    if store.file_is_locked()? == Some(true) {
        open(&store)?;
    }
    Ok(store)
}

/// The store for a server that is started here: its file is opened only where the server needs a secret.
pub fn opened_for(server: Option<&Server>) -> anyhow::Result<SecretStore> {
    let needs = server.is_some_and(|server| !server.secret_names().is_empty());
    if needs { opened() } else { store() }
}

/// Makes sure that every secret is there that a server's entry names, before anything is fetched for it.
pub fn must_have(server: &Server) -> anyhow::Result<()> {
    let (store, names) = (opened_for(Some(server))?, server.secret_names());
    for name in names {
        let (store, wanted) = (store.clone(), name.clone());
        match ask(move || Ok(store.get(&wanted)))? {
            Ok(_) => {}
            Err(SecretError::Missing(_) | SecretError::File(SecretFileError::Missing(_))) => {
                bail!("`{}` needs a secret first; run: ironcurtain secrets set {name}", server.name)
            }
            Err(SecretError::NoKeyring(_)) => bail!(
                "`{}` needs a secret first; run: ironcurtain secrets set {name}   (There is no keyring here; you will be offered \
                 an encrypted file.)",
                server.name
            ),
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(())
}

/// The secrets of a server's entry that are not known to be there. Asks for no passphrase.
pub fn missing(server: &Server) -> Vec<SecretName> {
    let Ok(store) = store() else { return Vec::new() };
    let is_missing = |name: &SecretName| {
        let (store, wanted) = (store.clone(), name.clone());
        !matches!(
            ask(move || Ok(store.get(&wanted))),
            Ok(Ok(_) | Err(SecretError::File(SecretFileError::Locked(_))))
        )
    };
    server.secret_names().into_iter().filter(is_missing).collect()
}

fn open(store: &SecretStore) -> anyhow::Result<()> {
    let passphrase = typed::line(PASSPHRASE)?;
    let store = store.clone();
    ask(move || store.unlock(passphrase))
}

/// The store, as it is.
pub fn store() -> anyhow::Result<SecretStore> {
    Ok(SecretStore::of(&Home::from_env()?.state))
}

fn place_words(store: &SecretStore) -> anyhow::Result<String> {
    Ok(match store.file_is_locked()? {
        None => "The keyring".to_owned(),
        Some(_) => format!("The encrypted file `{}`", store.path().display()),
    })
}

/// The state of the encrypted file, in a few words.
pub fn file_words(file: &SecretsFileView) -> String {
    let state = if file.locked { "LOCKED: `ironcurtain secrets unlock`" } else { "unlocked" };
    format!("in the encrypted file {}, {state}", file.path)
}

fn moved(server: Option<&str>, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = SecretMove::plan(&Home::from_env()?, server)?;
    if change.secrets.is_empty() {
        let text = format!("`{}` has no plain secret that IronCurtain knows for one.", change.file.display());
        screen.show(&[text.as_str()].into_iter().collect(), &json!({ "secrets": [] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut sheet = Sheet::default();
    lines(&change.secrets).for_each(|line| sheet.line(line));
    screen.show(&sheet, &json!({ "secrets": as_json(&change.secrets), "file": change.file }))?;
    if !yes && screen.is_for_programs() {
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !screen.confirmed("Move them?")? {
        screen.note("Nothing was moved.")?;
        return Ok(ExitCode::FAILURE);
    }
    keep(&change.secrets)?;
    change.write()?;
    screen.note(&format!("They are kept; `{}` names them.", change.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Puts plain secrets into the keyring.
pub fn keep(secrets: &[PlainSecret]) -> anyhow::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let (store, secrets) = (opened()?, secrets.to_vec());
    ask(move || plain_secrets::keep(&store, &secrets))
}

/// A line for each, which says where it is and where it goes.
pub fn lines(secrets: &[PlainSecret]) -> impl Iterator<Item = String> {
    secrets.iter().map(|plain| {
        format!("To the keyring: `{}` of {}, as `keyring:{}`.", plain.place, plain.server, plain.name)
    })
}

/// The same for programs.
pub fn as_json(secrets: &[PlainSecret]) -> Vec<Value> {
    let one = |plain: &PlainSecret| json!({ "server": plain.server, "place": plain.place, "name": plain.name.as_str() });
    secrets.iter().map(one).collect()
}

fn ask<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(in_time(what))?)
}
